// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// Clients in every language that the broker calls, in one application.
@Suite(.timeLimit(.minutes(10))) struct ServingTests {
  private static let application = "org.example.Editor"

  private static func open(
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

  @Test(
    "R11 A round asks the delegate, then everybody, in each language",
    .broker,
    arguments: ServingClient.Language.allCases
  )
  func aRoundGathersStates(_ language: ServingClient.Language) throws {
    let delegate = try Self.open(language, "main", ["delegate": true])
    let worker = try Self.open(language, "worker")
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
    let editor = try reader.decode("Main", "Editor")
    #expect(editor["state"] == ["cursor": 17])
  }

  @Test(
    "R12 A delegate may decline, and who does not answer is stale",
    .broker,
    arguments: ServingClient.Language.allCases
  )
  func aRoundWaitsForNobodyForEver(_ language: ServingClient.Language) throws {
    let delegate = try Self.open(.python, "main", ["delegate": true])
    let worker = try Self.open(language, "worker")
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

  @Test("R18 What was invalidated is asked for", .broker, arguments: ServingClient.Language.allCases)
  func invalidatedStatesArePulled(_ language: ServingClient.Language) throws {
    let worker = try Self.open(language, "worker")
    try Self.register(worker, ["identifier": "Editor", "state": ["cursor": 17]])
    try worker.tell("invalidate", ["name": "Editor"])
    try worker.awaits("encode")
    let reader = try broker.session(Self.application)
    let read = { try reader.decode("Editor")["state"] }
    try Wait.until("the state is stored") { try read() == ["cursor": 17] }
  }

  @Test("A session goes on with the next broker", .broker, arguments: ServingClient.Language.allCases)
  func servingSurvivesTheBroker(_ language: ServingClient.Language) throws {
    let delegate = try Self.open(language, "main", ["delegate": true])
    let worker = try Self.open(language, "worker")
    try Self.register(delegate, ["identifier": "Main", "state": ["title": "one"]])
    try Self.register(worker, ["identifier": "Editor", "parent": .path("Main"), "state": ["cursor": 1]])
    try broker.crashAndRestart()
    #expect(try delegate.tell("resume")["resumed"] == true)
    #expect(try worker.tell("resume")["resumed"] == true)
    let result = try worker.tell("save")
    #expect(result["saved"] == true && result["stale"] == [])
    let reader = try broker.session(Self.application)
    #expect(try reader.decode("Main", "Editor")["state"] == ["cursor": 1])
  }

  @Test("R21 A restoration makes, fills and tells all objects", .broker, arguments: ServingClient.Language.allCases)
  func everythingComesBack(_ language: ServingClient.Language) throws {
    let states: [String: JSONValue] = [
      "Main": ["title": "Grüße", "front": ["$restorable": .path("Main", "Doc#1")]],
      "Main/Doc": ["n": 0], "Main/Doc#1": ["n": 1], "Main/Doc/Text": ["cursor": 17],
    ]
    func begin() throws -> (ServingClient, ServingClient) {
      let delegate = try Self.open(language, "main", ["delegate": true])
      let worker = try Self.open(language, "worker")
      try worker.tell("class", ["restorationClass": "Doc"])
      return (delegate, worker)
    }
    do {
      let (delegate, worker) = try begin()
      try delegate.tell("application", ["state": ["windows": 1]])
      try Self.register(delegate, ["identifier": "Main", "kind": "viewController", "state": ["title": "Grüße"]])
      try Self.register(
        worker,
        [
          "identifier": "Doc", "parent": .path("Main"), "kind": "viewController", "restorationClass": "Doc",
          "state": ["n": 0],
        ],
        [
          "identifier": "Doc", "parent": .path("Main"), "position": 1, "kind": "viewController",
          "restorationClass": "Doc", "state": ["n": 1],
        ],
        ["identifier": "Text", "parent": "Main/Doc", "kind": "view", "state": ["cursor": 17]]
      )
      try delegate.tell("set", ["name": "Main", "state": try #require(states["Main"])])
      #expect(try delegate.tell("save")["stale"] == [])
      try worker.kill()
      try delegate.kill()
    }
    let (delegate, worker) = try begin()
    try Self.register(delegate, ["identifier": "Main", "kind": "viewController"])
    // The text field is there as soon as its document is.
    try worker.send("await", ["what": "create", "count": 2])
    try delegate.send("restore")
    #expect(try worker.receive()["count"] == 2)
    try Self.register(worker, ["identifier": "Text", "parent": .path("Main", "Doc"), "kind": "view", "await": 10_000])
    let result = try delegate.receive()
    #expect(result["skipped"] == [] && result["absent"] == [])
    let restored = (result["restored"]?.array ?? []).map { ($0.array ?? []).compactMap(\.string) }
    #expect(Set(restored.map { $0.joined(separator: "/") }) == Set(states.keys))
    for (name, client) in [("Main/Doc", worker), ("Main/Doc#1", worker), ("Main/Doc/Text", worker)] {
      try client.awaits("finished", 3)
      #expect(try Self.state(client, name) == states[name], "\(name)")
    }
    #expect(try Self.state(delegate, "Main")?["title"] == "Grüße")
    #expect(try Self.state(delegate, "Main")?["front"]?["$restorable"] == .path("Main", "Doc#1"))
    try delegate.awaits("finished")
    #expect(try delegate.tell("restored")["application"] == ["windows": 1])
    #expect(try delegate.log() == ["shouldRestore", "decode Main", "didDecode", "finished Main"])
    let log = try worker.log()
    #expect(log.prefix(2) == ["create Main/Doc", "create Main/Doc#1"])
    #expect(log.suffix(3).allSatisfy { $0.hasPrefix("finished ") })
  }

  /// The view's process and that of its data source.
  private static let pairs = zip(ServingClient.Language.allCases, [ServingClient.Language.perl, .swift, .python])

  @Test("R28 A view's rows are found again by a data source in another process", .broker, arguments: pairs)
  func rowsAreFoundAgain(_ first: ServingClient.Language, _ second: ServingClient.Language) throws {
    func begin(_ items: JSONValue) throws -> (ServingClient, ServingClient) {
      let view = try Self.open(first, "view")
      let model = try Self.open(second, "model")
      try Self.register(
        view,
        ["identifier": "Main", "kind": "viewController"],
        [
          "identifier": "List", "parent": .path("Main"), "kind": "view", "state": ["offset": 3],
          "elements": [
            ["role": "selected", "indexPath": [0, 1]], ["role": "topVisible", "indexPath": [1, 0]],
            ["role": "selected", "indexPath": [7, 7]],
          ],
        ]
      )
      try model.tell("dataSource", ["view": .path("Main", "List"), "items": items])
      return (view, model)
    }
    do {
      let (view, model) = try begin([["a", "b"], ["c"]])
      #expect(try view.tell("save")["stale"] == [])
      #expect(Set(try model.log().filter { $0.hasPrefix("model") }) == ["model Main/List"])
      try view.kill()
      try model.kill()
    }
    let (view, _) = try begin([["c", "x", "b"]])
    #expect(try view.tell("restore")["restored"]?.array?.contains(.path("Main", "List")) == true)
    #expect(
      try view.tell("restored")["objects"]?["Main/List"]?["elements"] == [
        ["role": "selected", "indexPath": [0, 2], "identifier": "b", "resolved": true],
        ["role": "topVisible", "indexPath": [0, 0], "identifier": "c", "resolved": true],
      ]
    )
  }

  /// Two of the states fit into half a frame.
  @Test(
    "States too large to be sent are fetched, and put off in a round",
    .broker(limits: ["frameBytesMax": 262_144, "stateBytesMax": 65_536]),
    arguments: ServingClient.Language.allCases
  )
  func largeStatesTravelToo(_ language: ServingClient.Language) throws {
    let names = (0..<6).map { "Large\($0)" }
    let objects = names.map { name -> JSONValue in
      let pad = String(repeating: "x", count: 50_000)
      return ["identifier": .string(name), "state": ["pad": .string(pad), "n": .string(name)]]
    }
    let worker = try Self.open(language, "worker")
    try worker.tell("register", ["objects": .array(objects)])
    let saved = try worker.tell("save", ["deadlineMilliseconds": 60_000])
    #expect(saved["stale"] == [] && saved["objects"] == 6)
    // Too many for one answer: some were postponed, and each was asked for a bounded number of times.
    let asked = try worker.log().filter { $0.hasPrefix("encode") }.count
    #expect(asked > 6 && asked <= 12, "\(asked)")
    try worker.kill()
    let again = try Self.open(language, "worker")
    try again.tell("register", ["objects": .array(names.map { ["identifier": .string($0)] })])
    #expect(try again.tell("restore", ["deadlineMilliseconds": 60_000])["restored"]?.array?.count == 6)
    let restored = try again.tell("restored")["objects"]
    #expect(names.allSatisfy { restored?[$0]?["state"]?["n"] == .string($0) })
  }
}
