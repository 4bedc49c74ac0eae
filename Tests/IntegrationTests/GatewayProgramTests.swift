// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// The real gateway, without a database and with one.
@Suite(.scratch) struct GatewayProgramTests {
  private static func write(_ text: String) throws -> String { try directory.write(text, to: "gateway.json") }

  private static let nowhere = #"{"conninfo": "host=/nonexistent connect_timeout=1", "host": "here"}"#

  private static func start(
    _ text: String = nowhere,
    arguments: [String] = [],
    errors: String = "/dev/null"
  ) throws -> (process: ChildProcess, socket: String) {
    let configuration = try write(text)
    let socket = directory.file("gateway.sock")
    let process = try ChildProcess(
      [Products.gateway, "--config", configuration, "--socket", socket] + arguments,
      errors: errors
    )
    try Wait.until("the socket is there") { Files.exists(socket) }
    return (process, socket)
  }

  @Test func itServesEachUserByNameAndEndsInOrder() throws {
    let (process, socket) = try Self.start()
    #expect(Files.mode(socket) == 0o666)
    let client = try WireClient(socket)
    let attached = try client.call("attach", ["version": 1, "broker": "b", "term": 15_000])
    #expect(attached["user"]?.string == Environment.user)
    let away = try client.failure("acquire", ["application": "draw", "reader": 1])
    #expect(away.kind == "away" && !away.description.contains("nonexistent"), "users are not told where")
    process.send(signal: SIGTERM)
    #expect(try process.waitForEnd() == .exit(0))
    #expect(!Files.exists(socket))
    #expect(try client.receiveToEnd() == [])
  }

  @Test(.enabled(if: PythonPackages.areUsable("prometheus_client"), Comment(rawValue: PythonPackages.requirement)))
  func itsMetricsAreAFileThatPrometheusReads() throws {
    let file = directory.file("gateway.prom")
    // It is written at the start, and from then on every 15 seconds.
    let (process, _) = try Self.start(arguments: ["--metrics-file", file])
    try Wait.until("the metrics are there") { Files.exists(file) }
    #expect(Files.mode(file) == 0o644)
    let families = try MetricFamily.all(in: Files.text(file))
    #expect(families["restoration_gateway_database_connections_max"]?.samples.map(\.value) == [4])
    #expect(families["restoration_gateway_build_info"]?.samples.first?.labels.keys.sorted() == ["version"])
    process.send(signal: SIGTERM)
    #expect(try process.waitForEnd() == .exit(0))
  }

  /// Every user of the host may connect, as often as it wants.
  @Test func aUserWhoComesAgainAndAgainDoesNotFillTheLog() throws {
    let log = directory.file("log")
    let (process, socket) = try Self.start(errors: log)
    for number in 1...50 {
      try Wait.until("a connection is free") {
        let client = try WireClient(socket)
        return (try? client.call("attach", ["version": 1, "broker": .string("b\(number)"), "term": 15_000])) != nil
      }
    }
    process.send(signal: SIGTERM)
    #expect(try process.waitForEnd() == .exit(0))
    let lines = try Files.text(log).split(separator: "\n")
    #expect(lines.count { $0.contains("serving a broker") } == 20)
    #expect(lines.count { $0.contains("left out: 30 entries about brokers") } == 1, "\(lines.suffix(3))")
  }

  @Test func aMetricsFileThatCannotBeWrittenIsReportedAndNothingElseSuffers() throws {
    let log = directory.file("log")
    let (process, socket) = try Self.start(arguments: ["--metrics-file", "/nonexistent/gateway.prom"], errors: log)
    try Wait.until("it is reported") { try Files.text(log).contains("no metrics are written to /nonexistent/") }
    try WireClient(socket).call("attach", ["version": 1, "broker": "b", "term": 15_000])
    process.send(signal: SIGTERM)
    #expect(try process.waitForEnd() == .exit(0))
  }

  @Test func whatIsWrongWithItsConfigurationIsSaid() throws {
    for (text, complaint) in [
      (#"{"conninfo": "x", "pool": 17}"#, "pool is not an integer from 1 to 16"),
      (#"{"conninfo": "x", "tenant": 1}"#, "unknown setting tenant"),
      (#"{"pool": 4}"#, #"conninfo is missing. Give it, such as {"conninfo": "host=db1,db2 dbname=restoration user="#),
      ("conninfo=x", "is not JSON"),
      (#"{"conninfo": "x", "logLevel": "loud"}"#, "unknown log level loud"),
      ("{", "gateway.json is not JSON: "), ("[]", "gateway.json is not a JSON object; write {"),
      (#"{"conninfo": "postgresql://u:secret%@db/x"}"#, "write % as %25"),
      (#"{"conninfo": "postgresql://u:pw/secret@db/x"}"#, "as %40, %3A and %2F"),
    ] {
      let result = try ChildProcess.run([Products.gateway, "--config", Self.write(text)])
      #expect(result.end == .exit(64) && result.errors.contains(complaint), "\(result.errors)")
      #expect(!result.errors.contains("secret"), "\(result.errors)")
    }
    let both = try ChildProcess.run([Products.gateway, "--check", "schema"])
    #expect(both.end == .exit(64) && both.errors.contains("--check and schema are two commands; give one"))
    let absent = try ChildProcess.run([Products.gateway, "--config=/nonexistent/gateway.json"])
    #expect(absent.end == .exit(64) && absent.errors.contains("does not exist"), "\(absent.errors)")
  }

  @Test func aConfigurationThatEveryUserMayReadIsRefused() throws {
    let configuration = try Self.write(Self.nowhere)
    for mode: mode_t in [0o644, 0o641, 0o602] {
      #expect(chmod(configuration, mode) == 0)
      let result = try ChildProcess.run([Products.gateway, "--config", configuration, "--check"])
      #expect(result.end == .exit(64) && result.errors.contains("chmod 640"), "\(result.errors)")
    }
    #expect(chmod(configuration, 0o640) == 0)
    #expect(try ChildProcess.run([Products.gateway, "--config", configuration, "--check"]).end == .exit(1))
  }

  @Test func aDatabaseThatCannotBeReachedIsReported() throws {
    let configuration = try Self.write(Self.nowhere)
    let result = try ChildProcess.run([Products.gateway, "--config", configuration, "--check"])
    #expect(result.end == .exit(1) && !result.errors.isEmpty, "\(result.errors)")
  }

  @Test(.enabled(if: PostgresCluster.isUsable, "needs PostgreSQL"))
  func aCheckStoresSomethingOrSaysWhatIsMissing() throws {
    let cluster = try PostgresCluster("CREATE ROLE host LOGIN")
    func check(synchronous: Bool = true) throws -> (end: ChildProcess.End, output: String, errors: String) {
      let text = #"{"conninfo": "\#(cluster.conninfo())", "synchronous": \#(synchronous)}"#
      return try ChildProcess.run([Products.gateway, "--check", "--config", Self.write(text)])
    }
    func expectFailure(naming remedy: String) throws {
      let result = try check()
      #expect(result.end == .exit(1) && result.errors.contains(remedy), "\(result.errors)")
    }
    try expectFailure(naming: "restoration-gateway schema | psql")
    let schema = try ChildProcess.run([Products.gateway, "schema"]).output
    try cluster.query(schema)
    try expectFailure(naming: "SELECT restoration.admit('HOST', 'USER')")
    try cluster.admit()
    try expectFailure(naming: "set synchronous_standby_names")
    // The log of a gateway that serves says it, too.
    let log = directory.file("log")
    let (process, socket) = try Self.start(#"{"conninfo": "\#(cluster.conninfo())"}"#, errors: log)
    let client = try WireClient(socket)
    try client.call("attach", ["version": 1, "broker": "b", "term": 15_000])
    #expect(try client.failure("acquire", ["application": "draw", "reader": 1]).kind == "uncovered")
    #expect(try Files.text(log).contains("set synchronous_standby_names"))
    try process.kill()
    // Again and again, as after each change of a setting.
    for _ in 1...3 {
      let result = try check(synchronous: false)
      #expect(result.end == .exit(0) && result.output.contains("stores what it is given"), "\(result.errors)")
    }
    try cluster.query("ALTER SYSTEM SET synchronous_standby_names = 'gone'")
    try cluster.query("SELECT pg_reload_conf()")
    try Wait.until("the setting holds") { try cluster.query("SHOW synchronous_standby_names") == "gone" }
    try expectFailure(naming: "pg_stat_replication")
    // A database of before there were versions.
    try cluster.query(
      """
      SET synchronous_commit = local;
      DROP FUNCTION restoration.server_1; COMMENT ON SCHEMA restoration IS NULL;
      CREATE FUNCTION restoration.server_1(bigint, OUT system bigint, OUT timeline bigint, OUT stuck bigint)
      LANGUAGE sql AS 'SELECT 1::bigint, 1::bigint, 0::bigint'
      """
    )
    try expectFailure(naming: "version 1 of the schema, and this gateway needs 2")
    let refusal = #expect(throws: TestFailure.self) { try cluster.query(schema) }
    #expect(refusal.map { "\($0)".contains("DROP SCHEMA restoration CASCADE") } == true)
  }

  @Test(.enabled(if: PostgresCluster.isUsable, "needs PostgreSQL"))
  func whatOneHostHasAppendedAnotherOneLoadsAndEverythingOfAUserCanBeErased() throws {
    // What it prints is what an administrator applies.
    let cluster = try PostgresCluster(ChildProcess.run([Products.gateway, "schema"]).output)
    try cluster.admit()
    let log = directory.file("log")
    let (process, socket) = try Self.start(
      #"{"conninfo": "\#(cluster.conninfo())", "synchronous": false}"#,
      errors: log
    )
    let (a, b) = (try WireClient(socket), try WireClient(socket))
    for (client, host) in [(a, "A"), (b, "B")] as [(WireClient, JSONValue)] {
      try client.call("attach", ["version": 1, "broker": host, "term": 15_000, "host": host])
    }
    let claim: JSONValue = ["application": "draw", "reader": 1, "wants": true]
    let lease = try a.call("acquire", claim)["lease"] ?? .null
    let change: JSONValue = "00000000000000010000000000000002"
    let batch: JSONValue = ["after": 0, "upto": 2, "change": change, "body": "AAE="]
    for _ in 1...2 { #expect(try a.call("append", ["lease": lease, "batch": batch]) == [:]) }
    let held = try b.failure("acquire", claim)
    #expect(held.kind == "elsewhere" && held.data["host"] == "A")
    _ = try a.notification("attention")
    #expect(try a.call("renew")["held"] == [["lease": lease, "sequence": 2, "wanted": "B"]])
    try a.call("release", ["lease": lease, "upto": 2, "summary": ""])
    let grant = try b.call("acquire", claim)
    #expect(grant["tip"] == ["sequence": 2, "change": change])
    let page = try b.call("load", ["lease": grant["lease"] ?? .null, "from": ["after": 0]])
    #expect(page["batches"] == [batch])
    #expect(try a.failure("append", ["lease": lease, "batch": batch]).kind == "fenced")

    let configuration = ["--config", directory.file("gateway.json")]
    #expect(try ChildProcess.run([Products.gateway, "--check"] + configuration).end == .exit(0))
    #expect(try b.call("list")["archives"]?.array?.count == 1)
    #expect(try cluster.query("SELECT restoration.erase('\(Environment.user)')") == "1")
    let refused = try b.failure("list")
    #expect(refused.kind == "refused" && refused.description.contains("has no ticket for the user \(Environment.user)"))
    for _ in 1...2 { #expect(try b.failure("renew").kind == "refused") }
    try cluster.admit()
    #expect(try b.call("list") == ["archives": []])
    process.send(signal: SIGTERM)
    #expect(try process.waitForEnd() == .exit(0))
    // One line for all calls.
    #expect(try Files.text(log).matches(of: /refused: .* has no ticket for the user/).count == 1)
  }
}
