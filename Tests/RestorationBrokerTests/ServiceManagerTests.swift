// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// A broker beside a service manager: the units it starts, and its questions when processes end (R22, R30).
@Suite struct ServiceManagerTests {
  let broker = MemoryBroker()

  private func save(unit: String, _ broker: MemoryBroker? = nil) throws {
    let peer = (broker ?? self.broker).connect(pid: 1)
    try peer.initialize()
    let main = try peer.register("Main", below: nil, #""kind":"viewController","storyboard":{"unit":"\#(unit)"}"#)
    try peer.encode("\(main)", "{}")
    try peer.goodbye("restart")
  }

  /// The steps of a restoration that waits in vain.
  private func restore(_ broker: MemoryBroker? = nil) throws -> [JSONValue] {
    let broker = broker ?? self.broker
    let peer = broker.connect(pid: 2)
    let id = peer.start("restoreApplicationState", #"{"application":"App","deadlineMilliseconds":200}"#)
    broker.advance(milliseconds: 200)
    #expect(peer.hasAnswer(id))
    let explained = try peer.call("explainRestoration", #"{"application":"App","object":["Main"]}"#)
    return try #require(explained["restored"]?.array)
  }

  /// Has a process open a session and be killed, after which this much time passes; the event that tells of it.
  private func kill(_ broker: MemoryBroker? = nil, after milliseconds: Int64 = 0) throws -> JSONValue {
    let broker = broker ?? self.broker
    let monitor = broker.connect(pid: 90)
    try monitor.call("subscribe", #"{"application":"App","events":["sessionEnded"]}"#)
    let child = broker.connect(pid: 3, unit: "a.service")
    try child.initialize()
    broker.crash(child, ProcessEnd(.signalled(signal: 9)))
    broker.advance(milliseconds: milliseconds)
    return try #require(monitor.takeNotifications("event").first)
  }

  @Test func r33AManagerThatDoesNotAnswerDoesNotHoldUpTheEnd() throws {
    broker.holdsProbes = true
    broker.saveBeforeEnd()
    broker.advance(milliseconds: 1_999)
    #expect(!broker.isPreparedToStop)
    broker.advance(milliseconds: 1)
    #expect(broker.isPreparedToStop)
    // The answer comes only after the end, and changes nothing.
    broker.probeHeld()
  }

  @Test func r22AUnitIsStartedOnlyForTheApplicationThatItsFileNames() throws {
    broker.unitFiles = ["a.service": ["[X-Restoration]\nApplication=App\n"]]
    try save(unit: "a.service")
    #expect(try restore().contains { $0["step"] == "unitStarted" })
    #expect(broker.startedUnits == ["a.service"])
    broker.unitFiles = ["a.service": ["[X-Restoration]\nApplication=Another\n"]]
    let refused = try #require(try restore().first { $0["step"] == "unitFailed" })
    #expect(refused["message"]?.string?.contains("lacks Application=App") == true)
    #expect(broker.startedUnits == ["a.service"])
  }

  @Test(arguments: ["/bin/sh -c true", "../a.service", "a.service; true", "a@.service", "a.socket"])
  func whatIsNoNameOfAUnitNeverReachesTheManager(unit: String) throws {
    broker.unitFiles = [unit: ["[X-Restoration]\nApplication=App\n"]]
    try save(unit: unit)
    #expect(try restore().contains { $0["step"] == "absent" })
    #expect(broker.startedUnits.isEmpty)
  }

  @Test func r22AUnitThatDoesNotStartIsExplainedInTheWordsOfTheManager() throws {
    broker.unitFiles = ["broken.service": ["[X-Restoration]\nApplication=%p\nApplication=App"]]
    broker.brokenUnits = ["broken.service"]
    try save(unit: "broken.service")
    let failed = try #require(try restore().first { $0["step"] == "unitFailed" })
    #expect(failed["message"]?.string?.contains("its start job failed") == true)
    broker.managerFailure = ServiceManagerError("the user manager does not answer")
    let unanswered = try #require(try restore().first { $0["step"] == "unitFailed" })
    #expect(unanswered["message"]?.string == "the user manager does not answer")
  }

  @Test func r22WithoutAManagerItIsSaidHowToStartTheUnit() throws {
    let broker = MemoryBroker(hasManager: false)
    try save(unit: "a.service", broker)
    let failed = try #require(try restore(broker).first { $0["step"] == "unitFailed" })
    #expect(failed["message"]?.string?.contains("systemctl --user start a.service") == true)
  }

  // MARK: Ends

  @Test func r30TheEndOfAProcessIsKnownExactly() throws {
    let killed = try kill()
    #expect(killed["ending"] == "crashed" && killed["signal"] == "SIGKILL" && killed["unit"] == "a.service")
    (broker.unitResult.result, broker.unitResult.activeState) = ("oom-kill", "failed")
    #expect(try kill()["how"] == "outOfMemory")
    (broker.unitResult.result, broker.unitResult.activeState) = ("success", "deactivating")
    #expect(try kill()["ending"] == "stopped")
  }

  @Test func r30AManagerThatDoesNotAnswerHoldsNobodyUp() throws {
    broker.holdsProbes = true
    let killed = try kill(after: 300)
    #expect(killed["ending"] == "crashed" && killed["signal"] == "SIGKILL")
    broker.probeHeld()
  }

  @Test func r30WithoutAManagerTheKernelTells() throws {
    let killed = try kill(MemoryBroker(hasManager: false))
    #expect(killed["how"] == "signalled" && killed["signal"] == "SIGKILL" && killed["unit"] == .null)
  }
}
