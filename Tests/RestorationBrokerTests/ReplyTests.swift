// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationTransport
internal import RestorationWire
internal import Testing

/// Answers in the making are bounded, and so is the work that makes them (`Protocol/limits.md`).
@Suite struct ReplyTests {
  private let broker: MemoryBroker
  private let application = #""application":"App""#

  init() {
    var limits = Limits()
    limits.frameBytesMax = 64 << 10
    limits.stateBytesMax = 16 << 10
    limits.replyBytesPause = 32 << 10
    broker = MemoryBroker(limits: limits)
  }

  /// Objects with states of 8,000 bytes each, which no broker has read yet.
  private func store(_ names: String...) throws {
    let peer = broker.connect()
    let pad = String(repeating: "x", count: 7_990)
    for name in names { try peer.encode(#"["\#(name)"]"#, #"{"p":"\#(pad)"}"#, application) }
    broker.restart()
  }

  private func message(_ id: Int, _ method: String, _ members: String) -> String {
    #"{"jsonrpc":"2.0","id":\#(id),"method":"\#(method)","params":{\#(application)\#(members)}}"#
  }

  private func decodes(_ count: Int, of name: String) -> [String] {
    (1...count).map { message($0, "decodeRestorableState", #","object":["\#(name)"]"#) }
  }

  /// The answers to a batch, by id.
  private func send(batch: [String], over client: MemoryConnection) throws -> [Int64: JSONValue] {
    client.send(bytes: Array("[\(batch.joined(separator: ","))]\n".utf8))
    let answers = try #require(JSONCodec.parse(Array(try client.receive().utf8)).array)
    return Dictionary(uniqueKeysWithValues: answers.map { ($0["id"]?.integer ?? 0, $0) })
  }

  // MARK: Batches

  /// Also one that waits in the core until the archive is open, and one whose states are at hand.
  @Test func theAnswersToABatchAreLimitedAndTheRestDoesNotBegin() throws {
    try store("A")
    let client = broker.open()
    for _ in 1...2 {
      let before = broker.jobCount
      let encode = message(41, "encodeRestorableState", #","object":["B"],"state":{}"#)
      let answers = try send(batch: decodes(40, of: "A") + [encode], over: client)
      #expect(answers.count == 41)
      let given = answers.values.filter { $0["result"] != nil }
      #expect((4...6).contains(given.count), "\(given.count) states of 8,000 bytes")
      #expect(broker.jobCount - before <= given.count)
      for answer in answers.values where answer["result"] == nil {
        #expect(answer["error"]?["code"] == -32008)
        #expect(answer["error"]?["data"]?["limit"] == "frameBytesMax")
        #expect(answer["error"]?["data"]?["max"] == 32_768)
      }
      #expect(answers[41]?["error"] != nil)
    }
    let failure = try broker.connect().fail("decodeRestorableState", #"{\#(application),"object":["B"]}"#)
    #expect(failure.kind == "unknownObject")
    #expect(client.connection.usage.replyBytes == 0)
  }

  @Test func aBatchThatFitsIsAnsweredWholeHoweverLittleMayBeInTheMaking() throws {
    try store("A", "B", "C", "D")
    let names = ["A", "B", "C", "D"].enumerated()
    let batch = names.map { message($0 + 1, "decodeRestorableState", #","object":["\#($1)"]"#) }
    let notification = #"{"jsonrpc":"2.0","method":"encodeRestorableState","params":{\#(application),"object":["E"]"#
    let answers = try send(batch: batch + [notification + #","state":{}}}"#], over: broker.open())
    #expect(answers.count == 4)
    #expect(answers.values.allSatisfy { $0["result"]?["status"] == "available" })
    #expect(try broker.connect().decode(#"["E"]"#, application)["status"] == "available")
  }

  // MARK: Replies in the making

  @Test func pagesAreMadeOneAfterTheOtherForAClientThatAsksForManyAtOnce() throws {
    try store("A", "B", "C")
    let client = broker.open()
    var most = 0
    broker.betweenPieces = { most = max(most, client.connection.usage.replyBytes) }
    client.send(bytes: (1...20).flatMap { Array("\(message($0, "readArchive", ""))\n".utf8) })
    for _ in 1...20 { _ = try client.receive() }
    broker.betweenPieces = nil
    // A page is expected to have 1 MiB until its states are known.
    #expect(most >= 1 << 20 && most < (1 << 20) + (64 << 10), "\(most) bytes in the making")
    #expect(client.connection.usage.replyBytes == 0)
  }

  @Test func statesAreReadAsFarAsTheirAnswersHaveRoom() throws {
    try store("A")
    try broker.connect().call("describeApplication", "{\(application)}")
    let client = broker.open()
    var most = 0
    broker.betweenPieces = { most = max(most, client.connection.usage.replyBytes) }
    client.send(bytes: decodes(40, of: "A").flatMap { Array("\($0)\n".utf8) })
    for _ in 1...40 { _ = try client.receive() }
    broker.betweenPieces = nil
    #expect(most > 32 << 10 && most < 41 << 10, "\(most) bytes in the making")
  }

  @Test func othersAreAnsweredMeanwhile() throws {
    try store("A")
    let (client, other) = (broker.open(), broker.connect(pid: 2))
    broker.betweenPieces = { [broker, application] in
      broker.betweenPieces = nil
      #expect(client.connection.usage.isPaused)
      _ = try? other.encode(#"["B"]"#, "{}", application)
    }
    client.send(bytes: (1...20).flatMap { Array("\(message($0, "readArchive", ""))\n".utf8) })
    #expect(try other.decode(#"["B"]"#, application)["status"] == "available")
    for _ in 1...20 { _ = try client.receive() }
  }

  @Test func whatSomebodySentIsDoneThoughItWaitedForRoomWhenTheyLeft() throws {
    try store("A")
    broker.holdsOpenings = true
    let peer = broker.connect(pid: 2)
    for _ in 1...3 { peer.start("readArchive", "{\(application)}") }
    peer.notify("encodeRestorableState", peer.encoding(#"["B"]"#, "{}", application))
    broker.betweenPieces = { [broker] in
      broker.betweenPieces = nil
      broker.disconnect(peer)
    }
    broker.openHeld()
    #expect(try broker.connect(pid: 3).decode(#"["B"]"#, application)["status"] == "available")
  }

  // MARK: Long operations

  /// Clients that call all at once, when the archive opens.
  private func call(_ calls: [(String, String)]) -> [(peer: Peer, id: Int)] {
    broker.holdsOpenings = true
    let calls = calls.map { method, members -> (peer: Peer, id: Int) in
      let peer = broker.connect()
      return (peer, peer.start(method, "{\(application)\(members)}"))
    }
    broker.openHeld()
    return calls
  }

  @Test func fewOperationsOfAnApplicationAreUnderWayAtATime() throws {
    try store("A")
    try broker.connect().call("saveApplicationState", "{\(application)}")
    broker.restart()
    var most = 0
    broker.betweenPieces = { [disk = broker.disk] in most = max(most, disk.heldPieces + 1) }
    let rollbacks = (1...2).map { _ in ("rollBack", #","generation":1,"force":true"#) }
    let reads = (1...6).flatMap { _ in [("verifyArchive", ""), ("diffGenerations", #","from":1"#)] }
    let calls = call(rollbacks + reads)
    broker.betweenPieces = nil
    #expect(most == 5, "four, and one that rolls back")
    for (peer, id) in calls { _ = try peer.result(of: id) }
    #expect(broker.application("App")?.isIdle == true)
  }

  @Test func aCallThatWaitsForOthersCanBeCancelled() throws {
    try store("A")
    broker.holdsOpenings = true
    let peers = (1...6).map { _ in broker.connect() }
    let calls = peers.map { $0.start("verifyArchive", "{\(application)}") }
    broker.betweenPieces = { [broker] in
      broker.betweenPieces = nil
      peers[5].notify("$/cancelRequest", #"{"id":\#(calls[5])}"#)
    }
    broker.openHeld()
    #expect(try peers[5].failure(of: calls[5]).code == -32800)
    for index in 0..<5 { #expect(try peers[index].result(of: calls[index])["sound"] == true) }
  }

  @Test func pagesThatWaitForOthersCountAlready() throws {
    try store("A")
    let (client, others) = (broker.open(), (1...4).map { _ in broker.connect() })
    broker.holdsOpenings = true
    for other in others { other.start("verifyArchive", "{\(application)}") }
    client.send(bytes: (1...20).flatMap { Array("\(message($0, "readArchive", ""))\n".utf8) })
    var most = 0
    broker.betweenPieces = { most = max(most, client.connection.usage.replyBytes) }
    broker.openHeld()
    broker.betweenPieces = nil
    #expect(most >= 1 << 20 && most < (1 << 20) + (64 << 10), "\(most) bytes in the making")
    for _ in 1...20 { _ = try client.receive() }
  }

  // MARK: Pages

  /// The paths of all pages, and the pieces that each took.
  private func pages(_ peer: Peer, between: () throws -> Void) throws -> (paths: [String], pieces: [Int]) {
    var (paths, pieces): ([String], [Int]) = ([], [])
    var cursor = ""
    repeat {
      let before = broker.jobCount
      let page = try peer.call("readArchive", "{\(cursor)}")
      pieces.append(broker.jobCount - before)
      paths += (page["objects"]?.array ?? []).compactMap { $0["path"]?.joined }
      cursor = page["cursor"]?.string.map { #""cursor":"\#($0)""# } ?? ""
      if !cursor.isEmpty { try between() }
    } while !cursor.isEmpty
    return (paths, pieces)
  }

  @Test func aPageReadsItsOwnNodesUnlessTheTreeHasChanged() throws {
    let peer = broker.connect()
    try peer.initialize()
    let names = (0..<3_000).map { "o\($0)" }
    for name in names { try peer.register(name) }
    let steady = try pages(peer) {}
    #expect(steady.paths == names)
    #expect(steady.pieces == [3, 1])
    let disturbed = try pages(peer) { try peer.register("late") }
    #expect(disturbed.paths == names, "the first page's moment")
    #expect(disturbed.pieces.count == 2)
    // While a page is read, too.
    broker.betweenPieces = { [broker] in
      broker.betweenPieces = nil
      peer.start("setRestorationIdentifier", #"{"object":["o2999"],"restorationIdentifier":"moved"}"#)
    }
    #expect(try pages(peer) {}.paths == names + ["late"])
  }
}
