// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Answers wait for the disk, and revisions outlive the broker (R15).
@Suite struct EncodingTests {
  let broker = MemoryBroker()
  let peer: Peer

  init() throws {
    peer = broker.connect(pid: 1)
    try peer.initialize()
  }

  @Test func r15AnswersWaitUntilTheChangeIsDurable() throws {
    broker.holdsCommits = true
    let register = peer.start("registerObjectForStateRestoration", peer.registration("A"))
    let encode = peer.start("encodeRestorableState", peer.encoding(#"["B"]"#, "{}"))
    let superseding = peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""revision":3"#))
    let superseded = peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""revision":3"#))
    let move = peer.start("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"C"}"#)
    let decode = peer.start("decodeRestorableState", #"{"object":["B"]}"#)
    let pages = [peer.start("readArchive"), peer.start("describeApplication")]
    let unregister = peer.start("unregisterObject", #"{"object":["C"]}"#)
    let goodbye = peer.start("goodbye", #"{"reason":"restart"}"#)
    let all = [register, encode, superseding, superseded, move, decode, unregister, goodbye] + pages
    #expect(all.allSatisfy { !peer.hasAnswer($0) })
    let ping = peer.start("ping")
    #expect(peer.hasAnswer(ping))
    broker.commit()
    #expect(all.allSatisfy { peer.hasAnswer($0) })
    #expect(try peer.result(of: superseded) == ["superseded": true])
    #expect(try peer.result(of: encode)["durability"] == "disk")
  }

  @Test func r15AReaderOnAnotherConnectionSeesOnlyWhatIsDurable() throws {
    let other = broker.connect(pid: 2)
    try peer.encode(#"["A"]"#, #"{"a":1}"#)
    broker.holdsCommits = true
    let encode = peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, #"{"a":2}"#))
    let decode = other.start("decodeRestorableState", #"{"application":"App","object":["A"]}"#)
    #expect(!other.hasAnswer(decode))
    broker.commit()
    #expect(peer.hasAnswer(encode))
    #expect(try other.result(of: decode)["state"] == ["a": 2])
  }

  @Test func r15AStateThatIsNotStoredCountsAsNone() throws {
    let popover = try peer.register(nil, below: nil, #""kind":"viewController""#)
    try peer.encode("\(popover)", "{}")
    try peer.encode("\(popover)", "{}", #""expecting":0"#)
    #expect(try peer.decode("\(popover)")["sequence"] == 0)
    let error = try peer.fail("encodeRestorableState", peer.encoding("\(popover)", "{}", #""expecting":1"#))
    #expect(error.kind == "stateChanged" && error.message == "the object has no saved state")
  }

  /// Whoever changes what it has read may not know the class; without it, the next owner would get a state of another.
  @Test func r25AnEditKeepsTheClassOfTheStateThatItReplaces() throws {
    let owner = broker.connect(pid: 2)
    try owner.initialize()
    try owner.register("Main", below: nil, #""objectClass":"Old""#)
    try owner.encode(#"["Main"]"#, #"{"a":1}"#)
    try owner.call("goodbye", #"{"reason":"restart"}"#)
    for editor in [nil, peer] {
      let sequence = try #require(try peer.decode(#"["Main"]"#)["sequence"]?.integer)
      if let editor {
        try editor.encode(#"["Main"]"#, #"{"a":3}"#, #""expecting":\#(sequence)"#)
      } else {
        let edit = #"{"application":"App","object":["Main"],"state":{"a":2},"expecting":\#(sequence)}"#
        try broker.connect(pid: 3).call("encodeRestorableState", edit)
      }
    }
    try owner.initialize()
    try owner.register("Main", below: nil, #""objectClass":"New""#)
    #expect(try owner.decode(#"["Main"]"#)["status"] == "classMismatch")
  }

  @Test func r15ANotificationThatExpectsAnotherStateIsAFailureThatSubscribersHear() throws {
    let observer = broker.connect(pid: 2)
    try observer.call("subscribe", #"{"application":"App","events":["encodeFailed"]}"#)
    try peer.encode(#"["A"]"#, "{}")
    peer.notify("encodeRestorableState", peer.encoding(#"["A"]"#, #"{"a":1}"#, #""expecting":0"#))
    #expect(observer.takeNotifications("event").first?["error"]?["kind"] == "stateChanged")
    #expect(try peer.decode(#"["A"]"#)["state"] == [:])
  }

  /// However many of them come while the disk is slow, they must not pile up.
  @Test func nothingIsReadOrKeptForTheAnswerOfANotification() throws {
    let peer = broker.connect()
    try peer.initialize()
    let main = try peer.register("Main", below: nil, #""objectClass":"Old""#)
    try peer.encode("\(main)", #"{"a":1}"#)
    for holds in [false, true] {
      broker.holdsCommits = holds
      peer.notify("encodeRestorableState", peer.encoding("\(main)", #"{"a":2}"#))
      for object in ["\(main)", #"["Main"]"#] { peer.notify("decodeRestorableState", #"{"object":\#(object)}"#) }
      for method in [
        "readArchive", "describeApplication", "listGenerations", "listApplications", "verifyArchive", "exportArchive",
      ] {
        peer.notify(method, "{}")
      }
    }
    broker.holdsCommits = false
    broker.commit()
    #expect(try peer.state("\(main)") == ["a": 2])
  }

  @Test func r15ADecodeBetweenTwoEncodesSeesTheFirst() throws {
    broker.holdsCommits = true
    peer.notify("encodeRestorableState", peer.encoding(#"["A"]"#, #"{"a":1}"#))
    let decode = peer.start("decodeRestorableState", #"{"object":["A"]}"#)
    peer.notify("encodeRestorableState", peer.encoding(#"["A"]"#, #"{"a":2}"#))
    broker.commit()
    #expect(try peer.result(of: decode)["state"] == ["a": 1])
    #expect(try peer.state(#"["A"]"#) == ["a": 2])
  }

  @Test func r15RevisionsOutliveTheBrokerWithTheirSession() throws {
    let first = broker.connect(pid: 5)
    let token = try #require(try first.initialize()["session"]?.string)
    let handle = try first.register("R")
    try first.encode("\(handle)", #"{"a":5}"#, #""revision":5"#)
    try first.encode("\(handle)", #"{"a":6}"#)
    broker.restart()
    let again = broker.connect(pid: 5)
    try again.initialize("App", #""session":"\#(token)""#)
    #expect(try again.encode("\(handle)", #"{"a":0}"#, #""revision":5"#) == ["superseded": true])
    #expect(try again.encode("\(handle)", #"{"a":7}"#, #""revision":6"#)["durability"] == "disk")
    broker.inspect()
  }

  @Test func manyScriptsEncodeOnePathAndTheLastCounts() throws {
    let scripts = (10..<14).map { broker.connect(pid: $0) }
    broker.holdsCommits = true
    for (index, script) in scripts.enumerated() {
      script.start("encodeRestorableState", script.encoding(#"["A"]"#, #"{"a":\#(index)}"#, #""application":"S""#))
    }
    broker.commit()
    broker.holdsCommits = false
    #expect(try scripts[0].decode(#"["A"]"#, #""application":"S""#)["state"] == ["a": 3])
    broker.inspect("S")
  }
}
