// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// The events that subscribers get, and when.
@Suite struct EventTests {
  let broker = MemoryBroker()

  /// A client that has subscribed.
  private func subscriber(_ parameters: String = "{}") throws -> Peer {
    let peer = broker.connect(pid: 900)
    #expect(try peer.call("subscribe", parameters) == ["subscription": 1])
    return peer
  }

  private func session() throws -> Peer {
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    return peer
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

  @Test func archivesAreToldWhenTheyOpenCloseOrCannotBeOpened() throws {
    var limits = Limits()
    limits.openArchivesMax = 1
    let broker = MemoryBroker(limits: limits)
    let watcher = broker.connect(pid: 900)
    try watcher.call("subscribe")
    let peer = broker.connect()
    try peer.encode(#"["A"]"#, "{}", #""application":"a""#)
    broker.openingFailures["b"] = ArchiveError(.unreadable, "permission denied")
    _ = try peer.fail("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""application":"b""#))
    _ = try peer.fail("describeApplication", #"{"application":"none"}"#)
    try peer.encode(#"["B"]"#, "{}", #""application":"a""#)
    let events = watcher.takeNotifications("event").filter { $0["name"]?.string != "stateEncoded" }
    #expect(
      events.map { "\($0["application"]?.string ?? "") \($0["name"]?.string ?? "")" } == [
        "a archiveOpened", "a archiveClosed", "b archiveUnreadable", "a archiveOpened",
      ]
    )
    #expect(events[2]["message"] == "permission denied")
    #expect(events[3]["objects"] == 1)
  }

  @Test func anUnknownEventIsAnsweredWithTheKnownOnes() throws {
    let hint = try broker.connect().fail("subscribe", #"{"events":["noSuchThing"]}"#).data["hint"]?.string ?? ""
    for name in ["stateEncoded", "sessionEnded"] { #expect(hint.contains(name), "\(hint)") }
  }

  @Test func nothingFollowsTheAnswerToUnsubscribe() throws {
    let monitor = try subscriber()
    let peer = try session()
    broker.holdsCommits = true
    let call = peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}"))
    _ = monitor.takeNotifications("event")
    #expect(try monitor.call("unsubscribe", #"{"subscription":1}"#) == [:])
    broker.commit()
    #expect(peer.hasAnswer(call))
    #expect(monitor.takeNotifications("event").isEmpty)
  }

  @Test func aSubscriptionEndsWithItsConnectionAlsoOneThatWaitedInAQueue() throws {
    let peer = broker.connect()
    broker.holdsOpenings = true
    peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""application":"App""#))
    peer.start("subscribe")
    let monitor = try subscriber()
    broker.disconnect(peer)
    broker.openHeld()
    #expect(broker.core.subscriptionCount == 1)
    broker.disconnect(monitor)
    #expect(broker.core.subscriptionCount == 0)
  }

  @Test func subscriptionsOfAConnectionAreLimited() throws {
    var limits = Limits()
    limits.subscriptionsMax = 2
    let broker = MemoryBroker(limits: limits)
    let peer = broker.connect()
    for _ in 1...2 { try peer.call("subscribe") }
    let failure = try peer.fail("subscribe")
    #expect(failure.code == -32008)
    #expect(failure.data["limit"] == "subscriptionsMax")
    #expect(failure.data["value"] == 3)
    try broker.connect().call("subscribe")
    try peer.call("unsubscribe", "[2]")
    #expect(try peer.call("subscribe") == ["subscription": 3])
  }

  @Test func allConnectionsOfAProcessHaveFourTimesAsManySubscriptionsAtMost() throws {
    var limits = Limits()
    limits.subscriptionsMax = 1
    let broker = MemoryBroker(limits: limits)
    for _ in 1...4 { try broker.connect(pid: 7).call("subscribe") }
    let failure = try broker.connect(pid: 7).fail("subscribe")
    #expect(failure.data["limit"] == "subscriptionsMax" && failure.data["max"] == 4)
    try broker.connect(pid: 8).call("subscribe")
  }
}
