// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// The program itself, with a broker that runs for it.
@Suite struct BenchTests {
  private static let program = "\(Products.directory)/restoration-bench"
  /// As little as there can be.
  private static let few = ["--requests", "6", "--objects", "6", "--size", "100", "--rounds", "1", "--processes", "2"]

  private static func bench(_ arguments: [String]) throws -> (end: ChildProcess.End, output: String, errors: String) {
    try ChildProcess.run([program] + arguments, Deadline(.seconds(60)))
  }

  private static func own(_ directory: ScratchDirectory) -> [String] {
    ["--broker", Products.broker, "--directory", directory.path, "--no-pin"]
  }

  @Test(.scratch) func everyWorkOfABrokerHasItsRows() throws {
    let page = directory.file("page.html")
    let more = ["--clients", "1,2", "--depth", "1,3", "--framing", "lines,headers,http", "--html", page]
    let result = try Self.bench(["run", "-j"] + Self.few + more + Self.own(directory))
    #expect(result.end == .exit(0), "\(result.errors)\(result.output)")
    let rows = try #require(try JSONCodec.parse(Array(result.output.utf8))["rows"]?.array)
    let counts = Dictionary(grouping: rows, by: { $0["work"]?.string ?? "" }).mapValues(\.count)
    #expect(
      counts == [
        "ping": 12, "encode": 12, "notify": 12, "decode": 12, "round": 1, "restore": 1, "start": 2,
        "start and decode": 1,
      ]
    )
    for row in rows {
      #expect(row["failed"] == .integer(0))
      let isPlayed = ["round", "restore", "start", "start and decode"].contains(row["work"]?.string ?? "")
      #expect(row["requests"] == .integer(isPlayed ? 1 : 6), "\(row.text)")
    }
    #expect(try Files.text(page).contains("</html>"))
    let left = Files.list(directory.path).filter { $0.hasPrefix("restoration-bench-") }
    #expect(left.isEmpty)
  }

  @Test(.scratch) func growthHasACurveOfEachAxis() throws {
    let page = directory.file("page.html")
    let few = ["--values", "40,48", "--objects", "6", "--size", "100", "--seconds", "0.01", "--html", page]
    let result = try Self.bench(["growth", "-j"] + few + Self.own(directory))
    #expect(result.end == .exit(0), "\(result.errors)\(result.output)")
    let rows = try #require(try JSONCodec.parse(Array(result.output.utf8))["rows"]?.array)
    let axes = ["objects", "connections", "bytes", "depth", "children", "generations", "applications"]
    for axis in axes {
      let found = rows.filter { $0["growth"]?["axis"] == .string(axis) }
      #expect(found.map { $0["growth"]?["value"] } == [40, 40, 48, 48].map { .integer($0) }, "\(axis)")
      #expect(found.allSatisfy { $0["failed"] == .integer(0) && $0["requests"] != .integer(0) }, "\(axis)")
    }
    #expect(try Files.text(page).matches(of: /<polyline/).count == 2 * axes.count)
  }

  @Test(.broker) func anotherBrokerForgetsWhatWasStored() throws {
    let result = try Self.bench(["run", "--socket", broker.socket] + Self.few)
    #expect(result.end == .exit(0), "\(result.errors)\(result.output)")
    for work in ["ping", "encode", "notify", "decode", "round", "restore"] {
      #expect(result.output.contains("\n\(work) "), "\(work)")
    }
    let list = try broker.connect().call("listApplications", .object([:]))
    #expect(list["applications"]?.array == [])
  }

  @Test(.scratch) func anInterruptedRunLeavesNothing() throws {
    let bench = try ChildProcess([Self.program, "run", "ping", "--seconds", "600"] + Self.own(directory))
    try Wait.until("a server runs") {
      Files.list(directory.path).contains { Files.exists(directory.file("\($0)/1-broker.sock")) }
    }
    bench.send(signal: SIGTERM)
    #expect(try bench.waitForEnd() == .exit(128 + SIGTERM))
    #expect(Files.list(directory.path).isEmpty)
  }

  @Test(.scratch) func aComparisonHasWhatIsInstalled() throws {
    let options = ["--turns", "2", "--seconds", "0.02", "--shapes", "1x1,2x2", "--objects", "5", "--size", "100"]
    let result = try Self.bench(["compare", "-j"] + options + Self.own(directory))
    #expect(result.end == .exit(0), "\(result.errors)\(result.output)")
    let report = try JSONCodec.parse(Array(result.output.utf8))
    let rows = try #require(report["rows"]?.array)
    let servers = Set(rows.compactMap { $0["server"]?.string })
    #expect(servers.isSuperset(of: ["broker", "SQLite in process", "C floor"]))
    // A peer is measured, or it is said why not.
    let missing = report["missing"]?.array?.compactMap(\.string) ?? []
    for name in ["redis always", "redis everysec", "redis off", "dconf", "D-Bus"] {
      #expect(servers.contains(name) != missing.contains { $0.hasPrefix("\(name),") }, "\(name)")
    }
    for row in rows { #expect(row["turns"] == .integer(2)) }
    let rounds = rows.filter { $0["work"] == .string("round") }.compactMap { $0["server"]?.string }
    #expect(Set(rounds).isSuperset(of: ["broker", "C floor"]))
  }

  @Test(
    .passesTurnstile,
    arguments: [
      (["run", "ping", "--size", "39"], "--size must be 40 or more, not 39"),
      (["run", "ping", "--clients", "1,none"], "1,none"),
      (["run", "ping", "--framing", "morse"], "--framing must be lines, headers or http, not morse"),
      (["run", "start", "--socket", "/nowhere"], "start needs a broker of its own; leave out --socket"),
      (["run", "dance"], "dance"), (["growth", "--values", "39"], "--values must be 40 or more for bytes, not 39"),
      (["compare", "--shapes", "8"], "8"),
      (["compare", "--turns", "0"], "--turns must be 1 to 1000, not 0"),
    ]
  ) func badOptionsAreTold(arguments: [String], words: String) throws {
    let result = try Self.bench(arguments)
    #expect(result.end == .exit(64))
    #expect(result.errors.contains(words), "\(result.errors)")
    #expect(result.output.isEmpty)
  }

  @Test(.passesTurnstile) func aBrokerThatIsNotThereIsNamed() throws {
    let result = try Self.bench(["run", "ping", "--socket", "/nowhere/broker.sock"])
    #expect(result.end == .exit(1))
    #expect(result.errors == "Error: /nowhere/broker.sock: No such file or directory\n")
    let program = try Self.bench(["run", "ping", "--broker", "/nowhere/restorationd"])
    #expect(program.errors == "Error: there is no program /nowhere/restorationd; build it, or name it with --broker\n")
  }
}
