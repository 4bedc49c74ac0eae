// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import Testing

/// What `verifyArchive` finds, and that it does not get in anybody's way.
@Suite struct VerificationTests {
  let broker = MemoryBroker()

  private func verify(_ peer: Peer, _ more: String = "") throws -> JSONValue {
    try peer.call("verifyArchive", #"{"application":"App"\#(more)}"#)
  }

  /// Restarts the broker over a changed archive, and returns its findings.
  private func problems(after change: (inout [ArchiveChange]) -> Void) throws -> [JSONValue] {
    try broker.disk.tamper("App", change)
    broker.restart()
    let result = try verify(broker.connect(pid: 7))
    #expect(result["sound"] == false)
    return result["problems"]?.array ?? []
  }

  private func fill() throws {
    let peer = broker.connect()
    try peer.initialize()
    try peer.register("Main", #""kind":"viewController""#)
    try peer.register("Editor", below: #"["Main"]"#, #""kind":"view""#)
    try peer.encode(#"["Main"]"#, #"{"r":{"$restorable":["Main","Editor"]}}"#)
    try peer.encode(#"["Main","Editor"]"#, #"{"n":0.1}"#)
    try peer.goodbye("restart")
  }

  /// The change that wrote what `isWanted` wants.
  private func change(_ isWanted: (ArchiveChange) -> Bool) throws -> (SequenceNumber, ArchiveChange) {
    let log = try #require(broker.logs["App"])
    let found = log.lastIndex(where: isWanted)
    let index = try #require(found)
    return (SequenceNumber(index + 1), log[index])
  }

  private func state(with text: String) throws -> (SequenceNumber, StateRecord) {
    let (sequence, change) = try change {
      if case .state(let record) = $0 { String(decoding: record.text, as: UTF8.self).contains(text) } else { false }
    }
    guard case .state(let record) = change else { throw ArchiveError(.absent, "no state") }
    return (sequence, record)
  }

  private func node(_ component: String) throws -> (SequenceNumber, NodeRecord) {
    let (sequence, change) = try change {
      if case .node(let record) = $0 { record.component == component } else { false }
    }
    guard case .node(let record) = change else { throw ArchiveError(.absent, "no node") }
    return (sequence, record)
  }

  /// A foreign file may have it, with a checksum that is right.
  @Test func aTableOfReferencesWithImpossibleNumbersEndsNothing() throws {
    try fill()
    let (sequence, record) = try state(with: "restorable")
    for table in ["[[9223372036854775807,9,1]]", "[[5,9223372036854775807,1]]", "[[99999999999999999999,1,2]]", "[1"] {
      _ = try problems { changes in
        var record = record
        record.references = table
        changes[Int(sequence) - 1] = .state(record)
      }
      let main = #"{"application":"App","object":["Main"]}"#
      let decoded = try broker.connect(pid: 8).call("decodeRestorableState", main)
      #expect(decoded["state"]?["r"]?["$restorable"] == 2)
    }
  }

  @Test func aDamagedRowIsNamedByItsPath() throws {
    try fill()
    let (sequence, _) = try state(with: "0.1")
    broker.disk.damage("App", [sequence])
    let problems = try problems { _ in }
    #expect(problems.count == 1)
    #expect(problems[0]["kind"] == "state")
    #expect(problems[0]["path"] == ["Main", "Editor"])
    #expect(problems[0]["generation"] == nil)
  }

  @Test(arguments: ["[1]", "{", "7", #"{"a":1}x"#, #"{"r":{"$restorable":["Main"]}}"#])
  func aTextThatIsNoStateIsNamed(_ text: String) throws {
    try fill()
    var (sequence, record) = try state(with: "0.1")
    record.text = Array(text.utf8)[...]
    let problems = try problems { $0[Int(sequence) - 1] = .state(record) }
    #expect(problems.map { $0["kind"]?.string } == [text.hasPrefix(#"{"r""#) ? "reference" : "text"])
    #expect(problems[0]["path"] == ["Main", "Editor"])
  }

  @Test(arguments: [#"{"role":"selected"}"#, "[{}]", "7", "[1"])
  func elementsThatAreNoneAreNamed(_ text: String) throws {
    try fill()
    var (sequence, record) = try state(with: "0.1")
    record.elements = text
    let problems = try problems { $0[Int(sequence) - 1] = .state(record) }
    #expect(problems.map { $0["kind"]?.string } == ["text"])
  }

  @Test(arguments: ["[[5,18,999]]", "[[4,17,2]]", "[]", "[[5,17,2],[5,17,2]]", "[[5,17,1]]"])
  func aBrokenReferenceIsNamed(_ table: String) throws {
    try fill()
    var (sequence, record) = try state(with: "$restorable")
    #expect(record.references == "[[5,17,2]]")
    record.references = table
    let problems = try problems { $0[Int(sequence) - 1] = .state(record) }
    #expect(problems.map { $0["kind"]?.string } == ["reference"])
    #expect(problems[0]["path"] == ["Main"])
  }

  @Test func aReferenceToAnObjectThatNeverWasIsNamed() throws {
    try fill()
    var (sequence, record) = try state(with: "$restorable")
    record.text = Array(#"{"r":{"$restorable":9}}"#.utf8)[...]
    record.references = "[[5,17,9]]"
    let problems = try problems { $0[Int(sequence) - 1] = .state(record) }
    #expect(problems.map { $0["kind"]?.string } == ["reference"])
  }

  @Test func aTreeThatIsNoneIsNamed() throws {
    try fill()
    var (sequence, record) = try node("Main")
    record.parent = 2
    let circle = try problems { $0[Int(sequence) - 1] = .node(record) }
    #expect(circle.contains { $0["kind"] == "tree" })
    record.parent = 77
    let orphan = try problems { $0[Int(sequence) - 1] = .node(record) }
    #expect(orphan.contains { $0["kind"] == "tree" && $0["path"] == ["Main"] })
    record.parent = nil
    record.component = "a/b"
    #expect(try problems { $0[Int(sequence) - 1] = .node(record) }.contains { $0["kind"] == "object" })
  }

  @Test func twoObjectsWithOnePathAreNamed() throws {
    try fill()
    var (sequence, record) = try node("Editor")
    record.parent = nil
    record.component = "Main"
    let problems = try problems { $0[Int(sequence) - 1] = .node(record) }
    #expect(problems.contains { $0["kind"] == "tree" && $0["path"] == ["Main"] })
  }

  @Test func whatOnlyAGenerationShowsIsNamedWithIt() throws {
    try fill()
    var (sequence, record) = try node("Editor")
    let next = broker.connect(pid: 101)
    try next.initialize()
    try next.call("discardApplicationState")
    try next.goodbye("restart")
    record.component = "a/b"
    let problems = try problems { $0[Int(sequence) - 1] = .node(record) }
    #expect(problems.count == 1)
    #expect(problems[0]["kind"] == "object" && problems[0]["generation"] == 1)
  }

  @Test func othersAreAnsweredBetweenThePieces() throws {
    let peer = broker.connect()
    try peer.initialize()
    for index in 0..<20 { try peer.encode(#"["o\#(index)"]"#, "{}") }
    let tool = broker.connect(pid: 7)
    var count = 0
    broker.betweenPieces = {
      count += 1
      if count > 1 { _ = peer.start("encodeRestorableState", #"{"object":["o3"],"state":{"n":\#(count)}}"#) }
    }
    #expect(try verify(tool)["sound"] == true)
    broker.betweenPieces = nil
    #expect(count > 2)
    #expect(peer.unanswered.isEmpty)
    #expect(try peer.state(#"["o3"]"#)?["n"]?.integer == Int64(count))
    broker.inspect()
  }

  @Test func referencesToObjectsThatCameMeanwhileAreNoProblem() throws {
    let peer = broker.connect()
    try peer.initialize()
    for index in 0..<20 { try peer.encode(#"["o\#(index)"]"#, "{}") }
    let tool = broker.connect(pid: 7)
    var count = 0
    broker.betweenPieces = {
      count += 1
      guard count == 2 else { return }
      _ = peer.start("registerObjectForStateRestoration", #"{"restorationIdentifier":"New"}"#)
      _ = peer.start("encodeRestorableState", #"{"object":["o19"],"state":{"r":{"$restorable":["New"]}}}"#)
    }
    let result = try verify(tool)
    broker.betweenPieces = nil
    #expect(peer.unanswered.isEmpty)
    #expect(result["sound"] == true, "\(result)")
    #expect(result["objects"] == 21)
  }

  @Test func aClientThatLeavesEndsItsCheck() throws {
    let peer = broker.connect()
    for index in 0..<20 { try peer.encode(#"["o\#(index)"]"#, "{}", #""application":"App""#) }
    let tool = broker.connect(pid: 7)
    broker.betweenPieces = { [broker] in if broker.jobCount == 3 { broker.disconnect(tool) } }
    tool.start("verifyArchive", #"{"application":"App"}"#)
    broker.betweenPieces = nil
    #expect(broker.jobCount == 3)
    #expect(try verify(peer)["sound"] == true)
    broker.inspect()
  }

  @Test func problemsBeyondTheFirstAreCounted() throws {
    let peer = broker.connect()
    for index in 0..<300 { try peer.encode(#"["o\#(index)"]"#, "{}", #""application":"App""#) }
    broker.disk.damage("App", 1...1_000)
    let result = try verify(peer)
    #expect(result["problems"]?.array?.count == 256)
    #expect(result["omitted"] == 44)
  }

  @Test func copiesWaitForWhatWasWrittenBefore() throws {
    let peer = broker.connect()
    try peer.initialize()
    broker.holdsCommits = true
    let encode = peer.start("encodeRestorableState", #"{"object":["A"],"state":{}}"#)
    let backup = peer.start("backupArchive", #"{"progressToken":7}"#)
    #expect(!peer.hasAnswer(backup) && broker.backups == 0)
    broker.commit()
    #expect(peer.hasAnswer(encode) && peer.hasAnswer(backup) && broker.backups == 1)
    #expect(peer.takeNotifications("progress").map { $0["done"]?.integer } == [4_096])
    broker.holdsCommits = false
    broker.copyFailures["/taken"] = .target("File exists")
    #expect(try peer.fail("backupArchive", #"{"to":"/taken"}"#).data["pointer"] == "/to")
    broker.copyFailures["/full"] = .archive(ArchiveError(.full, "no space"))
    #expect(try peer.fail("backupArchive", #"{"to":"/full"}"#).kind == "storeFailed")
    #expect(try peer.call("backupArchive", #"{"to":"/free"}"#)["to"] == "/free")
  }

  @Test func aTransactionThatFailsEndsWhatWaitsForIt() throws {
    let peer = broker.connect()
    try peer.initialize()
    broker.holdsCommits = true
    peer.start("encodeRestorableState", #"{"object":["A"],"state":{}}"#)
    let ids = [peer.start("verifyArchive"), peer.start("backupArchive"), peer.start("exportArchive")]
    broker.failCommit("App")
    for id in ids { #expect(try peer.failure(of: id).kind == "storeFailed") }
    broker.holdsCommits = false
    #expect(try peer.call("verifyArchive")["sound"] == true)
  }
}
