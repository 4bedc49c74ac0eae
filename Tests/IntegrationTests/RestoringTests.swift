// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// Restorations by the real broker (R21 – R24, R34).
@Suite struct RestoringTests {
  private static let application = "org.example.Editor"

  /// A view controller that a restoration class makes, and a plain object below it.
  private static func save(_ broker: BrokerFixture) throws {
    let writer = try broker.session(application, process: "writer")
    try writer.call(
      "registerObjectForStateRestoration",
      ["restorationIdentifier": "Main", "kind": "viewController", "restorationClass": "Pages"]
    )
    try writer.call(
      "registerObjectForStateRestoration",
      ["restorationIdentifier": "Tool", "restorationParent": .path("Main")]
    )
    try writer.call("encodeRestorableState", ["object": .path("Main"), "state": ["n": 1]])
    let state: JSONValue = ["main": ["$restorable": .path("Main")]]
    try writer.call("encodeRestorableState", ["object": .path("Main", "Tool"), "state": state])
    try writer.call("goodbye", ["reason": "restart"])
  }

  private static func join(_ broker: BrokerFixture, _ role: String, delegate: Bool = false) throws -> WireClient {
    let client = try broker.connect()
    let serves: JSONValue = [
      "shouldRestoreApplicationState", "didDecodeRestorableState", "objectWithRestorationIdentifierPath",
      "decodeRestorableStateWithCoder", "applicationFinishedRestoringState",
    ]
    try client.call(
      "initialize",
      [
        "application": .string(application), "process": .string(role), "delegate": .bool(delegate), "serves": serves,
      ]
    )
    return client
  }

  /// The broker's next call, which must have this name.
  private static func expect(_ method: String, _ client: WireClient) throws -> JSONValue {
    let message = try client.receiveMessage()
    #expect(message["method"] == .string(method), "\(message.text)")
    return message
  }

  private static func answer(_ call: JSONValue, _ result: JSONValue, _ client: WireClient) throws {
    let message: JSONValue = ["jsonrpc": "2.0", "id": call["id"] ?? .null, "result": result]
    try client.send(message.text + "\n")
  }

  @Test func r21ADelegateAndAWorkerAreRestoredInOrder() async throws {
    try await withBroker { broker in
      try Self.save(broker)
      let delegate = try Self.join(broker, "delegate", delegate: true)
      let worker = try Self.join(broker, "worker")
      let tool = try #require(
        try delegate.call(
          "registerObjectForStateRestoration",
          ["restorationIdentifier": "Tool", "restorationParent": .path("Main")]
        )["object"]
      )
      try worker.call("registerRestorationClass", ["restorationClass": "Pages"])
      let id = try delegate.request("restoreApplicationState")
      try Self.answer(try Self.expect("shouldRestoreApplicationState", delegate), true, delegate)
      let make = try Self.expect("objectWithRestorationIdentifierPath", worker)
      #expect(make["params"]?["identifierPath"] == .path("Main") && make["params"]?["state"] == ["n": 1])
      let main = try #require(
        try worker.call(
          "registerObjectForStateRestoration",
          ["restorationIdentifier": "Main", "kind": "viewController", "restorationClass": "Pages"]
        )["object"]
      )
      try Self.answer(make, ["object": main], worker)
      try Self.answer(try Self.expect("decodeRestorableStateWithCoder", worker), [:], worker)
      let decode = try Self.expect("decodeRestorableStateWithCoder", delegate)
      let object = decode["params"]?["objects"]?.array?.first
      #expect(object?["object"] == tool)
      #expect(object?["state"] == ["main": ["$restorable": .path("Main"), "object": main]])
      try Self.answer(decode, [:], delegate)
      try Self.answer(try Self.expect("didDecodeRestorableState", delegate), [:], delegate)
      let result = try delegate.answer(to: id)
      #expect(result["restored"] == [.path("Main"), .path("Main", "Tool")])
      #expect(result["skipped"] == [] && result["absent"] == [])
      #expect(delegate.takeNotifications("applicationFinishedRestoringState") == [["objects": [tool]]])
      #expect(try worker.notification("applicationFinishedRestoringState") == ["objects": [main]])
      let again = try delegate.call("restoreApplicationState")
      #expect(again["restored"] == [] && again["absent"] == [])
    }
  }

  /// R21: a process that is killed while it is handed its state is not waited for.
  @Test func r21AKilledProcessHoldsNobodyUp() async throws {
    try await withBroker { broker in
      try Self.save(broker)
      let caller = try Self.join(broker, "caller")
      let worker = try broker.client(.python)
      try worker.initialize(
        Self.application,
        ["process": "worker", "serves": ["objectWithRestorationIdentifierPath"]]
      )
      try worker.call("registerRestorationClass", ["restorationClass": "Pages"])
      let id = try caller.request("restoreApplicationState", ["deadlineMilliseconds": 2_000])
      try worker.kill()
      let other = try Self.join(broker, "other")
      try Wait.until("the class is free") {
        (try? other.call("registerRestorationClass", ["restorationClass": "Pages"])) != nil
      }
      try Self.answer(try Self.expect("objectWithRestorationIdentifierPath", other), .null, other)
      let result = try caller.answer(to: id)
      #expect(result["restored"] == [] && result["absent"] == [])
      let reasons = result["skipped"]?.array?.compactMap { $0["reason"]?.string }
      #expect(reasons == ["refused", "parentSkipped"])
    }
  }
}
