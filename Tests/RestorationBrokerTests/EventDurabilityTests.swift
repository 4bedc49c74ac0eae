// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// An event reports a change that is on disk, or one that needs no write.
@Suite struct EventDurabilityTests {
  let driver = CoreDriver()

  private func subscriber(_ parameters: String = "{}") throws -> Peer {
    let peer = driver.connect(pid: 900)
    try peer.call("subscribe", parameters)
    return peer
  }

  private func names(_ peer: Peer) -> [String] { peer.takeNotifications("event").compactMap { $0["name"]?.string } }

  @Test func anEventWaitsForItsWriteAndForThoseBefore() throws {
    let monitor = try subscriber()
    let peer = driver.connect()
    try peer.initialize()
    _ = names(monitor)
    driver.holdsCommits = true
    peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}"))
    peer.notify("encodeRestorableState", peer.encoding("7", "{}"))
    #expect(names(monitor).isEmpty)
    driver.commit()
    #expect(names(monitor) == ["stateEncoded", "encodeFailed"])
  }

  @Test func whatWasNotStoredIsNotTold() throws {
    let monitor = try subscriber()
    let peer = driver.connect(pid: 3)
    try peer.initialize("App", #""process":"main""#)
    let main = try peer.register("Main")
    _ = names(monitor)
    driver.holdsCommits = true
    peer.start("encodeRestorableState", peer.encoding("\(main)", #"{"a":1}"#))
    peer.notify("encodeRestorableState", peer.encoding("\(main)", #"{"a":2}"#))
    peer.start("registerObjectForStateRestoration", peer.registration("Lost"))
    driver.holdsCommits = false
    driver.failCommit("App")
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
    let peer = driver.connect(pid: 3)
    try peer.initialize()
    driver.holdsCommits = true
    peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}"))
    driver.holdsOpenings = true
    driver.holdsCommits = false
    driver.failCommit("App")
    driver.crash(peer)
    driver.openHeld()
    driver.advance(milliseconds: 2_000)
    #expect(names(monitor) == ["sessionEnded"])
  }

  @Test func theEventsOfAnArchiveThatClosesComeBeforeItsClose() throws {
    var limits = Limits()
    limits.openArchivesMax = 1
    let driver = CoreDriver(limits: limits)
    let monitor = driver.connect(pid: 900)
    try monitor.call("subscribe", #"{"application":"a"}"#)
    let peer = driver.connect()
    driver.holdsCommits = true
    peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""application":"a""#))
    peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""application":"b""#))
    #expect(driver.closed == ["a"])
    #expect(names(monitor) == ["archiveOpened", "stateEncoded", "archiveClosed"])
  }

  @Test func anEncodeThatNobodyWaitsForSaysThatItsArchiveDoesNotOpen() throws {
    let monitor = try subscriber()
    driver.openingFailures["App"] = ArchiveError(.full, "the disk is full")
    driver.connect().notify("encodeRestorableState", #"{"application":"App","object":["A"],"state":{}}"#)
    let events = monitor.takeNotifications("event")
    #expect(events.map { [$0["name"], $0["error"]?["kind"], $0["path"]] } == [["encodeFailed", "storeFailed", ["A"]]])
  }

  @Test(arguments: [5, 6] as [UInt64])
  func inAFloodEveryStateThatIsStoredIsToldOnceAndInOrder(_ seed: UInt64) throws {
    var flood = Flood(seed: seed)
    let monitor = Monitor(flood.driver)
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
  private let driver: CoreDriver
  private var peer: Peer?
  private(set) var sequences: [Int64] = []
  /// States stored while nobody was subscribed.
  private(set) var missed = 0
  private var seen = 0

  init(_ driver: CoreDriver) {
    self.driver = driver
    look()
  }

  func look() {
    let stored = driver.archives["App"]?.log.count { if case .state(_) = $0 { true } else { false } } ?? 0
    for event in peer?.takeNotifications("event") ?? [] {
      guard let sequence = event["sequence"]?.integer else { continue }
      sequences.append(sequence)
      seen += 1
    }
    if peer?.isConnected != true {
      missed += stored - seen
      seen = stored
      let again = driver.connect(pid: 900)
      again.start("subscribe", #"{"events":["stateEncoded"],"application":"App"}"#)
      peer = again
    }
  }
}
