// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import Testing

/// Finding the state that processes crash of (R31).
@Suite struct BlameTests {
  let broker = MemoryBroker()

  /// An application whose last run left states of `A`, `B` and `C`.
  init() throws {
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    for name in ["A", "B", "C"] {
      try peer.register(name)
      try peer.encode(#"["\#(name)"]"#, #"{"of":"\#(name)"}"#)
    }
    try peer.goodbye("restart")
  }

  /// A process that has registered everything and decoded nothing.
  private func start(_ pid: Int64, _ more: String = "") throws -> Peer {
    let peer = broker.connect(pid: pid)
    try peer.initialize("App", more)
    for name in ["A", "B", "C"] { try peer.register(name) }
    return peer
  }

  private func status(_ peer: Peer, _ name: String) throws -> String? {
    try peer.decode(#"["\#(name)"]"#)["status"]?.string
  }

  /// Decodes one after the other, each after the previous answer, and dies of the last one.
  private func die(_ pid: Int64, after names: String...) throws {
    let peer = try start(pid)
    for name in names { #expect(try status(peer, name) == "available") }
    broker.crash(peer)
  }

  private func list(_ more: String = "") throws -> JSONValue {
    try broker.connect(pid: 99).call("listQuarantine", #"{"application":"App"\#(more)}"#)
  }

  /// Names with their standing and strikes.
  private func standings() throws -> [String] {
    try #require(try list()["objects"]?.array).map { object in
      let words = [object["path"]?.joined, object["standing"]?.string, object["strikes"]?.integer.map { String($0) }]
      return words.map { $0 ?? "-" }.joined(separator: " ")
    }
  }

  // MARK: Guilt

  @Test func r31WhatAProcessCrashesOfTwiceIsWithheld() throws {
    try die(2, after: "A", "B")
    #expect(try standings() == ["B suspect 1"])
    let second = try start(3)
    #expect(try status(second, "A") == "available")
    // A suspect is handed out alone: the effect of A is still unknown.
    let decode = second.start("decodeRestorableState", #"{"object":["B"]}"#)
    #expect(!second.hasAnswer(decode))
    broker.advance(milliseconds: 250)
    #expect(try second.result(of: decode)["status"] == "available")
    broker.crash(second)
    #expect(try standings() == ["B quarantined 0"])
    let third = try start(4)
    for (name, expected) in [("A", "available"), ("B", "quarantined"), ("C", "available")] {
      #expect(try status(third, name) == expected)
    }
    broker.inspect()
  }

  @Test func r31StatesHandedOutTogetherAreTriedOneAtATime() throws {
    let first = try start(2)
    // Sent without waiting for answers: nothing says which of them was read.
    for name in ["A", "B", "C"] { first.start("decodeRestorableState", #"{"object":["\#(name)"]}"#) }
    broker.crash(first)
    // Only after the last one no sign of life came; it was tried alone, so it is guilty.
    #expect(try standings() == ["C suspect 1"])
    let second = try start(3)
    #expect(try status(second, "A") == "available")
    #expect(try status(second, "B") == "available")
    let waits = second.start("decodeRestorableState", #"{"object":["C"]}"#)
    #expect(!second.hasAnswer(waits))
    broker.crash(second)
    #expect(try standings() == ["A suspect 1", "B suspect 1", "C suspect 1"])
    #expect(try list()["strikes"] == 2)
    let third = try start(4)
    #expect(try status(third, "C") == "available")
    let a = third.start("decodeRestorableState", #"{"object":["A"]}"#)
    let b = third.start("decodeRestorableState", #"{"object":["B"]}"#)
    broker.advance(milliseconds: 250)
    #expect(third.hasAnswer(a))
    #expect(!third.hasAnswer(b))
    broker.advance(milliseconds: 250)
    #expect(third.hasAnswer(b))
    broker.crash(third)
    #expect(try standings() == ["B quarantined 0"])
    broker.inspect()
  }

  @Test func r31AnotherStateEachTimeIsNoCauseFound() {
    var blame = Blame()
    #expect(blame.failed(DecodeTrials.Failure(unproven: [1])) == .undecided)
    #expect(blame.failed(DecodeTrials.Failure(unproven: [2], proven: [1])) == .undecided)
    #expect(blame.failed(DecodeTrials.Failure(unproven: [1], proven: [2])) == .quarantineArchive)
  }

  @Test func r31EachProcessMayHaveAPoisonOfItsOwn() {
    var blame = Blame()
    #expect(blame.failed(DecodeTrials.Failure(unproven: [1])) == .undecided)
    #expect(blame.failed(DecodeTrials.Failure(unproven: [2])) == .undecided)
    #expect(blame.failed(DecodeTrials.Failure(unproven: [1])) == .quarantine(1))
    #expect(blame.failed(DecodeTrials.Failure(unproven: [2])) == .quarantine(2))
  }

  // MARK: Evidence

  private static let evidence: [ProcessEnd] =
    ([4, 5, 6, 7, 8, 11, 31] as [Int32]).flatMap {
      [ProcessEnd(.signalled(signal: $0)), ProcessEnd(.exited(code: 128 + $0))]
    }
    + ([1, 2, 127, 128, 193, 255] as [Int32]).map { ProcessEnd(.exited(code: $0)) }

  @Test(arguments: evidence) func r31AProcessThatFailsTwiceHasItsStateWithheld(_ end: ProcessEnd) throws {
    for pid in [2, 3] as [Int64] {
      let peer = try start(pid)
      #expect(try status(peer, "A") == "available")
      broker.crash(peer, end)
    }
    #expect(try standings() == ["A quarantined 0"])
  }

  private static let noEvidence: [ProcessEnd] =
    ([1, 2, 3, 9, 10, 13, 14, 15, 24] as [Int32]).flatMap {
      [ProcessEnd(.signalled(signal: $0)), ProcessEnd(.exited(code: 128 + $0))]
    } + [ProcessEnd(.exited(code: 0)), ProcessEnd(.outOfMemory)]

  /// Neither is anything taken back: what was suspected before still is.
  @Test(arguments: noEvidence) func r31HowOthersEndAProcessProvesNothing(_ end: ProcessEnd) throws {
    for isSuspected in [false, true] {
      if isSuspected { try die(2, after: "A") }
      for pid in 3...8 as ClosedRange<Int64> {
        let peer = try start(pid)
        #expect(try status(peer, "A") == "available")
        broker.crash(peer, end)
      }
      #expect(try standings() == (isSuspected ? ["A suspect 1"] : []))
    }
    broker.inspect()
  }

  @Test func r31IfTheSystemCannotTellThreeEndsAtOnceAreNeeded() throws {
    for pid in 2...4 as ClosedRange<Int64> {
      let peer = try start(pid)
      #expect(try status(peer, "B") == "available")
      broker.advance(milliseconds: 250)
      #expect(try status(peer, "A") == "available")
      broker.advance(milliseconds: 249)
      broker.crash(peer, ProcessEnd())
      #expect(try standings() == [pid < 4 ? "A suspect \(pid - 1)" : "A quarantined 0"])
    }
    broker.inspect()
  }

  @Test func r31AProcessThatLivedWithItsStateForAWhileAndEndedSomehowProvesNothing() throws {
    for pid in 2...7 as ClosedRange<Int64> {
      let peer = try start(pid)
      #expect(try status(peer, "A") == "available")
      broker.advance(milliseconds: 250)
      broker.crash(peer, ProcessEnd())
    }
    #expect(try standings() == [])
    #expect(try list()["strikes"] == 0)
  }

  @Test func r31ThreeCrashesOfUnknownCauseQuarantineTheArchive() throws {
    for run in 2...4 {
      let peer = try start(Int64(run))
      #expect(try status(peer, "A") == "available")
      try peer.call("ping")
      #expect(try list()["archive"]?.isNull == true)
      broker.crash(peer)
    }
    #expect(try list()["archive"]?.string != nil)
    #expect(try list()["strikes"] == 0)
    #expect(try standings() == ["A quarantined 0", "B quarantined 0", "C quarantined 0"])
    let peer = broker.connect(pid: 5)
    let situation = try peer.initialize()["restoration"]
    #expect(situation?["state"] == "quarantined")
    #expect(situation?["reason"] == "recover")
    let registered = try peer.call("registerObjectForStateRestoration", peer.registration("A"))
    #expect(registered["restoration"]?["state"] == "quarantined")
    #expect(try status(peer, "A") == "quarantined")
    let applications = try peer.call("listApplications")["applications"]?.array
    #expect(applications?.first?["state"] == "quarantined")
    // A newer state is not withheld.
    try peer.encode(#"["A"]"#, #"{"new":1}"#)
    #expect(try peer.state(#"["A"]"#) == ["new": 1])
    try peer.register("B")
    #expect(try status(peer, "B") == "quarantined")
    let other = broker.connect(pid: 6)
    #expect(try other.initialize()["restoration"]?["state"] == "available")
    broker.inspect()
  }

  @Test func r20AQuarantinedArchiveIsListedAsSuchAlsoWhenItIsClosed() throws {
    for run in 2...4 {
      let peer = try start(Int64(run))
      _ = try status(peer, "A")
      try peer.call("ping")
      broker.crash(peer)
    }
    broker.restart()
    let applications = try broker.connect(pid: 9).call("listApplications")["applications"]?.array
    #expect(applications?.first?["state"] == "quarantined")
    #expect(try broker.connect(pid: 10).initialize()["restoration"]?["state"] == "quarantined")
  }

  @Test func r31ProcessesThatDieTogetherAreOneStrike() throws {
    var peers: [Peer] = []
    for name in ["A", "B", "C"] {
      let peer = broker.connect(pid: Int64(peers.count + 2))
      try peer.initialize()
      try peer.register(name)
      #expect(try status(peer, name) == "available")
      try peer.call("ping")
      peers.append(peer)
    }
    for peer in peers { broker.crash(peer) }
    #expect(try list()["strikes"] == 1)
  }

  /// A process that restores by the broker's calls; `answers` says of how many of them.
  private func restore(_ pid: Int64, answering count: Int) throws -> (peer: Peer, call: Int, handed: [[String]]) {
    let peer = try start(pid, #""serves":["decodeRestorableStateWithCoder"]"#)
    let call = peer.start("restoreApplicationState")
    var handed: [[String]] = []
    while let open = peer.openCalls("decodeRestorableStateWithCoder").first {
      handed.append((open.parameters["objects"]?.array ?? []).compactMap { $0["path"]?.joined })
      guard handed.count <= count else { break }
      peer.answer(open.id, "{}")
    }
    return (peer, call, handed)
  }

  @Test func r31ARestorationTriesSuspectsOneAtATime() throws {
    let first = try restore(2, answering: 0)
    #expect(first.handed == [["A", "B", "C"]])
    broker.crash(first.peer)
    #expect(try standings() == ["A suspect 1", "B suspect 1", "C suspect 1"])
    let second = try restore(3, answering: 1)
    #expect(second.handed == [["A"], ["B"]])
    broker.crash(second.peer)
    #expect(try standings() == ["B quarantined 0", "C suspect 1"])
    let third = try restore(4, answering: 9)
    #expect(third.handed == [["A"], ["C"]])
    let result = try third.peer.result(of: third.call)
    #expect(result["restored"]?.array?.map(\.joined) == ["A", "C"])
    #expect(result["skipped"]?.array?.map { $0["path"]?.joined } == ["B"])
    #expect(result["skipped"]?.array?.first?["reason"] == "quarantined")
    broker.inspect()
  }

  // MARK: Innocence

  @Test func r31ACompletedRestorationClearsStrikes() throws {
    try die(2, after: "A")
    let peer = try start(3)
    #expect(try status(peer, "A") == "available")
    try peer.call("completeStateRestoration")
    #expect(try standings().isEmpty)
    broker.crash(peer)
    try die(4, after: "A")
    #expect(try standings() == ["A suspect 1"])
  }

  @Test func r31TenSecondsWithoutACrashClearAStateToo() throws {
    try die(2, after: "A")
    let peer = try start(3)
    #expect(try status(peer, "A") == "available")
    broker.advance(milliseconds: 10_000)
    #expect(try standings().isEmpty)
  }

  @Test func r31ARestorationThatDoesNotTouchASuspectSaysNothingAboutIt() throws {
    try die(2, after: "A")
    let peer = try start(3)
    #expect(try status(peer, "B") == "available")
    try peer.call("completeStateRestoration")
    #expect(try standings() == ["A suspect 1"])
    try peer.goodbye("restart")
    try die(4, after: "A")
    #expect(try standings() == ["A quarantined 0"])
  }

  @Test func r31ANewStateIsNotHeldResponsibleForTheOldOne() throws {
    try die(2, after: "A")
    let peer = try start(3)
    _ = try status(peer, "A")
    try peer.encode(#"["A"]"#, "{}")
    #expect(try standings().isEmpty)
    try peer.goodbye("restart")
    try die(4, after: "A")
    let script = broker.connect(pid: 98)
    try script.encode(#"["A"]"#, "{}", #""application":"App""#)
    #expect(try standings().isEmpty)
  }

  @Test func r31AnEncodeOfTheObjectEndsItsTrial() throws {
    try die(2, after: "A")
    let peer = try start(3)
    #expect(try status(peer, "A") == "available")
    let waits = peer.start("decodeRestorableState", #"{"object":["B"]}"#)
    #expect(!peer.hasAnswer(waits))
    try peer.encode(#"["A"]"#, "{}")
    #expect(peer.hasAnswer(waits))
    #expect(broker.timerCount > 0)
  }

  @Test(arguments: ["goodbye", "detached", "reader", "broker", "disconnected", "closed window", "no window"])
  func r31IsNoStrike(_ what: String) throws {
    for run in 2...6 {
      let peer = broker.connect(pid: Int64(run))
      switch what {
      case "detached":
        try peer.register("A", below: nil, #""application":"App""#)
        _ = try peer.decode(#"["A"]"#, #""application":"App""#)
        broker.crash(peer)
      case "reader":
        try peer.initialize()
        #expect(try status(peer, "A") == "available")
        _ = try peer.call("readArchive")
        broker.crash(peer)
      default:
        let peer = try start(Int64(run) + 100)
        if what != "no window" { #expect(try status(peer, "A") == "available") }
        switch what {
        case "goodbye": try peer.goodbye("restart")
        case "broker":
          broker.restart()
          broker.killUnnoticed(peer)
        case "disconnected":
          broker.disconnect(peer)
          broker.advance(milliseconds: 11_000)
          broker.kill(peer)
        case "closed window":
          broker.advance(milliseconds: 10_000)
          broker.crash(peer)
        default: broker.crash(peer)
        }
      }
    }
    #expect(try standings().isEmpty)
    #expect(try list()["strikes"] == 0)
    broker.inspect()
  }

  @Test func r31DeveloperModeNeverQuarantinesNorEmpties() throws {
    let broker = MemoryBroker(isDeveloperMode: true)
    let author = broker.connect(pid: 1)
    try author.initialize("App", #""delegate":true"#)
    try author.register("A")
    try author.encode(#"["A"]"#, #"{"of":"A"}"#)
    try author.goodbye("userQuit")
    for run in 2...6 {
      let peer = broker.connect(pid: Int64(run))
      #expect(try peer.initialize()["restoration"]?["state"] == "available")
      try peer.register("A")
      #expect(try peer.state(#"["A"]"#) == ["of": "A"])
      broker.crash(peer)
    }
    let list = try broker.connect(pid: 99).call("listQuarantine", #"{"application":"App"}"#)
    #expect(list == ["archive": .null, "strikes": 0, "objects": []])
  }

  // MARK: Waiting

  @Test func r31SuspectsThatWaitAreGivenUpWithTheirSession() throws {
    try die(2, after: "A")
    let peer = try start(3)
    _ = try status(peer, "B")
    let waits = peer.start("decodeRestorableState", #"{"object":["A"]}"#)
    try peer.goodbye("restart")
    #expect(try peer.failure(of: waits).kind == "notInitialized")
  }

  @Test func r31BlameOutlastsTheBroker() throws {
    try die(2, after: "A")
    broker.restart()
    #expect(try standings() == ["A suspect 1"])
    try die(3, after: "A")
    #expect(try standings() == ["A quarantined 0"])
    broker.restart()
    let peer = try start(4)
    #expect(try status(peer, "A") == "quarantined")
    broker.inspect()
  }

  @Test func r31AFailedTransactionForgetsTheBlameToo() throws {
    try die(2, after: "A")
    let peer = try start(3)
    #expect(try status(peer, "A") == "available")
    broker.holdsCommits = true
    broker.crash(peer)
    broker.holdsCommits = false
    broker.failCommit("App")
    #expect(try standings() == ["A suspect 1"])
    broker.inspect()
  }

  @Test func r31WhatWaitsIsAnsweredWhenItsSessionIsLostWithATransaction() throws {
    try die(2, after: "A")
    broker.holdsCommits = true
    let peer = broker.connect(pid: 3)
    peer.start("initialize", #"{"application":"App"}"#)
    for name in ["A", "B"] { peer.start("registerObjectForStateRestoration", peer.registration(name)) }
    peer.start("decodeRestorableState", #"{"object":["A"]}"#)
    let waits = peer.start("decodeRestorableState", #"{"object":["B"]}"#)
    #expect(!peer.hasAnswer(waits))
    broker.holdsCommits = false
    broker.failCommit("App")
    #expect(peer.hasAnswer(waits))
  }

  @Test func r31OneThatBeginsToWaitDoesNotHoldUpAnother() throws {
    try broker.connect(pid: 98).encode(#"["D"]"#, "{}", #""application":"App""#)
    for (pid, name) in [(2, "A"), (3, "C")] as [(Int64, String)] {
      let peer = try join(pid, name)
      #expect(try status(peer, name) == "available")
      broker.crash(peer)
    }
    #expect(try standings() == ["A suspect 1", "C suspect 1"])
    let (first, second) = (try join(4, "A", "B"), try join(5, "C", "D"))
    #expect(try status(first, "B") == "available")
    let a = first.start("decodeRestorableState", #"{"object":["A"]}"#)
    broker.advance(milliseconds: 200)
    #expect(try status(second, "D") == "available")
    let c = second.start("decodeRestorableState", #"{"object":["C"]}"#)
    broker.advance(milliseconds: 50)
    #expect(first.hasAnswer(a) && !second.hasAnswer(c))
    broker.advance(milliseconds: 200)
    #expect(second.hasAnswer(c))
  }

  private func join(_ pid: Int64, _ names: String...) throws -> Peer {
    let peer = broker.connect(pid: pid)
    try peer.initialize()
    for name in names { try peer.register(name) }
    return peer
  }

  // MARK: Afterwards

  @Test func r19WhatIsWithheldDoesNotKeepARestorationFromCompleting() throws {
    let main = broker.connect(pid: 50)
    try main.initialize("App", #""delegate":true"#)
    for pid in [2, 3] as [Int64] {
      let worker = try join(pid, "A")
      #expect(try status(worker, "A") == "available")
      broker.crash(worker)
    }
    #expect(try standings() == ["A quarantined 0"])
    let worker = try restore(4, answering: 9)
    #expect(worker.handed == [["B", "C"]])
    #expect(try worker.peer.result(of: worker.call)["skipped"]?.array?.count == 1)
    #expect(broker.disk.archive("App")?.run?.restorations == 1)
  }

  @Test func r31TheApplicationsOwnStateIsWithheldWithTheArchive() throws {
    let served =
      #""delegate":true,"serves":["willEncodeRestorableState","shouldSaveApplicationState","#
      + #""shouldRestoreApplicationState","didDecodeRestorableState"]"#
    let author = try start(2, served)
    author.serves["willEncodeRestorableState"] = { _ in #"{"state":{"tab":3}}"# }
    author.serves["shouldSaveApplicationState"] = { _ in "true" }
    #expect(try author.call("saveApplicationState")["saved"] == true)
    try author.goodbye("restart")
    for run in 3...5 {
      let peer = try start(Int64(run))
      #expect(try status(peer, "A") == "available")
      try peer.call("ping")
      broker.crash(peer)
    }
    #expect(try list()["archive"]?.string != nil)
    let peer = try start(6, served)
    for name in ["shouldRestoreApplicationState", "didDecodeRestorableState", "shouldSaveApplicationState"] {
      peer.serves[name] = { _ in "true" }
    }
    peer.serves["willEncodeRestorableState"] = { _ in #"{"state":{"tab":4}}"# }
    try peer.call("restoreApplicationState")
    try peer.encode(#"["A"]"#, "{}")
    try peer.call("saveApplicationState")
    for name in ["shouldRestoreApplicationState", "didDecodeRestorableState", "shouldSaveApplicationState"] {
      #expect(peer.calls.first { $0.method == name }?.parameters["state"] == .null, "\(name)")
    }
    try peer.encode(#"["A"]"#, #"{"a":2}"#)
    try peer.call("saveApplicationState")
    #expect(peer.calls.last { $0.method == "shouldSaveApplicationState" }?.parameters["state"] == ["tab": 4])
  }
}
