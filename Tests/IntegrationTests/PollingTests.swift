// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// Clients that fetch the broker's calls, in every framing; over HTTP there is no other way.
@Suite(.broker, .timeLimit(.minutes(10))) struct PollingTests {
  private static let application: JSONValue = "org.example.Poll"
  private static let encode = "encodeRestorableStateWithCoder"

  /// A client with a session, whose calls each come over a connection of their own.
  private struct Script {
    let socket: String
    let framing: FramedClient.Framing
    let token: JSONValue

    /// A stream makes its session by registering an object, so that it has no connection of its own either.
    init(_ broker: BrokerFixture, _ framing: FramedClient.Framing, _ name: String) throws {
      socket = broker.socket
      self.framing = framing
      let client = try FramedClient(broker.socket, framing)
      if framing == .http {
        let result = try client.call("initialize", ["application": application, "process": .string(name)])
        token = result["session"] ?? .null
      } else {
        let result = try client.register(name, with: ["application": application])
        token = result["session"] ?? .null
        // From its first use elsewhere on the session outlives the connection it was made on.
        try call("nextRequest")
      }
    }

    @discardableResult
    func call(_ method: String, _ members: JSONObject = [:]) throws -> JSONValue {
      try FramedClient(socket, framing).call(method, scoped(members))
    }

    func scoped(_ members: JSONObject) -> JSONValue {
      var members = members
      members["application"] = application
      members["session"] = token
      return .object(members)
    }

    func next() throws -> JSONValue { try call("nextRequest", ["waitMilliseconds": 20_000]) }
  }

  @Test(arguments: FramedClient.Framing.allCases)
  func aScriptIsSavedAndRestored(_ framing: FramedClient.Framing) throws {
    let script = try Script(broker, framing, "Script")
    let object = try script.call("registerObjectForStateRestoration", ["restorationIdentifier": "Note"])["object"]
    try script.call("nextRequest", ["serves": [.string(Self.encode), "applicationStateSaved"]])
    let waiting = try FramedClient(broker.socket, framing)
    try waiting.send(WireClient.message("nextRequest", script.scoped(["waitMilliseconds": 20_000]), id: "wait"))
    let saver = try broker.connect()
    let round = try saver.request("saveApplicationState", ["application": Self.application])
    let request = try waiting.receiveMessage()["result"] ?? .null
    #expect(request["method"] == .string(Self.encode))
    let states: JSONValue = .array(
      (request["params"]?["objects"]?.array ?? []).map { asked in
        asked["object"] == object
          ? ["object": asked["object"] ?? .null, "state": ["text": "Grüße", "number": 17]]
          : ["object": asked["object"] ?? .null, "error": "nothing to save"]
      }
    )
    try script.call("answerRequest", ["id": request["id"] ?? .null, "result": ["states": states]])
    #expect(try saver.answer(to: round)["saved"] == true)
    #expect(try script.next() == ["id": nil, "method": "applicationStateSaved", "params": ["generation": 1]])
    try script.call("goodbye", ["reason": "restart"])

    let again = try Script(broker, framing, "Again")
    let served: JSONValue = ["decodeRestorableStateWithCoder", "applicationFinishedRestoringState"]
    try again.call("nextRequest", ["serves": served])
    let back = try again.call("registerObjectForStateRestoration", ["restorationIdentifier": "Note"])["object"]
    let restoration = try saver.request("restoreApplicationState", ["application": Self.application])
    let decode = try again.next()
    let handed = decode["params"]?["objects"]?.array?.first { $0["object"] == back }
    #expect(handed?["state"] == ["text": "Grüße", "number": 17])
    try again.call("answerRequest", ["id": decode["id"] ?? .null, "result": [:]])
    #expect(try saver.answer(to: restoration)["restored"]?.array?.contains(.path("Note")) == true)
    let finished = try again.next()
    #expect(finished["method"] == "applicationFinishedRestoringState")
    #expect(finished["params"]?["objects"]?.array?.contains(back ?? .null) == true)
  }

  /// The broker dies: the session, its services and its objects are restored.
  @Test(arguments: FramedClient.Framing.allCases)
  func aScriptOutlivesTheBroker(_ framing: FramedClient.Framing) throws {
    let script = try Script(broker, framing, "Script")
    let object = try script.call("registerObjectForStateRestoration", ["restorationIdentifier": "Note"])["object"]
    try script.call("nextRequest", ["serves": [.string(Self.encode)]])
    try broker.crashAndRestart()
    try script.call("invalidateRestorableState", ["object": object ?? .null])
    let request = try script.next()
    #expect(request["params"]?["objects"] == [["object": object ?? .null, "path": .path("Note")]])
    let state: JSONValue = ["object": object ?? .null, "state": ["n": 1]]
    try script.call("answerRequest", ["id": request["id"] ?? .null, "result": ["states": [state]]])
    let reader = try broker.connect()
    try Wait.until("the state is there") {
      let found = try reader.call("decodeRestorableState", ["application": Self.application, "object": .path("Note")])
      return found["state"] == ["n": 1]
    }
  }

  /// A wait whose client has gone takes no call from the queue.
  @Test(arguments: FramedClient.Framing.allCases)
  func whatComesAfterAWaitWasLeftIsFetchedByTheNext(_ framing: FramedClient.Framing) throws {
    let script = try Script(broker, framing, "Script")
    let object = try script.call("registerObjectForStateRestoration", ["restorationIdentifier": "Note"])["object"]
    try script.call("nextRequest", ["serves": [.string(Self.encode)]])
    let watcher = try broker.connect()
    var left: FramedClient? = try FramedClient(broker.socket, framing)
    try left?.send(WireClient.message("nextRequest", script.scoped(["waitMilliseconds": 30_000]), id: 1))
    try Wait.until("it waits") { (try watcher.call("statistics")["gauges"]?["connections"]?.integer ?? 0) == 2 }
    left = nil
    try Wait.until("it has left") { (try watcher.call("statistics")["gauges"]?["connections"]?.integer ?? 0) == 1 }
    try script.call("invalidateRestorableState", ["object": object ?? .null])
    #expect(try script.next()["method"] == .string(Self.encode))
  }

  /// More applications than archives may be open: those whose clients have left make room, and resume when these are
  /// back.
  @Test func abandonedSessionsKeepNobodyOut() throws {
    func call(_ method: String, _ scope: JSONObject, _ more: JSONObject = [:]) throws -> JSONValue {
      var parameters = scope
      for (name, value) in more.members { parameters[name] = value }
      return try FramedClient(broker.socket, .http).call(method, .object(parameters))
    }
    let scopes = try (0..<70).map { number -> JSONObject in
      var scope: JSONObject = ["application": .string("app\(number)")]
      scope["session"] = try call("initialize", scope)["session"]
      return scope
    }
    for (number, scope) in scopes.enumerated() {
      let object = try call("registerObjectForStateRestoration", scope, ["restorationIdentifier": "A"])["object"]
      let state: JSONValue = ["n": .integer(Int64(number))]
      _ = try call("encodeRestorableState", scope, ["object": object ?? .null, "state": state])
    }
    let other = try broker.connect()
    try other.encode("A", state: ["n": 1], of: "other")
    let decoded = try other.decode("A", of: "other")
    #expect(decoded["state"] == ["n": 1])
    for (number, scope) in scopes.enumerated() {
      let object = try call("registerObjectForStateRestoration", scope, ["restorationIdentifier": "A"])["object"]
      let state = try call("decodeRestorableState", scope, ["object": object ?? .null])["state"]
      #expect(state == ["n": .integer(Int64(number))])
    }
  }

  @Test func eventsCannotBeSubscribedToOverHTTP() throws {
    let client = try FramedClient(broker.socket, .http)
    do {
      try client.call("subscribe", ["application": Self.application])
      Issue.record("it was not refused")
    } catch let error as CallError {
      #expect(error.object["code"] == -32014)
    }
  }
}
