// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import RestorationArchive
internal import RestorationReplica
internal import Synchronization
internal import Testing

/// A replica that has forgotten what it had stored: a backup that is started as it is, the second of two standbys, a
/// server that takes over and lacks the newest changes.
@Suite struct PutBackReplicaTests {
  private let fleet = ReplicaFleet()
  private let diskA = CarriedDisk("A")
  private let diskB = CarriedDisk("B")

  /// A has the archive, with two transactions at the replica: the last ones of four.
  private func written() throws -> FleetBroker {
    let a = try fleet.broker(on: diskA)
    a.open()
    for text in ["1", "2"] {
      _ = a.write(text)
      fleet.pass(50)
    }
    #expect(fleet.stored == ["1", "2"])
    return a
  }

  @Test func aLeaseThatIsForgottenIsClaimedWhileTheArchiveIsWritten() throws {
    let a = try written()
    fleet.replica.promote(losing: 3)
    #expect(a.write("3").value != nil)
    fleet.pass(1_000)
    #expect(fleet.stored == ["1", "2", "3"])
    #expect(a.events.isEmpty)
  }

  @Test func aLeaseIsClaimedAgainAlsoIfSomethingElseIsWaitedForMeanwhile() throws {
    let a = try fleet.broker(on: diskA)
    a.open()
    fleet.pass(4_990)
    fleet.replica.promote(losing: 1)
    // Of the claim, which follows a renewal that lacks the lease.
    fleet.replica.loseAnswer(to: "A")
    // It would be sent before the claim is made again.
    #expect(a.write("1").value != nil)
    fleet.pass(2_000)
    #expect(fleet.stored == ["1"])
    #expect(a.events.isEmpty)
  }

  /// A broker opens an archive again after each failed transaction.
  @Test func anArchiveThatIsOpenedAgainWhileItsLeaseIsClaimedCanBeWritten() throws {
    for turns in 0..<60 {
      let (fleet, disk) = (ReplicaFleet(), CarriedDisk("A"))
      let a = try fleet.broker(on: disk, .replica)
      a.open()
      _ = a.write("1")
      fleet.replica.promote(losing: 2)
      let reopening = a.reopen(after: turns)
      _ = a.write("2")
      fleet.pass(1_000)
      a.take(try #require(reopening.value))
      let third = a.write("3")
      // A copy that ended when the archive was opened again is repeated.
      fleet.pass(1_000)
      #expect(third.value != nil, "after \(turns) turns")
    }
  }

  @Test func anArchiveThatWasClosedWithSomethingLeftIsClaimedWhenItIsOpenedAgain() throws {
    let a = try fleet.broker(on: diskA, .replica)
    a.open()
    _ = a.write("1")
    fleet.replica.cut("A")
    _ = a.write("2")
    let closing = a.close()
    fleet.pass(5_000)
    #expect(closing.value == true)
    fleet.replica.promote(losing: 2)
    fleet.replica.mend("A")
    a.open()
    fleet.pass(1_000)
    #expect(a.write("3").value != nil)
    #expect(fleet.stored == ["1", "2", "3"])
  }

  @Test func anIdleHolderSendsAgainWhatAReplicaLacksThatStillKnowsItsLease() throws {
    let a = try written()
    fleet.replica.promote(losing: 1)
    #expect(fleet.stored == ["1"])
    fleet.pass(6_000)
    #expect(fleet.stored == ["1", "2"])
    #expect(a.events.isEmpty)
  }

  @Test func aHolderThatLeavesSendsAgainWhatTheReplicaLacks() throws {
    for lost in [1, 3] {
      let (fleet, disk) = (ReplicaFleet(), CarriedDisk("A"))
      let a = try fleet.broker(on: disk)
      a.open()
      for text in ["1", "2"] {
        _ = a.write(text)
        fleet.pass(50)
      }
      fleet.replica.promote(losing: lost)
      _ = a.close()
      fleet.pass(2_000)
      #expect(fleet.stored == ["1", "2"], "without the last \(lost)")
      let b = try fleet.broker(on: CarriedDisk("B"))
      #expect(b.open()?.sequence == 2)
    }
  }

  /// As a gateway that was started again does.
  @Test func aReplicaThatHasForgottenABrokerIsToldOfItsLeasesAnew() throws {
    let a = try written()
    fleet.replica.forgetBrokers()
    for _ in 1...3 {
      fleet.pass(10_000)
      #expect(a.write("3").value != nil)
    }
    #expect(a.events.isEmpty)
    let b = try fleet.broker(on: diskB)
    #expect(b.open() == nil, "A has it")
  }

  /// What was written under a lease before says nothing of what came behind the removal.
  @Test func contentsFromBehindARemovalAreNotMixedWithOthers() throws {
    let (a, b) = (try written(), try fleet.broker(on: diskB))
    _ = a.close()
    let removal = a.call { store async throws(ArchiveError) in
      try await store.remove(ReplicaFleet.application, damaged: false)
    }
    #expect(removal.result != nil)
    a.open()
    fleet.replica.cut("A")
    for text in ["mine", "mine too"] { _ = a.write(text) }
    b.open(takingOver: true)
    for text in ["theirs", "of them", "and more"] {
      _ = b.write(text)
      fleet.pass(50)
    }
    _ = b.close()
    fleet.replica.mend("A")
    fleet.pass(6_000)
    _ = a.close()
    a.open()
    #expect(diskA.texts == ["theirs", "of them", "and more"])
    #expect(diskA.textsSetAside == [["mine", "mine too"]])
  }

  /// A put-back after which another host was first is a conflict, and told.
  @Test func whatAnotherHostHasWrittenBehindAReplicaThatWasPutBackStays() throws {
    let (a, b) = (try written(), try fleet.broker(on: diskB))
    fleet.replica.promote(losing: 3)
    b.open()
    _ = b.write("theirs")
    fleet.pass(50)
    _ = b.close()
    #expect(a.write("3").value != nil, "it does not know yet")
    fleet.pass(6_000)
    guard case .lost = a.events.first else {
      Issue.record("\(a.events)")
      return
    }
    _ = a.close()
    a.open()
    #expect(diskA.texts == ["theirs"])
    #expect(diskA.textsSetAside == [["1", "2", "3"]])
  }
}
