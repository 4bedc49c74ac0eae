// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// States pushed before the old one was decoded (R19).
@Suite struct EarlyStateTests {
  let broker = MemoryBroker()

  /// An application whose last run left a good state of `Main`.
  init() throws {
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    try peer.register("Main")
    try peer.encode(#"["Main"]"#, #"{"good":1}"#)
    try peer.goodbye("restart")
  }

  private func start(pid: Int64) throws -> Peer {
    let peer = broker.connect(pid: pid)
    try peer.initialize()
    try peer.register("Main")
    return peer
  }

  @Test func r19BlankPushesOverSeveralRunsHideNothing() throws {
    for run in 2...6 {
      let peer = try start(pid: Int64(run))
      try peer.encode(#"["Main"]"#, #"{"blank":\#(run)}"#)
      broker.inspect()
      broker.crash(peer)
      if run == 4 { broker.restart() }
    }
    let peer = try start(pid: 9)
    #expect(try peer.state(#"["Main"]"#) == ["good": 1])
    broker.inspect()
  }

  @Test func r19SixtySecondsAfterTheClaimClearTheMark() throws {
    let peer = try start(pid: 2)
    broker.advance(milliseconds: 10_000)
    try peer.encode(#"["Main"]"#, #"{"kept":1}"#)
    broker.advance(milliseconds: 49_999)
    #expect(broker.application("App")?.tree.node(at: ["Main"])?.state?.isEarly == true)
    broker.advance(milliseconds: 1)
    #expect(try peer.state(#"["Main"]"#) == ["kept": 1])
    #expect(broker.timerCount == 1)  // the decode window just opened
    broker.inspect()
  }

  @Test func r19WhatWasRefusedOrDeclinedStaysSoOverARestartOfTheBroker() throws {
    for isDeclined in [false, true] {
      let fixture = RestoringFixture()
      let page = #""kind":"viewController","restorationClass":"Pages""#
      try fixture.save([("Tab", nil, page, #"{"old":1}"#)])
      let worker = try fixture.join("W", pid: 2, delegate: true)
      try worker.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
      if isDeclined { worker.serves["shouldRestoreApplicationState"] = { _ in "false" } }
      let result = try worker.call("restoreApplicationState")
      #expect(isDeclined ? result["declined"] == true : outcome(result) == ["-Tab refused"])
      let other = fixture.broker.connect(pid: 3)
      try other.initialize()
      fixture.broker.restart()
      let another = fixture.broker.connect(pid: 4)
      try another.initialize()
      try another.register("Tab", below: nil, page)
      try another.encode(#"["Tab"]"#, #"{"new":1}"#)
      fixture.broker.crash(another)
      #expect(fixture.broker.application("App")?.tree.node(at: ["Tab"])?.state?.isEarly == false)
      fixture.broker.inspect()
    }
  }

  @Test func r19EachMarkIsClearedByItsOwnClaimsTime() throws {
    let second = broker.connect(pid: 7)
    try second.encode(#"["Other"]"#, #"{"good":2}"#, #""application":"App""#)
    let peer = try start(pid: 2)
    broker.advance(milliseconds: 30_000)
    try peer.register("Other")
    try peer.encode(#"["Other"]"#, #"{"blank":2}"#)
    broker.advance(milliseconds: 10_000)
    try peer.encode(#"["Main"]"#, #"{"blank":1}"#)
    func isEarly(_ path: IdentifierPath) -> Bool? { broker.application("App")?.tree.node(at: path)?.state?.isEarly }
    broker.advance(milliseconds: 20_000)
    #expect(isEarly(["Main"]) == false)
    #expect(isEarly(["Other"]) == true)
    broker.advance(milliseconds: 30_000)
    #expect(isEarly(["Other"]) == false)
    broker.inspect()
  }

  @Test func r19AMarkIsClearedByTheTimeOfTheClaimThatMovedToIt() throws {
    let first = try start(pid: 2)
    try first.encode(#"["Main"]"#, #"{"blank":1}"#)
    broker.crash(first)
    broker.advance(milliseconds: 60_000)
    let second = broker.connect(pid: 3)
    try second.initialize()
    let moved = try second.register("Moved")
    // The time of a mark begins when its owner could first look at the state.
    broker.advance(milliseconds: 120_000)
    try second.call("setRestorationIdentifier", #"{"object":\#(moved),"restorationIdentifier":"Main"}"#)
    let main = try #require(broker.application("App")?.tree.node(at: ["Main"]))
    #expect(main.claim?.handle == moved)
    broker.advance(milliseconds: 59_999)
    #expect(main.state?.isEarly == true)
    broker.advance(milliseconds: 1)
    #expect(main.state?.isEarly == false)
    broker.inspect()
  }

  @Test func r19APushSixtySecondsAfterTheClaimIsNotEarly() throws {
    let peer = try start(pid: 2)
    broker.advance(milliseconds: 60_000)
    try peer.encode(#"["Main"]"#, #"{"kept":1}"#)
    #expect(try peer.state(#"["Main"]"#) == ["kept": 1])
  }

  @Test func r19AMarkOutlivesTheBrokerAndIsClearedInTime() throws {
    let peer = broker.connect(pid: 2)
    let token = try #require(try peer.initialize()["session"]?.string)
    try peer.register("Main")
    try peer.encode(#"["Main"]"#, #"{"blank":1}"#)
    broker.restart()
    let again = broker.connect(pid: 2)
    try again.initialize("App", #""session":"\#(token)""#)
    try again.encode(#"["Main"]"#, #"{"blank":2}"#)
    let isEarly = { broker.application("App")?.tree.node(at: ["Main"])?.state?.isEarly }
    #expect(isEarly() == true)
    broker.inspect()
    broker.advance(milliseconds: 60_000)
    #expect(isEarly() == false)
    #expect(try again.state(#"["Main"]"#) == ["blank": 2])
    broker.inspect()
  }

  @Test func r19WhatWasDecodedBeforeTheBrokerRestartedCountsAsDecoded() throws {
    let peer = broker.connect(pid: 2)
    let token = try #require(try peer.initialize()["session"]?.string)
    try peer.register("Main")
    _ = try peer.decode(#"["Main"]"#)
    broker.restart()
    let again = broker.connect(pid: 2)
    try again.initialize("App", #""session":"\#(token)""#)
    try again.encode(#"["Main"]"#, #"{"new":1}"#)
    #expect(try again.state(#"["Main"]"#) == ["new": 1])
    broker.inspect()
  }
}

/// Decode windows, and when an application's restoration has completed (R19, R31).
@Suite struct RestorationTests {
  let broker = MemoryBroker()

  init() throws {
    let script = broker.connect(pid: 1)
    try script.encode(#"["A"]"#, #"{"a":1}"#, #""application":"App""#)
    try script.encode(#"["B"]"#, #"{"b":1}"#, #""application":"App""#)
  }

  private var completed: Int64? { broker.disk.archive("App")?.run?.restorations }

  private func start(_ name: String, pid: Int64) throws -> Peer {
    let peer = broker.connect(pid: pid)
    try peer.initialize()
    try peer.register(name)
    return peer
  }

  @Test func r31AWindowClosesAtCompletion() throws {
    let (first, second) = (try start("A", pid: 2), try start("B", pid: 3))
    _ = try first.decode(#"["A"]"#)
    _ = try second.decode(#"["B"]"#)
    #expect(try first.call("completeStateRestoration") == ["pending": 1])
    #expect(completed == 0)
    #expect(try second.call("completeStateRestoration") == ["pending": 0])
    #expect(completed == 1)
    #expect(try second.call("completeStateRestoration") == ["pending": 0])
    #expect(completed == 1)
  }

  @Test func r31AWindowClosesAfterTenSeconds() throws {
    let peer = try start("A", pid: 2)
    _ = try peer.decode(#"["A"]"#)
    broker.advance(milliseconds: 5_000)
    try peer.register("B")
    _ = try peer.decode(#"["B"]"#)
    broker.advance(milliseconds: 9_999)
    #expect(completed == 0)
    broker.advance(milliseconds: 1)
    #expect(completed == 1)
    #expect(broker.timerCount == 0)
  }

  @Test func r31ReadersDetachedSessionsAndObjectsWithoutAStateOpenNoWindow() throws {
    let peer = broker.connect(pid: 2)
    try peer.call("registerObjectForStateRestoration", peer.registration("A", below: nil, #""application":"App""#))
    _ = try peer.decode(#"["A"]"#, #""application":"App""#)
    let other = broker.connect(pid: 3)
    try other.initialize()
    _ = try other.decode(#"["B"]"#)
    _ = try other.call("readArchive")
    try other.register("New")
    _ = try other.decode(#"["New"]"#)
    try other.encode(#"["New"]"#, "{}")
    broker.advance(milliseconds: 60_000)
    #expect(completed == 0)
  }

  @Test func r19ACrashWithAnOpenWindowIsNoCompletion() throws {
    let (first, second) = (try start("A", pid: 2), try start("B", pid: 3))
    _ = try first.decode(#"["A"]"#)
    _ = try second.decode(#"["B"]"#)
    broker.crash(first)
    try second.encode(#"["B"]"#, #"{"b":2}"#)
    #expect(completed == 0)
    let again = try start("A", pid: 4)
    _ = try again.decode(#"["A"]"#)
    try again.encode(#"["A"]"#, #"{"a":2}"#)
    #expect(completed == 1)
  }

  @Test(arguments: ["restart", "logout", "closed"])
  func r19AGoodbyeClosesTheWindowsOfItsSession(_ reason: String) throws {
    let peer = try start("A", pid: 2)
    _ = try peer.decode(#"["A"]"#)
    try peer.goodbye(reason)
    #expect(completed == 1)
    broker.inspect()
  }

  @Test func r19R31AWindowClosesAtTheNextEncodeAndARunCompletesOnce() throws {
    for run in 1...3 {
      let peer = try start("A", pid: Int64(10 + run))
      _ = try peer.decode(#"["A"]"#)
      #expect(completed == Int64(run - 1))
      for _ in 1...2 {
        try peer.encode(#"["A"]"#, #"{"a":\#(run)}"#)
        #expect(completed == Int64(run))
        _ = try peer.decode(#"["A"]"#)
      }
      try peer.goodbye("restart")
    }
  }

  @Test func r32AnArchiveThatChangesIsCopiedOnceADayWhoeverWritesIt() throws {
    let tool = broker.connect(pid: 20)
    func put(_ number: Int) throws { try tool.encode(#"["A"]"#, #"{"a":\#(number)}"#, #""application":"App""#) }
    try put(1)
    #expect(broker.backups == 0)
    broker.advance(milliseconds: 300_000)
    #expect(broker.backups == 1)
    try put(2)
    broker.advance(milliseconds: 300_000)
    #expect(broker.backups == 1)
    broker.advance(days: 1)
    for number in 3...4 { try put(number) }
    broker.advance(milliseconds: 300_000)
    #expect(broker.backups == 2)
    // Nothing has changed.
    broker.advance(days: 3)
    #expect(broker.backups == 2)
  }

  @Test func r13AnOrphanIsRetiredAfterNinetyDaysAndTwentyRestorations() throws {
    let reader = broker.connect(pid: 3)
    func restore(times: Int) throws -> [String] {
      for _ in 1...times {
        let peer = try start("B", pid: 4)
        _ = try peer.decode(#"["B"]"#)
        try peer.goodbye("restart")
      }
      return try reader.paths(#""application":"App""#)
    }
    func verdict(_ path: String) throws -> JSONValue? {
      try reader.call("explainRestoration", #"{"application":"App","object":\#(path)}"#)["verdict"]
    }
    let owner = try start("C", pid: 2)
    try owner.register("Child", below: #"["C"]"#)
    try owner.encode(#"["C","Child"]"#, #"{"c":1}"#)
    try owner.register("D", below: nil, #""keep":"forever""#)
    try owner.goodbye("restart")
    #expect(try restore(times: 20) == ["A", "B", "C", "C/Child", "D"])
    broker.advance(days: 89)
    #expect(try restore(times: 1) == ["A", "B", "C", "C/Child", "D"])
    broker.advance(days: 1)
    #expect(try restore(times: 1) == ["A", "B", "D"], "nobody ever claimed A")
    #expect(try verdict(#"["C","Child"]"#) == "retired")
    // The clock may have been wrong.
    let other = try start("E", pid: 5)
    try other.encode(#"["E"]"#, #"{"e":1}"#)
    try other.goodbye("restart")
    broker.advance(days: 91)
    #expect(try restore(times: 19) == ["A", "B", "D", "E"])
    #expect(try restore(times: 1) == ["A", "B", "D"])
    broker.restart()
    let tool = broker.connect(pid: 6)
    try tool.call("reopenObject", #"{"application":"App","path":["C"]}"#)
    #expect(try tool.decode(#"["C","Child"],"application":"App""#)["state"] == ["c": 1])
    let closed = try tool.call("listClosedObjects", #"{"application":"App"}"#)["objects"]?.array
    #expect(closed?.map { $0["path"]?.joined } == ["E"])
    broker.inspect()
  }
}
