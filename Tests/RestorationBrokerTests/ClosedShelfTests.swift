// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// What was closed can be opened again (R13).
@Suite struct ClosedShelfTests {
  let broker = MemoryBroker()
  let peer: Peer

  init() throws {
    peer = broker.connect(pid: 1)
    try peer.initialize()
  }

  private func shelf(_ peer: Peer) throws -> [String] {
    try peer.call("listClosedObjects")["objects"]?.array?.compactMap { $0["path"]?.joined } ?? []
  }

  @Test func r13AnUnregisteredObjectComesBackWithItsStateAndReferences() throws {
    try peer.register("Bar")
    try peer.register("Tab", below: #"["Bar"]"#, #""kind":"viewController","restorationClass":"Tabs""#)
    try peer.encode(#"["Bar","Tab"]"#, #"{"n":1}"#)
    try peer.encode(#"["Bar"]"#, #"{"front":{"$restorable":["Bar","Tab"]}}"#)
    try peer.call("unregisterObject", #"{"object":["Bar","Tab"]}"#)
    #expect(try peer.state(#"["Bar"]"#)?["front"]?["$restorable"] == .null)
    #expect(try shelf(peer) == ["Bar/Tab"])
    broker.inspect()
    #expect(try peer.call("reopenObject") == ["path": ["Bar", "Tab"], "objects": 1])
    #expect(try shelf(peer).isEmpty)
    #expect(try peer.state(#"["Bar"]"#)?["front"]?["$restorable"] == ["Bar", "Tab"])
    let handle = try peer.register("Tab", below: #"["Bar"]"#, #""kind":"viewController""#)
    #expect(try peer.state("\(handle)") == ["n": 1])
    broker.inspect()
    #expect(try peer.fail("reopenObject").kind == "unknownObject")
  }

  @Test func r13TheShelfOutlivesTheBroker() throws {
    try peer.encode(#"["Bar"]"#, "{}")
    let tab = try peer.register("Tab")
    try peer.encode("\(tab)", #"{"n":1}"#)
    try peer.call("unregisterObject", #"{"object":["Tab"]}"#)
    for _ in 0..<2 { try peer.call("saveApplicationState") }
    broker.advance(milliseconds: 5_000)
    broker.restart()
    let next = broker.connect(pid: 2)
    try next.initialize()
    #expect(try shelf(next) == ["Tab"])
    try next.call("reopenObject", #"{"path":["Tab"]}"#)
    #expect(try next.state(#"["Tab"]"#) == ["n": 1])
    broker.inspect()
  }

  @Test func r30WhatASessionClosesIsOneSubtree() throws {
    let other = broker.connect(pid: 2)
    try other.initialize()
    try other.register("Window")
    try other.register("Page", below: #"["Window"]"#)
    try other.register("Note", below: #"["Window","Page"]"#)
    for path in [#"["Window"]"#, #"["Window","Page","Note"]"#] { try other.encode(path, #"{"of":\#(path)}"#) }
    try other.goodbye("closed")
    #expect(try peer.paths().isEmpty)
    let closed = try #require(try peer.call("listClosedObjects")["objects"]?.array?.first)
    #expect(closed["path"] == ["Window"] && closed["objects"] == 3 && closed["bytes"] == 48)
    try peer.call("reopenObject")
    #expect(try peer.paths() == ["Window", "Window/Page", "Window/Page/Note"])
    #expect(try peer.state(#"["Window","Page","Note"]"#)?["of"] == ["Window", "Page", "Note"])
    broker.inspect()
  }

  @Test func r13APathThatIsTakenIsADuplicate() throws {
    for state in [1, 2] {
      let tab = try peer.register("Tab")
      try peer.encode("\(tab)", #"{"n":\#(state)}"#)
      if state == 1 { try peer.call("unregisterObject", #"{"object":\#(tab)}"#) }
    }
    let failure = try peer.fail("reopenObject", #"{"path":["Tab"]}"#)
    #expect(failure.kind == "duplicatePath" && failure.data["owners"]?.array?.count == 1)
    try peer.call("unregisterObject", #"{"object":["Tab"],"keepState":true}"#)
    #expect(try peer.fail("reopenObject").kind == "duplicatePath")
    #expect(try shelf(peer) == ["Tab"])
  }

  @Test func r13WhatIsBelowAReopenedObjectIsItsChildAgain() throws {
    try peer.register("Window")
    try peer.encode(#"["Window"]"#, "{}")
    try peer.register("Page", below: #"["Window"]"#)
    try peer.call("unregisterObject", #"{"object":["Window"]}"#)
    try peer.call("reopenObject")
    #expect(try peer.paths() == ["Window", "Window/Page"])
    #expect(try peer.state(#"["Window"]"#) == [:])
    broker.inspect()
  }

  @Test func r13OnlyWhatIsSavedAndNotConfidentialGoesToTheShelf() throws {
    try peer.register("Secret", below: nil, #""confidential":true"#)
    try peer.encode(#"["Secret"]"#, #"{"p":1}"#)
    try peer.register("Blank")
    for name in ["Secret", "Blank"] { try peer.call("unregisterObject", #"{"object":["\#(name)"]}"#) }
    let kept = try peer.register("Kept")
    try peer.encode("\(kept)", "{}")
    try peer.call("unregisterObject", #"{"object":["Kept"],"keepState":true}"#)
    try peer.call("unregisterObject", #"{"object":["Kept"]}"#)
    #expect(try shelf(peer).isEmpty)
  }

  @Test func r13TheLastSixteenSubtreesAreKeptAndAMebibyte() throws {
    for index in 0..<20 {
      let object = try peer.register("T\(index)")
      try peer.encode("\(object)", "{}")
      try peer.call("unregisterObject", #"{"object":\#(object)}"#)
    }
    #expect(try shelf(peer) == (4..<20).reversed().map { "T\($0)" })
    for index in 0..<5 {
      let object = try peer.register("L\(index)")
      try peer.encode("\(object)", #"{"pad":"\#(String(repeating: "x", count: 250_000))"}"#)
      try peer.call("unregisterObject", #"{"object":\#(object)}"#)
    }
    #expect(try shelf(peer) == ["L4", "L3", "L2", "L1"])
    broker.inspect()
  }

  @Test(arguments: ["discard", "quit"]) func r30DiscardAndUserQuitEmptyTheShelf(_ way: String) throws {
    let tab = try peer.register("Tab")
    try peer.encode("\(tab)", "{}")
    try peer.call("unregisterObject", #"{"object":["Tab"]}"#)
    #expect(try shelf(peer) == ["Tab"])
    if way == "discard" { try peer.call("discardApplicationState") } else { try peer.goodbye("userQuit") }
    let next = broker.connect(pid: 2)
    try next.initialize()
    #expect(try shelf(next).isEmpty)
    broker.inspect()
  }

  @Test func r6WhatGoesForANamedChildIsOnTheShelf() throws {
    let fixture = RestoringFixture()
    let page = #""position":1,\#(RestorationConcernTests.page)"#
    try fixture.save([("Bar", nil, "", "{}"), ("Tab", #"["Bar"]"#, page, #"{"n":1}"#)])
    let worker = try fixture.join("W", pid: 1)
    try worker.register("Bar")
    try worker.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    try worker.call("restoreApplicationState")
    let new = try worker.register("Tab", below: #"["Bar"]"#, #""position":5"#)
    let first = try worker.register("Tab", below: #"["Bar"]"#, #""position":6"#)
    try worker.call("setChildren", #"{"object":["Bar"],"children":[\#(first),\#(new)]}"#)
    #expect(try worker.paths() == ["Bar", "Bar/Tab#0", "Bar/Tab#1"])
    let closed = try worker.call("listClosedObjects")["objects"]?.array?.first
    // The path that it had is the new child's.
    #expect(closed?["path"]?.joined == "Bar/Tab#1")
    #expect(try worker.fail("reopenObject").kind == "duplicatePath")
    try worker.call("unregisterObject", #"{"object":\#(new)}"#)
    try worker.call("reopenObject")
    #expect(try worker.state(#"["Bar","Tab#1"]"#) == ["n": 1])
  }

  // MARK: Object by object

  /// A window with a view, which a process closes one by one.
  private func closeWindow(_ paths: [String], pause: Int64 = 0) throws {
    let kind = #""kind":"viewController""#
    try peer.register("Window", below: nil, #"\#(kind),"restorationClass":"Doc","keep":"forever""#)
    try peer.register("Page", below: #"["Window"]"#, #""kind":"view""#)
    for path in paths { try peer.encode(path, #"{"of":\#(path)}"#) }
    for path in paths {
      try peer.call("unregisterObject", #"{"object":\#(path)}"#)
      broker.advance(milliseconds: pause)
    }
  }

  private static let window = #"["Window"]"#
  private static let page = #"["Window","Page"]"#

  @Test(arguments: [[window, page], [page, window]])
  func r13WhatIsClosedObjectByObjectIsOneSubtree(_ paths: [String]) throws {
    try closeWindow(paths)
    #expect(try shelf(peer) == ["Window"])
    #expect(try peer.call("reopenObject")["objects"] == 2)
    #expect(try peer.paths() == ["Window", "Window/Page"])
    for path in paths { #expect(try peer.state(path)?["of"] != nil) }
    broker.inspect()
  }

  @Test(arguments: [[window, page], [page, window]])
  func r13ParentsOfWhatIsOpenedAgainAreWhatTheyWere(_ paths: [String]) throws {
    try closeWindow(paths, pause: 2_000)
    #expect(try shelf(peer).count == 2)
    try peer.call("reopenObject", #"{"path":\#(Self.page)}"#)
    #expect(try peer.objects().allSatisfy { $0["included"] == true })
    try peer.call("reopenObject")
    let objects = try peer.objects()
    #expect(objects.map { $0["kind"] } == ["viewController", "view"] && objects.allSatisfy { $0["included"] == true })
    for path in paths { #expect(try peer.state(path) != nil) }
    let node = broker.application("App")?.tree.node(at: ["Window"])
    #expect(node?.record.restorationClass == "Doc" && node?.record.keepsForever == true)
    broker.inspect()
  }

  // MARK: Room

  private func wide(_ bytes: Int) -> String { #"{"a":"\#(String(repeating: "x", count: bytes - 8))"}"# }

  @Test func r13WhatIsClosedTakesNoRoomFromWhatIsSaved() throws {
    var limits = Limits()
    limits.archiveBytesMax = 65_536
    let broker = MemoryBroker(limits: limits)
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    for name in ["A", "B"] {
      let object = try peer.register(name)
      try peer.encode("\(object)", wide(35_000))
      try peer.call("unregisterObject", #"{"object":\#(object)}"#)
      // It is counted once.
      if name == "A" {
        try peer.call("reopenObject")
        try peer.call("unregisterObject", #"{"object":\#(try peer.register(name))}"#)
      }
    }
    #expect(try shelf(peer) == ["B"])
    try peer.call("reopenObject")
    #expect(try peer.fail("encodeRestorableState", peer.encoding(#"["C"]"#, wide(35_000))).kind == "limitExceeded")
    try peer.encode(#"["B"]"#, wide(65_000))
    broker.inspect()
  }

  @Test func r13WhatIsTooLargeForTheShelfEmptiesItNot() throws {
    try peer.encode("\(try peer.register("Small"))", "{}")
    try peer.call("unregisterObject", #"{"object":["Small"]}"#)
    let other = broker.connect(pid: 2)
    try other.initialize()
    try other.register("Large")
    for page in 0..<5 { try other.encode("\(try other.register("P\(page)", below: #"["Large"]"#))", wide(250_000)) }
    try other.goodbye("closed")
    #expect(try shelf(peer) == ["Small"])
    broker.inspect()
  }

  // MARK: What is saved

  @Test func r13WhatIsSavedForAReferenceIsOnTheShelf() throws {
    let excluder = try peer.register(nil, below: nil, #""kind":"viewController""#)
    let sheet = try peer.register("Sheet", below: "\(excluder)", #""kind":"viewController""#)
    try peer.register("Main")
    try peer.encode(#"["Main"]"#, #"{"sheet":{"$restorable":["Sheet"]}}"#)
    try peer.encode("\(sheet)", #"{"n":1}"#)
    try peer.call("unregisterObject", #"{"object":\#(sheet)}"#)
    #expect(try shelf(peer) == ["Sheet"])
    try peer.call("reopenObject")
    #expect(try peer.state(#"["Sheet"]"#) == ["n": 1])
    broker.inspect()
  }

  @Test func r13WhatBecomesConfidentialLeavesTheShelf() throws {
    for name in ["X", "Y"] {
      try peer.encode("\(try peer.register(name))", #"{"n":1}"#)
      try peer.call("unregisterObject", #"{"object":["\#(name)"]}"#)
    }
    try peer.register("X", below: nil, #""confidential":true"#)
    #expect(try shelf(peer) == ["Y"])
    broker.inspect()
  }

  @Test func r35WhatWasWellEncodedSinceAQuarantineGoesToTheShelf() throws {
    let other = broker.connect(pid: 2)
    try other.initialize()
    try other.register("Tab")
    try other.encode(#"["Tab"]"#, #"{"poison":1}"#)
    try other.goodbye("restart")
    for pid in [3, 4] as [Int64] {
      let victim = broker.connect(pid: pid)
      try victim.initialize()
      try victim.register("Tab")
      _ = try victim.decode(#"["Tab"]"#)
      broker.crash(victim)
    }
    try peer.register("Tab")
    #expect(try peer.decode(#"["Tab"]"#)["status"] == "quarantined")
    try peer.encode(#"["Tab"]"#, #"{"good":1}"#)
    try peer.call("unregisterObject", #"{"object":["Tab"]}"#)
    #expect(try shelf(peer) == ["Tab"])
    try peer.call("reopenObject")
    #expect(try peer.state(#"["Tab"]"#) == ["good": 1])
    broker.inspect()
  }

  @Test func r1APathThatCannotBeIsInvalid() throws {
    #expect(try peer.fail("reopenObject", #"{"path":["a/b"]}"#).kind == "invalidIdentifier")
  }
}
