// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// Nothing longer than a client reads comes unasked, in any framing.
@Suite(.broker, .timeLimit(.minutes(10))) struct MessageBytesTests {
  /// A name that takes twice its bytes as JSON.
  private static func name(_ number: Int) -> JSONValue {
    .string(String(repeating: "\"", count: 250) + String(number))
  }

  /// The broker's next call to a client, over the connection or by polling; checks its length.
  private static func next(_ client: FramedClient, _ scope: JSONObject) throws -> JSONValue {
    guard client.framing == .http else {
      guard let reply = try client.receive() else { throw TestFailure("the broker closed the connection") }
      #expect(reply.text.utf8.count <= 65_536)
      return try JSONCodec.parse(Array(reply.text.utf8))
    }
    var members = scope
    members["waitMilliseconds"] = 20_000
    let request = try client.call("nextRequest", .object(members))
    #expect(request.text.utf8.count <= 65_536)
    return request
  }

  private static func answer(_ client: FramedClient, _ id: JSONValue, _ scope: JSONObject) throws {
    guard client.framing == .http else {
      return try client.send(JSONValue.object(["jsonrpc": "2.0", "id": id, "result": [:]]).text)
    }
    var members = scope
    members["id"] = id
    members["result"] = [:]
    try client.call("answerRequest", .object(members))
  }

  @Test(arguments: FramedClient.Framing.allCases)
  func statesComeInBatchesThatFitOrAreDeferred(_ framing: FramedClient.Framing) throws {
    let writer = try broker.session("a")
    for number in 0..<12 {
      try writer.call("registerObjectForStateRestoration", ["restorationIdentifier": Self.name(number)])
      // The last ones fit into no message.
      let text = String(repeating: "x", count: number < 10 ? 20_000 : 70_000)
      try writer.call(
        "encodeRestorableState",
        ["object": .array([Self.name(number)]), "state": ["text": .string(text)]]
      )
    }
    try writer.call("goodbye", ["reason": "restart"])
    let client = try FramedClient(broker.socket, framing)
    try client.call(
      "initialize",
      ["application": "a", "serves": ["decodeRestorableStateWithCoder", "applicationFinishedRestoringState"]]
    )
    let scope: JSONObject = framing == .http ? ["application": "a"] : [:]
    for number in 0..<12 {
      var members = scope
      members["restorationIdentifier"] = Self.name(number)
      try client.call("registerObjectForStateRestoration", .object(members))
    }
    let tool = try broker.connect()
    let restoration = try tool.request("restoreApplicationState", ["application": "a"])
    var (whole, deferred, finished) = (0, 0, 0)
    while finished < 12 {
      let message = try Self.next(client, scope)
      let objects = message["params"]?["objects"]?.array ?? []
      guard message["method"] == "decodeRestorableStateWithCoder" else {
        finished += objects.count
        continue
      }
      whole += objects.count { $0["state"]?["text"]?.string?.utf8.count == 20_000 }
      deferred += objects.count { $0["deferred"] == true }
      try Self.answer(client, message["id"] ?? .null, scope)
    }
    #expect(whole == 10)
    #expect(deferred == 2)
    #expect(try tool.answer(to: restoration)["restored"]?.array?.count == 12)
  }

  /// An event that a client does not read is counted in its place.
  @Test(arguments: FramedClient.Framing.allCases.filter(\.canBeCalled))
  func anEventThatIsTooLongIsLost(_ framing: FramedClient.Framing) throws {
    let other = try broker.session("a")
    let client = try FramedClient(broker.socket, framing)
    try client.call("initialize", ["application": "a", "messageBytesMax": 400])
    try client.call("subscribe", ["events": ["objectRegistered"]])
    for name in [Self.name(1), "short", Self.name(2), "last"] {
      try other.call("registerObjectForStateRestoration", ["restorationIdentifier": name])
    }
    var told: [JSONValue] = []
    for _ in 0..<4 {
      let reply = try #require(try client.receive())
      #expect(reply.text.utf8.count <= 400)
      let event = try JSONCodec.parse(Array(reply.text.utf8))["params"] ?? .null
      told.append(event["lost"] ?? event["path"] ?? .null)
    }
    #expect(told == [1, .path("short"), 1, .path("last")])
  }
}
