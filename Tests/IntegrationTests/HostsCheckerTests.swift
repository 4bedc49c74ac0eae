// SPDX-License-Identifier: Apache-2.0

internal import Histories
internal import JSONRPC
internal import Testing

/// The checker of `FleetFaultTests` finds what must not happen, and nothing else.
@Suite struct HostsCheckerTests {
  private let trace = Trace(.lines)
  private let path = Path("editor")

  private func checker(waitsForReplica: Bool) -> HostsChecker {
    HostsChecker("org.example.Draw", waitsForReplica: waitsForReplica, trace)
  }

  private func copy(_ writes: HostsChecker.Write..., isNamed: Bool = true) -> HostsChecker.Copy {
    HostsChecker.Copy(name: "copy", isNamed: isNamed, bytes: writes.flatMap { Array($0.push.state.utf8) })
  }

  @Test(arguments: [false, true]) func twoHostsThatTakeTurnsAreRight(waitsForReplica: Bool) {
    let checker = checker(waitsForReplica: waitsForReplica)
    let a = checker.opened(on: "A", byForce: false, inTrouble: false)
    checker.acknowledged(checker.send(path, by: a), 1)
    let b = checker.opened(on: "B", byForce: false, inTrouble: false)
    checker.read(path, .object(["v": 1, "p": "org.example.Draw/editor", "t": ""]), checker.expectation(), by: b)
    let last = checker.send(path, by: b)
    checker.acknowledged(last, 2)
    checker.ended([path: last.push.json ?? .null], [])
    #expect(trace.faults == [])
  }

  @Test func aHostThatGoesOnAfterAnotherOneHasTheArchiveIsFound() {
    let checker = checker(waitsForReplica: false)
    let a = checker.opened(on: "A", byForce: false, inTrouble: false)
    let early = checker.send(path, by: a)
    _ = checker.opened(on: "B", byForce: false, inTrouble: true)
    checker.acknowledged(early, 1)
    #expect(trace.faults == [], "it may be under way")
    checker.acknowledged(checker.send(path, by: a), 2)
    #expect(trace.faults.count == 1)
  }

  /// Only if the state need not be at the replica.
  @Test(arguments: [false, true]) func aHostThatWasDeposedByForceMayNotHaveHeardOfIt(waitsForReplica: Bool) {
    let checker = checker(waitsForReplica: waitsForReplica)
    let a = checker.opened(on: "A", byForce: false, inTrouble: false)
    _ = checker.opened(on: "B", byForce: true, inTrouble: true)
    checker.acknowledged(checker.send(path, by: a), 1)
    #expect(trace.faults.isEmpty != waitsForReplica)
  }

  @Test func aHostThatHasNotHeardOfItsLossIsNoOwner() {
    let checker = checker(waitsForReplica: false)
    _ = checker.opened(on: "A", byForce: false, inTrouble: false)
    let b = checker.opened(on: "B", byForce: true, inTrouble: true)
    _ = checker.opened(on: "A", byForce: false, inTrouble: true, isDeposed: true)
    checker.acknowledged(checker.send(path, by: b), 1)
    #expect(trace.faults == [])
  }

  @Test func aHostWhoseTakeoverAServerHasLostMayNotHaveHeardOfIt() {
    let checker = checker(waitsForReplica: false)
    let b = checker.opened(on: "B", byForce: true, inTrouble: true)
    checker.deposed("B")
    _ = checker.opened(on: "A", byForce: false, inTrouble: true)
    checker.acknowledged(checker.send(path, by: b), 1)
    #expect(trace.faults == [])
  }

  /// What it has read is in what it writes.
  @Test func aHostThatWasDeposedShowsWhatItHasAndAnOwnerWhatThereIs() {
    let checker = checker(waitsForReplica: false)
    let a = checker.opened(on: "A", byForce: false, inTrouble: false)
    let first = checker.send(path, by: a)
    checker.acknowledged(first, 1)
    let b = checker.opened(on: "B", byForce: true, inTrouble: true)
    let late = checker.opened(on: "A", byForce: false, inTrouble: true, isDeposed: true)
    checker.read(path, first.push.json, checker.expectation(), by: late)
    let second = checker.send(path, by: late)
    checker.acknowledged(second, 2)
    let last = checker.send(path, by: b)
    checker.acknowledged(last, 2)
    checker.read(path, nil, checker.expectation(), by: late)
    checker.ended([path: last.push.json ?? .null], [copy(second)])
    #expect(trace.faults == [])
    checker.read(path, first.push.json, checker.expectation(), by: b)
    #expect(trace.faults.count == 1)
  }

  @Test func aLossHasToBeInACopyThatIsNamed() {
    func faults(_ copies: (HostsChecker.Write, HostsChecker.Write) -> [HostsChecker.Copy]) -> Int {
      let checker = checker(waitsForReplica: false)
      let before = trace.faults.count
      let a = checker.opened(on: "A", byForce: false, inTrouble: false)
      let (first, second) = (checker.send(path, by: a), checker.send(path, by: a))
      checker.acknowledged(first, 1)
      checker.acknowledged(second, 2)
      let b = checker.opened(on: "B", byForce: true, inTrouble: true)
      let other = checker.send(path, by: b)
      checker.acknowledged(other, 1)
      checker.ended([path: other.push.json ?? .null], copies(first, second))
      return trace.faults.count - before
    }
    #expect(faults { [copy($0, $1)] } == 0)
    #expect(faults { _, second in [copy(second)] } == 0, "the first one was replaced by the second")
    #expect(faults { first, _ in [copy(first)] } == 1)
    #expect(faults { _, _ in [] } == 2)
    #expect(faults { [copy($0, $1, isNamed: false)] } == 1)
  }

  @Test func whatTheReplicaHadIsNeverLost() {
    let checker = checker(waitsForReplica: true)
    let a = checker.opened(on: "A", byForce: false, inTrouble: false)
    let write = checker.send(path, by: a)
    checker.acknowledged(write, 1)
    let b = checker.opened(on: "B", byForce: true, inTrouble: true)
    checker.read(path, nil, checker.expectation(), by: b)
    #expect(trace.faults.count == 1)
    checker.ended([:], [copy(write)])
    #expect(trace.faults.count == 2)
  }
}
