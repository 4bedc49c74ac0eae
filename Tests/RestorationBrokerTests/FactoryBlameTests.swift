// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import Testing

/// States that processes crash of while they make the objects (R24, R31).
@Suite struct FactoryBlameTests {
  let fixture = RestoringFixture()
  var broker: MemoryBroker { fixture.broker }

  static let make = "objectWithRestorationIdentifierPath"

  init() throws {
    let more = #""kind":"viewController","restorationClass":"K""#
    try fixture.save(["A", "B", "C"].map { ($0, nil, more, #"{"of":"\#($0)"}"#) })
  }

  /// Runs a process that makes all objects but those of the given names, of which it dies; returns the requests it got.
  private func run(_ pid: Int64, diesOf names: [String]) throws -> [String] {
    let peer = try fixture.join("W", pid: pid)
    try fixture.makes("K", peer, "W")
    let make = try #require(peer.serves[Self.make])
    peer.serves[Self.make] = { parameters in
      let name = parameters["identifierPath"]?.joined ?? ""
      return names.contains(name) && parameters["state"]?.isNull == false ? nil : make(parameters)
    }
    let id = peer.start("restoreApplicationState")
    for _ in 0..<8 where peer.openCalls(Self.make).isEmpty { broker.advance(milliseconds: 250) }
    let asked = peer.calls.filter { $0.method == Self.make }.compactMap { $0.parameters["identifierPath"]?.joined }
    if peer.openCalls(Self.make).isEmpty {
      #expect(outcome(try peer.result(of: id)).count == 3)
      try peer.goodbye("restart")
    } else {
      broker.crash(peer)
      // The restoration continues for late processes; the next run must begin its own.
      broker.advance(milliseconds: 10_000)
    }
    broker.inspect()
    return asked
  }

  private func standings() throws -> [String] {
    let list = try broker.connect(pid: 99).call("listQuarantine", #"{"application":"App"}"#)
    return try #require(list["objects"]?.array).map {
      "\($0["path"]?.joined ?? "-") \($0["standing"]?.string ?? "-") \($0["strikes"]?.integer ?? -1)"
    }
  }

  @Test func r31AFactoryThatCrashesTwiceOfAStateIsNotGivenItAgain() throws {
    #expect(try run(2, diesOf: ["B"]) == ["A", "B", "C"])
    #expect(try standings() == ["B suspect 1"])
    _ = try run(3, diesOf: ["B"])
    #expect(try standings() == ["B quarantined 0"])
    #expect(try run(4, diesOf: ["B"]).sorted() == ["A", "B", "C"])
  }

  @Test func r31StatesGivenToFactoriesTogetherAreTriedOneAtATime() throws {
    // None is answered: it may have been any of them.
    #expect(try run(2, diesOf: ["A", "B", "C"]) == ["A", "B", "C"])
    #expect(try standings() == ["A suspect 1", "B suspect 1", "C suspect 1"])
    #expect(try run(3, diesOf: ["B"]).last == "B")
    #expect(try standings().contains("B quarantined 0"))
  }

  @Test func r31AFactoryThatIsLateIsNotHeldAgainstTheState() throws {
    let peer = try fixture.join("W", pid: 2)
    try fixture.makes("K", peer, "W")
    peer.serves[Self.make] = nil
    let id = peer.start("restoreApplicationState", #"{"deadlineMilliseconds":1000}"#)
    broker.advance(milliseconds: 1_000)
    #expect(outcome(try peer.result(of: id)).count == 3)
    broker.advance(milliseconds: 10_000)
    broker.crash(peer)
    #expect(try standings() == [])
  }
}

/// Calls that wait while an archive is lost (R3, R31).
@Suite struct LostArchiveTests {
  @Test(arguments: [ArchiveError(.unreadable, "no"), ArchiveError(.definite, "no")])
  func whatWaitsIsAnsweredWhenTheArchiveDoesNotOpenAgain(_ error: ArchiveError) throws {
    let broker = MemoryBroker()
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    let more = #""restorationIdentifier":"B","restorationParent":["A"],"awaitParentMilliseconds":60000"#
    let waits = peer.start("registerObjectForStateRestoration", "{\(more)}")
    #expect(!peer.hasAnswer(waits))
    broker.openingFailures["App"] = error
    broker.holdsCommits = true
    peer.start("encodeRestorableState", peer.encoding(#"["C"]"#, "{}"))
    broker.failCommit("App")
    #expect(peer.hasAnswer(waits))
  }
}
