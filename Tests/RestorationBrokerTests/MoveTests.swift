// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import Testing

/// What changes of parent, identifier and position write, and when they are told (R6).
@Suite struct MoveTests {
  let broker = MemoryBroker()
  let peer: Peer

  init() throws {
    peer = broker.connect(pid: 1)
    try peer.initialize()
  }

  @Test func r6AMoveOutlivesTheBroker() throws {
    for name in ["A", "D"] { try peer.register(name) }
    try peer.encode(#"["A","B","C"]"#, #"{"n":1}"#)
    try peer.encode(#"["R"]"#, #"{"to":{"$restorable":["A","B","C"]}}"#)
    let moved = try peer.register("B", below: #"["A"]"#)
    try peer.call("setRestorationParent", #"{"object":\#(moved),"restorationParent":["D"]}"#)
    broker.inspect()
    broker.restart()
    let next = broker.connect(pid: 2)
    try next.initialize()
    #expect(try next.paths() == ["A", "D", "D/B", "D/B/C", "R"])
    #expect(try next.state(#"["D","B","C"]"#) == ["n": 1])
    #expect(try next.state(#"["R"]"#)?["to"]?["$restorable"] == ["D", "B", "C"])
    broker.inspect()
  }

  /// However many objects are below it.
  @Test func r6AMoveWritesOneRowForEachObjectThatIsMovedAndNoneIfNothingChanges() throws {
    try peer.register("A")
    for position in 0..<3 { try peer.register("Tab", below: #"["A"]"#, #""position":\#(position)"#) }
    for index in 0..<50 { try peer.encode(#"["A","Tab#0","c\#(index)"]"#, "{}") }
    let children = #"["A","Tab#2"],["A","Tab#0"],["A","Tab#1"]"#
    let taken = try peer.register("Taken")
    try peer.call("setRestorationIdentifier", #"{"object":\#(taken),"restorationIdentifier":"T"}"#)
    for (method, parameters, count) in [
      ("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"A"}"#, 0),
      ("setRestorationParent", #"{"object":["A","Tab#0"],"restorationParent":["A"]}"#, 0),
      ("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"T","takeOver":false}"#, 0),
      ("setChildren", #"{"object":["A"],"children":[\#(children)]}"#, 3),
      ("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"Z"}"#, 1),
    ] {
      broker.forgetWritten()
      peer.start(method, parameters)
      #expect(broker.written.count == count, "\(parameters)")
      broker.inspect()
    }
    #expect(try peer.paths().count { $0.hasPrefix("Z/Tab#1/") } == 50)
  }

  @Test func r6APushToThePathThatAnObjectHadBeforeOthersMovedItReachesIt() throws {
    let other = broker.connect(pid: 2)
    try other.initialize()
    let main = try peer.register("Main")
    let editor = try other.register("Editor", below: #"["Main"]"#)
    for name in ["Window", "Frame"] {
      try peer.call("setRestorationIdentifier", #"{"object":\#(main),"restorationIdentifier":"\#(name)"}"#)
    }
    try other.encode(#"["Main","Editor"]"#, #"{"n":1}"#)
    #expect(try peer.paths() == ["Frame", "Frame/Editor"])
    #expect(try peer.state(#"["Frame","Editor"]"#) == ["n": 1])
    #expect(try other.fail("decodeRestorableState", #"{"object":["Main","Editor"]}"#).kind == "unknownObject")
    // Only who had it there means it, and only as long as it has it.
    try peer.encode(#"["Window","Editor"]"#, #"{"n":2}"#)
    try other.encode(#"["Window","Editor"]"#, #"{"n":3}"#)
    #expect(try peer.state(#"["Frame","Editor"]"#) == ["n": 1] && peer.state(#"["Window","Editor"]"#) == ["n": 3])
    try other.call("unregisterObject", #"{"object":\#(editor)}"#)
    try other.encode(#"["Main","Editor"]"#, "{}")
    #expect(try peer.paths() == ["Frame", "Main", "Main/Editor", "Window", "Window/Editor"])
    broker.inspect()
  }

  @Test func r6OwnersAreToldWhenTheMoveIsDurable() throws {
    let other = broker.connect(pid: 2)
    try other.initialize("App", #""serves":["pathChanged"]"#)
    try peer.register("A")
    try other.register("B", below: #"["A"]"#)
    broker.holdsCommits = true
    peer.start("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"Z"}"#)
    #expect(other.notifications.isEmpty)
    broker.failCommit("App")
    #expect(other.notifications.isEmpty)
    #expect(try other.paths() == ["A", "A/B"])
    peer.start("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"Y"}"#)
    broker.commit()
    #expect(other.takeNotifications("pathChanged").map { $0["path"]?.joined } == ["Y/B"])
  }

  @Test func r6ASessionThatReturnsIsToldWhereItsMovedObjectsAre() throws {
    let other = broker.connect(pid: 2)
    let token = try #require(try other.initialize("App", #""serves":["pathChanged"]"#)["session"]?.string)
    try peer.register("A")
    for name in ["B", "C"] { try other.register(name, below: #"["A"]"#) }
    try other.register("Stays")
    broker.disconnect(other)
    let again = #""session":"\#(token)","serves":["pathChanged"]"#
    try peer.call("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"Z"}"#)
    // It stays known even if the archive is opened anew.
    broker.holdsCommits = true
    peer.start("encodeRestorableState", #"{"object":["Z"],"state":{}}"#)
    broker.failCommit("App")
    broker.holdsCommits = false
    for told in [["Z/B", "Z/C"], []] {
      let back = broker.connect(pid: 2)
      try back.initialize("App", again)
      #expect(back.takeNotifications("pathChanged").map { $0["path"]?.joined } == told)
      broker.disconnect(back)
    }
  }

  @Test func r6WhatIsBelowADisplacedObjectIsToldItsNewPath() throws {
    let other = broker.connect(pid: 2)
    try other.initialize("App", #""serves":["pathChanged"]"#)
    // Below an excluded object paths begin anew, and a plain object is a root of its own (R4).
    let excluded = try peer.register(nil, below: nil, #""kind":"viewController""#)
    let tab = try other.register("Tab", below: "\(excluded)", #""kind":"viewController""#)
    try other.register("Text", below: "\(tab)")
    let mover = try peer.register("New", below: nil, #""kind":"viewController""#)
    let rename = #"{"object":\#(mover),"restorationIdentifier":"Tab","takeOver":true}"#
    #expect(try peer.call("setRestorationIdentifier", rename)["path"] == ["Tab"])
    #expect(other.takeNotifications("pathChanged").map { $0["path"]?.joined } == ["Tab/Text"])
  }
}
