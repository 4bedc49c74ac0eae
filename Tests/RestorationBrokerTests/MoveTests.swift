// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Changes of parent, identifier and position (R6).
@Suite struct MoveTests {
  let driver = CoreDriver()
  let peer: Peer

  init() throws {
    peer = driver.connect(pid: 1)
    try peer.initialize()
  }

  /// Registers objects by path, each with a state that names it.
  private func plant(_ paths: String..., by owner: Peer? = nil) throws {
    for path in paths {
      let components = path.split(separator: "/").map(String.init)
      let parent = components.dropLast().map { "\"\($0)\"" }.joined(separator: ",")
      try (owner ?? peer).register(components.last, below: parent.isEmpty ? nil : "[\(parent)]")
      let all = components.map { "\"\($0)\"" }.joined(separator: ",")
      try (owner ?? peer).encode("[\(all)]", #"{"was":"\#(path)"}"#)
    }
  }

  private func states() throws -> [String: String] {
    var states: [String: String] = [:]
    for object in try peer.call("readArchive")["objects"]?.array ?? [] {
      states[object["path"]?.joined ?? ""] = object["state"]?["was"]?.string ?? ""
    }
    return states
  }

  @Test func r6AMoveTakesTheSubtreeAndItsStateWithIt() throws {
    try plant("A", "A/B", "A/B/C", "D")
    let result = try peer.call("setRestorationParent", #"{"object":["A","B"],"restorationParent":["D"]}"#)
    #expect(result["path"] == ["D", "B"])
    #expect(try states() == ["A": "A", "D": "D", "D/B": "A/B", "D/B/C": "A/B/C"])
    driver.inspect()
    driver.restart()
    let next = driver.connect(pid: 2)
    try next.initialize()
    #expect(try next.paths() == ["A", "D", "D/B", "D/B/C"])
    #expect(try next.state(#"["D","B","C"]"#) == ["was": "A/B/C"])
    driver.inspect()
  }

  @Test func r6AMoveWritesOneRowHoweverManyObjectsAreBelow() throws {
    try plant("A", "D", "A/B")
    for index in 0..<50 { try plant("A/B/c\(index)") }
    driver.forgetWritten()
    try peer.call("setRestorationParent", #"{"object":["A","B"],"restorationParent":["D"]}"#)
    #expect(driver.written.count == 1)
    #expect(try peer.paths().filter { $0.hasPrefix("D/B/") }.count == 50)
  }

  @Test(arguments: [#"["A"]"#, #"["A","B"]"#, #"["A","B","C"]"#])
  func r6ACycleIsRefused(_ parent: String) throws {
    try plant("A", "A/B", "A/B/C")
    let before = try states()
    let failure = try peer.fail("setRestorationParent", #"{"object":["A"],"restorationParent":\#(parent)}"#)
    #expect(failure.kind == "parentCycle")
    #expect(try states() == before)
    driver.inspect()
  }

  @Test func r6AMoveToAnUnknownParentChangesNothing() throws {
    try plant("A")
    let failure = try peer.fail("setRestorationParent", #"{"object":["A"],"restorationParent":["B"]}"#)
    #expect(failure.kind == "unknownParent")
    driver.inspect()
  }

  @Test func r6AMoveToWhereItIsChangesNothing() throws {
    try plant("A", "A/B")
    driver.forgetWritten()
    #expect(
      try peer.call("setRestorationParent", #"{"object":["A","B"],"restorationParent":["A"]}"#)["path"] == ["A", "B"]
    )
    #expect(
      try peer.call("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"A"}"#)["path"] == ["A"]
    )
    #expect(driver.written.isEmpty)
  }

  @Test func r6AConflictDeepInTheSubtreeLeavesEverythingAsItWas() throws {
    let other = driver.connect(pid: 2)
    try other.initialize()
    // T is vacant and could be claimed; T/X/Y is live, and so is A/X/Y.
    try other.register("T")
    try other.register("X", below: #"["T"]"#)
    try other.register("Y", below: #"["T","X"]"#)
    try other.encode(#"["T","X","Y"]"#, #"{"was":"T/X/Y"}"#)
    try other.call("unregisterObject", #"{"object":["T"]}"#)
    try other.call("unregisterObject", #"{"object":["T","X"]}"#)
    try plant("A", "A/W", "A/X", "A/X/V", "A/X/Y", "A/Z")
    let before = try states()
    driver.forgetWritten()
    for more in ["", #","takeOver":true"#] {
      let failure = try peer.fail("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"T"\#(more)}"#)
      #expect(failure.kind == "duplicatePath")
      #expect(failure.data["owners"]?.array?.count == 2)
      #expect(try states() == before)
      driver.inspect()
    }
    #expect(driver.written.isEmpty)
    try other.encode(#"["T","X","Y"]"#, #"{"was":"still"}"#)
  }

  @Test func r6ReferencesFollowTheObject() throws {
    try plant("A", "A/B", "D")
    try peer.encode(#"["D"]"#, #"{"to":{"$restorable":["A","B"]}}"#)
    try peer.call("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"Z","position":4}"#)
    #expect(try peer.state(#"["D"]"#)?["to"]?["$restorable"] == ["Z#4", "B"])
    driver.restart()
    let next = driver.connect(pid: 2)
    try next.initialize()
    #expect(try next.state(#"["D"]"#)?["to"]?["$restorable"] == ["Z#4", "B"])
  }

  @Test func r6AMoverWithoutStateTakesOverTheVacantPathAndItsState() throws {
    try peer.encode(#"["T"]"#, #"{"was":"T"}"#)
    try peer.encode(#"["T","Child"]"#, #"{"was":"T/Child"}"#)
    try plant("R")
    try peer.encode(#"["R"]"#, #"{"was":"R","to":{"$restorable":["T"]}}"#)
    let handle = try peer.register("A")
    try peer.register("Own", below: "\(handle)")
    let result = try peer.call("setRestorationIdentifier", #"{"object":\#(handle),"restorationIdentifier":"T"}"#)
    #expect(result["path"] == ["T"])
    driver.inspect()
    #expect(try peer.state("\(handle)") == ["was": "T"])
    #expect(try states() == ["T": "T", "T/Child": "T/Child", "T/Own": "", "R": "R"])
    #expect(try peer.state(#"["R"]"#)?["to"] == ["$restorable": ["T"], "object": .integer(handle)])
    try peer.encode("\(handle)", #"{"was":"new"}"#)
    driver.inspect()
  }

  @Test func r6ABlankPushAfterTakingOverAVacantPathHidesNothing() throws {
    try peer.encode(#"["T"]"#, #"{"was":"T"}"#)
    let handle = try peer.register("A")
    #expect(try peer.decode("\(handle)")["status"] == "none")
    try peer.call("setRestorationIdentifier", #"{"object":\#(handle),"restorationIdentifier":"T"}"#)
    try peer.encode("\(handle)", #"{"was":"blank"}"#)
    #expect(try peer.state("\(handle)") == ["was": "T"])
    driver.inspect()
  }

  @Test func r6AMoverWithStateIsRefusedByAVacantPathWithState() throws {
    try peer.encode(#"["T"]"#, #"{"was":"T"}"#)
    try plant("A")
    let failure = try peer.fail("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"T"}"#)
    #expect(failure.kind == "duplicatePath")
    #expect(try states() == ["A": "A", "T": "T"])
    driver.inspect()
  }

  @Test func r6TakeOverKeepsTheDisplacedTextInAGeneration() throws {
    try peer.encode(#"["T"]"#, #"{"was":"T"}"#)
    try plant("A")
    try peer.call("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"T","takeOver":true}"#)
    #expect(try states() == ["T": "A"])
    driver.inspect()
    let generations = try peer.call("listGenerations")["generations"]?.array ?? []
    #expect(generations.map { $0["kind"]?.string } == ["displaced"])
    let objects = try peer.call("readArchive", #"{"generation":1}"#)["objects"]?.array ?? []
    #expect(objects.contains { $0["state"]?["was"] == "T" })
    #expect(objects.compactMap { $0["path"]?.joined }.sorted() == ["A", "T"])
  }

  @Test func r6TakeOverKeepsTextsDisplacedDeepInTheSubtreeToo() throws {
    try peer.encode(#"["T","Child"]"#, #"{"was":"T/Child"}"#)
    try plant("A", "A/Child")
    try peer.call("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"T","takeOver":true}"#)
    #expect(try states() == ["T": "A", "T/Child": "A/Child"])
    let objects = try peer.call("readArchive", #"{"generation":1}"#)["objects"]?.array ?? []
    #expect(objects.contains { $0["path"]?.joined == "T/Child" && $0["state"]?["was"] == "T/Child" })
    driver.inspect()
  }

  @Test func r6TakeOverThatDisplacesNothingSealsNothing() throws {
    try plant("A")
    try peer.encode(#"["T","Child"]"#, #"{"was":"T/Child"}"#)
    try peer.call("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"T","takeOver":true}"#)
    #expect(try peer.call("listGenerations")["generations"] == [])
    #expect(try states() == ["T": "A", "T/Child": "T/Child"])
    driver.inspect()
  }

  @Test func r6EveryOwnerInTheSubtreeIsToldOnce() throws {
    let (other, silent) = (driver.connect(pid: 2), driver.connect(pid: 3))
    try other.initialize("App", #""serves":["pathChanged"]"#)
    try silent.initialize()
    try peer.goodbye("restart")
    try peer.initialize("App", #""serves":["pathChanged"]"#)
    try plant("A", "A/B")
    let child = try other.register("C", below: #"["A","B"]"#)
    let own = try other.register("E")
    try silent.register("S", below: #"["A","B"]"#)
    try peer.call("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"Z"}"#)
    #expect(
      other.takeNotifications("pathChanged") == [["object": .integer(child), "path": ["Z", "B", "C"]]]
    )
    let told = peer.takeNotifications("pathChanged")
    #expect(told.count == 1)
    #expect(told.first?["path"] == ["Z", "B"])
    #expect(silent.notifications.isEmpty)
    #expect(own != child)
  }

  @Test func r6OwnersAreToldWhenTheMoveIsDurable() throws {
    let other = driver.connect(pid: 2)
    try other.initialize("App", #""serves":["pathChanged"]"#)
    try plant("A")
    try other.register("B", below: #"["A"]"#)
    driver.holdsCommits = true
    peer.start("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"Z"}"#)
    #expect(other.notifications.isEmpty)
    driver.failCommit("App")
    #expect(other.notifications.isEmpty)
    #expect(try other.paths() == ["A", "A/B"])
    peer.start("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"Y"}"#)
    driver.commit()
    #expect(other.takeNotifications("pathChanged").map { $0["path"]?.joined } == ["Y/B"])
  }

  @Test func r6OwnersOfChildrenThatStayWhereTheyAreAreNotTold() throws {
    let other = driver.connect(pid: 2)
    try other.initialize("App", #""serves":["pathChanged"]"#)
    try peer.encode(#"["T"]"#, #"{"was":"T"}"#)
    try other.register("Child", below: #"["T"]"#)
    let handle = try peer.register("A")
    try peer.call("setRestorationIdentifier", #"{"object":\#(handle),"restorationIdentifier":"T"}"#)
    #expect(other.takeNotifications("pathChanged").isEmpty)
    try peer.call("setRestorationIdentifier", #"{"object":\#(handle),"restorationIdentifier":"U"}"#)
    #expect(other.takeNotifications("pathChanged").map { $0["path"]?.joined } == ["U/Child"])
    driver.inspect()
  }

  @Test func r6SetChildrenPermutesPositionsInOneStep() throws {
    let other = driver.connect(pid: 2)
    try other.initialize("App", #""serves":["pathChanged"]"#)
    try plant("P")
    var handles: [Int64] = []
    for position in 0..<3 {
      handles.append(try peer.register("Tab", below: #"["P"]"#, #""position":\#(position)"#))
      try peer.encode("\(handles[position])", #"{"was":"\#(position)"}"#)
    }
    let below = try other.register("X", below: #"["P","Tab#0"]"#)
    driver.forgetWritten()
    let children = #"["P","Tab#2"],["P","Tab#0"],["P","Tab#1"]"#
    let result = try peer.call("setChildren", #"{"object":["P"],"children":[\#(children)]}"#)
    #expect(result["paths"] == [["P", "Tab#0"], ["P", "Tab#1"], ["P", "Tab#2"]])
    #expect(driver.written.count == 3)
    #expect(
      try states() == ["P": "P", "P/Tab#0": "2", "P/Tab#1": "0", "P/Tab#2": "1", "P/Tab#1/X": ""]
    )
    #expect(
      other.takeNotifications("pathChanged") == [["object": .integer(below), "path": ["P", "Tab#1", "X"]]]
    )
    #expect(try peer.state("\(handles[0])") == ["was": "0"])
    driver.inspect()
  }

  @Test func r6SetChildrenFailsAsAWhole() throws {
    try plant("P", "Q", "P/A", "P/B", "Q/C")
    let excluded = try peer.register(nil, below: #"["P"]"#, #""kind":"view""#)
    func pointer(_ children: String) throws -> JSONValue? {
      try peer.fail("setChildren", #"{"object":["P"],"children":[\#(children)]}"#).data["pointer"]
    }
    #expect(try pointer(#"["P","A"],["Q","C"]"#) == "/children/1")
    #expect(try pointer(#"["P","A"],["P","B"],["P","A"]"#) == "/children/2")
    #expect(try pointer(#"\#(excluded)"#) == "/children/0")
    #expect(
      try peer.fail("setChildren", #"{"object":["P"],"children":[["P","A"],["P","D"]]}"#).kind == "unknownObject"
    )
    try peer.register("A", below: #"["P"]"#, #""position":0"#)
    #expect(
      try peer.fail("setChildren", #"{"object":["P"],"children":[["P","A"]]}"#).kind == "duplicatePath"
    )
    #expect(try peer.paths() == ["P", "P/A", "P/A#0", "P/B", "Q", "Q/C"])
    driver.inspect()
  }

  @Test func r6OnlyTheOwnerMoves() throws {
    let other = driver.connect(pid: 2)
    try other.initialize()
    try plant("A", "B")
    for call in [
      ("setRestorationParent", #"{"object":["A"],"restorationParent":["B"]}"#),
      ("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"C"}"#),
      ("setChildren", #"{"object":["A"],"children":[]}"#),
      ("unregisterObject", #"{"object":["A"]}"#),
    ] {
      #expect(try other.fail(call.0, call.1).kind == "notOwner")
    }
    driver.inspect()
  }

  @Test func r6AMoveReleasesWhoWaitsForTheNewPath() throws {
    try plant("A")
    let waiting = peer.start(
      "registerObjectForStateRestoration",
      peer.registration("C", below: #"["Z"]"#, #""awaitParentMilliseconds":1000"#)
    )
    try peer.call("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"Z"}"#)
    #expect(try peer.result(of: waiting)["path"] == ["Z", "C"])
  }

  @Test func r25AnIdentifierThatWasRenamedIsFoundByItsAlias() throws {
    try plant("Old", "Old/Child")
    try peer.goodbye("restart")
    let next = driver.connect(pid: 2)
    try next.initialize("App", #""aliases":{"identifiers":{"Old":"New"}}"#)
    let result = try next.call("registerObjectForStateRestoration", next.registration("New"))
    #expect(result["path"] == ["New"])
    #expect(try next.state(#"["New"]"#) == ["was": "Old"])
    #expect(try next.paths() == ["New", "New/Child"])
    driver.inspect()
  }
}
