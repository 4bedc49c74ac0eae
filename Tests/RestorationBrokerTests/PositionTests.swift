// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import Testing

/// Positions say where an object is, not who it is (R6).
@Suite struct PositionTests {
  let fixture = RestoringFixture()
  var broker: MemoryBroker { fixture.broker }

  static let controller = RestorationConcernTests.controller

  private func tab(_ position: Int, _ more: String = RestorationConcernTests.controller) -> String {
    #""position":\#(position),\#(more)"#
  }

  /// Bar with three tabs, each with a state that has its number.
  private func saveTabs(_ more: String = RestorationConcernTests.controller) throws {
    let tabs = (0..<3).map { ("Tab", #"["Bar"]"#, tab($0, more), #"{"n":\#($0)}"#) }
    try fixture.save([("Bar", nil, Self.controller, "{}")] + tabs)
  }

  private func joinBar() throws -> Peer {
    let worker = try fixture.join("W", pid: 1)
    try worker.register("Bar", below: nil, Self.controller)
    return worker
  }

  /// The number in the state of each tab, by its position.
  private func states(_ reader: Peer) throws -> [String: Int64?] {
    let tabs = try reader.paths().filter { $0.hasPrefix("Bar/") && $0.count { $0 == "/" } == 1 }
    return Dictionary(
      uniqueKeysWithValues: try tabs.map { ($0, try reader.state(#"["Bar","\#($0.dropFirst(4))"]"#)?["n"]?.integer) }
    )
  }

  @Test func r6AVacantChildInTheWayMovesBehindThoseThatAreNamed() throws {
    try saveTabs()
    let worker = try joinBar()
    try worker.register("Tab", below: #"["Bar"]"#, tab(0))
    let new = try worker.register("Tab", below: #"["Bar"]"#, tab(7))
    let children = #"[["Bar","Tab#0"],\#(new)]"#
    let result = try worker.call("setChildren", #"{"object":["Bar"],"children":\#(children)}"#)
    #expect(result["paths"]?.array?.compactMap(\.joined) == ["Bar/Tab#0", "Bar/Tab#1"])
    #expect(
      try states(worker) == ["Bar/Tab#0": 0, "Bar/Tab#1": nil, "Bar/Tab#2": 2, "Bar/Tab#3": 1]
    )
    broker.inspect()
    // Its process comes back.
    let late = try fixture.join("L", pid: 2)
    try late.register("Tab", below: #"["Bar"]"#, tab(3))
    #expect(try late.state(#"["Bar","Tab#3"]"#) == ["n": 1])
  }

  @Test func r6VacantChildrenMoveWithTheirStatesAndWhatIsBelowThem() throws {
    try saveTabs()
    let writer = broker.connect(pid: 5)
    try writer.encode(#"["Bar","Tab#2","Page"]"#, #"{"p":1}"#, #""application":"App""#)
    let worker = try joinBar()
    let children = #"[["Bar","Tab#2"],["Bar","Tab#0"],["Bar","Tab#1"]]"#
    try worker.call("setChildren", #"{"object":["Bar"],"children":\#(children)}"#)
    #expect(try states(worker) == ["Bar/Tab#0": 2, "Bar/Tab#1": 0, "Bar/Tab#2": 1])
    #expect(try worker.state(#"["Bar","Tab#0","Page"]"#) == ["p": 1])
    broker.inspect()
  }

  @Test func r6ARefusedChildInTheWayGoes() throws {
    try saveTabs(RestorationConcernTests.page)
    let worker = try joinBar()
    for position in [0, 2] {
      try worker.register("Tab", below: #"["Bar"]"#, tab(position, RestorationConcernTests.page))
    }
    try worker.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    #expect(outcome(try worker.call("restoreApplicationState")).contains("-Bar/Tab#1 refused"))
    try worker.call("setChildren", #"{"object":["Bar"],"children":[["Bar","Tab#0"],["Bar","Tab#2"]]}"#)
    #expect(try states(worker) == ["Bar/Tab#0": 0, "Bar/Tab#1": 2])
    broker.inspect()
  }

  @Test func r6AnUnregisteredChildInTheWayGoesWithWhatIsVacantBelowIt() throws {
    try saveTabs()
    let worker = try joinBar()
    try worker.encode(#"["Bar","Tab#1","Page"]"#, "{}")
    for position in 0..<3 { try worker.register("Tab", below: #"["Bar"]"#, tab(position)) }
    try worker.call("unregisterObject", #"{"object":["Bar","Tab#1"]}"#)
    try worker.call("setChildren", #"{"object":["Bar"],"children":[["Bar","Tab#0"],["Bar","Tab#2"]]}"#)
    #expect(try states(worker) == ["Bar/Tab#0": 0, "Bar/Tab#1": 2])
    #expect(try worker.paths() == ["Bar", "Bar/Tab#0", "Bar/Tab#1"])
  }

  /// At a live child, and at a vacant one with a live object below it.
  @Test func r6WhatLivesInTheWayIsADuplicatePath() throws {
    try saveTabs()
    let worker = try joinBar()
    let other = try fixture.join("O", pid: 2)
    try other.register("Tab", below: #"["Bar"]"#, tab(0))
    try other.register("Page", below: #"["Bar","Tab#1"]"#)
    let before = try states(worker)
    for children in [#"[["Bar","Tab#2"]]"#, #"[["Bar","Tab#0"],["Bar","Tab#2"]]"#] {
      let failure = try worker.fail("setChildren", #"{"object":["Bar"],"children":\#(children)}"#)
      #expect(failure.kind == "duplicatePath")
    }
    #expect(try states(worker) == before)
    broker.inspect()
  }

  @Test func r6AStateAtAPositionIsNotTakenOver() throws {
    try saveTabs()
    let worker = try joinBar()
    let new = try worker.register("Tab", below: #"["Bar"]"#, tab(7))
    let move = #""object":\#(new),"restorationIdentifier":"Tab","position":1"#
    #expect(try worker.fail("setRestorationIdentifier", "{\(move)}").kind == "duplicatePath")
    let generation = try worker.call("listGenerations")["generations"]?.array?.last?["generation"]?.integer
    try worker.call("setRestorationIdentifier", #"{\#(move),"takeOver":true}"#)
    #expect(try states(worker) == ["Bar/Tab#0": 0, "Bar/Tab#1": nil, "Bar/Tab#2": 2])
    let kept = try worker.call("readArchive", #"{"generation":\#(generation ?? 0)}"#)["objects"]?.array
    #expect(kept?.first { $0["path"]?.joined == "Bar/Tab#1" }?["state"] == ["n": 1])
    broker.inspect()
  }
}
