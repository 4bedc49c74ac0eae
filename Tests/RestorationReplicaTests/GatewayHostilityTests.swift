// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import RestorationArchive
internal import RestorationReplica
internal import RestorationWire
internal import TestSupport
internal import Testing

/// What nobody should send: each call gets an error that says what to do, and the gateway serves everybody else.
@Suite(.passesTurnstile) struct GatewayHostilityTests {
  private static let introduction: JSONValue = ["version": 1, "broker": "b", "term": 3_000, "host": "A"]
  private static let lease: JSONValue = ["application": "draw", "archive": 1, "id": .string(LeaseID.numbered(3).text)]

  private static func run(connections: Int = 64, _ body: (ServedGateway) async throws -> Void) async throws {
    var settings = GatewayService.Settings(host: "here")
    settings.connectionsPerUserMax = connections
    let gateway = try ServedGateway(settings: settings)
    try await gateway.start()
    try await body(gateway)
    // Whatever was done to it, it serves others; those that were here may not have left yet.
    let (other, deadline) = (gateway.link(from: "B"), Deadline())
    func isRefused() async -> Bool {
      await refusal { () async throws(ReplicaError) in _ = try await other.list() } != nil
    }
    while await isRefused(), !deadline.isOver {}
    #expect(!deadline.isOver)
    await gateway.stop()
  }

  /// A connection that is attached.
  private static func client(_ gateway: ServedGateway) throws -> WireClient {
    let client = try WireClient(gateway.name)
    #expect(try client.call("attach", introduction) == ["version": 1, "user": .string("user\(geteuid())")])
    return client
  }

  private static func batch(after: JSONValue = 0, upto: JSONValue = 1, body: JSONValue = "AA==") -> JSONValue {
    let change: JSONValue = "00000000000000000000000000000001"
    return ["after": after, "upto": upto, "change": change, "body": body]
  }

  private static func part(_ number: JSONValue, _ count: JSONValue, _ bytes: JSONValue = "AA==") -> JSONValue {
    ["attempt": 1, "tip": ["sequence": 1], "reader": 1, "number": number, "count": count, "bytes": bytes]
  }

  /// Invalid parameters with the place of the fault.
  private static let invalid: [(method: String, parameters: JSONValue, pointer: String)] = [
    ("append", ["batch": batch()], "/lease"),
    ("append", ["lease": lease, "batch": batch(), "user": "root"], "/user"),
    ("append", ["lease": lease, "batch": batch(after: -1)], "/batch/after"),
    ("append", ["lease": lease, "batch": batch(after: 1)], "/batch/upto"),
    ("append", ["lease": lease, "batch": batch(upto: .integer(ChangeBatch.sequenceMax + 1))], "/batch/upto"),
    ("append", ["lease": lease, "batch": batch(body: "A")], "/batch/body"),
    ("append", ["lease": lease, "batch": batch(body: "????")], "/batch/body"),
    ("append", ["lease": lease, "batch": ["after": 0]], "/batch/upto"),
    ("append", ["lease": ["application": "draw", "archive": 1, "id": "3"], "batch": batch()], "/lease/id"),
    ("acquire", ["application": "../draw", "reader": 1], "/application"),
    ("acquire", ["application": "draw", "reader": "1"], "/reader"),
    ("load", ["lease": lease, "from": [:]], "/from"),
    ("load", ["lease": lease, "from": ["part": 1, "after": 1]], "/from"),
    ("snapshot", ["lease": lease, "part": part(2, 2)], "/part/number"),
    ("snapshot", ["lease": lease, "part": part(0, 70_000)], "/part/count"),
    ("snapshot", ["lease": lease, "part": part(0, 1, "A===")], "/part/bytes"),
    ("release", ["lease": lease, "summary": 5], "/summary"),
    ("renew", ["application": "draw"], "/application"),
    ("list", ["after": ""], "/after"),
  ]

  @Test func wrongParametersAreRefusedWithTheirPlace() async throws {
    try await Self.run { gateway in
      let client = try Self.client(gateway)
      for (method, parameters, pointer) in Self.invalid {
        let error = try client.failure(method, parameters)
        #expect(error.kind == "invalidParams" && error.data["pointer"]?.string == pointer, "\(method): \(error)")
        #expect(error.data["hint"]?.string?.isEmpty == false, "\(error)")
      }
    }
  }

  @Test func whoIsNotAttachedOrOfAnotherVersionIsToldSo() async throws {
    try await Self.run { gateway in
      let client = try WireClient(gateway.name)
      #expect(try client.failure("renew").kind == "notAttached")
      let newer = try client.failure("attach", ["version": 2, "tenant": "everybody"])
      #expect(newer.kind == "unsupportedProtocolVersion" && newer.data["supported"] == [1])
      #expect(try client.failure("attach", ["version": 1, "broker": "b", "term": 5]).data["pointer"] == "/term")
      let unknown = try client.failure("dropTable")
      #expect(unknown.kind == "methodNotFound")
      let names = ["attach"] + GatewayMethods.forwarded.map { $0.method }
      #expect(unknown.data["hint"]?.string == "Call one of \(names.joined(separator: ", ")).")
      try client.call("attach", Self.introduction)
      #expect(try client.failure("attach", Self.introduction).kind == "invalidRequest")
      #expect(try client.call("list") == ["archives": []])
    }
  }

  @Test func whatIsNotJSONIsAnswered() async throws {
    try await Self.run { gateway in
      let client = try Self.client(gateway)
      try client.send("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"list\",\"params\":{\"after\":tru}}\n")
      #expect(try client.receiveMessage()["error"]?["data"]?["kind"] == "parseError")
      #expect(try client.call("list") == ["archives": []])
    }
  }

  @Test func aLeaseThatTheUserDoesNotHaveIsUnknown() async throws {
    try await Self.run { gateway in
      let client = try Self.client(gateway)
      #expect(try client.failure("append", ["lease": Self.lease, "batch": Self.batch()]).kind == "voided")
      #expect(try client.failure("release", ["lease": Self.lease, "isRemoval": true, "summary": ""]).kind == "voided")
    }
  }

  @Test func aPartThatIsTooLongIsRefusedAndAFrameThatIsTooLongIsSkipped() async throws {
    try await Self.run { gateway in
      let client = try Self.client(gateway)
      let long = JSONValue.string(String(repeating: "AAAA", count: GatewayProtocol.partBytesMax / 3 + 1))
      let error = try client.failure("snapshot", ["lease": Self.lease, "part": Self.part(0, 1, long)])
      #expect(error.data["pointer"] == "/part/bytes")
      let frame = [UInt8](repeating: UInt8(ascii: "A"), count: GatewayProtocol.frame.frameBytesMax)
      try client.send(#"{"jsonrpc":"2.0","id":9,"method":"append","params":{"lease":""#)
      try client.send(bytes: frame)
      try client.send("\"}}\n")
      #expect(try client.receiveMessage()["error"]?["data"]?["kind"] == "limitExceeded")
      #expect(try client.call("list") == ["archives": []])
    }
  }

  @Test func tenThousandCallsAtOnceAreAllAnswered() async throws {
    try await Self.run { gateway in
      let client = try Self.client(gateway)
      let count = 10_000
      try client.send((1...count).map { #"{"jsonrpc":"2.0","id":\#($0),"method":"list"}"# + "\n" }.joined())
      for _ in 1..<count { _ = try client.receive() }
      #expect(try client.receiveMessage()["id"] == .integer(Int64(count)))
    }
  }

  @Test func aClientThatDoesNotReadKeepsNobodyWaitingAndGetsItsAnswersWhenItReads() async throws {
    try await Self.run { gateway in
      let link = gateway.link()
      let lease = try await link.acquire("draw", as: ReplicaClaim(reader: 1)).lease
      let long = [UInt8](repeating: 7, count: 300 << 10)
      let batch = ReplicaBatch(after: 0, upto: 1, change: .numbered(1), body: long)
      try await link.append(batch, lease)
      let client = try Self.client(gateway)
      let count = 12
      let words: JSONValue = ["application": "draw", "archive": .integer(lease.archive), "id": .string(lease.id.text)]
      let ids = try (1...count).map { _ in try client.request("load", ["lease": words, "from": ["after": 0]]) }
      #expect(try await link.load(lease, from: .batches(after: 0)).batches == [batch])
      for id in ids { #expect(try client.answer(to: id)["batches"]?.array?.count == 1) }
    }
  }

  @Test func aCallThatHasWaitedForAnotherOneHasTheRestOfItsTime() async throws {
    let (gateway, gates) = try await ServedGateway.gated()
    let client = try Self.client(gateway)
    var all = gates.makeAsyncIterator()
    let gate = try #require(await all.next())
    let lease = try client.call("acquire", ["application": "draw", "reader": 1])["lease"] ?? .null
    let ids = try [(0, 1), (1, 2)].map { after, upto in
      try client.request("append", ["lease": lease, "batch": Self.batch(after: after, upto: upto)])
    }
    // What came before it has arrived.
    try client.call("list")
    let arrived = ContinuousClock.now
    gate.open()
    for id in ids { try client.answer(to: id) }
    #expect(gate.deadlines.count == 2)
    for deadline in gate.deadlines { #expect(try #require(deadline) <= arrived + .milliseconds(1_500)) }
    await gateway.stop()
  }

  @Test func fourConnectionsAUserAreEnough() async throws {
    #expect(GatewayService.Settings(host: "here").connectionsPerUserMax == 4)
    try await Self.run(connections: 4) { gateway in
      var clients = try (1...4).map { _ in try WireClient(gateway.name) }
      for client in clients { #expect(try client.failure("renew").kind == "notAttached") }
      let refused = try WireClient(gateway.name).receiveMessage()
      #expect(refused["error"]?["data"]?["limit"] == "connectionsPerUserMax")
      clients.removeLast(2)
      try Wait.until("a connection is free") {
        let client = try WireClient(gateway.name)
        return (try? client.call("attach", Self.introduction)) != nil
      }
      withExtendedLifetime(clients) {}
    }
  }

  @Test func aConnectionThatEndsInTheMiddleOfAFrameLeavesNothing() async throws {
    try await Self.run(connections: 4) { gateway in
      for _ in 1...20 {
        var client: WireClient?
        try Wait.until("one of those before has left") {
          client = try? Self.client(gateway)
          return client != nil
        }
        try client?.send(#"{"jsonrpc":"2.0","id":1,"method":"append","params":{"lease":{"#)
      }
    }
  }
}
