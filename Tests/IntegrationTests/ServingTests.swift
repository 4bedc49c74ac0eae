// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// Clients in every language that the broker calls, in one application.
@Suite(.timeLimit(.minutes(5))) struct ServingTests {
  private static let application = "org.example.Editor"

  private static func open(
    _ broker: BrokerFixture,
    _ language: ServingClient.Language,
    _ process: String,
    _ more: JSONObject = [:]
  ) throws -> ServingClient {
    let client = try broker.serving(language)
    var members: JSONObject = ["application": .string(application), "process": .string(process)]
    for (name, value) in more.members { members[name] = value }
    try client.tell("open", members)
    return client
  }

  private static func register(_ client: ServingClient, _ objects: JSONValue...) throws {
    try client.tell("register", ["objects": .array(objects)])
  }

  private static func state(_ client: ServingClient, _ name: String) throws -> JSONValue? {
    try client.tell("restored")["objects"]?[name]?["state"]
  }

  @Test("R11 A round asks the delegate, then everybody, in each language", arguments: ServingClient.Language.allCases)
  func aRoundGathersStates(_ language: ServingClient.Language) async throws {
    try await withBroker { broker in
      let delegate = try Self.open(broker, language, "main", ["delegate": true])
      let worker = try Self.open(broker, language, "worker")
      try delegate.tell("application", ["state": ["front": ["$restorable": .path("Main")]]])
      try Self.register(delegate, ["identifier": "Main", "kind": "viewController", "state": ["title": "Grüße"]])
      try Self.register(
        worker,
        ["identifier": "Editor", "parent": .path("Main"), "kind": "view", "state": ["cursor": 17]],
        ["identifier": "Hidden", "parent": .path("Main"), "kind": "view", "encode": "fail"]
      )
      let result = try delegate.tell("save", ["reason": "test"])
      #expect(result["saved"] == true)
      #expect(result["generation"] == 1)
      #expect(result["stale"]?.array?.map { $0["path"] } == [.path("Main", "Hidden")])
      #expect(result["stale"]?.array?.map { $0["why"] } == ["failed"])
      try worker.awaits("saved")
      try delegate.awaits("saved")
      #expect(try delegate.log() == ["shouldSave", "willEncode", "encode Main", "saved 1"])
      #expect(try worker.log() == ["encode Main/Editor", "encode Main/Hidden", "saved 1"])
      let reader = try broker.session(Self.application)
      let editor = try reader.call("decodeRestorableState", ["object": .path("Main", "Editor")])
      #expect(editor["state"] == ["cursor": 17])
    }
  }

  @Test("R12 A delegate may decline, and who does not answer is stale", arguments: ServingClient.Language.allCases)
  func aRoundWaitsForNobodyForEver(_ language: ServingClient.Language) async throws {
    try await withBroker { broker in
      let delegate = try Self.open(broker, .python, "main", ["delegate": true])
      let worker = try Self.open(broker, language, "worker")
      try Self.register(delegate, ["identifier": "Main"])
      try Self.register(worker, ["identifier": "Editor", "state": ["cursor": 17]])
      try delegate.tell("behave", ["method": "shouldSaveApplicationState", "as": ["result": false]])
      #expect(try worker.tell("save")["reason"] == "declined")
      try delegate.tell("behave", ["method": "shouldSaveApplicationState", "as": nil])
      try worker.tell("behave", ["method": "encodeRestorableStateWithCoder", "as": "hold"])
      let late = try delegate.tell("save", ["deadlineMilliseconds": 300])
      #expect(late["stale"]?.array?.map { $0["why"] } == ["late"])
      try worker.tell("behave", ["method": "encodeRestorableStateWithCoder", "as": nil])
      try worker.tell("release")
      try worker.tell("set", ["name": "Editor", "state": ["cursor": 18]])
      let result = try delegate.tell("save")
      #expect(result["stale"] == [])
      try worker.tell("behave", ["method": "encodeRestorableStateWithCoder", "as": "crash"])
      let crashed = try delegate.tell("save")
      #expect(crashed["stale"]?.array?.map { $0["path"] } == [.path("Editor")])
    }
  }

  @Test("R18 What was invalidated is asked for", arguments: ServingClient.Language.allCases)
  func invalidatedStatesArePulled(_ language: ServingClient.Language) async throws {
    try await withBroker { broker in
      let worker = try Self.open(broker, language, "worker")
      try Self.register(worker, ["identifier": "Editor", "state": ["cursor": 17]])
      try worker.tell("invalidate", ["name": "Editor"])
      try worker.awaits("encode")
      let reader = try broker.session(Self.application)
      let read = { try reader.call("decodeRestorableState", ["object": .path("Editor")])["state"] }
      try Wait.until("the state is stored") { try read() == ["cursor": 17] }
    }
  }

  @Test("A session goes on with the next broker", arguments: ServingClient.Language.allCases)
  func servingSurvivesTheBroker(_ language: ServingClient.Language) async throws {
    try await withBroker { broker in
      let delegate = try Self.open(broker, language, "main", ["delegate": true])
      let worker = try Self.open(broker, language, "worker")
      try Self.register(delegate, ["identifier": "Main", "state": ["title": "one"]])
      try Self.register(worker, ["identifier": "Editor", "parent": .path("Main"), "state": ["cursor": 1]])
      try broker.crashAndRestart()
      #expect(try delegate.tell("resume")["resumed"] == true)
      #expect(try worker.tell("resume")["resumed"] == true)
      let result = try worker.tell("save")
      #expect(result["saved"] == true && result["stale"] == [])
      let reader = try broker.session(Self.application)
      #expect(try reader.call("decodeRestorableState", ["object": .path("Main", "Editor")])["state"] == ["cursor": 1])
    }
  }
}
