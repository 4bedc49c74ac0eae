// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// A broker with many clients is killed now and then for a long time: nothing acknowledged is lost, and its memory and
/// descriptors stay as they are. `RESTORATIOND_LONG=1` takes an hour, or `RESTORATIOND_SOAK_MINUTES`.
@Suite struct SoakTests {
  /// What is measured at the end of each life of a broker.
  private struct Sample {
    let residentKiB: Int
    let descriptors: Int
  }

  private struct Plan {
    let clients = Environment.isLong ? 200 : 40
    let lives: Int
    /// Encodes in a life, and how many milliseconds there are for each.
    let encodes = Environment.isLong ? 1_500 : 200
    let pause: Int64 = Environment.isLong ? 20 : 0

    init() {
      let minutes = Environment.variable("RESTORATIOND_SOAK_MINUTES").flatMap { Int($0) } ?? 60
      lives = Environment.isLong ? max(4, 2 * minutes) : 4
    }
  }

  /// The last version of each client's object: sent, and acknowledged.
  private var sent: [Int] = []
  private var acknowledged: [Int] = []

  private static func parameters(_ client: Int, _ state: JSONValue? = nil) -> JSONValue {
    let application = "org.example.Soak\(client % 8)"
    var parameters: JSONObject = ["application": .string(application), "object": .path("C\(client)")]
    parameters["state"] = state
    return .object(parameters)
  }

  /// One life of a broker: each client encodes in its turn, and reads what it finds before.
  private mutating func live(_ plan: Plan) throws -> Sample {
    let clients = try (0..<plan.clients).map { _ in try broker.connect() }
    for (number, client) in clients.enumerated() where sent[number] > 0 {
      let state = try client.call("decodeRestorableState", Self.parameters(number))["state"] ?? .null
      let found = Int(state["n"]?.integer ?? 0)
      #expect((acknowledged[number]...sent[number]).contains(found), "client \(number): \(found)")
      #expect(state == Workload.state(found), "client \(number): half a state")
    }
    for step in 0..<plan.encodes {
      let begin = Deadline.now
      let number = step % plan.clients
      sent[number] += 1
      try clients[number].call("encodeRestorableState", Self.parameters(number, Workload.state(sent[number])))
      acknowledged[number] = sent[number]
      Wait.moment(.milliseconds(max(0, plan.pause - (Deadline.now - begin))))
    }
    let sample = Sample(
      residentKiB: try broker.status.residentKiB,
      descriptors: try broker.status.descriptors
    )
    // These are answered or not.
    for (number, client) in clients.enumerated() {
      sent[number] += 1
      try client.request("encodeRestorableState", Self.parameters(number, Workload.state(sent[number])))
    }
    try broker.crashAndRestart()
    return sample
  }

  private static func mean(_ values: ArraySlice<Sample>, _ value: (Sample) -> Int) -> Int {
    values.map(value).reduce(0, +) / max(1, values.count)
  }

  // All clients are this process.
  @Test(.broker(limits: ["connectionsPerProcessMax": 256])) mutating func manyLivesOfABrokerNeedNoMoreThanTheFirst()
    throws
  {
    let plan = Plan()
    sent = Array(repeating: 0, count: plan.clients)
    acknowledged = sent
    var samples: [Sample] = []
    for _ in 1...plan.lives { samples.append(try live(plan)) }
    let quarter = plan.lives / 4
    let (first, last) = (samples.prefix(quarter), samples.suffix(quarter))
    let resident = (Self.mean(first, \.residentKiB), Self.mean(last, \.residentKiB))
    let descriptors = (Self.mean(first, \.descriptors), Self.mean(last, \.descriptors))
    print("\(plan.lives) lives of \(plan.encodes) encodes: \(resident) KiB, \(descriptors) descriptors")
    #expect(resident.1 <= resident.0 * 11 / 10 + 2_048, "\(resident) KiB in the first and the last quarter")
    #expect(descriptors.1 <= descriptors.0 + 2, "\(descriptors) descriptors in the first and the last quarter")
  }
}
