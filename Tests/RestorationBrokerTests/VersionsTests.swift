// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import Testing

/// Which state of an object counts for whom.
@Suite struct VersionsTests {
  /// States in the order in which they are written; the number is the row.
  enum Step: Sendable, Hashable {
    case confirmed(SequenceNumber)
    case provisional(SequenceNumber)
    case confirm, remove
  }

  private static func write(_ sequence: SequenceNumber, isEarly: Bool = false) -> (inout Versions) -> Void {
    let record = StateRecord(node: 1, context: 1, isEarly: isEarly, written: 0, text: [])
    return { $0.write(StateSummary(record, at: sequence)) }
  }

  private static func node(_ steps: [Step], isFresh: Bool = false) -> Node {
    let node = Node(record: NodeRecord(node: 1, parent: nil, component: "a", kind: .object))
    node.claim = Node.Claim(session: 1, handle: 1, since: 0, classes: [])
    node.claim?.isFresh = isFresh
    for step in steps {
      switch step {
      case .confirmed(let sequence): write(sequence)(&node.versions)
      case .provisional(let sequence): write(sequence, isEarly: true)(&node.versions)
      case .confirm: node.versions.confirm()
      case .remove: node.versions.remove()
      }
    }
    return node
  }

  private static let table: [(steps: [Step], anyone: SequenceNumber?, owner: SequenceNumber?)] = [
    ([], nil, nil),
    ([.confirmed(1)], 1, 1),
    ([.confirmed(1), .confirmed(2)], 2, 2),
    ([.provisional(1)], 1, nil),
    ([.confirmed(1), .provisional(2)], 2, 1),
    ([.confirmed(1), .provisional(2), .provisional(3)], 3, 1),
    ([.confirmed(1), .provisional(2), .confirmed(3)], 3, 3),
    ([.confirmed(1), .provisional(2), .confirm], 2, 2),
    ([.provisional(1), .confirm], 1, 1),
    ([.confirmed(1), .provisional(2), .confirm, .provisional(3)], 3, 2),
    ([.confirmed(1), .provisional(2), .remove], nil, nil),
    ([.confirmed(1), .remove, .provisional(2)], 2, nil),
  ]

  @Test func r19AReaderGetsTheNewestStateAndTheOwnerTheNewestConfirmedOne() {
    for (steps, anyone, owner) in Self.table {
      let node = Self.node(steps)
      #expect(node.state?.sequence == anyone, "\(steps)")
      #expect(node.ownerState?.sequence == owner, "\(steps)")
      #expect(node.hasState == (anyone != nil), "\(steps)")
    }
  }

  @Test func r29AnOwnerWhoseObjectIsFreshGetsNoState() {
    for (steps, anyone, _) in Self.table {
      let node = Self.node(steps, isFresh: true)
      #expect(node.state?.sequence == anyone && node.ownerState == nil, "\(steps)")
    }
  }

  @Test func r35AnObjectIsQuarantinedWhileTheStateOfItsOwnerIsWithheld() throws {
    for (steps, _, owner) in Self.table {
      for sequence: SequenceNumber in 1...3 {
        let node = Self.node(steps)
        _ = node.versions.withhold(WithheldRow(row: StateRow(node: 1, sequence: sequence), since: 7, bytes: 0))
        #expect(node.isQuarantined == (owner == sequence), "\(steps), \(sequence)")
        _ = node.versions.releaseAll()
        #expect(!node.isQuarantined)
      }
    }
  }

  @Test func r35OfAnObjectThreeWithheldTextsAreRetained() {
    var versions = Versions()
    let rows = (1...5).map { StateRow(node: 1, sequence: $0) }
    let surplus = rows.compactMap { versions.withhold(WithheldRow(row: $0, since: 0, bytes: 0)) }
    #expect(surplus == Array(rows[..<2]))
    #expect(versions.withheld(areReplaced: true) == Array(rows[2...]))
    versions.release(rows[2])
    #expect(versions.releaseAll() == Array(rows[3...]) && !versions.hasWithheld)
  }

  @Test func r32OnlyTheDamageOfTheNewestRowCountsUntilTheNextWrite() {
    let node = Self.node([.confirmed(1), .confirmed(2)])
    node.versions.noteUnreadable(1)
    #expect(!node.versions.isUnreadable)
    for replace in [Self.write(3), { $0.remove() }] as [(inout Versions) -> Void] {
      var versions = node.versions
      versions.noteUnreadable(2)
      #expect(versions.isUnreadable)
      replace(&versions)
      #expect(!versions.isUnreadable)
    }
  }

  @Test func aHiddenStateOfADamagedArchiveBesideAConfirmedOneIsIgnored() {
    let states = (1...2).map { StateSummary(StateRecord(node: 1, context: 1, written: 0, text: []), at: $0) }
    #expect(Versions(newest: states[1], hidden: states[0]).hidden == nil)
  }
}
