// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationTransport
internal import RestorationWire
internal import Testing

/// A client that came through the socket of one application.
@Suite struct ConfinementTests {
  let broker = MemoryBroker()

  /// Of the application `App`.
  private func confined(pid: Int64 = 1, canBeCalled: Bool = true) -> Peer {
    broker.connect(pid: pid, canBeCalled: canBeCalled, confinement: "App")
  }

  /// A host client with a session of the application.
  private func owner(_ application: String, _ more: String = "", pid: Int64 = 7_777) throws -> Peer {
    let peer = broker.connect(pid: pid, unit: "editor-7777.scope")
    try peer.initialize(application, more)
    return peer
  }

  @Test(arguments: MethodTable.methods.filter { $0.isScoped || $0 is Initialize.Type }.map { $0.method })
  func otherApplicationsAreRefusedWhetherTheyExistOrNot(_ method: String) throws {
    let other = try owner("Other")
    try other.register("Main")
    let peer = confined()
    let failures = try ["Other", "None", "Other@App", "Ap"].map { name in
      try peer.fail(method, #"{"application":"\#(name)","object":["Main"],"state":{},"restorationIdentifier":"A"}"#)
    }
    for failure in failures { #expect(failure.code == -32014 && failure == failures[0], "\(failure)") }
    #expect(broker.application("None") == nil)
    #expect(try other.paths() == ["Main"])
  }

  @Test func aSessionDoesNotOpenOtherApplications() throws {
    let peer = confined()
    try peer.initialize()
    #expect(try peer.fail("describeApplication", #"{"application":"Other"}"#).kind == "forbidden")
    #expect(try peer.fail("describeApplication", #"{"application":"App@2"}"#).kind == "invalidParams")
  }

  @Test func itsOwnApplicationAndInstancesAreServedAsEver() throws {
    let peer = confined()
    #expect(try peer.initialize("App", #""instance":"two""#)["application"] == "App@two")
    try peer.register("Main")
    try peer.encode(#"["Main"]"#, #"{"a":1}"#)
    #expect(try peer.call("saveApplicationState")["saved"] == true)
    try peer.encode(#"["Main"]"#, #"{"a":2}"#)
    try peer.call("rollBack", #"{"generation":1,"force":true}"#)
    #expect(try peer.call("exportArchive")["part"]?["objects"]?.array?.count == 1)
    #expect(try peer.call("ping") == [:])
    let second = confined(pid: 2)
    try second.encode(#"["A"]"#, "{}", #""application":"App""#)
    try second.call("forgetApplication", #"{"application":"App"}"#)
    #expect(try second.fail("describeApplication", #"{"application":"App"}"#).kind == "unknownApplication")
  }

  @Test func listsAndCountsAreOfItsOwnApplications() throws {
    for name in ["App", "App@1", "Apple", "Other"] { try owner(name).encode(#"["Main"]"#, "{}") }
    let peer = confined()
    let names = try peer.call("listApplications")["applications"]?.array?.compactMap { $0["application"]?.string }
    #expect(names == ["App", "App@1"])
    let statistics = try peer.call("statistics")
    #expect(statistics["pid"] == 0 && statistics["counters"] == [:])
    #expect(
      statistics["gauges"] == ["connections": 1, "objects": 2, "openArchives": 2, "sessions": 2, "subscriptions": 0]
    )
  }

  @Test func eventsAreThoseOfItsOwnApplications() throws {
    let peer = confined()
    try peer.call("subscribe", #"{"events":["sessionBegan","sessionEnded"]}"#)
    for name in ["Other", "App@1", "Apple", "App"] { try owner(name, #""process":"editor""#).goodbye("restart") }
    let events = peer.takeNotifications("event")
    #expect(
      events.map { "\($0["application"]?.string ?? "") \($0["name"]?.string ?? "")" } == [
        "App@1 sessionBegan", "App@1 sessionEnded", "App sessionBegan", "App sessionEnded",
      ]
    )
    for event in events { #expect(event["process"] == "editor" && event["pid"] == .null, "\(event)") }
  }

  @Test func aNotificationInTheNameOfAnotherApplicationReachesNobody() throws {
    let monitor = broker.connect(pid: 900)
    try monitor.call("subscribe")
    confined().notify("encodeRestorableState", #"{"application":"Other","object":["Main"],"state":{}}"#)
    #expect(monitor.takeNotifications("event").isEmpty)
    #expect(!broker.logged.contains { $0.contains("Other") }, "\(broker.logged)")
  }

  @Test func whatConcernsTheHostIsForbidden() throws {
    let peer = confined()
    try peer.encode(#"["A"]"#, "{}", #""application":"App""#)
    #expect(try peer.fail("backupArchive", #"{"application":"App","to":"/free"}"#).kind == "forbidden")
    #expect(try peer.call("backupArchive", #"{"application":"App"}"#)["to"] == .null)
    #expect(try peer.fail("openApplicationSocket", #"{"application":"App"}"#).kind == "forbidden")
    #expect(try peer.fail("openApplicationSocket", #"{"application":"Other"}"#).kind == "forbidden")
    for method in ["reportReplica", "flushReplica", "migrateReplica"] {
      let failure = try peer.fail(method, #"{"application":"App"}"#)
      #expect(failure.kind == "forbidden" && failure.message.contains("sandbox"))
    }
  }

  // MARK: Who the others are

  @Test func anErrorDoesNotSayWhoTheOwnerIs() throws {
    let host = try owner("App", #""process":"editor","delegate":true"#)
    try host.register("Main")
    let peer = confined()
    try peer.initialize()
    let failures = [
      try peer.fail("registerObjectForStateRestoration", #"{"restorationIdentifier":"Main"}"#),
      try peer.fail("encodeRestorableState", #"{"object":["Main"],"state":{}}"#),
      try confined(pid: 2).fail("initialize", #"{"application":"App","delegate":true}"#),
    ]
    #expect(failures.map(\.kind) == ["duplicatePath", "notOwner", "alreadyServed"])
    for failure in failures {
      #expect(failure.data["owners"] == [])
      #expect(!failure.message.contains("7777") && !failure.message.contains("editor"), "\(failure)")
    }
  }

  @Test func answersHaveNoNumbersOfProcessesAndNoUnits() throws {
    let host = try owner("App", #""process":"editor""#)
    let main = try host.register("Main")
    try host.encode("\(main)", #"{"pid":7777}"#)
    _ = try host.register(nil, below: "\(main)", #""kind":"view""#)
    let peer = confined()
    try peer.initialize()
    let saved = try peer.call("saveApplicationState")
    let description = try peer.call("describeApplication")
    let explanation = try peer.call("explainRestoration", #"{"object":["Main"]}"#)
    for answer in [saved, description, explanation] {
      #expect(!JSONText(answer).string.contains("7777"), "\(answer)")
    }
    #expect(description["sessions"]?.array?.map { $0["process"] } == ["editor", .null])
    #expect(saved["excluded"]?.array?.count == 1)
    // States are nobody's to change.
    #expect(try peer.call("readArchive")["objects"]?.array?.first?["state"] == ["pid": 7777])
    #expect(JSONText(try host.call("describeApplication")).string.contains("7777"))
  }

  @Test func handlesDoNotTellHowManyObjectsOthersRegister() throws {
    let (peer, other) = (confined(), try owner("Other"))
    try peer.initialize()
    var handles: [Int64] = []
    for round: Int64 in 0...3 {
      for number in 0..<round { try other.register("\(round)-\(number)", below: nil) }
      handles.append(try peer.register("\(round)", below: nil))
    }
    #expect(Set(zip(handles, handles.dropFirst()).map { $1 - $0 }).count == 1, "\(handles)")
  }

  @Test(arguments: [true, false]) func whoTakesAPathOverIsNotNamed(isHeard: Bool) throws {
    let peer = confined(canBeCalled: isHeard)
    let serves = #""serves":["registrationReplaced"]"#
    let token = try peer.initialize("App", serves)["session"]?.string ?? ""
    try peer.register("Main", #""application":"App","session":"\#(token)""#)
    try owner("App", #""process":"editor""#).register("Main", #""takeOver":true"#)
    let told =
      isHeard
      ? peer.takeNotifications("registrationReplaced").first
      : try peer.call("nextRequest", #"{"application":"App","session":"\#(token)"}"#)["params"]
    #expect(told?["by"] == ["process": "editor", "pid": 0], "\(String(describing: told))")
  }

  @Test func whoTakesAPathOverIsNotNamedAfterAFailedTransaction() throws {
    let peer = confined()
    try peer.initialize("App", #""serves":["registrationReplaced"]"#)
    try peer.register("Main")
    broker.holdsCommits = true
    peer.start("encodeRestorableState", peer.encoding(#"["Main"]"#, "{}"))
    broker.failCommit("App")
    broker.holdsCommits = false
    try owner("App", #""process":"editor""#).register("Main", #""takeOver":true"#)
    let told = peer.takeNotifications("registrationReplaced").first
    #expect(told?["by"] == ["process": "editor", "pid": 0], "\(String(describing: told))")
  }

  /// What is there for it is made before it calls the next broker.
  @Test func whoTakesAPathOverIsNotNamedByTheNextBroker() throws {
    let serves = #""serves":["registrationReplaced"]"#
    let peer = confined(canBeCalled: false)
    let token = try #require(try peer.initialize("App", serves)["session"]?.string)
    let session = #""application":"App","session":"\#(token)""#
    try peer.register("Main", session)
    broker.restart()
    try owner("App", #""process":"editor""#).register("Main", #""takeOver":true"#)
    let told = try confined(canBeCalled: false).call("nextRequest", "{\(session)}")["params"]
    #expect(told?["by"] == ["process": "editor", "pid": 0], "\(String(describing: told))")
  }

  @Test func textsThatNameFilesAreLeftOut() throws {
    broker.openingFailures["App"] = ArchiveError(.unreadable, "/var/lib/App.sqlite: permission denied")
    let failure = try confined().fail("encodeRestorableState", #"{"application":"App","object":["A"],"state":{}}"#)
    #expect(failure.kind == "archiveUnreadable" && !failure.message.contains("/var"))
  }

  // MARK: Through the broker's own socket

  @Test func aFlatpakIsConfinedToItsApplicationAndWhoIsUnclearGetsToKnowWhatToDo() throws {
    #expect(try PeerOrigin.host.confinement.get() == nil)
    #expect(try PeerOrigin.flatpak("App").confinement.get() == "App")
    let doubts: [PeerOrigin.Doubt] = [.ended, .unseen, .otherUserNamespace, .halfFlatpak]
    for doubt in doubts {
      let error = #expect(throws: ErrorObject.self) { try PeerOrigin.unclear(doubt).confinement.get() }
      #expect(error?.code == -32014 && error?.kind == "forbidden" && error?.message.contains("\(doubt)") == true)
      #expect(error?.data?["hint"]?.string?.contains("restorationctl sandbox") == true)
    }
  }

  // MARK: The next broker

  @Test(arguments: ["{", "[]", #"{"confinement":5}"#, #"{"confinement":null}"#, #"{"confinement":{}}"#])
  func whoseRecordIsInvalidIsNotAdoptedButDisconnected(_ record: String) {
    let settings = CoreSettings(version: "1", systemVersion: nil) { (1, 2) }
    var core = BrokerCore(limits: Limits(), settings: settings)
    var outcome = Outcome()
    core.adopted(3, process: nil, record: Array(record.utf8), afterKill: false, at: Moment())
    core.swapOutcome(with: &outcome)
    #expect(outcome.effects.count == 1)
    #expect(outcome.effects.contains { if case .disconnect(3) = $0 { true } else { false } })
  }

  @Test func theNextBrokerKnowsItHoweverTheFormerEnded() throws {
    let settings = CoreSettings(version: "1", systemVersion: nil) { (1, 2) }
    var core = BrokerCore(limits: Limits(), settings: settings)
    var next = BrokerCore(limits: Limits(), settings: settings)
    core.connected(1, process: nil, confinement: "App", at: Moment())
    core.connected(2, process: nil, at: Moment())
    #expect(core.record(of: 2).isEmpty)
    var outcome = Outcome()
    core.swapOutcome(with: &outcome)
    #expect(outcome.effects.contains { if case .clientChanged(1) = $0 { true } else { false } })
    for afterKill in [true, false] {
      next.adopted(3, process: nil, record: core.record(of: 1), afterKill: afterKill, at: Moment())
      #expect(next.record(of: 3) == core.record(of: 1))
      outcome.removeAll()
      next.swapOutcome(with: &outcome)
      let confine = outcome.effects.firstIndex { if case .confine(3, to: "App") = $0 { true } else { false } }
      #expect(confine == 0, "before anything is sent")
    }
  }
}
