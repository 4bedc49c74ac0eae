// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Whatever its targets do, a state that was stored can be given out: with the paths of its references it fits into
/// half of a frame, which is 32 KiB here (R14).
@Suite struct StateLengthTests {
  let broker: MemoryBroker
  let peer: Peer

  /// `B` may refer 120 times to a path of one component with 225 bytes, and not to a longer one.
  private static let fitting = String(repeating: "x", count: 225)
  private static let long = fitting + "x"
  private static let state = referring(["a"], times: 120)

  private static func referring(_ names: [String], times count: Int) -> String {
    let list = [[String]](repeating: names, count: count).joined().map { #"{"$restorable":["\#($0)"]}"# }
    return #"{"list":[\#(list.joined(separator: ","))]}"#
  }

  private static var limits: Limits {
    var limits = Limits()
    (limits.frameBytesMax, limits.stateBytesMax) = (65_536, 32_768)
    return limits
  }

  init() throws {
    broker = MemoryBroker(limits: Self.limits)
    peer = broker.connect(pid: 1)
    try peer.initialize("App", #""process":"w","serves":["pathChanged"]"#)
    try peer.register("a")
  }

  private func rename(_ old: String, _ new: String, _ more: String = "") -> String {
    #"{"object":["\#(old)"],"restorationIdentifier":"\#(new)"\#(more)}"#
  }

  /// `a` may get the longest path that fits, and no other.
  private func expectBound(of path: JSONValue? = ["B"], sourceLocation: SourceLocation = #_sourceLocation) throws {
    let refused = try peer.fail("setRestorationIdentifier", rename("a", Self.long))
    #expect(refused.kind == "limitExceeded", sourceLocation: sourceLocation)
    #expect(refused.data["limit"] == "frameBytesMax", sourceLocation: sourceLocation)
    #expect(refused.data["path"] == path, sourceLocation: sourceLocation)
    #expect(refused.data["max"] == 32_768, sourceLocation: sourceLocation)
    #expect(refused.data["value"] == .integer(130 + 120 * (42 + 230)), sourceLocation: sourceLocation)
    broker.inspect()
    try peer.call("setRestorationIdentifier", rename("a", Self.fitting))
  }

  @Test func r14AMoveThatWouldMakeAStateTooLongIsRefused() throws {
    try peer.register("B")
    try peer.encode(#"["B"]"#, Self.state)
    try expectBound()
    let text = try peer.text(peer.start("decodeRestorableState", #"{"object":["B"]}"#))
    #expect(text.utf8.count > 30_000 && text.utf8.count < 33_500)
    #expect(try peer.state(#"["B"]"#)?["list"]?.array?.last?["$restorable"] == [.string(Self.fitting)])

    try peer.register("P" + Self.long)
    let move = #"{"object":["\#(Self.fitting)"],"restorationParent":["P\#(Self.long)"]}"#
    #expect(try peer.fail("setRestorationParent", move).data["limit"] == "frameBytesMax")
    #expect(try peer.paths() == ["B", "P" + Self.long, Self.fitting].sorted())
    try peer.encode(#"["B"]"#, "{}")
    try peer.call("setRestorationParent", move)
    broker.inspect()
  }

  @Test func r14AMoveReadsTheReferencesOnlyOfStatesThatTheLongestPathWouldMakeTooLong() {
    var tree = NodeTree()
    let node = tree.insert(NodeRecord(node: 1, parent: nil, component: "B", kind: .object))
    let table = "[" + (0..<1_024).map { "[\(30 * $0),20,1]" }.joined(separator: ",") + "]"
    let text = [UInt8](repeating: UInt8(ascii: " "), count: 40_000)
    let record = StateRecord(node: 1, context: 1, written: 0, text: text[...], references: table)
    node.versions.write(StateSummary(record, at: 1))
    let long = LongStates(in: tree, Limits())
    #expect(long.count == 1)
    #expect(long.suspects(in: tree).count == 0)
    _ = tree.insert(NodeRecord(node: 2, parent: nil, component: String(repeating: "x", count: 4_000), kind: .object))
    #expect(long.suspects(in: tree).count == 1)
  }

  @Test func r14R16OfManyStatesOnlyThoseAreReadThatTheLongestPathWouldMakeTooLong() {
    var tree = NodeTree()
    _ = tree.insert(NodeRecord(node: 1, parent: nil, component: "B", kind: .object))
    let table = "[" + (0..<1_024).map { "[\(30 * $0),20,1]" }.joined(separator: ",") + "]"
    let text = [UInt8](repeating: UInt8(ascii: " "), count: 40_000)[...]
    let states = (0..<100).map { StateRecord(node: $0, context: 1, written: 0, text: text, references: table) }
    #expect(Limits().suspects(among: states, in: tree).isEmpty)
    _ = tree.insert(NodeRecord(node: 2, parent: nil, component: String(repeating: "x", count: 4_000), kind: .object))
    #expect(Limits().suspects(among: states, in: tree).count == 100)
  }

  @Test func r14WhatIsAboveATargetMovesOnlyAsFarAsTheStateAllows() throws {
    try peer.register("T", below: #"["a"]"#)
    try peer.register("B")
    try peer.encode(#"["B"]"#, Self.referring([#"a","T"#], times: 120))
    try peer.call("setRestorationIdentifier", rename("a", String(repeating: "x", count: 221)))
    let refused = try peer.fail("setRestorationIdentifier", rename(String(repeating: "x", count: 221), Self.fitting))
    #expect(refused.data["path"] == ["B"])
    broker.inspect()
  }

  @Test func r14ElementsCountAsWell() throws {
    try peer.register("Main", below: nil, #""kind":"viewController""#)
    try peer.register("V", below: #"["Main"]"#, #""kind":"view""#)
    let elements = (0..<3).map { #"{"role":"selected","indexPath":[0,\#($0)]}"# }.joined(separator: ",")
    try peer.encode(#"["Main","V"]"#, Self.state, #""elements":[\#(elements)]"#)
    let refused = try peer.fail("setRestorationIdentifier", rename("a", Self.fitting))
    #expect(refused.data["path"] == ["Main", "V"])
    try peer.encode(#"["Main","V"]"#, Self.state)
    try peer.call("setRestorationIdentifier", rename("a", Self.fitting))
    let again = peer.encoding(
      #"["Main","V"]"#,
      Self.referring([Self.fitting], times: 120),
      #""elements":[\#(elements)]"#
    )
    #expect(try peer.fail("encodeRestorableState", again).data["limit"] == "frameBytesMax")
  }

  @Test func r14R19AHiddenStateIsGivenOutAsWell() throws {
    try peer.register("B")
    try peer.encode(#"["B"]"#, Self.state)
    let next = broker.connect(pid: 2)
    try peer.call("unregisterObject", #"{"object":["B"],"keepState":true}"#)
    try next.initialize()
    try next.register("B")
    try next.encode(#"["B"]"#, "{}")
    try expectBound()
    #expect(try next.state(#"["B"]"#)?["list"]?.array?.count == 120)
    broker.inspect()
  }

  @Test func r13R14WhatIsOpenedAgainFitsOrStaysClosed() throws {
    try peer.register("B")
    try peer.encode(#"["B"]"#, Self.state)
    try peer.call("unregisterObject", #"{"object":["B"]}"#)
    try peer.call("setRestorationIdentifier", rename("a", Self.long))
    let refused = try peer.fail("reopenObject")
    #expect(refused.data["limit"] == "frameBytesMax")
    broker.inspect()
    try peer.call("setRestorationIdentifier", rename(Self.long, Self.fitting))
    try peer.call("reopenObject")
    #expect(try peer.state(#"["B"]"#)?["list"]?.array?.count == 120)
    #expect(try peer.fail("setRestorationIdentifier", rename(Self.fitting, Self.long)).data["path"] == ["B"])
    broker.inspect()
  }

  @Test func r13R14ATargetIsOpenedAgainOnlyIfWhatRefersToItFits() throws {
    let target = "T" + Self.fitting.dropLast()
    try peer.register(target)
    try peer.encode(#"["\#(target)"]"#, "{}")
    try peer.register("B")
    try peer.encode(#"["B"]"#, Self.referring(["a", target], times: 60))
    try peer.call("unregisterObject", #"{"object":["\#(target)"]}"#)
    try peer.call("setRestorationIdentifier", rename("a", Self.long + "xx"))
    #expect(try peer.fail("reopenObject").data["path"] == ["B"])
    try peer.call("setRestorationIdentifier", rename(Self.long + "xx", Self.fitting))
    try peer.call("reopenObject")
    broker.inspect()
  }

  @Test func r12R14AStateOfARoundWhoseTargetsMoveMeanwhileIsRefused() throws {
    let workers = try ([2, 3] as [Int64]).map { pid in
      let worker = broker.connect(pid: pid)
      try worker.initialize("App", #""process":"w\#(pid)","serves":["encodeRestorableStateWithCoder"]"#)
      return worker
    }
    try workers[0].register("B")
    try workers[1].register("C")
    let id = peer.start("saveApplicationState")
    workers[0].answerEncode { _ in Self.state }
    try peer.call("setRestorationIdentifier", rename("a", Self.long))
    workers[1].answerEncode { _ in "{}" }
    let stale = try peer.result(of: id)["stale"]?.array
    #expect(stale?.map { $0["path"]?.joined } == ["B"])
    #expect(stale?.first?["why"] == "limitExceeded")
    #expect(try workers[0].state(#"["B"]"#) == nil)
    broker.inspect()
  }

  @Test func r14AtTheBorderEverythingIsReadAndImportedAgain() throws {
    try peer.register("B")
    try peer.encode(#"["B"]"#, Self.state)
    try peer.call("saveApplicationState")
    try peer.call("setRestorationIdentifier", rename("a", Self.fitting))
    try peer.call("saveApplicationState")
    for generation in ["", #""generation":1"#, #""generation":2"#] {
      let objects = try peer.call("readArchive", "{\(generation)}")["objects"]?.array
      #expect(objects?.last?["state"]?["list"]?.array?.count == 120)
    }
    let document = try peer.export("App")
    let tool = broker.connect(pid: 9)
    try tool.importDocument(document, into: "Other")
    #expect(try tool.export("Other") == document)
    try peer.goodbye("restart")
    broker.restart()
    let next = broker.connect(pid: 2)
    try next.initialize()
    try next.register(Self.fitting)
    #expect(try next.state(#"["B"]"#)?["list"]?.array?.count == 120)
    #expect(try next.fail("setRestorationIdentifier", rename(Self.fitting, Self.long)).data["path"] == ["B"])
  }
}
