// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// What a restoration is about (R4, R7, R22), and whom it awaits (R23).
@Suite struct RestorationConcernTests {
  let fixture = RestoringFixture()
  var broker: MemoryBroker { fixture.broker }

  static let controller = #""kind":"viewController""#
  static let page = #""kind":"viewController","restorationClass":"Pages""#

  /// Restores, and requires that this takes no time, awaits nothing and leaves no timer.
  private func restoreAtOnce(_ peer: Peer) throws -> [String] {
    let result = try peer.call("restoreApplicationState")
    #expect(result["milliseconds"] == 0)
    #expect(broker.timerCount == 0)
    for object in try peer.objects() where object["path"] != .null {
      let path = JSONText(object["path"] ?? .null).string
      let steps = try peer.call("explainRestoration", #"{"object":\#(path)}"#)["restored"]?.array ?? []
      #expect(!steps.contains { $0["step"] == "awaited" }, "\(path)")
    }
    return outcome(result)
  }

  private var lastRun: RunFacts? {
    for case .run(let run) in broker.written.reversed() { return RunFacts(stored: run.facts) }
    return nil
  }

  /// Root, and below a view controller without an identifier a sheet with a password.
  private func openSheet(_ peer: Peer) throws {
    try peer.register("Root", below: nil, Self.controller)
    let hole = try peer.register(nil, below: #"["Root"]"#, Self.controller)
    try peer.register("Sheet", below: "\(hole)", Self.page)
  }

  @Test func r22ALaunchWithAnExcludedSubtreeAwaitsNothing() throws {
    let writer = broker.connect(pid: 900)
    try writer.initialize()
    try openSheet(writer)
    try writer.encode(#"["Root"]"#, "{}")
    try writer.encode(#"["Sheet"]"#, #"{"password":"half"}"#)
    broker.crash(writer)
    for launch in 1...2 {
      let worker = try fixture.join("W", pid: Int64(launch), delegate: true)
      try fixture.makes("Pages", worker, "W")
      // In the second launch the user has opened the sheet before.
      if launch == 1 { try worker.register("Root", below: nil, Self.controller) } else { try openSheet(worker) }
      #expect(try restoreAtOnce(worker) == ["+Root"])
      if launch == 2 { #expect(try worker.state(#"["Sheet"]"#) == nil) }
      broker.crash(worker)
    }
    #expect(!fixture.log.contains { $0.contains("Sheet") })
  }

  @Test func r22ALaunchWithRefusedObjectsAwaitsNothing() throws {
    try fixture.save([("Main", nil, Self.controller, "{}"), ("Tab", nil, Self.page, "{}")])
    for launch in 1...2 {
      let worker = try fixture.join("W", pid: Int64(launch), delegate: true)
      try worker.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
      try worker.register("Main", below: nil, Self.controller)
      #expect(try restoreAtOnce(worker) == ["+Main", "-Tab refused"])
      broker.crash(worker)
    }
  }

  @Test func r22ALaunchWithNothingSavedAsksNobodyAndCompletes() throws {
    let worker = try fixture.join("W", pid: 1, delegate: true, unit: "w.service")
    try fixture.makes("Pages", worker, "W")
    try worker.register("Main", below: nil, Self.page)
    #expect(try restoreAtOnce(worker).isEmpty)
    #expect(fixture.log.isEmpty && fixture.finished(worker).isEmpty)
    #expect(lastRun?.hasCompletedRestoration == true)
  }

  @Test func r19ADeclinedRestorationIsNotComplete() throws {
    try fixture.save([("Main", nil, Self.controller, "{}")])
    let worker = try fixture.join("W", pid: 1, delegate: true)
    worker.serves["shouldRestoreApplicationState"] = { _ in "false" }
    #expect(try worker.call("restoreApplicationState")["declined"] == true)
    #expect(lastRun?.hasCompletedRestoration == false)
  }

  @Test func r4WhatIsExcludedGoesInWhateverWayItsSessionEnds() throws {
    for reason in ["restart", "logout", nil] {
      let peer = broker.connect(pid: 5)
      try peer.initialize()
      try openSheet(peer)
      try peer.encode(#"["Sheet"]"#, #"{"x":1}"#)
      if let reason { try peer.goodbye(reason) } else { broker.crash(peer) }
      broker.inspect()
      let reader = broker.connect(pid: 6)
      let objects = try reader.call("describeApplication", #"{"application":"App"}"#)["objects"]?.array ?? []
      #expect(objects.map { $0["path"]?.joined } == ["Root"])
    }
  }

  @Test func r22WhatGoesWhenTheRunBeginsConcernsNoRestorationBeforeIt() throws {
    let tool = broker.connect(pid: 5)
    let view = Document.object(#"["Alone"]"#, "{}").replacing(#""kind":"object""#, with: #""kind":"view""#)
    try tool.importDocument(Document.of(view), into: "App")
    #expect(outcome(try tool.call("restoreApplicationState", #"{"application":"App"}"#)).isEmpty)
    let worker = try fixture.join("W", pid: 1)
    #expect(try worker.objects().isEmpty)
  }

  @Test func r7WhatAHiddenStateRefersToStaysWhenItsSessionEnds() throws {
    let first = broker.connect(pid: 1)
    try first.initialize()
    try openSheet(first)
    try first.encode(#"["Root"]"#, #"{"sheet":{"$restorable":["Sheet"]}}"#)
    try first.encode(#"["Sheet"]"#, #"{"x":1}"#)
    broker.crash(first)
    let second = broker.connect(pid: 2)
    try second.initialize()
    try openSheet(second)
    try second.encode(#"["Root"]"#, #"{"blank":1}"#)
    broker.crash(second)
    let third = broker.connect(pid: 3)
    try third.initialize()
    try third.register("Root", below: nil, Self.controller)
    #expect(try third.state(#"["Root"]"#)?["sheet"]?["$restorable"]?.joined == "Sheet")
    #expect(try third.state(#"["Sheet"]"#) == ["x": 1])
  }

  // MARK: Awaiting

  /// Tab's process was missing when a restoration completed; main is launched again.
  ///
  /// - Parameter isLate: the process came later in that run.
  private func loseTab(isLate: Bool) throws -> Peer {
    let (main, tabs) = (try fixture.join("main", pid: 1), try fixture.join("tabs", pid: 2))
    try main.encode("\(try main.register("Main", below: nil, Self.controller))", "{}")
    try tabs.encode("\(try tabs.register("Tab", below: nil, Self.controller))", "{}")
    for peer in [main, tabs] { broker.crash(peer) }
    for run in 3...4 {
      let main = try fixture.join("main", pid: Int64(run), delegate: true)
      try main.register("Main", below: nil, Self.controller)
      guard run == 3 else { return main }
      let id = main.start("restoreApplicationState")
      broker.advance(milliseconds: 10_000)
      #expect(outcome(try main.result(of: id)) == ["+Main", "?Tab"])
      if isLate {
        let late = try fixture.join("tabs", pid: 9)
        try late.register("Tab", below: nil, Self.controller)
        broker.crash(late)
      }
      broker.crash(main)
    }
    throw CancellationError()
  }

  @Test func r23WhoseProcessWasLateIsAwaitedInTheNextRun() throws {
    let main = try loseTab(isLate: true)
    let id = main.start("restoreApplicationState")
    broker.advance(milliseconds: 1_500)
    #expect(!main.hasAnswer(id))
    let tabs = try fixture.join("tabs", pid: 10)
    broker.advance(milliseconds: 150)
    try tabs.register("Tab", below: nil, Self.controller)
    #expect(outcome(try main.result(of: id)) == ["+Main", "+Tab"])
    broker.inspect()
  }

  @Test func r23ASessionThatRegistersNothingForASecondIsNoLongerAwaited() throws {
    let main = try loseTab(isLate: true)
    let id = main.start("restoreApplicationState")
    let tabs = try fixture.join("tabs", pid: 10)
    broker.advance(milliseconds: 600)
    try tabs.register("Other")
    broker.advance(milliseconds: 999)
    #expect(!main.hasAnswer(id))
    broker.advance(milliseconds: 1)
    #expect(outcome(try main.result(of: id)) == ["+Main", "?Tab"])
  }

  @Test func r23ASessionThatHasCompletedIsNoLongerAwaited() throws {
    let main = try loseTab(isLate: true)
    let tabs = try fixture.join("tabs", pid: 10)
    let id = main.start("restoreApplicationState")
    #expect(!main.hasAnswer(id))
    try tabs.call("completeStateRestoration")
    #expect(outcome(try main.result(of: id)) == ["+Main", "?Tab"])
  }

  @Test func r23WhoseProcessWasMissingInTheWholeRunIsNotAwaited() throws {
    let main = try loseTab(isLate: false)
    #expect(try restoreAtOnce(main) == ["+Main", "?Tab"])
  }

  @Test func r23WhatItsOwnProcessRefusesIsNotAwaited() throws {
    let first = try fixture.join("main", pid: 1, delegate: true)
    for name in ["Main", "Tab"] { try first.encode("\(try first.register(name, below: nil, Self.controller))", "{}") }
    broker.crash(first)
    let second = try fixture.join("main", pid: 2, delegate: true)
    try second.register("Main", below: nil, Self.controller)
    second.start("restoreApplicationState")
    broker.advance(milliseconds: 10_000)
    broker.crash(second)
    let third = try fixture.join("main", pid: 3, delegate: true)
    try third.register("Main", below: nil, Self.controller)
    #expect(try restoreAtOnce(third) == ["+Main", "?Tab"])
  }

  @Test func r23AFactoryAnnouncesWhatAnotherSessionRegisters() throws {
    try fixture.save([("Tab", nil, Self.page, #"{"x":1}"#)])
    let main = try fixture.join("main", pid: 1)
    main.serves["objectWithRestorationIdentifierPath"] = { _ in #"{"awaited":true}"# }
    try main.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    let id = main.start("restoreApplicationState")
    broker.advance(milliseconds: 4_000)
    let tabs = try fixture.join("tabs", pid: 2)
    try tabs.register("Tab", below: nil, Self.page)
    #expect(outcome(try main.result(of: id)) == ["+Tab"])
    #expect(fixture.log == ["tabs decode Tab"])
  }

  @Test func r23WhatAFactoryHasRegisteredBeforeItSaysThatItComesIsLocatedAtOnce() throws {
    let first = broker.connect(pid: 901)
    try first.initialize()
    try first.register("Doc", below: nil, Self.page)
    try first.encode(#"["Doc"]"#, #"{"n":1}"#)
    broker.crash(first)
    let peer = broker.connect(pid: 902)
    let serves = #""objectWithRestorationIdentifierPath","decodeRestorableStateWithCoder""#
    try peer.initialize("App", #""serves":[\#(serves)]"#)
    try peer.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    peer.serves["decodeRestorableStateWithCoder"] = { _ in "{}" }
    let id = peer.start("restoreApplicationState")
    let call = try #require(peer.openCalls("objectWithRestorationIdentifierPath").first)
    try peer.register("Doc", below: nil, Self.page)
    peer.answer(call.id, #"{"awaited":true}"#)
    #expect(try peer.result(of: id)["restored"] == [["Doc"]])
  }

  @Test func r19ADeferredStateIsStillThereAfterTheRestoration() throws {
    let first = broker.connect(pid: 901)
    try first.initialize()
    try first.encode(#"["Main"]"#, #"{"good":"\#(String(repeating: "x", count: 3_000))"}"#)
    broker.crash(first)
    let peer = broker.connect(pid: 902)
    try peer.initialize("App", #""messageBytesMax":4096,"serves":["decodeRestorableStateWithCoder"]"#)
    try peer.register("Main")
    try peer.encode(#"["Main"]"#, #"{"blank":1}"#)
    peer.serves["decodeRestorableStateWithCoder"] = { _ in "{}" }
    try peer.call("restoreApplicationState")
    #expect(try peer.state(#"["Main"]"#)?["good"] != nil)
  }
}
