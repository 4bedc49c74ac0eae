// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// The events that subscribers get, and when.
@Suite struct EventTests {
  let driver = CoreDriver()

  /// A client that has subscribed.
  private func subscriber(_ parameters: String = "{}") throws -> Peer {
    let peer = driver.connect(pid: 900)
    #expect(try peer.call("subscribe", parameters) == ["subscription": 1])
    return peer
  }

  private func session(_ pid: Int64 = 1, _ more: String = #""process":"main""#) throws -> Peer {
    let peer = driver.connect(pid: pid)
    try peer.initialize("App", more)
    return peer
  }

  // MARK: The events

  @Test func aSessionsLifeIsToldInOrder() throws {
    let monitor = try subscriber()
    let peer = try session()
    let main = try peer.register("Main")
    try peer.encode("\(main)", #"{"a":1}"#)
    try peer.call("setRestorationIdentifier", #"{"object":\#(main),"restorationIdentifier":"Window"}"#)
    try peer.call("unregisterObject", #"{"object":\#(main),"keepState":true}"#)
    try peer.goodbye("restart")
    let events = monitor.takeNotifications("event")
    #expect(
      events.map { $0["name"]?.string } == [
        "archiveOpened", "sessionBegan", "objectRegistered", "stateEncoded", "pathChanged", "objectUnregistered",
        "sessionEnded",
      ]
    )
    #expect(events.allSatisfy { $0["subscription"] == 1 && $0["application"] == "App" })
    #expect(
      events.dropFirst().map(\.facts) == [
        ["process": "main", "pid": 1, "delegate": false, "detached": false, "restoration": .pristine],
        ["object": .integer(main), "path": ["Main"], "kind": "object", "process": "main", "pid": 1],
        [
          "object": .integer(main), "path": ["Main"], "bytes": 7, "sequence": 6, "process": "main", "pid": 1,
        ],
        ["object": .integer(main), "from": ["Main"], "path": ["Window"]],
        [
          "object": .integer(main), "path": ["Window"], "process": "main", "pid": 1, "cause": "unregistered",
          "stateKept": true,
        ],
        [
          "process": "main", "pid": 1, "ending": "restart", "objects": 0, "how": .null, "code": .null,
          "signal": .null, "unit": .null,
        ],
      ]
    )
    let archive: JSONValue = ["archive": "archive-1", "generation": nil, "objects": 0, "bytes": 0]
    #expect(events.first?.facts == archive)
  }

  /// One letter with thousands of accents is a single character to a reader.
  @Test func aLongReasonIsCutHoweverFewCharactersItLooksLike() throws {
    let monitor = try subscriber(#"{"events":["applicationDiscarded"]}"#)
    let reason = "e" + String(repeating: "\u{301}", count: 5_000)
    try session().call("discardApplicationState", #"{"reason":"\#(reason)"}"#)
    let told = try #require(monitor.takeNotifications("event").first?["reason"]?.string)
    #expect(told.unicodeScalars.elementsEqual(reason.unicodeScalars.prefix(200)))
    let refusal = try monitor.fail("subscribe", #"{"events":["\#(reason)"]}"#)
    #expect(refusal.message.utf8.count < 500)
  }

  @Test func registeringAgainIsNoEventAndTakingOverIsTwo() throws {
    let monitor = try subscriber(#"{"events":["objectRegistered","objectUnregistered"],"application":"App"}"#)
    let old = try session(1)
    let first = try old.register("Main")
    try old.register("Main")
    let second = try session(2, #""process":"new""#).register("Main", #""takeOver":true"#)
    let events = monitor.takeNotifications("event")
    #expect(events.map { $0["object"]?.integer } == [first, first, second])
    #expect(events.map { $0["cause"]?.string } == [nil, "replaced", nil])
    #expect(events.map { $0["pid"]?.integer } == [1, 1, 2])
  }

  @Test(arguments: [("closed", 2), ("userQuit", 2), ("logout", 2), (nil, 2)] as [(String?, Int64)])
  func theEndOfASessionSaysHowAndWithHowManyObjects(_ reason: String?, _ objects: Int64) throws {
    let peer = try session()
    try peer.register("A")
    try peer.register("B")
    let monitor = try subscriber()
    if let reason { try peer.goodbye(reason) } else { driver.crash(peer) }
    let events = monitor.takeNotifications("event")
    #expect(
      events.map { $0["name"]?.string } == ["sessionEnded"] + (reason == "userQuit" ? ["applicationDiscarded"] : [])
    )
    #expect(events.first?["ending"]?.string == reason ?? "crashed")
    #expect(events.first?["objects"]?.integer == objects)
    if reason == "userQuit" {
      #expect(events.last?.facts == ["cause": "userQuit", "reason": nil, "generations": false])
    }
  }

  @Test func theNextRunSealsAGenerationBeforeItsSessionBegins() throws {
    let peer = try session()
    try peer.encode(#"["A"]"#, #"{"a":1}"#)
    driver.crash(peer)
    let monitor = try subscriber()
    _ = try session(2)
    let events = monitor.takeNotifications("event")
    #expect(events.map { $0["name"]?.string } == ["generationSealed", "sessionBegan"])
    #expect(events.first?.facts == ["generation": 1, "kind": "startup", "objects": 1, "bytes": 7])
    #expect(events.last?["restoration"] == ["state": "available", "reason": "recover"])
  }

  @Test func aDetachedSessionAndAnEncodeWithoutSessionSayWhatIsKnownOfThem() throws {
    let monitor = try subscriber(#"{"events":["sessionBegan","stateEncoded"]}"#)
    let peer = driver.connect(pid: 5)
    try peer.encode(#"["A","B"]"#, "{}", #""application":"App""#)
    try peer.register("C", #""application":"App""#)
    let events = monitor.takeNotifications("event")
    #expect(events.count == 2)
    #expect(events.first?["path"] == ["A", "B"])
    for name in ["object", "process", "pid"] { #expect(events.first?[name]?.isNull == true) }
    #expect(events.last?["detached"] == true)
    #expect(events.last?["restoration"]?.isNull == true)
    #expect(events.last?["pid"] == 5)
  }

  @Test func whatIsMovedIsToldOnceForAllThatIsBelowIt() throws {
    let peer = try session()
    let main = try peer.register("Main")
    for name in ["A", "B"] { try peer.register(name, below: "\(main)") }
    let monitor = try subscriber()
    try peer.call("setRestorationIdentifier", #"{"object":\#(main),"restorationIdentifier":"Main"}"#)
    #expect(monitor.takeNotifications("event").isEmpty)
    try peer.call("setRestorationIdentifier", #"{"object":\#(main),"restorationIdentifier":"M"}"#)
    #expect(monitor.takeNotifications("event").map { $0["path"] } == [["M"]])
    try peer.call("setChildren", #"{"object":\#(main),"children":[["M","B"],["M","A"]]}"#)
    #expect(
      monitor.takeNotifications("event").map { [$0["from"], $0["path"]] } == [
        [["M", "B"], ["M", "B#0"]], [["M", "A"], ["M", "A#1"]],
      ]
    )
  }

  @Test func aMoveOntoALiveObjectEndsThatOnesRegistrationFirst() throws {
    let peer = try session(1)
    let loser = try peer.register("A")
    let mover = try session(2)
    let winner = try mover.register("B")
    try mover.encode("\(winner)", "{}")
    let monitor = try subscriber()
    try mover.call("setRestorationIdentifier", #"{"object":\#(winner),"restorationIdentifier":"A","takeOver":true}"#)
    let events = monitor.takeNotifications("event")
    #expect(events.map { $0["name"]?.string } == ["objectUnregistered", "pathChanged"])
    #expect(events.map { $0["object"]?.integer } == [loser, winner])
    #expect(events.map { $0["path"] } == [["A"], ["A"]])
  }

  @Test func discardingSaysWhoWantedItAndWhy() throws {
    let peer = try session()
    try peer.encode(#"["A"]"#, "{}")
    let monitor = try subscriber()
    let why = String(repeating: "w", count: 300)
    try peer.call("discardApplicationState", #"{"reason":"\#(why)","generations":true,"force":true}"#)
    let events = monitor.takeNotifications("event")
    let reason = JSONValue.string(String(repeating: "w", count: 200))
    #expect(events.map(\.facts) == [["cause": "discarded", "reason": reason, "generations": true]])
  }

  @Test func archivesAreToldWhenTheyOpenCloseOrCannotBeOpened() throws {
    let monitor = try subscriber()
    var limits = Limits()
    limits.openArchivesMax = 1
    let driver = CoreDriver(limits: limits)
    let watcher = driver.connect(pid: 900)
    try watcher.call("subscribe")
    let peer = driver.connect()
    try peer.encode(#"["A"]"#, "{}", #""application":"a""#)
    driver.openingFailures["b"] = ArchiveError(.unreadable, "permission denied")
    _ = try peer.fail("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""application":"b""#))
    _ = try peer.fail("describeApplication", #"{"application":"none"}"#)
    try peer.encode(#"["B"]"#, "{}", #""application":"a""#)
    let events = watcher.takeNotifications("event").filter { $0["name"]?.string != "stateEncoded" }
    #expect(
      events.map { "\($0["application"]?.string ?? "") \($0["name"]?.string ?? "")" } == [
        "a archiveOpened", "a archiveClosed", "b archiveUnreadable", "a archiveOpened",
      ]
    )
    #expect(events[2].facts == ["message": "permission denied"])
    #expect(events[3]["objects"] == 1)
    #expect(monitor.takeNotifications("event").isEmpty)
  }

  // MARK: The subscribers

  @Test func eachSubscriptionGetsWhatItAskedForAndNothingElse() throws {
    let all = try subscriber()
    let one = try subscriber(#"{"application":"App"}"#)
    let other = try subscriber(#"{"application":"App@2"}"#)
    let few = try subscriber(#"{"events":["stateEncoded","sessionEnded","stateEncoded"]}"#)
    let peer = driver.connect()
    for application in ["App", "App@2", "Other"] {
      try peer.encode(#"["A"]"#, "{}", #""application":"\#(application)""#)
    }
    func told(_ peer: Peer) -> [String] {
      peer.takeNotifications("event").map { "\($0["application"]?.string ?? "") \($0["name"]?.string ?? "")" }
    }
    let (opened, encoded) = ("archiveOpened", "stateEncoded")
    #expect(
      told(all) == ["App \(opened)", "App \(encoded)", "App@2 \(opened)", "App@2 \(encoded)", "Other \(opened)"]
        + ["Other \(encoded)"]
    )
    #expect(told(one) == ["App \(opened)", "App \(encoded)"])
    #expect(told(other) == ["App@2 \(opened)", "App@2 \(encoded)"])
    #expect(told(few) == ["App \(encoded)", "App@2 \(encoded)", "Other \(encoded)"])
  }

  @Test func severalSubscriptionsOfAConnectionAreToldEachByItsNumber() throws {
    let monitor = try subscriber(#"{"events":["stateEncoded"]}"#)
    #expect(try monitor.call("subscribe", #"{"application":"App"}"#) == ["subscription": 2])
    #expect(try monitor.call("subscribe", #"[["encodeFailed","eventsLost"]]"#) == ["subscription": 3])
    let peer = try session()
    try peer.encode(#"["A"]"#, "{}")
    let events = monitor.takeNotifications("event")
    #expect(
      events.map { "\($0["subscription"]?.integer ?? 0) \($0["name"]?.string ?? "")" } == [
        "2 archiveOpened", "2 sessionBegan", "1 stateEncoded", "2 stateEncoded",
      ]
    )
    #expect(driver.core.subscriptionCount == 3)
  }

  @Test func aConnectionWithASessionIsToldOfItsOwnApplication() throws {
    let peer = try session()
    try peer.call("subscribe")
    let failure = try peer.fail("subscribe", #"{"application":"Other"}"#)
    #expect(failure.code == -32602)
    #expect(failure.data["pointer"] == "/application")
    let other = driver.connect()
    for application in ["Other", "App"] { try other.encode(#"["A"]"#, "{}", #""application":"\#(application)""#) }
    #expect(peer.takeNotifications("event").map { $0["application"]?.string } == ["App"])
  }

  @Test func subscribingMakesNoApplicationKnown() throws {
    _ = try subscriber(#"{"application":"App"}"#)
    #expect(driver.openCount == 0)
    #expect(try driver.connect().fail("describeApplication", #"{"application":"App"}"#).kind == "unknownApplication")
  }

  @Test func nothingFollowsTheAnswerToUnsubscribe() throws {
    let monitor = try subscriber()
    let peer = try session()
    driver.holdsCommits = true
    let call = peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}"))
    _ = monitor.takeNotifications("event")
    #expect(try monitor.call("unsubscribe", #"{"subscription":1}"#) == [:])
    driver.commit()
    #expect(peer.hasAnswer(call))
    #expect(monitor.takeNotifications("event").isEmpty)
    let failure = try monitor.fail("unsubscribe", "[1]")
    #expect(failure.code == -32602)
    #expect(failure.data["pointer"] == "/0")
    // Numbers are not given twice.
    #expect(try monitor.call("subscribe") == ["subscription": 2])
  }

  @Test func aSubscriptionIsNotOthersToEndAndEndsWithItsConnection() throws {
    let monitor = try subscriber()
    #expect(try driver.connect().fail("unsubscribe", #"{"subscription":1}"#).code == -32602)
    #expect(driver.core.subscriptionCount == 1)
    driver.disconnect(monitor)
    #expect(driver.core.subscriptionCount == 0)
  }

  @Test func aSubscriptionThatWaitedInAQueueEndsWithItsConnection() throws {
    let peer = driver.connect()
    driver.holdsOpenings = true
    peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""application":"App""#))
    peer.start("subscribe")
    driver.disconnect(peer)
    driver.openHeld()
    #expect(driver.core.subscriptionCount == 0)
  }

  @Test func wrongSubscriptionsAreRefusedAndNameWhatThereIs() throws {
    let peer = driver.connect()
    for (parameters, pointer) in [
      (#"{"events":["stateEncoded","noSuchThing"]}"#, "/events/1"), (#"{"events":[]}"#, "/events"),
      (#"{"events":"stateEncoded"}"#, "/events"), (#"{"events":[7]}"#, "/events/0"), (#"[["x"]]"#, "/0/0"),
      (#"{"application":"/"}"#, "/application"),
    ] {
      let failure = try peer.fail("subscribe", parameters)
      #expect(failure.code == -32602)
      #expect(failure.data["pointer"] == .string(pointer), "\(parameters)")
    }
    let hint = try peer.fail("subscribe", #"{"events":["noSuchThing"]}"#).data["hint"]?.string ?? ""
    for name in EventName.allCases { #expect(hint.contains(name.rawValue)) }
    #expect(driver.core.subscriptionCount == 0)
  }

  @Test func subscriptionsOfAConnectionAreLimited() throws {
    var limits = Limits()
    limits.subscriptionsMax = 2
    let driver = CoreDriver(limits: limits)
    let peer = driver.connect()
    for _ in 1...2 { try peer.call("subscribe") }
    let failure = try peer.fail("subscribe")
    #expect(failure.code == -32008)
    #expect(failure.data["limit"] == "subscriptionsMax")
    #expect(failure.data["value"] == 3)
    try driver.connect().call("subscribe")
    try peer.call("unsubscribe", "[2]")
    #expect(try peer.call("subscribe") == ["subscription": 3])
  }

  @Test func aNotificationSubscribesToNothing() throws {
    driver.connect().notify("subscribe", "{}")
    #expect(driver.core.subscriptionCount == 0)
  }
}

extension JSONValue {
  fileprivate static let pristine: JSONValue = ["state": "none", "reason": "pristine"]

  /// The members of an event that are not in every one.
  var facts: JSONValue {
    var facts = JSONObject()
    for (name, value) in object?.members ?? [] where !["subscription", "name", "application"].contains(name) {
      facts[name] = value
    }
    return .object(facts)
  }
}
