// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The wall clock of the real broker jumps, as when it is set, or goes on while the machine is suspended (which the
/// monotonic clock does not notice): nothing ends early, and the order of changes stays.
@Suite(.enabled(if: Faults.isUsable, Comment(rawValue: Faults.requirement))) struct ClockTests {
  /// A day ahead, a day back, a night of sleep, and about 1970.
  private static let jumps: [Duration] = [
    .seconds(86_400), .seconds(-86_400), .seconds(8 * 3_600), .seconds(-1_795_000_000),
  ]

  /// Starts the broker with a clock of the test's.
  private static func begin(_ broker: BrokerFixture) throws -> Faults {
    try broker.kill()
    let faults = try Faults(in: broker.directory)
    broker.variables = faults.variables
    try broker.start()
    return faults
  }

  /// Lets the clock jump, and waits until the broker has noticed, which looks at it once a second.
  private static func jump(_ faults: Faults, _ jump: Duration) throws {
    let client = try broker.connect()
    func hour() throws -> String {
      try client.encode("A", state: [:], of: "org.example.Clock")
      let page = try client.call("readArchive", ["application": "org.example.Clock"])
      return String(page["objects"]?.array?.first?["modified"]?.string?.prefix(13) ?? "")
    }
    let before = try hour()
    faults.setClock(ahead: jump)
    try Wait.until("the broker sees the jump") { try hour() != before }
  }

  @Test(.broker) func aJumpEndsNoRoundEarly() throws {
    let faults = try Self.begin(broker)
    let client = try broker.session("a", process: "p", ["serves": ["encodeRestorableStateWithCoder"]])
    let object = try client.register("A")["object"] ?? .null
    let caller = try broker.connect()
    for (number, jump) in Self.jumps.enumerated() {
      let round: JSONValue = ["application": "a", "deadlineMilliseconds": 60_000]
      let call = try caller.request("saveApplicationState", round)
      let question = try client.receiveMessage()
      #expect(question["method"] == "encodeRestorableStateWithCoder")
      try Self.jump(faults, jump)
      #expect(!caller.hasInput(within: .zero), "\(jump)")
      let states: JSONValue = ["states": [["object": object, "state": ["n": .integer(Int64(number))]]]]
      let answer: JSONValue = ["jsonrpc": "2.0", "id": question["id"] ?? .null, "result": states]
      try client.send(answer.text + "\n")
      let result = try caller.answer(to: call)
      #expect(result["saved"] == true && result["stale"] == [], "\(jump): \(result.text)")
    }
  }

  @Test(.broker(limits: ["openArchivesMax": 2])) func noJumpChangesWhatIsNewer() throws {
    let faults = try Self.begin(broker)
    var workload = Workload(.everything)
    for jump in Self.jumps + [.zero] {
      faults.setClock(ahead: jump)
      // The first comes before the broker looks at its clock again, the second after.
      for _ in 1...2 {
        workload.run(broker.socket, count: 22)
        #expect(workload.isComplete, "\(jump): \(workload.refusals) \(workload.silence ?? "")")
        try broker.crashAndRestart()
        try workload.check(broker.socket)
      }
      try Workload.checkSoundness(broker.socket)
    }
  }
}
