// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import Synchronization
internal import Testing

/// Each call of the protocol: its message and its result.
@Suite(.timeLimit(.minutes(2))) struct CallTests {
  /// Makes calls against canned results and returns the messages sent.
  private static func exchange<Value: Sendable>(
    _ results: String...,
    call: (BrokerConnection) async throws -> Value
  ) async throws -> (value: Value, sent: [String]) {
    let sent = Mutex<[String]>([])
    var value: Value?
    try await FakeBroker.run { request in
      let index = sent.withLock { sent in
        sent.append("\(request.method) \(request.parametersText)")
        return sent.count - 1
      }
      return .text(results[min(index, results.count - 1)])
    } _: { fake in
      value = try await call(try await BrokerConnection.connect(to: fake.path))
    }
    return (try #require(value), sent.withLock { $0 })
  }

  private static var limitsText: String {
    var writer = JSONWriter()
    Limits().writeJSON(to: &writer)
    return JSONText(validated: writer.bytes).string
  }

  private static func initialized(session: String) -> String {
    #"{"protocolVersion":1,"broker":{"name":"restorationd","version":"1.2"},"application":"a@two","#
      + #""session":"\#(session)","restoration":{"state":"available","reason":"recover","generation":4,"archive":"u","coder":"#
      + #"{"UIApplicationStateRestorationTimestampKey":"2026-02-28T09:05:00.042Z"},"damaged":"set aside"},"#
      + #""limits":\#(limitsText)}"#
  }

  @Test func initializeSaysWhoWeAreAndTellsWhatThereIs() async throws {
    let options = SessionOptions(
      application: "a",
      instance: .automatic,
      process: "editor",
      bundleVersion: "2.1",
      userInterfaceIdiom: 5,
      storyboardUnit: "editor.service",
      isDelegate: true,
      notifications: [.pathChanged],
      classAliases: ["Old": "New"],
      takeOver: true,
      affinity: "/srv/a"
    )
    let (info, sent) = try await Self.exchange(Self.initialized(session: "t1"), "{}") { broker in
      #expect(broker.session == nil)
      let info = try await broker.initialize(options, resuming: "t1")
      #expect(broker.session == "t1")
      try await broker.goodbye(.restart)
      #expect(broker.session == nil)
      return info
    }
    #expect(
      sent == [
        #"initialize {"application":"a","session":"t1","instance":"auto","process":"editor","bundleVersion":"2.1","#
          + #""userInterfaceIdiom":5,"storyboard":{"unit":"editor.service"},"delegate":true,"serves":["pathChanged"],"#
          + #""aliases":{"classes":{"Old":"New"}},"protocolVersion":1,"takeOver":true,"affinity":"/srv/a"}"#,
        #"goodbye {"reason":"restart"}"#,
      ]
    )
    #expect(info.application.description == "a@two")
    #expect(info.description == "a@two: available, recover, by restorationd 1.2")
    #expect(info.broker.name == "restorationd")
    #expect(info.broker.version == "1.2")
    #expect(info.wasResumed)
    #expect(info.restoration.state == .available)
    #expect(info.restoration.reason == .recover)
    #expect(info.restoration.generation == 4)
    #expect(info.restoration.origin?.timestamp.description == "2026-02-28T09:05:00.042Z")
    #expect(info.restoration.damaged == "set aside")
    #expect(info.limits["stateBytesMax"] == 256 << 10)
    #expect(Limit.all.allSatisfy { info.limits[$0.name] == info.limits[$0] } && info.limits["nope"] == nil)
  }

  @Test func aTokenThatIsNotKnownAnyMoreOpensANewSession() async throws {
    let (info, _) = try await Self.exchange(Self.initialized(session: "new")) { broker in
      try await broker.initialize(SessionOptions(application: "a"), resuming: "old")
    }
    #expect(!info.wasResumed)
    #expect(info.session == "new")
  }

  @Test(.connection) func anApplicationWithoutAProperNameIsRefusedHere() async throws {
    let error = await thrownError {
      try await broker.initialize(SessionOptions(application: "no spaces"))
    }
    #expect((error as? RestorationError)?.code == .invalidParams)
    #expect((error as? RestorationError)?.pointer == "/application")
  }

  @Test func registeringSendsTheWholeDescription() async throws {
    let registration = ObjectRegistration(
      "Editor",
      restorationParent: ["Main"],
      kind: .viewController,
      classes: ["TextEditor", "Editor"],
      restorationClass: "Editors",
      position: 2,
      storyboardUnit: "editor.service",
      awaitParent: .milliseconds(1_500),
      takeOver: true,
      confidential: true,
      keepsForever: true
    )
    let result =
      #"{"object":7,"path":["Main","Editor#2"],"included":true,"#
      + #""restoration":{"state":"available","classMatches":false},"session":"d"}"#
    let (object, sent) = try await Self.exchange(result) { try await $0.register(registration, application: "a") }
    #expect(
      sent == [
        #"registerObjectForStateRestoration {"restorationIdentifier":"Editor","restorationParent":["Main"],"#
          + #""kind":"viewController","objectClass":["TextEditor","Editor"],"restorationClass":"Editors","position":2,"#
          + #""storyboard":{"unit":"editor.service"},"awaitParentMilliseconds":1500,"takeOver":true,"#
          + #""confidential":true,"keep":"forever","application":"a"}"#
      ]
    )
    #expect(object.object == 7)
    #expect(object.reference == .handle(7))
    #expect(object.path == ["Main", "Editor#2"])
    #expect(object.included)
    #expect(object.restoration.state == .available)
    #expect(!object.restoration.classMatches)
    #expect(object.session == "d")
  }

  @Test func objectsAreMovedRenamedOrderedAndTakenOut() async throws {
    let (values, sent) = try await Self.exchange(
      #"{"path":["B","A"]}"#,
      #"{"path":null,"included":false}"#,
      #"{"paths":[["B","A#0"],null]}"#,
      "{}"
    ) { broker in
      let moved = try await broker.call(SetRestorationParent(object: 7, restorationParent: ["B"], takeOver: true))
      let renamed = try await broker.call(
        SetRestorationIdentifier(object: 7, restorationIdentifier: nil, position: 3)
      )
      let ordered = try await broker.call(SetChildren(object: ["B"], children: [7, ["B", "C"]]))
      try await broker.call(UnregisterObject(object: 7, keepState: true))
      return (moved.path, renamed, ordered.paths)
    }
    #expect(
      sent == [
        #"setRestorationParent {"object":7,"restorationParent":["B"],"takeOver":true}"#,
        #"setRestorationIdentifier {"object":7,"restorationIdentifier":null,"position":3}"#,
        #"setChildren {"object":["B"],"children":[7,["B","C"]]}"#,
        #"unregisterObject {"object":7,"keepState":true}"#,
      ]
    )
    #expect(values.0 == ["B", "A"])
    #expect(values.1.path == nil)
    #expect(!values.1.included)
    #expect(values.2 == [["B", "A#0"], nil])
  }

  @Test func aStateIsSentWithItsDigitsAndItsOrder() async throws {
    let state = try RestorableState(jsonText: #" { "z" : 0.1, "a" : [1e400, -0.0, 123456789012345678901234567890] } "#)
    let (outcomes, sent) = try await Self.exchange(
      #"{"sequence":9,"durability":"disk"}"#,
      #"{"superseded":true}"#,
      #"{"discarded":true}"#
    ) { broker in
      let element = RestorableElement(.selected, at: [0, 3], identifier: "row")
      return [
        try await broker.encode(state, for: ["Main"], elements: [element], revision: 5),
        try await broker.encode(state, for: 7),
        try await broker.encode(.empty, for: 7, application: "a"),
      ]
    }
    #expect(outcomes == [.stored(sequence: 9), .superseded, .discarded])
    let text = #"{"z":0.1,"a":[1e400,-0.0,123456789012345678901234567890]}"#
    #expect(
      sent == [
        #"encodeRestorableState {"object":["Main"],"state":\#(text),"#
          + #""elements":[{"role":"selected","indexPath":[0,3],"identifier":"row"}],"revision":5}"#,
        #"encodeRestorableState {"object":7,"state":\#(text)}"#,
        #"encodeRestorableState {"object":7,"state":{},"application":"a"}"#,
      ]
    )
  }

  @Test func aStateIsGivenBackAsTheBrokerSentIt() async throws {
    let result =
      #"{"status":"available","state":{"n":1e400,"self":{"$restorable":["Main"],"object":7}},"coder":"#
      + #"{"UIApplicationStateRestorationBundleVersionKey":"2","UIApplicationStateRestorationUserInterfaceIdiomKey":5,"#
      + #""UIApplicationStateRestorationTimestampKey":"2026-02-28T09:05:00.042Z"},"#
      + #""elements":[{"role":"topVisible","indexPath":[4],"resolved":false}]}"#
    let (decoded, sent) = try await Self.exchange(result) { try await $0.decode(["Main"]) }
    #expect(sent == [#"decodeRestorableState {"object":["Main"]}"#])
    #expect(decoded.status == .available)
    #expect(decoded.state?.jsonText == #"{"n":1e400,"self":{"$restorable":["Main"],"object":7}}"#)
    #expect(decoded.origin?.bundleVersion == "2")
    #expect(decoded.origin?.userInterfaceIdiom == 5)
    #expect(decoded.elements.first?.role == .topVisible)
    #expect(decoded.elements.first?.resolved == false)
  }

  @Test(arguments: DecodingStatus.allCases.filter { $0 != .available })
  func withoutAStateTheStatusSaysWhy(_ status: DecodingStatus) async throws {
    let result = #"{"status":"\#(status.rawValue)","state":null,"coder":null,"elements":[]}"#
    let (decoded, _) = try await Self.exchange(result) { try await $0.decode(7, application: "a") }
    #expect(decoded.status == status)
    #expect(decoded.state == nil)
    #expect(decoded.origin == nil)
    #expect(decoded.elements.isEmpty)
  }

  @Test func aStateIsAnObjectOfJSON() async throws {
    for (text, code) in [("{", ErrorCode.parseError), ("[1]", .invalidParams), ("{\"a\":01}", .parseError)] {
      let error = #expect(throws: RestorationError.self) { try RestorableState(jsonText: text) }
      #expect(error?.code == code)
    }
    #expect(try RestorableState(jsonText: "{ }") == .empty)
    #expect(try RestorableState(jsonText: #"{"a": 1}"#).bytes == 7)
  }

  @Test(.connection) func whatTheBrokerWouldDropWithoutAWordIsRefusedHere() async throws {
    for (text, code) in [
      (#"{"UIStateRestorationMine":1}"#, ErrorCode.reservedKey), (#"{"a":1,"a":2}"#, .invalidParams),
    ] {
      let state = try RestorableState(jsonText: text)
      let error = await thrownError { try await broker.encodeUnacknowledged(state, for: 7) }
      #expect((error as? RestorationError)?.code == code)
      #expect((error as? RestorationError)?.pointer?.hasPrefix("/state/") == true)
    }
  }

  @Test func theEndOfARestorationAndTheDiscardingOfStateAreSaid() async throws {
    let (pending, sent) = try await Self.exchange(#"{"pending":2}"#, "{}") { broker in
      let pending = try await broker.call(CompleteStateRestoration()).pending
      try await broker.call(DiscardApplicationState(reason: "reset", generations: true, force: true), of: "a")
      return pending
    }
    #expect(pending == 2)
    #expect(
      sent == [
        "completeStateRestoration {}",
        #"discardApplicationState {"reason":"reset","generations":true,"force":true,"application":"a"}"#,
      ]
    )
  }
}
