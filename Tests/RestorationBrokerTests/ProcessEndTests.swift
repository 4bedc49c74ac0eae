// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// How a process ended that said no goodbye, and what that does to its session (R19, R30, R31).
@Suite struct ProcessEndTests {
  let broker = MemoryBroker()

  private func start(_ pid: Int64, _ name: String = "Main", unit: String? = nil) throws -> Peer {
    let peer = broker.connect(pid: pid, unit: unit)
    try peer.initialize("App", #""process":"editor""#)
    try peer.encode("\(try peer.register(name))", #"{"by":\#(pid)}"#)
    return peer
  }

  private func reason(_ pid: Int64 = 50) throws -> JSONValue? {
    let peer = broker.connect(pid: pid)
    defer { broker.inspect() }
    return try peer.initialize("App", #""process":"editor""#)["restoration"]?["reason"]
  }

  private static let ends: [(end: ProcessEnd, ending: String, outcome: JSONValue, reason: String)] = [
    (ProcessEnd(.exited(code: 3)), "crashed", ["how": "exited", "code": 3], "recover"),
    (ProcessEnd(.exited(code: 0)), "crashed", ["how": "exited", "code": 0], "recover"),
    (
      ProcessEnd(.signalled(signal: 11), unit: "editor.service"), "crashed",
      ["how": "signalled", "signal": "SIGSEGV", "unit": "editor.service"], "recover"
    ),
    (ProcessEnd(.signalled(signal: 35)), "crashed", ["how": "signalled", "signal": "SIGRTMIN+1"], "recover"),
    (ProcessEnd(.outOfMemory), "crashed", ["how": "outOfMemory"], "recover"),
    (ProcessEnd(), "crashed", ["how": "unknown"], "recover"),
    (ProcessEnd(.stopped, unit: "x.service"), "stopped", ["how": "stopped", "unit": "x.service"], "launch"),
    (
      ProcessEnd(.signalled(signal: 9), isLogout: true), "logout", ["how": "signalled", "signal": "SIGKILL"], "launch"
    ),
  ]

  @Test(arguments: ends.indices)
  func r30TheEndOfAProcessIsToldAndDecidesWhatTheNextOneIsTold(index: Int) throws {
    let (end, ending, outcome, reason) = Self.ends[index]
    let monitor = broker.connect(pid: 90)
    try monitor.call("subscribe", #"{"events":["sessionEnded"]}"#)
    broker.crash(try start(1, unit: end.unit), end)
    let event = try #require(monitor.takeNotifications("event").first)
    #expect(event["ending"] == .string(ending))
    for name in ["how", "code", "signal", "unit"] { #expect(event[name] == outcome[name] ?? .null) }
    #expect(try self.reason() == .string(reason))
    let steps = try monitor.call("explainRestoration", #"{"application":"App","object":["Main"]}"#)["saved"]?.array
    let step = try #require(steps?.last)
    #expect(step["step"] == "ownerEnded" && step["ending"] == .string(ending) && step["how"] == outcome["how"])
    #expect(step["owner"] == ["process": "editor", "pid": 1])
  }

  @Test func r30AGoodbyeTellsOfNoEnd() throws {
    let monitor = broker.connect(pid: 90)
    try monitor.call("subscribe", #"{"events":["sessionEnded"]}"#)
    let peer = try start(1)
    broker.kill(peer, ProcessEnd(.exited(code: 0)))
    try peer.goodbye("restart")
    let event = try #require(monitor.takeNotifications("event").first)
    #expect(event["ending"] == "restart" && event["how"] == .null && event["code"] == .null)
  }

  @Test func r30AProcessThatIsStillReadWhenItHasEndedEndsAsItDid() throws {
    let peer = try start(1)
    broker.kill(peer, ProcessEnd(.stopped))
    broker.advance(milliseconds: 1_000)
    #expect(try reason() == "launch")
  }

  @Test func r16AnEndThatIsFoundOutByLookingIsTheSame() throws {
    let peer = try start(1)
    broker.disconnect(peer)
    broker.killUnnoticed(peer, ProcessEnd(.stopped))
    #expect(try reason() == "launch")
  }

  @Test func r31NothingIsHeldAgainstWhatAStoppedProcessWasHanded() throws {
    for end in [ProcessEnd(.stopped), ProcessEnd(.unknown, isLogout: true)] {
      for pid in 1...4 as ClosedRange<Int64> {
        let peer = broker.connect(pid: pid)
        try peer.initialize("App")
        _ = try peer.state("\(try peer.register("Main"))")
        if pid == 1 { try peer.encode(#"["Main"]"#, "{}") }
        _ = try peer.state(#"["Main"]"#)
        broker.crash(peer, end)
      }
    }
    let peer = broker.connect(pid: 9)
    try peer.initialize("App")
    #expect(try peer.decode("\(try peer.register("Main"))")["status"] == "available")
  }

  @Test func r19AStoppedProcessHasNotSaidThatItsBlankPushHidesAnything() throws {
    try start(1).goodbye("restart")
    for (pid, end) in [(2, ProcessEnd(.stopped)), (3, ProcessEnd(.unknown, isLogout: true))] as [(Int64, ProcessEnd)] {
      let blank = broker.connect(pid: pid)
      try blank.initialize("App")
      try blank.encode("\(try blank.register("Main"))", "{}")
      broker.crash(blank, end)
    }
    let peer = broker.connect(pid: 4)
    try peer.initialize("App")
    #expect(try peer.state("\(try peer.register("Main"))") == ["by": 1])
  }

  @Test func r30ProcessesThatAreGoneAfterTheBrokerEndedWithTheUsersSessionWereLoggedOut() throws {
    let (first, second) = (try start(1), try start(2, "Other"))
    broker.sessionOfUserEnds()
    broker.restart()
    broker.killUnnoticed(first)
    broker.killUnnoticed(second)
    #expect(try reason() == "launch")
    // Only until a process has returned.
    broker.crash(try start(3, "Third"))
    broker.restart()
    #expect(try reason(60) == "recover")
  }

  @Test func r30WhoEndsAfterTheNextLoginHasCrashed() throws {
    let peer = try start(1)
    broker.sessionOfUserEnds()
    broker.restart()
    #expect(try broker.connect(pid: 70).paths(#""application":"App""#) == ["Main"])
    broker.kill(peer, ProcessEnd(.signalled(signal: 9)))
    #expect(try reason() == "recover")
  }

  // MARK: Reports of the manager

  typealias Refinement = (
    kernel: ProcessEnding, result: String, active: String, main: Bool, code: Int32, status: Int32, stopped: Bool,
    ending: ProcessEnding
  )

  private static let refinements: [Refinement] = [
    (.signalled(signal: 9), "oom-kill", "failed", true, 2, 9, false, .outOfMemory),
    (.signalled(signal: 9), "oom-kill", "failed", false, 2, 9, false, .outOfMemory),
    (.signalled(signal: 11), "oom-kill", "failed", false, 2, 9, false, .signalled(signal: 11)),
    (.signalled(signal: 9), "signal", "failed", true, 2, 9, false, .signalled(signal: 9)),
    (.signalled(signal: 9), "timeout", "failed", true, 2, 9, false, .stopped),
    (.signalled(signal: 9), "timeout", "failed", false, 2, 9, false, .signalled(signal: 9)),
    (.signalled(signal: 15), "success", "inactive", true, 2, 15, false, .stopped),
    (.signalled(signal: 15), "success", "active", false, 0, 0, false, .stopped),
    (.exited(code: 0), "success", "inactive", true, 1, 0, false, .exited(code: 0)),
    (.exited(code: 0), "success", "inactive", true, 1, 0, true, .stopped),
    (.exited(code: 0), "success", "inactive", false, 1, 0, true, .exited(code: 0)),
    (.exited(code: 1), "success", "deactivating", false, 0, 0, false, .stopped),
    (.exited(code: 1), "exit-code", "failed", true, 1, 1, false, .exited(code: 1)),
    (.unknown, "signal", "failed", true, 3, 6, false, .signalled(signal: 6)),
    (.unknown, "exit-code", "failed", true, 1, 4, false, .exited(code: 4)),
    (.unknown, "exit-code", "failed", false, 1, 4, false, .unknown),
    (.unknown, "success", "active", true, 0, 0, false, .unknown),
  ]

  @Test(arguments: refinements.indices)
  func theUnitsResultTellsWhatTheKernelDoesNot(index: Int) {
    let given = Self.refinements[index]
    var unit = UnitResult()
    (unit.result, unit.activeState, unit.wasStopped) = (given.result, given.active, given.stopped)
    (unit.mainProcess, unit.mainCode, unit.mainStatus) = (given.main ? 7 : 8, given.code, given.status)
    #expect(given.kernel.refined(by: unit, process: 7) == given.ending)
  }

  private static let collected: [(kernel: ProcessEnding, collected: Bool, ending: ProcessEnding)] = [
    (.exited(code: 0), true, .stopped), (.exited(code: 0), false, .exited(code: 0)),
    (.exited(code: 1), true, .exited(code: 1)), (.signalled(signal: 15), true, .stopped),
    (.signalled(signal: 11), true, .signalled(signal: 11)), (.signalled(signal: 9), true, .signalled(signal: 9)),
    (.unknown, true, .unknown),
  ]

  @Test(arguments: collected.indices)
  func whoEndsWellWithAUnitThatIsForgottenThenWasStopped(index: Int) {
    let given = Self.collected[index]
    var unit = UnitResult()
    (unit.activeState, unit.wasCollected) = ("inactive", given.collected)
    #expect(given.kernel.refined(by: unit, process: 7) == given.ending)
  }
}
