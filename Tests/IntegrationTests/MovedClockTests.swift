// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationTesting
internal import TestSupport
internal import Testing

/// The clock of a private broker, which a test moves (`--test-clock`).
@Suite(.passesTurnstile) struct MovedClockTests {
  @Test("R13 Applications that were not used for so many days are forgotten, also over a restart")
  func unusedApplicationsAreForgotten() async throws {
    let broker = try await PrivateBroker(program: Products.broker, testClock: true)
    defer { broker.stop() }
    func use(_ application: String) async throws -> String {
      let client = try WireClient(broker.socket)
      try client.encode("A", state: [:], of: application)
      let page = try client.call("readArchive", ["application": .string(application)])
      return page["objects"]?.array?.first?["modified"]?.string ?? ""
    }
    let first = try await use("org.example.Old")
    _ = try await use("org.example.Older")
    for _ in 1...3 {
      _ = try await use("org.example.New")
      try await broker.advance(by: .days(1))
      try await broker.restart()
    }
    let command = [Products.control, "--socket", broker.socket, "forget", "--unused"]
    #expect(try ChildProcess.run(command + ["3"]).errors.contains("this is not a terminal to ask on: use --yes"))
    #expect(try ChildProcess.run(command + ["0", "--yes"]).errors.contains("a number of days from 1"))
    #expect(try ChildProcess.run(command + ["3", "--force"]).errors.contains("an application that is named"))
    #expect(try ChildProcess.run(command + ["4", "--yes"]).output == "No application was unused for 4 days.\n")
    // What is used while a person thinks about it stays, and so does what is live.
    let terminal = try PseudoTerminal(columns: 80)
    let asking = try ChildProcess(command + ["1"], output: .terminal(terminal))
    _ = try terminal.shown(until: "org.example.New, org.example.Old, org.example.Older? [y/N] ")
    let live = try WireClient(broker.socket)
    try live.call("initialize", ["application": "org.example.New"])
    _ = try await use("org.example.Old")
    try terminal.type("y\n")
    #expect(try terminal.rest().contains("Forgot org.example.Older: not used for 3 days.\n"))
    #expect(try asking.waitForEnd() == .exit(0))
    try await broker.advance(by: .days(1))
    let forgotten = #"{"applications":[{"application":"org.example.Old","result":{"unusedDays":1}}]}"#
    #expect(try ChildProcess.run(command + ["1", "--yes", "-j"]).output == forgotten + "\n")
    let connection = try await broker.connect()
    let applications = try await connection.call(ListApplications()).applications
    #expect(applications.map { "\($0.application)" } == ["org.example.New"])
    await connection.close()
    try live.call("goodbye", ["reason": "restart"])
    // Its date is that of the clock.
    let last = try await use("org.example.New")
    #expect(try (4..<5).contains(Self.days(last) - Self.days(first)), "\(first) \(last)")
  }

  /// Since 1970.
  private static func days(_ time: String) throws -> Double {
    try Double(#require(Timestamp(time), "\(time)").milliseconds) / (24 * 3_600 * 1_000)
  }

  @Test("R12 A round ends without a client that does not answer when the clock has passed its time limit")
  func timeLimitsPassAtOnce() async throws {
    let broker = try await PrivateBroker(program: Products.broker, testClock: true)
    defer { broker.stop() }
    let (client, caller) = (try WireClient(broker.socket), try WireClient(broker.socket))
    try client.call("initialize", ["application": "a", "serves": ["encodeRestorableStateWithCoder"]])
    try client.register("A")
    let call = try caller.request("saveApplicationState", ["application": "a", "deadlineMilliseconds": 600_000])
    #expect(try client.receiveMessage()["method"] == "encodeRestorableStateWithCoder")
    try await broker.advance(by: .seconds(300))
    #expect(!caller.hasInput(within: .zero))
    try await broker.advance(by: .seconds(300))
    let stale = try caller.answer(to: call)["stale"]?.array
    #expect(stale?.map { $0["path"] } == [["A"]], "\(stale ?? [])")
  }

  @Test("A clock that nobody asked to be moved stays the computer's, and a service's cannot be another")
  func onlyTestsMoveClocks() async throws {
    let broker = try await PrivateBroker(program: Products.broker)
    defer { broker.stop() }
    let refused = await #expect(throws: TestingError.self) { try await broker.advance(by: .days(1)) }
    #expect(refused?.description.contains("PrivateBroker(testClock: true)") == true)
    let activated = #"LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" --test-clock "$1" 3<&0"#
    let service = try ChildProcess.run(["sh", "-c", activated, Products.broker, "0"])
    #expect(service.end == .exit(64) && service.errors.contains("--test-clock: a service"), "\(service.errors)")
    let negative = try ChildProcess.run([Products.broker, "--test-clock", "-1", "--socket", "/nowhere/socket"])
    #expect(negative.errors.contains("--test-clock: -1 "), "\(negative.errors)")
  }

  @Test("A clock that cannot be moved stays where it is")
  func whatIsRefusedMovesNothing() async throws {
    let broker = try await PrivateBroker(program: Products.broker, testClock: true)
    defer { broker.stop() }
    for time in [Duration.milliseconds(-1), .days(36_526), .seconds(Int64.max)] {
      let refused = await #expect(throws: TestingError.self) { try await broker.advance(by: time) }
      #expect(refused?.description == "\(time) is not a time from 0 to 3155760000000 milliseconds")
    }
    broker.kill()
    let refused = await #expect(throws: TestingError.self) { try await broker.advance(by: .days(1)) }
    #expect(refused?.description == "the broker is not running; call restart()")
    try await broker.start()
    // Nor has the clock lost what it can be ahead by.
    try await broker.advance(by: .days(36_525))
  }
}
