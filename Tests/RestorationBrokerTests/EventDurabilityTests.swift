// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// An event reports a change that is on disk, or one that needs no write.
@Suite struct EventDurabilityTests {
  let broker = MemoryBroker()

  private func subscriber(_ parameters: String = "{}") throws -> Peer {
    let peer = broker.connect(pid: 900)
    try peer.call("subscribe", parameters)
    return peer
  }

  private func names(_ peer: Peer) -> [String] { peer.takeNotifications("event").compactMap { $0["name"]?.string } }

  @Test func anEventWaitsForItsWriteAndForThoseBefore() throws {
    let monitor = try subscriber()
    let peer = broker.connect()
    try peer.initialize()
    _ = names(monitor)
    broker.holdsCommits = true
    peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}"))
    peer.notify("encodeRestorableState", peer.encoding("7", "{}"))
    #expect(names(monitor).isEmpty)
    broker.commit()
    #expect(names(monitor) == ["stateEncoded", "encodeFailed"])
  }

  @Test func whatWasNotStoredIsNotTold() throws {
    let monitor = try subscriber()
    let peer = broker.connect(pid: 3)
    try peer.initialize("App", #""process":"main""#)
    let main = try peer.register("Main")
    _ = names(monitor)
    broker.holdsCommits = true
    peer.start("encodeRestorableState", peer.encoding("\(main)", #"{"a":1}"#))
    peer.notify("encodeRestorableState", peer.encoding("\(main)", #"{"a":2}"#))
    peer.start("registerObjectForStateRestoration", peer.registration("Lost"))
    broker.holdsCommits = false
    broker.failCommit("App")
    let events = monitor.takeNotifications("event")
    // The call has its answer; the notification has only this.
    #expect(events.compactMap { $0["name"]?.string } == ["encodeFailed", "archiveOpened"])
    #expect(events.first?["object"] == .integer(main) && events.first?["process"] == "main")
    #expect(events.first?["error"] == ["code": -32012, "kind": "storeFailed"])
    try peer.encode("\(main)", #"{"a":3}"#)
    #expect(names(monitor) == ["stateEncoded"])
  }

  @Test func aSessionThatEndsWhileItsArchiveIsLoadedAgainEndsOnce() throws {
    let monitor = try subscriber(#"{"events":["sessionEnded"]}"#)
    let peer = broker.connect(pid: 3)
    try peer.initialize()
    broker.holdsCommits = true
    peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}"))
    broker.holdsOpenings = true
    broker.holdsCommits = false
    broker.failCommit("App")
    broker.crash(peer)
    broker.openHeld()
    broker.advance(milliseconds: 2_000)
    #expect(names(monitor) == ["sessionEnded"])
  }

  @Test func theEventsOfAnArchiveThatClosesComeBeforeItsClose() throws {
    var limits = Limits()
    limits.openArchivesMax = 1
    let broker = MemoryBroker(limits: limits)
    let monitor = broker.connect(pid: 900)
    try monitor.call("subscribe", #"{"application":"a"}"#)
    let peer = broker.connect()
    broker.holdsCommits = true
    peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""application":"a""#))
    peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""application":"b""#))
    #expect(broker.closed.isEmpty && names(monitor).isEmpty)
    broker.commit()
    #expect(broker.closed == ["a"])
    #expect(names(monitor) == ["archiveOpened", "stateEncoded", "archiveClosed"])
  }

  @Test func anEncodeThatNobodyWaitsForSaysThatItsArchiveDoesNotOpen() throws {
    let monitor = try subscriber()
    broker.openingFailures["App"] = ArchiveError(.full, "the disk is full")
    broker.connect().notify("encodeRestorableState", #"{"application":"App","object":["A"],"state":{}}"#)
    let events = monitor.takeNotifications("event")
    #expect(events.map { [$0["name"], $0["error"]?["kind"], $0["path"]] } == [["encodeFailed", "storeFailed", ["A"]]])
  }

  @Test(arguments: [5, 6] as [UInt64])
  func inAFloodEveryStateThatIsStoredIsToldOnceAndInOrder(_ seed: UInt64) throws {
    var flood = Flood(seed: seed)
    let monitor = Monitor(flood.broker)
    for _ in 0..<800 {
      flood.step()
      monitor.look()
    }
    flood.end()
    monitor.look()
    #expect(monitor.sequences == monitor.sequences.sorted())
    #expect(Set(monitor.sequences).count == monitor.sequences.count)
    #expect(monitor.sequences.count == flood.stored - monitor.missed)
    #expect(monitor.sequences.count > 30)
  }
}

/// A subscriber that comes again when the broker has restarted.
private final class Monitor {
  private let broker: MemoryBroker
  private var peer: Peer?
  private(set) var sequences: [Int64] = []
  /// States stored while nobody was subscribed.
  private(set) var missed = 0
  private var seen = 0

  init(_ broker: MemoryBroker) {
    self.broker = broker
    look()
  }

  func look() {
    let stored = broker.logs["App"]?.count { if case .state(_) = $0 { true } else { false } } ?? 0
    for event in peer?.takeNotifications("event") ?? [] {
      guard let sequence = event["sequence"]?.integer else { continue }
      sequences.append(sequence)
      seen += 1
    }
    if peer?.isConnected != true {
      missed += stored - seen
      seen = stored
      let again = broker.connect(pid: 900)
      again.start("subscribe", #"{"events":["stateEncoded"],"application":"App"}"#)
      peer = again
    }
  }
}
