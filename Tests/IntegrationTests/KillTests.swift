// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The broker is killed at every point it could be: nothing acknowledged is lost, nothing is half, and it is ready
/// again within a second (R15). `RESTORATIOND_LONG=1` takes every point and 200 rounds.
@Suite struct KillTests {
  private static let steps = 44

  /// Kills the broker at one point of the workload, starts it again and checks; false if that point never came.
  private static func kill(
    _ broker: BrokerFixture,
    _ faults: Faults,
    at call: Faults.Call,
    _ number: Int,
    _ action: Faults.Action
  ) throws -> Bool {
    Files.removeContents(of: broker.archives)
    broker.variables = faults.variables
    faults.reset()
    faults.arm(call, action, from: number)
    var workload = Workload(.everything)
    if (try? broker.start()) != nil { workload.run(broker.socket, count: steps) }
    // The end of a broker is made of such calls, too.
    let isKilled = (try? broker.terminate()) != .exit(0)
    if number % 3 == 1 {
      // The next one is killed while it recovers.
      faults.reset()
      faults.arm(.pwrite, .kill, from: 1 + number % 5)
      if (try? broker.start()) != nil { try? workload.check(broker.socket) }
      try broker.kill()
    }
    broker.variables = [:]
    let milliseconds = try broker.start()
    #expect(milliseconds <= 1_000, "ready after \(milliseconds) ms")
    do {
      #expect(workload.silence == nil)
      try workload.check(broker.socket)
      try Workload.checkSoundness(broker.socket)
    } catch {
      throw TestFailure("\(action) at \(call) number \(number): \(error)")
    }
    try broker.kill()
    return isKilled
  }

  @Test(
    .broker(limits: ["openArchivesMax": 2]),
    .enabled(if: Faults.isUsable, Comment(rawValue: Faults.requirement))
  )
  func aKillAtAnyCallLosesNothingAcknowledged() throws {
    try broker.kill()
    Files.removeContents(of: broker.archives)
    // A run that is not killed tells how many points there are.
    let faults = try Faults(in: broker.directory)
    broker.variables = faults.variables
    try broker.start()
    var workload = Workload(.everything)
    workload.run(broker.socket, count: Self.steps)
    #expect(workload.isComplete, "\(workload.refusals) \(workload.silence ?? "")")
    #expect(try broker.terminate() == .exit(0))
    let calls = Faults.Call.allCases.filter { $0 != .malloc && $0 != .open }
    var killed: [Faults.Call: Int] = [:]
    for (call, count) in calls.map({ ($0, faults.count($0)) }) {
      // The long form takes every point, the short one a few of each call. How often a call is made differs from run
      // to run, so that the last points may not come.
      let points = Environment.isLong ? count : min(count, call == .pwrite || call == .fdatasync ? 4 : 2)
      for point in 0..<points {
        let number = Environment.isLong ? point + 1 : 1 + point * (count - 1) * 4 / (5 * max(1, points - 1))
        let action: Faults.Action = call == .pwrite && number.isMultiple(of: 2) ? .tear : .kill
        if try Self.kill(broker, faults, at: call, number, action) { killed[call, default: 0] += 1 }
      }
    }
    let points = killed.values.reduce(0, +)
    #expect(points >= 20, "the broker was killed at \(points) points")
    print("killed at \(points) points: \(killed.map { "\($0.key) \($0.value)" }.sorted())")
    broker.variables = [:]
    try broker.start()
  }

  /// An import is one transaction: whenever the broker dies, all of it is there or nothing.
  @Test(.broker) func aKillAtAnyMomentOfAnImportLeavesAllOfItOrNothing() throws {
    let rounds = Environment.isLong ? 100 : 8
    let count = 3_000
    try ArchiveTests.importFirst(0, count: count)
    var expected: Int64 = 0
    for round in 1...rounds {
      let client = try broker.connect()
      try client.send(ArchiveTests.importing(ArchiveTests.document(round, count: count)))
      Wait.moment(.milliseconds(Int64.random(in: 0...700)))
      let isAnswered = client.hasInput(within: .zero)
      try broker.kill()
      try broker.start()
      let found = try ArchiveTests.value(count: count)
      #expect(found == Int64(round) || !isAnswered && found == expected, "round \(round)")
      expected = found ?? 0
    }
  }

  @Test(.broker(alone: true)) func aKillAtAnyMomentUnderLoadLosesNothingAcknowledged() throws {
    let rounds = Environment.isLong ? 200 : 12
    var generator = SystemRandomNumberGenerator()
    var records = Array(repeating: JSONObject(), count: 4)
    var total: Int64 = 0
    var slowest: Int64 = 0
    for round in 1...rounds {
      let clients = try (0..<4).map { _ in try broker.client(.python) }
      for (index, client) in clients.enumerated() {
        try client.initialize("org.example.Load", ["process": .string("p\(index)")])
        var load: JSONObject = [
          "seed": .integer(Int64.random(in: 1...1_000_000, using: &generator)),
          "parent": .string("P\(index)"), "objects": 40,
        ]
        load["acknowledged"] = records[index]["acknowledged"]
        load["sent"] = records[index]["sent"]
        #expect(try client.tell("load", load)["running"] == true)
      }
      Wait.moment(.milliseconds(Int64.random(in: 5...150, using: &generator)))
      try broker.kill()
      for (index, client) in clients.enumerated() {
        let record = try client.receive()
        if let failure = record["failure"] { throw TestFailure("round \(round): \(failure.text)") }
        records[index] = record.object ?? [:]
        total += record["total"]?.integer ?? 0
        client.end()
      }
      let milliseconds = try broker.start()
      slowest = max(slowest, milliseconds)
      #expect(milliseconds <= 1_000, "round \(round): ready after \(milliseconds) ms")
      let checker = try broker.client(.python)
      try checker.initialize("org.example.Load", ["process": "checker"])
      for (index, record) in records.enumerated() {
        let result = try checker.tell(
          "check",
          [
            "parent": .string("P\(index)"), "acknowledged": record["acknowledged"] ?? [:],
            "sent": record["sent"] ?? [:],
          ]
        )
        #expect(result["faults"] == [], "round \(round): \(result.text)")
      }
      try checker.call("goodbye", ["reason": "restart"])
      checker.end()
    }
    #expect(total > Int64(rounds * 50), "\(total) encodes were acknowledged in \(rounds) rounds")
    print("\(rounds) rounds, \(total) acknowledged encodes, ready after \(slowest) ms at most")
  }
}
