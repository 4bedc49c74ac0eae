// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The broker's use of memory, disk and processor. The figures are those of an optimised build, which `Tests/run.sh`
/// tests; an unoptimised one may take more.
@Suite struct ResourceTests {
  private static let mebibyte = 1_024

  /// How many times as much an unoptimised build may take.
  private static var allowance: Int { Products.isOptimised ? 1 : 2 }

  @Test(.broker(alone: true)) func aReaderThatStopsHoldsNeitherMemoryNorOthersUp() throws {
    let writer = try broker.session("a")
    let state: JSONValue = ["pad": .string(String(repeating: "x", count: 64 << 10))]
    try writer.encode("A", state: state)
    let before = try broker.status.residentKiB
    let stopped = try broker.connect()
    // Many times as much as may be held.
    let count = Environment.isLong ? 10_000 : 2_500
    let parameters: JSONValue = ["application": "a", "object": .path("A")]
    let frames = (1...count).map { WireClient.message("decodeRestorableState", parameters, id: .integer(Int64($0))) }
    let bytes = frames.flatMap { Array($0.utf8) }
    var sent = stopped.sendWhilePossible(bytes, stall: .milliseconds(500))
    // 64 KiB of each answer, 160 MiB in all, are asked for; none is read.
    for number in 1...200 {
      try writer.encode("B", state: ["n": .integer(Int64(number))])
      #expect(try writer.decode("B")["state"]?["n"] == .integer(Int64(number)))
    }
    let growth = try broker.status.residentKiB - before
    #expect(growth < 32 * Self.mebibyte * Self.allowance, "\(growth) KiB more")
    // When it reads again it gets every answer.
    var answered = 0
    while answered < count {
      if sent < bytes.count { sent += stopped.sendWhilePossible(Array(bytes[sent...]), stall: .zero) }
      repeat {
        _ = try stopped.receive()
        answered += 1
      } while answered < count && stopped.hasInput(within: .zero)
    }
    let peak = try broker.status.peakKiB - before
    #expect(peak < 48 * Self.mebibyte * Self.allowance, "\(peak) KiB more at the peak")
  }

  @Test(.broker(alone: true)) func answersInTheMakingAreBoundedAndTheirMemoryIsGivenBack() throws {
    let writer = try broker.session("a")
    let pad = JSONValue.string(String(repeating: "x", count: 250_000))
    for number in 0..<16 { try writer.encode("A\(number)", state: ["pad": pad]) }
    for number in 0..<16 { _ = try writer.decode("A\(number)") }
    let before = try broker.status.residentKiB
    func requests(_ count: Int, _ method: String, _ parameters: (Int) -> JSONObject) -> [String] {
      (1...count).map { number in
        var members = parameters(number)
        members["application"] = "a"
        return String(WireClient.message(method, .object(members), id: .integer(Int64(number))).dropLast())
      }
    }
    let decodes = requests(256, "decodeRestorableState") { ["object": .path("A\($0 % 16)")] }
    let pages = requests(32, "readArchive") { _ in [:] }
    var crowd: [WireClient] = []
    for _ in 1...20 {
      crowd.append(try broker.connect())
      try crowd.last?.send("[\(decodes.joined(separator: ","))]\n")
    }
    for _ in 1...8 {
      crowd.append(try broker.connect())
      try crowd.last?.send(pages.map { $0 + "\n" }.joined())
    }
    for number in 1...100 {
      try writer.encode("B", state: ["n": .integer(Int64(number))])
      #expect(try writer.decode("B")["state"]?["n"] == .integer(Int64(number)))
    }
    for client in crowd where !client.hasInput(within: .seconds(30)) { Issue.record("a client was not answered") }
    let answers = try #require(crowd[0].receiveMessage().array)
    #expect(answers.count == 256)
    let refused = answers.compactMap { $0["error"]?["data"]?["limit"] }
    #expect(refused.count > 240 && refused.allSatisfy { $0 == "frameBytesMax" })
    for _ in 1...32 { #expect(try crowd[20].receiveMessage()["result"] != nil) }
    let peak = try broker.status.peakKiB
    #expect(peak < 256 * Self.mebibyte * Self.allowance, "\(peak) KiB at the peak")
    crowd = []
    try Wait.until("the memory is given back", Deadline(.seconds(10))) {
      try broker.status.residentKiB < before + 24 * Self.mebibyte * Self.allowance
    }
  }

  @Test(.broker(limits: ["connectionsPerProcessMax": 600], alone: true))
  func anIdleConnectionTakesLittleMemory() throws {
    try broker.connect().call("ping")
    let before = try broker.status.residentKiB
    let clients = try (1...500).map { _ in try broker.connect() }
    for client in clients { try client.call("ping") }
    let bytes = (try broker.status.residentKiB - before) * 1_024 / clients.count
    withExtendedLifetime(clients) {}
    #expect(bytes < 8 * 1_024 * Self.allowance, "\(bytes) bytes each")
    print("\(bytes) bytes for an idle connection")
  }

  @Test(.broker(alone: true)) func tenThousandObjectsOfFourProcessesFitIntoLittleMemory() throws {
    try broker.connect().call("ping")
    let idle = try broker.status.residentKiB
    #expect(idle <= 20 * Self.mebibyte * Self.allowance, "an idle broker has \(idle) KiB")
    let clients = try (1...4).map { _ in try broker.client(.python) }
    for (index, client) in clients.enumerated() {
      try client.initialize("a", ["process": .string("p\(index)")])
      try client.send("fill", ["count": 2_499, "bytes": 1_000, "parent": .string("P\(index)")])
    }
    for client in clients { #expect(try client.receive(Deadline(.seconds(120)))["count"] == 2_499) }
    let growth = try broker.status.residentKiB - idle
    withExtendedLifetime(clients) {}
    #expect(growth < 32 * Self.mebibyte * Self.allowance, "\(growth) KiB more")
    try broker.crashAndRestart()
    let reader = try broker.connect()
    for number in stride(from: 0, to: 2_499, by: 97) {
      let name = "o\(number)"
      let path: JSONValue = .path("P\(number % 4)", name)
      let decoded = try reader.call("decodeRestorableState", ["application": "a", "object": path])
      #expect(decoded["state"]?["name"] == .string(name))
    }
    print("idle \(idle) KiB, with 10,000 objects \(growth) KiB more")
    if Products.isOptimised(Products.control) { try Self.expectTheToolToCopeWithTenThousandObjects() }
  }

  /// A page that shows them can still be sent to somebody, and a completion does not keep a person waiting.
  private static func expectTheToolToCopeWithTenThousandObjects() throws {
    let page = try ControlTool.run(["inspect", "a", "-o", "-"], status: 0).output.utf8.count
    #expect(page <= 20_000_000, "\(page) bytes")
    for (typed, count) in [("", 4), ("P1/", 2_499), ("P1/o1", 1_111)] {
      // The least of three: others that use the machine slow down whatever runs.
      let costs = try (1...3).map { _ in try Self.costOfCompleting(typed, expecting: count) }
      let least = costs.min() ?? 0
      #expect(least <= 50, "\(typed) takes \(least) ms")
      print("completing \"\(typed)\" takes \(least) ms of a processor")
    }
  }

  /// Milliseconds of processor time that the tool and the broker take together.
  private static func costOfCompleting(_ typed: String, expecting count: Int) throws -> Double {
    let line = ["restorationctl", "show", "a", typed]
    let words = ["---completion", "show", "--", "positional@1", "3", "\(typed.utf8.count)"] + line
    let status = ProcessStatus(try broker.pid)
    let before = try status.processorNanoseconds
    let result = try ChildProcess.run(
      ["bash", "-c", #"TIMEFORMAT="%U %S"; time "$@""#, "bash", Products.control] + words,
      environment: ControlTool.environment(["SAP_SHELL": "bash", "RESTORATIONCTL_COMPLETION_TIMEOUT": "20"])
    )
    #expect(result.output.split(whereSeparator: \.isWhitespace).count == count)
    let tool = result.errors.split(whereSeparator: \.isWhitespace).reduce(0) { $0 + (Double($1) ?? .infinity) }
    return tool * 1_000 + Double(try status.processorNanoseconds - before) / 1_000_000
  }

  @Test(.broker(alone: true), .enabled(if: Strace.isUsable, Comment(rawValue: Strace.requirement)))
  func concurrentEncodesShareTheirSyncs() throws {
    try broker.kill()
    let file = broker.directory.file("trace")
    broker.wrapper = Strace.watching(["fdatasync", "fsync"], into: file)
    try broker.start()
    let clients = try (1...50).map { _ in try broker.session("a") }
    let before = try Files.text(file).split(separator: "\n").count
    for round in 1...20 {
      for (index, client) in clients.enumerated() {
        let state: JSONValue = ["round": .integer(Int64(round))]
        try client.request("encodeRestorableState", ["object": .path("O\(index)"), "state": state])
      }
    }
    for client in clients {
      for _ in 1...20 { #expect(try client.receiveMessage()["result"]?["durability"] == "disk") }
    }
    let syncs = try Files.text(file).split(separator: "\n").filter { !$0.contains("resumed>") }.count - before
    #expect(syncs >= 1)
    #expect(syncs <= 200, "\(syncs) syncs for 1,000 encodes")
    print("\(syncs) syncs for 1,000 concurrent encodes")
  }

  @Test(.broker, .enabled(if: Strace.isUsable, Comment(rawValue: Strace.requirement)))
  func anIdleBrokerMakesNoSystemCall() throws {
    let monitor = try broker.connect()
    try monitor.call("subscribe")
    let client = try broker.session("a", process: "main")
    try client.register("Main")
    try client.encode("Main", state: ["n": 1])
    // Upkeep of the archive follows a write; then nothing is due. (A decode window would end after 10 s.)
    let pid = try broker.pid
    var switches = -1
    try Wait.until("the broker is idle", Deadline(.seconds(30))) {
      let now = ProcessStatus(pid).contextSwitches
      defer { switches = now }
      guard now != switches else { return true }
      Wait.moment(.seconds(2))
      return false
    }
    let file = broker.directory.file("trace")
    let command = ["timeout", "-s", "INT", "10", "strace", "-f", "-qq", "-p", "\(pid)", "-o", file]
    _ = try ChildProcess.run(command, Deadline(.seconds(30)))
    // Calls that were pending all the time have no result.
    let calls = try Files.text(file).split(separator: "\n").filter { $0.contains(") = ") || $0.contains(")  = ") }
    #expect(calls.isEmpty, "\(calls.prefix(10))")
    let resident = try broker.status.residentKiB
    #expect(resident <= 24 * Self.mebibyte * Self.allowance, "\(resident) KiB")
    try client.call("goodbye", ["reason": "restart"])
    while try monitor.notification("event")["name"] != "sessionEnded" {}
  }
}
