// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Archives that follow their user from host to host (R36).
@Suite struct RoamingTests {
  private let broker = MemoryBroker()
  private static let since: Int64 = 1_700_000_000_000
  private static let held = ArchiveError(.elsewhere(host: "tower", since: since), "tower has it")
  private static let time: JSONValue = "2023-11-14T22:13:20.000Z"
  private static let encode = "encodeRestorableStateWithCoder"

  /// Another host has the archive of `App`.
  private func hold() {
    broker.openingFailures["App"] = Self.held
  }

  private func lease() throws -> ArchiveLease { try #require(broker.leases["App"]) }

  private func lose(unshipped: Int64 = 0) throws {
    broker.tellBroker(.lost(try lease(), ArchiveLoss(host: "tower", since: Self.since, unshipped: unshipped)))
    broker.run()
  }

  private func want() throws {
    broker.tellBroker(.wanted(try lease(), host: "tower"))
    broker.run()
  }

  private func expectFenced(_ peer: Peer, at location: SourceLocation = #_sourceLocation) throws {
    for (method, parameters) in [("decodeRestorableState", #"{"object":["A"]}"#), ("listGenerations", "{}")] {
      let failure = try peer.fail(method, parameters)
      #expect((failure.code, failure.kind) == (-32023, "fenced"), sourceLocation: location)
      #expect(failure.data["host"] == "tower", sourceLocation: location)
    }
  }

  // MARK: Coming from another host

  private func startHeld(_ peer: Peer, then calls: [(String, String)] = []) {
    broker.holdsOpenings = true
    peer.start("initialize", #"{"application":"App"}"#)
    for (method, parameters) in calls { peer.start(method, parameters) }
  }

  @Test func r36AnArchiveIsNotFetchedAnyLongerWhenWhoeverHasAskedForItHasLeft() throws {
    let (first, second) = (broker.connect(pid: 1), broker.connect(pid: 2))
    for peer in [first, second] { startHeld(peer) }
    broker.disconnect(first)
    broker.disconnect(second)
    broker.openHeld()
    #expect(broker.givenUp == 1 && broker.openings.count == 1)
    try broker.connect(pid: 3).initialize()
  }

  @Test func r36AnArchiveIsFetchedForThoseWhoHaveNotLeft() throws {
    let (first, second) = (broker.connect(pid: 1), broker.connect(pid: 2))
    for peer in [first, second] { startHeld(peer) }
    broker.disconnect(first)
    broker.openHeld()
    #expect(broker.givenUp == 0)
    try second.encode(#"["A"]"#, "{}")
  }

  @Test func r36AClientThatComesWhenAnArchiveIsNotFetchedAnyLongerGetsItAllTheSame() throws {
    let first = broker.connect(pid: 1)
    startHeld(first)
    broker.disconnect(first)
    let second = broker.connect(pid: 2)
    startHeld(second)
    broker.openHeld()
    #expect(broker.givenUp == 1 && broker.openings.count == 2)
    try second.encode(#"["A"]"#, "{}")
  }

  @Test func r36AStateThatAClientHasSentBeforeItLeftIsStoredThoughTheArchiveHasToBeFetched() throws {
    let peer = broker.connect(pid: 1)
    startHeld(peer, then: [("encodeRestorableState", #"{"object":["A"],"state":{"a":1}}"#)])
    broker.disconnect(peer)
    broker.openHeld()
    #expect(broker.givenUp == 0)
    let reader = broker.connect(pid: 2)
    try reader.initialize()
    #expect(try reader.call("decodeRestorableState", #"{"object":["A"]}"#)["state"] == ["a": 1])
  }

  // MARK: Held elsewhere

  @Test func r36AnApplicationThatAnotherHostHasIsRefusedUntilItIsTakenOver() throws {
    hold()
    let peer = broker.connect(pid: 1)
    for (method, parameters) in [
      ("initialize", #"{"application":"App"}"#),
      ("encodeRestorableState", #"{"application":"App","object":["A"],"state":{}}"#),
    ] {
      let failure = try peer.fail(method, parameters)
      #expect((failure.code, failure.kind) == (-32022, "ownedElsewhere"))
      #expect((failure.data["host"], failure.data["since"]) == ("tower", Self.time))
      #expect(failure.message.contains("tower"))
    }
    #expect(broker.takenOver == [])
    #expect(try peer.initialize("App", #""takeOver":true"#)["application"] == "App")
    #expect(broker.takenOver == ["App"])
    try peer.encode(#"["A"]"#, "{}")
    // It is held already.
    try broker.connect(pid: 2).initialize("App", #""takeOver":true"#)
    #expect(broker.takenOver == ["App"])
  }

  @Test func r36ADescriptionTakesAnApplicationOverButMakesNone() throws {
    try broker.connect(pid: 1).encode(#"["A"]"#, "{}", #""application":"App""#)
    broker.restart()
    hold()
    let peer = broker.connect(pid: 2)
    #expect(try peer.fail("describeApplication", #"{"application":"App"}"#).kind == "ownedElsewhere")
    let described = try peer.call("describeApplication", #"{"application":"App","takeOver":true}"#)
    #expect(described["objects"]?.array?.count == 1)
    #expect(broker.takenOver == ["App"] && broker.openings.last == .reading)
    let unknown = try peer.fail("describeApplication", #"{"application":"Other","takeOver":true}"#)
    #expect(unknown.kind == "unknownApplication")
  }

  @Test func r36ACopyThatWasSetAsideIsOnlyReadAndForgotten() throws {
    let (peer, sandboxed) = (broker.connect(pid: 1), broker.connect(pid: 2, confinement: "App"))
    let named = #""application":"App@1+conflict-1""#
    for (method, parameters) in [
      ("initialize", "{\(named)}"),
      ("encodeRestorableState", #"{\#(named),"object":["A"],"state":{}}"#),
      ("restoreApplicationState", "{\(named)}"),
      ("rollBack", #"{\#(named),"generation":1}"#),
      ("backupArchive", "{\(named)}"),
    ] {
      #expect(try peer.fail(method, parameters).kind == "forbidden", "\(method)")
    }
    #expect(try peer.fail("openApplicationSocket", "{\(named)}").kind == "invalidParams")
    #expect(try sandboxed.fail("describeApplication", "{\(named)}").kind == "forbidden")
    #expect(broker.openings.isEmpty)
    for method in ["describeApplication", "exportArchive", "forgetApplication"] {
      #expect(try peer.fail(method, "{\(named)}").kind != "forbidden", "it is not in this store: \(method)")
    }
    #expect(broker.openings == [.reading, .reading, .reading])
  }

  @Test func r36AnApplicationThatIsAskedForWhileAReaderIsRefusedIsWanted() throws {
    try broker.connect(pid: 1).encode(#"["A"]"#, "{}", #""application":"App""#)
    broker.restart()
    hold()
    broker.holdsOpenings = true
    let reader = broker.connect(pid: 2)
    let reading = reader.start("describeApplication", #"{"application":"App"}"#)
    let peer = broker.connect(pid: 3)
    let beginning = peer.start("initialize", #"{"application":"App"}"#)
    let count = broker.openings.count
    broker.openHeld()
    #expect(try reader.failure(of: reading).kind == "ownedElsewhere")
    #expect(try peer.failure(of: beginning).kind == "ownedElsewhere")
    #expect(broker.openings.count == count + 1, "the second question has the other host leave")
  }

  @Test func r36AnApplicationThatIsTakenOverWhileAReaderIsRefusedIsTakenOver() throws {
    try broker.connect(pid: 1).encode(#"["A"]"#, "{}", #""application":"App""#)
    broker.restart()
    hold()
    broker.holdsOpenings = true
    let reader = broker.connect(pid: 2)
    let reading = reader.start("describeApplication", #"{"application":"App"}"#)
    let peer = broker.connect(pid: 3)
    let taking = peer.start("describeApplication", #"{"application":"App","takeOver":true}"#)
    // The reader's question was asked before.
    hold()
    broker.openHeld()
    #expect(try reader.failure(of: reading).kind == "ownedElsewhere")
    #expect(try peer.result(of: taking)["objects"]?.array?.count == 1)
    #expect(broker.takenOver == ["App", "App"], "the reader's opening has ended the first one")
  }

  @Test func r36ADryRunOfAnImportDrivesNoOtherHostAway() throws {
    let document = Document.of(Document.object(#"["A"]"#, "{}"))
    try broker.connect(pid: 1).importDocument(document, into: "App")
    broker.restart()
    hold()
    let peer = broker.connect(pid: 2)
    for (more, purpose) in [(#""force":true,"dryRun":true"#, ArchivePurpose.resuming), (#""force":true"#, .writing)] {
      #expect(try peer.fail("importArchive", peer.importing(document, into: "App", more)).kind == "ownedElsewhere")
      #expect(broker.openings.last == purpose)
    }
  }

  @Test func r36ASessionThatIsResumedDrivesNoOtherHostAway() throws {
    let peer = broker.connect(pid: 1)
    let token = try #require(peer.initialize()["session"]?.string)
    try peer.encode(#"["A"]"#, "{}")
    broker.restart()
    hold()
    let next = broker.connect(pid: 1)
    let resuming = #"{"application":"App","session":"\#(token)""#
    #expect(try next.fail("initialize", resuming + "}").kind == "ownedElsewhere")
    #expect(broker.openings.last == .resuming)
    #expect(try next.fail("initialize", #"{"application":"App"}"#).kind == "ownedElsewhere")
    #expect(broker.openings.last == .writing)
    let encode = #"{"application":"App","session":"\#(token)","object":["A"],"state":{}}"#
    #expect(try broker.connect(pid: 2).fail("encodeRestorableState", encode).kind == "ownedElsewhere")
    #expect(broker.openings.last == .resuming, "a detached session is resumed by each call")
    try next.call("initialize", resuming + #","takeOver":true}"#)
    #expect(broker.openings.last == .taking && broker.takenOver == ["App"])
    let stranger = #"{"application":"Other","session":"\#(token)"}"#
    #expect(try broker.connect(pid: 2).call("initialize", stranger)["application"] == "Other", "it is made")
  }

  @Test func r36AClientWhoseApplicationAnotherHostHasNowIsNotAdopted() throws {
    try broker.connect(pid: 1).encode(#"["A"]"#, "{}", #""application":"App""#)
    broker.restart()
    broker.holdsOpenings = true
    let peer = broker.connect(pid: 1)
    let count = broker.openings.count
    let record = #"{"session":{"application":"App","token":"00112233445566778899aabbccddeeff"}}"#
    broker.service.connectionAdopted(peer.connection.connection, context: Array(record.utf8), afterKill: true)
    peer.start("encodeRestorableState", #"{"application":"App","object":["A"],"state":{}}"#)
    broker.disk.failOpening("App", as: Self.held)
    broker.run()
    #expect(!peer.isConnected)
    #expect(broker.openings[count...] == [.reading], "what it has sent meanwhile opens nothing")
  }

  @Test func r36AClientInASandboxIsToldNeitherWhichHostItIsNorSinceWhen() throws {
    hold()
    let refused = try broker.connect(pid: 1, confinement: "App").fail("initialize", #"{"application":"App"}"#)
    #expect(refused.kind == "ownedElsewhere" && !refused.message.contains("tower"))
    #expect((refused.data["host"], refused.data["since"]) == (.null, .null))
    let peer = broker.connect(pid: 1, confinement: "App")
    try peer.initialize("App", #""takeOver":true,"serves":["archiveLost"]"#)
    try lose(unshipped: 2)
    #expect(peer.takeNotifications("archiveLost") == [["host": .null, "since": .null, "unshipped": 2]])
    let fenced = try peer.fail("decodeRestorableState", #"{"object":["A"]}"#)
    #expect(fenced.kind == "fenced" && fenced.data["host"] == .null && !fenced.message.contains("tower"))
  }

  @Test func r36AnInstanceThatIsUsedElsewhereIsNotChosen() throws {
    let peer = broker.connect(pid: 1)
    try peer.encode(#"["A"]"#, "{}", #""application":"App@1""#)
    broker.others = ["App@1", "App@2"].map { Self.elsewhere($0) }
    #expect(try peer.initialize("App", #""instance":"auto""#)["application"] == "App@3")
    broker.others = []
    #expect(try broker.connect(pid: 2).initialize("App", #""instance":"auto""#)["application"] == "App@1")
  }

  private static func elsewhere(_ application: String) -> ArchiveSummary {
    var summary = ArchiveSummary(application: application, state: .available, objects: 2, generation: 4)
    (summary.holder, summary.isHere) = (ReplicaHolder(host: "tower", since: 0), false)
    return summary
  }

  @Test func r36ApplicationsOfOtherHostsAreListedAndSayWhichHostHasThem() throws {
    let peer = broker.connect(pid: 1)
    try peer.encode(#"["A"]"#, "{}", #""application":"App""#)
    broker.others = [Self.elsewhere("Other")]
    let list = try peer.call("listApplications")
    let applications = try #require(list["applications"]?.array)
    #expect(applications.map { $0["application"] } == ["App", "Other"] && list["unreachable"] == nil)
    #expect(applications.map { $0["host"] } == [nil, "tower"])
    let other = applications[1]
    #expect((other["objects"], other["generation"], other["state"]) == (2, 4, "available"))
    #expect(other["fileBytes"] == nil, "this host has no file of it")
    broker.isReplicaAway = true
    #expect(try peer.call("listApplications")["unreachable"] == true)
    let confined = broker.connect(pid: 2, confinement: "Other")
    let own = try confined.call("listApplications")["applications"]?.array
    #expect(own?.map { $0["application"] } == ["Other"] && own?[0]["host"] != "tower")
  }

  // MARK: Lost

  @Test func r36SessionsEndWhenTheArchiveIsLostAndTheirClientsAreToldAndRefused() throws {
    let monitor = broker.connect(pid: 900)
    try monitor.call("subscribe", #"{"events":["archiveLost","sessionEnded"]}"#)
    let peer = broker.connect(pid: 1)
    try peer.initialize("App", #""serves":["archiveLost"]"#)
    try peer.register("A")
    try peer.encode(#"["A"]"#, "{}")
    broker.forgetWritten()
    try lose(unshipped: 3)
    let facts: JSONObject = ["host": "tower", "since": Self.time, "unshipped": 3]
    #expect(peer.takeNotifications("archiveLost") == [.object(facts)])
    let events = monitor.takeNotifications("event")
    #expect(events.map { $0["name"] } == ["sessionEnded", "archiveLost"])
    #expect(events.first?["ending"] == "expired")
    for (name, value) in facts.members { #expect(events.last?[name] == value) }
    #expect(broker.closed == ["App"] && broker.written.isEmpty && broker.removed.isEmpty)
    try expectFenced(peer)
    #expect(try peer.fail("encodeRestorableState", peer.encoding(#"["A"]"#, "{}")).kind == "fenced")
    let named = peer.encoding(#"["A"]"#, "{}", #""application":"App""#)
    #expect(try peer.fail("encodeRestorableState", named).kind == "fenced", "also if it names the application")
    #expect(broker.written.isEmpty)
    try peer.initialize("App", #""takeOver":true"#)
    #expect(broker.takenOver == ["App"])
    #expect(try peer.state(#"["A"]"#) == [:])
    try peer.goodbye("closed")
    #expect(try peer.fail("listGenerations").kind == "notInitialized")
    broker.inspect()
  }

  @Test func r36AGoodbyeAfterALossHasNothingLeftToDo() throws {
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    try lose()
    try expectFenced(peer)
    try peer.goodbye("closed")
    #expect(try peer.fail("listGenerations").kind == "notInitialized")
  }

  @Test func r36CallsThatWaitAreAnsweredWhenTheArchiveIsLost() throws {
    let polls = broker.connect(pid: 1)
    try polls.initialize("App", #""serves":["archiveLost"]"#)
    let peer = broker.connect(pid: 2)
    try peer.initialize("App", #""serves":["\#(Self.encode)"]"#)
    try peer.register("A")
    let fetch = polls.start("nextRequest", #"{"waitMilliseconds":30000}"#)
    let parent = peer.start(
      "registerObjectForStateRestoration",
      peer.registration("B", below: #"["Missing"]"#, #""awaitParentMilliseconds":60000"#)
    )
    let round = peer.start("saveApplicationState")
    broker.holdsCommits = true
    let write = peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}"))
    try lose()
    #expect(try polls.result(of: fetch)["method"] == "archiveLost")
    #expect(try peer.failure(of: parent).kind == "fenced")
    #expect(try peer.result(of: round)["reason"] == "interrupted")
    broker.disk.failCommit("App", as: ArchiveError(.lost(host: "tower"), "tower has it"))
    broker.run()
    #expect(try peer.failure(of: write).kind == "fenced")
    #expect(peer.unanswered.isEmpty && polls.unanswered.isEmpty)
  }

  @Test func r36LongWorkEndsWhenTheArchiveIsLost() throws {
    let peer = broker.connect(pid: 1)
    try peer.encode(#"["A"]"#, "{}", #""application":"App""#)
    let (lease, disk) = (try lease(), broker.disk)
    disk.betweenPieces = {
      disk.betweenPieces = nil
      disk.tellBroker(.lost(lease, ArchiveLoss(host: "tower")))
    }
    let check = peer.start("verifyArchive", #"{"application":"App"}"#)
    #expect(try peer.failure(of: check).kind == "fenced")
  }

  @Test func r36WhatIsToldOfAnEarlierOpeningChangesNothing() throws {
    let peer = broker.connect(pid: 1)
    try peer.encode(#"["A"]"#, "{}", #""application":"App""#)
    let former = try lease()
    broker.disconnect(peer)
    broker.restart()
    let next = broker.connect(pid: 2)
    try next.initialize()
    broker.tellBroker(.lost(former, ArchiveLoss(host: "tower")))
    broker.run()
    #expect(try next.state(#"["A"]"#) == [:])
  }

  @Test func r36AnArchiveThatIsLostWhenItIsOpenedAnewEndsItsSessions() throws {
    let peer = broker.connect(pid: 1)
    try peer.initialize("App", #""serves":["archiveLost"]"#)
    broker.holdsCommits = true
    let write = peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}"))
    hold()
    broker.failCommit("App")
    #expect(try peer.failure(of: write).kind == "storeFailed")
    #expect(peer.takeNotifications("archiveLost").map { $0["host"] } == ["tower"])
    try expectFenced(peer)
  }

  // MARK: What is told

  /// Also of applications that are not open.
  @Test func whatBecomesOfAnArchiveAndItsReplicaIsToldAndLogged() throws {
    let monitor = broker.connect(pid: 900)
    try monitor.call("subscribe", "{}")
    let confined = broker.connect(pid: 901, confinement: "App")
    try confined.call("subscribe", #"{"application":"App"}"#)
    let lag = ArchiveLag(ReplicaFailure(.quota, "no room; remove something"), changes: 3)
    broker.tellBroker(.behind(application: "App", lag))
    broker.tellBroker(.caughtUp(application: "App"))
    broker.tellBroker(.conflict(application: "App", ArchiveConflict(host: "tower", changes: nil, file: "App+1")))
    broker.run()
    func event(_ name: JSONValue, _ facts: JSONObject = [:]) -> JSONValue {
      var members: JSONObject = ["subscription": 1, "name": name, "application": "App"]
      for (name, value) in facts.members { members[name] = value }
      return .object(members)
    }
    let behind: JSONObject = ["cause": "quota", "changes": 3, "message": "no room; remove something"]
    let conflict: JSONObject = ["host": "tower", "changes": .null, "file": "App+1"]
    let events = [
      event("replicaBehind", behind), event("replicaCaughtUp"), event("archiveConflict", conflict),
    ]
    #expect(monitor.takeNotifications("event") == events)
    let told = confined.takeNotifications("event")
    #expect(told.map { $0["name"] } == events.map { $0["name"] })
    #expect(!told.contains { "\($0)".contains("tower") || "\($0)".contains("room") })
    #expect(broker.logged.contains { $0.contains("lacks 3 changes") && $0.contains("incident=replicaBehind") })
    #expect(broker.logged.contains { $0.contains("kept as App+1") && $0.contains("incident=archiveConflict") })
  }

  // MARK: Wanted

  @Test func r36WhoIsWantedElsewhereSavesAndLeavesInOrder() throws {
    let monitor = broker.connect(pid: 900)
    try monitor.call("subscribe", #"{"events":["sessionEnded"]}"#)
    let peer = broker.connect(pid: 1)
    try peer.initialize("App", #""serves":["\#(Self.encode)","archiveLost"]"#)
    try peer.register("A")
    try want()
    #expect(broker.closed.isEmpty && peer.takeNotifications("archiveLost").isEmpty, "it is being saved")
    peer.serves[Self.encode] = Peer.states { #"{"of":"\#($0)"}"# }
    let open = try #require(peer.openCalls(Self.encode).first)
    peer.answer(open.id, try #require(peer.serves[Self.encode]?(open.parameters)))
    broker.advance(milliseconds: 10)
    #expect(broker.closed == ["App"])
    #expect(peer.takeNotifications("archiveLost").map { $0["host"] } == ["tower"])
    #expect(monitor.takeNotifications("event").map { $0["ending"] } == ["logout"])
    try expectFenced(peer)
    let next = broker.connect(pid: 2)
    let restoration = try next.initialize()["restoration"]
    #expect((restoration?["state"], restoration?["reason"]) == ("available", "launch"))
    #expect(try next.state(#"["A"]"#) == ["of": "A"])
    broker.inspect()
  }

  @Test func r36WhoDoesNotAnswerIsNotAwaitedLongerThanThreeSeconds() throws {
    let peer = broker.connect(pid: 1)
    try peer.initialize("App", #""serves":["\#(Self.encode)"]"#)
    try peer.register("A")
    try want()
    broker.advance(milliseconds: 2_900)
    #expect(broker.closed.isEmpty)
    broker.advance(milliseconds: 300)
    #expect(broker.closed == ["App"])
  }

  @Test func r36AnArchiveThatIsWantedWhileItIsOpenedIsLeftThen() throws {
    let peer = broker.connect(pid: 1)
    try peer.encode(#"["A"]"#, "{}", #""application":"App""#)
    let former = try lease()
    broker.disconnect(peer)
    broker.restart()
    broker.holdsOpenings = true
    let next = broker.connect(pid: 2)
    let begins = next.start("initialize", #"{"application":"App"}"#)
    broker.tellBroker(.wanted(former, host: "tower"))
    broker.run()
    broker.openHeld()
    broker.advance(milliseconds: 10)
    #expect(next.hasAnswer(begins))
    #expect(broker.closed == ["App"])
    try expectFenced(next)
  }

  @Test func r36AnArchiveThatIsBeingOpenedAnewIsLeftInOrderAfterThat() throws {
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    broker.holdsCommits = true
    peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}"))
    try want()
    broker.holdsOpenings = true
    broker.failCommit("App")
    broker.holdsCommits = false
    #expect(broker.closed.isEmpty)
    broker.openHeld()
    broker.advance(milliseconds: 2_000)
    #expect(broker.closed == ["App"])
    let endings = broker.written.compactMap { if case .session(let record) = $0 { record.ending } else { nil } }
    #expect(endings == ["logout"])
    try expectFenced(peer)
  }

  @Test func r36WhoeverWaitsForAnArchiveThatIsLeftIsToldWhereItIs() throws {
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    broker.holdsCommits = true
    peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}"))
    broker.failCommit("App")
    // It is being tried whether anything can be stored.
    peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}"))
    let late = broker.connect(pid: 2)
    let begins = late.start("initialize", #"{"application":"App"}"#)
    try #require(!late.hasAnswer(begins))
    try lose()
    #expect(try late.failure(of: begins).kind == "ownedElsewhere")
    try expectFenced(peer)
  }

  // MARK: Conflicts

  @Test func r36ACopyThatWasSetAsideIsLogged() throws {
    let conflict = ArchiveConflict(host: "tower", changes: 7, file: "App+conflict-1.sqlite")
    broker.tellBroker(.conflict(application: "App", conflict))
    broker.run()
    #expect(broker.logged.contains { $0.contains("7 changes") && $0.contains("App+conflict-1.sqlite") })
  }
}
