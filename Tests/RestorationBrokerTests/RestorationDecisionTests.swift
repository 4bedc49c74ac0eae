// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// The decisions of a restoration alone: events in, actions out (R21 – R24).
@Suite struct RestorationDecisionTests {
  /// The facts, as a test sets them.
  struct Facts: RestorationFacts {
    var owners: [NodeID: SessionID] = [:]
    var makers: [NodeID: SessionID] = [:]
    var shared: [Restoration.Maker] = []
    var delegate: SessionID?
    var isDelegateMissing = false
    var extended: Set<SessionID> = []
    var roles: [String: Int64] = [:]

    func registrant(of node: NodeID) -> SessionID? { owners[node] }
    func makers(of node: NodeID, by lookup: RestoringStep.Lookup) -> [Restoration.Maker] {
      shared.isEmpty ? makers[node].map { [Restoration.Maker($0)] } ?? [] : shared
    }
    func delegate(serving method: ServedMethod) -> SessionID? { delegate }
    func awaitedUntil(_ role: String) -> Int64? { roles[role] }
    func isOfRole(_ session: SessionID, _ role: String?) -> Bool { role == "role \(session)" }
    func isExtended(_ session: SessionID) -> Bool { extended.contains(session) }
  }

  typealias Planned = Restoration.Planned

  /// Actions that do something.
  private func deeds(_ actions: [Restoration.Action]) -> [Restoration.Action] {
    actions.filter { if case .note = $0 { false } else { true } }
  }

  private func begun(_ plan: [Planned], _ facts: Facts) -> (Restoration, [Restoration.Action]) {
    var restoration = Restoration(begun: 0, deadline: 1_000)
    var actions = restoration.handle(.started, facts)
    if facts.delegate != nil { actions += restoration.handle(.decided(true), facts) }
    actions += restoration.handle(.planned(plan, at: 0), facts)
    return (restoration, deeds(actions))
  }

  private func delivered(_ node: NodeID, _ outcome: Restoration.Outcome = .restored) -> Restoration.Event {
    .delivered(node, outcome, because: nil)
  }

  private let found = { (node: NodeID, parent: NodeID?) in Planned(node: node, parent: parent, lookups: [.existing]) }

  @Test func r21NothingIsDeliveredBeforeAllIsLocated() {
    let plan = [Planned(node: 1, parent: nil, lookups: [.restorationClass]), found(2, nil), found(3, 1)]
    var facts = Facts(owners: [2: 7, 3: 7], makers: [1: 8])
    var (restoration, actions) = begun(plan, facts)
    #expect(actions == [.plan, .make(1, .restorationClass, by: 8)])
    facts.owners[1] = 8
    #expect(deeds(restoration.handle(.made(1, .object, by: 8), facts)) == [.deliver(1, to: 8), .deliver(2, to: 7)])
    #expect(deeds(restoration.handle(delivered(2), facts)).isEmpty)
    #expect(deeds(restoration.handle(delivered(1), facts)) == [.deliver(3, to: 7)])
    #expect(deeds(restoration.handle(delivered(3), facts)) == [.end])
    #expect(restoration.finished == [7: [2, 3], 8: [1]])
    #expect(restoration.handle(.time(5_000), facts).isEmpty)
  }

  @Test func r21TheDelegateIsAskedFirstAndToldLast() {
    let facts = Facts(owners: [1: 7], delegate: 9)
    var (restoration, actions) = begun([found(1, nil)], facts)
    #expect(actions == [.ask(9), .plan, .deliver(1, to: 7)])
    #expect(deeds(restoration.handle(delivered(1), facts)) == [.tell(9)])
    #expect(deeds(restoration.handle(.told, facts)) == [.end])
  }

  @Test func r21ANoEndsItAtOnce() {
    var restoration = Restoration(begun: 0, deadline: 1_000)
    let facts = Facts(delegate: 9)
    #expect(restoration.handle(.started, facts) == [.ask(9)])
    #expect(restoration.handle(.decided(false), facts) == [.end])
    #expect(restoration.isDeclined)
  }

  @Test func r22NullOfTheDelegateGoesOnToWhatIsThereAndThenToTheStoryboard() {
    let plan = [Planned(node: 1, parent: nil, lookups: [.delegate, .existing, .storyboard])]
    var facts = Facts(makers: [1: 9], delegate: 9)
    var (restoration, _) = begun(plan, facts)
    #expect(deeds(restoration.handle(.made(1, .null, by: 9), facts)) == [.startUnit(1)])
    #expect(restoration.items[0].place == .awaited)
    facts.owners[1] = 7
    #expect(deeds(restoration.handle(.claimed(1), facts)) == [.deliver(1, to: 7)])
  }

  @Test func r22NullOfAClassSkipsWhatIsBelow() {
    let plan = [
      Planned(node: 1, parent: nil, lookups: [.restorationClass]),
      Planned(node: 2, parent: 1, lookups: [.restorationClass]), found(3, 2),
    ]
    let facts = Facts(owners: [3: 7], makers: [1: 8, 2: 8])
    var (restoration, _) = begun(plan, facts)
    #expect(deeds(restoration.handle(.made(1, .null, by: 8), facts)) == [.end])
    #expect(
      restoration.items.map(\.place) == [
        .settled(.skipped(.refused)), .settled(.skipped(.parentSkipped)), .settled(.skipped(.parentSkipped)),
      ]
    )
  }

  @Test func r23WhatIsAwaitedHoldsTheOthersForHalfOfTheTime() {
    let facts = Facts(owners: [2: 7])
    var (restoration, actions) = begun([found(1, nil), found(2, 1)], facts)
    #expect(actions == [.plan] && restoration.due == 500)
    #expect(deeds(restoration.handle(.time(500), facts)) == [.deliver(2, to: 7)])
    #expect(restoration.due == 1_000)
    #expect(deeds(restoration.handle(delivered(2), facts)).isEmpty)
    #expect(deeds(restoration.handle(.time(1_000), facts)) == [.end])
    #expect(restoration.items.map(\.place) == [.settled(.absent), .settled(.restored)])
  }

  /// Above the missing one is one that holds up what is below both.
  @Test func r23AStateBelowAMissingObjectIsDeliveredAfterTheOneAboveIt() {
    let facts = Facts(owners: [1: 8, 3: 7])
    var (restoration, actions) = begun([found(1, nil), found(2, 1), found(3, 2)], facts)
    #expect(actions == [.plan])
    #expect(deeds(restoration.handle(.time(500), facts)) == [.deliver(1, to: 8)])
    #expect(deeds(restoration.handle(delivered(1), facts)) == [.deliver(3, to: 7)])
  }

  @Test func r22WhatIsLiveIsNotMadeAndWhatIsRegisteredMeanwhileIsTaken() {
    let plan = [1, 2].map { Planned(node: $0, parent: nil, lookups: [.restorationClass]) }
    var facts = Facts(owners: [1: 7], makers: [1: 8, 2: 8])
    var (restoration, actions) = begun(plan, facts)
    #expect(actions == [.plan, .make(2, .restorationClass, by: 8)])
    facts.owners[2] = 7
    #expect(deeds(restoration.handle(.claimed(2), facts)) == [.deliver(1, to: 7), .deliver(2, to: 7)])
    #expect(deeds(restoration.handle(.made(2, .null, by: 8), facts)).isEmpty)
    #expect(deeds(restoration.handle(delivered(1), facts)).isEmpty)
    #expect(deeds(restoration.handle(delivered(2), facts)) == [.end])
    #expect(restoration.finished == [7: [1, 2]])
  }

  @Test func r23WhatAFactoryAnnouncesIsAwaitedThoughItWasMissingBefore() {
    let plan = [Planned(node: 1, parent: nil, lookups: [.restorationClass], isExpected: false)]
    let facts = Facts(makers: [1: 8])
    var (restoration, _) = begun(plan, facts)
    #expect(deeds(restoration.handle(.made(1, .awaited, by: 8), facts)).isEmpty)
    #expect(restoration.items[0].place == .awaited && restoration.due == 500)
    _ = restoration.handle(.unitFailed([1]), facts)
    #expect(restoration.items[0].place == .awaited, "its factory knows better than a unit that was to bring it")
  }

  @Test func r23WhatOnlyARoleMayBringIsAwaitedAsLongAsTheRoleIs() {
    let plan = [Planned(node: 1, parent: nil, lookups: [.existing], isExpected: false, role: "tabs"), found(2, 1)]
    var facts = Facts(owners: [2: 7], roles: ["tabs": 300])
    var (restoration, actions) = begun(plan, facts)
    #expect(actions == [.plan] && restoration.due == 300)
    facts.roles["tabs"] = 400
    #expect(deeds(restoration.handle(.time(300), facts)).isEmpty && restoration.due == 400)
    facts.roles = [:]
    #expect(deeds(restoration.handle(.time(400), facts)) == [.deliver(2, to: 7)])
    #expect(restoration.items[0].place == .settled(.absent))
  }

  @Test func r22OfSeveralMakersTheNearestIsAskedThenTheOneAskedLeastThenTheFirst() {
    let plan = (1...4).map { Planned(node: $0, parent: nil, lookups: [.restorationClass]) }
    var facts = Facts(shared: [.init(6, isShared: true), .init(7, .sameRole, isShared: true), .init(8, .sameRole)])
    let (_, actions) = begun(plan, facts)
    let makers = { (actions: [Restoration.Action]) in
      actions.compactMap { if case .make(_, _, let maker) = $0 { maker } else { nil } }
    }
    #expect(makers(actions) == [7, 8, 7, 8])
    facts.shared.append(.init(9, .sameUnit))
    #expect(makers(begun(plan, facts).1) == [9, 9, 9, 9])
  }

  @Test func r22PassGoesOnToTheNextAndNullRefusesForAll() {
    let plan = (1...2).map { Planned(node: $0, parent: nil, lookups: [.restorationClass]) }
    let facts = Facts(shared: [7, 8].map { .init($0, isShared: true) })
    var (restoration, actions) = begun(plan, facts)
    #expect(actions == [.plan, .make(1, .restorationClass, by: 7), .make(2, .restorationClass, by: 8)])
    #expect(deeds(restoration.handle(.made(1, .passed, by: 7), facts)) == [.make(1, .restorationClass, by: 8)])
    #expect(deeds(restoration.handle(.made(1, .passed, by: 8), facts)).isEmpty)
    #expect(restoration.items[0].place == .awaited, "as if nobody had registered the class")
    #expect(deeds(restoration.handle(.made(2, .null, by: 8), facts)).isEmpty)
    #expect(restoration.items[1].place == .settled(.skipped(.refused)))
    // Who has passed is not asked again, and a session that registers the class now is.
    #expect(deeds(restoration.handle(.classesChanged, facts)).isEmpty)
    let more = Facts(shared: [7, 8, 9].map { .init($0, isShared: true) })
    #expect(deeds(restoration.handle(.classesChanged, more)) == [.make(1, .restorationClass, by: 9)])
  }

  @Test func r22WhatWasShownToASessionOfASharedClassIsShownToNoOtherBeforeItAnswers() {
    let plan = (1...10).map { Planned(node: $0, parent: nil, lookups: [.restorationClass]) }
    let both = Facts(shared: [.init(7, .sameRole, isShared: true), .init(8, isShared: true)])
    let other = Facts(shared: [.init(8, isShared: true)])
    var (restoration, _) = begun(plan, both)
    #expect(
      deeds(restoration.handle(.made(1, .lost, by: 7), other)) == [9, 10].map { .make($0, .restorationClass, by: 8) }
    )
    #expect(restoration.items[0].place == .awaited)
    var returned = restoration
    #expect(deeds(returned.handle(.returned(7), both)) == [.make(1, .restorationClass, by: 7)])
    #expect(deeds(restoration.handle(.ended(7), other)).isEmpty)
    #expect(restoration.items.prefix(8).allSatisfy { $0.place == .settled(.skipped(.failed)) })
    #expect(restoration.items[9].place == .asked(8))
  }

  @Test func r24AnObjectAtAnotherPathGetsNothingAndWhatIsBelowIsSkipped() {
    let plan = [Planned(node: 1, parent: nil, lookups: [.restorationClass]), found(2, 1), found(3, nil)]
    let facts = Facts(owners: [3: 8], makers: [1: 8])
    var (restoration, _) = begun(plan, facts)
    #expect(deeds(restoration.handle(.made(1, .object, by: 8), facts)) == [.deliver(3, to: 8)])
    _ = restoration.handle(delivered(3), facts)
    let (same, below) = (Restoration.Outcome.skipped(.sameObject), Restoration.Outcome.skipped(.parentSkipped))
    #expect(restoration.items.map(\.place) == [.settled(same), .settled(below), .settled(.restored)])
  }

  @Test func r21AStateWhoseOwnerGetsTheObjectBackIsDeliveredOnce() {
    let plan = [found(1, nil), Planned(node: 2, parent: nil, lookups: [.restorationClass])]
    var facts = Facts(owners: [1: 7], makers: [2: 8])
    var (restoration, _) = begun(plan, facts)
    for owner in [SessionID(9), 7] {
      _ = restoration.handle(.released(1, isGone: false), facts)
      facts.owners[1] = owner
      _ = restoration.handle(.claimed(1), facts)
    }
    facts.owners[2] = 8
    #expect(deeds(restoration.handle(.made(2, .object, by: 8), facts)) == [.deliver(1, to: 7), .deliver(2, to: 8)])
  }

  @Test func aSessionIsAskedForEightObjectsAtATime() {
    let plan = (1...10).map { Planned(node: $0, parent: nil, lookups: [.restorationClass]) }
    let facts = Facts(makers: Dictionary(uniqueKeysWithValues: (1...10).map { ($0, 8) }))
    var (restoration, actions) = begun(plan, facts)
    #expect(actions.count == 1 + Restoration.askedMax)
    #expect(deeds(restoration.handle(.made(3, .null, by: 8), facts)) == [.make(9, .restorationClass, by: 8)])
    #expect(deeds(restoration.handle(.ended(8), facts)).count > 0)
  }

  @Test func r21AStateBelowOneOfTheSameSessionFollowsItAtOnceAndBelowAnothersWhenThatIsDelivered() {
    var (restoration, actions) = begun([found(1, nil), found(2, 1), found(3, 1)], Facts(owners: [1: 7, 2: 7, 3: 8]))
    #expect(actions == [.plan, .deliver(1, to: 7), .deliver(2, to: 7)])
    #expect(deeds(restoration.handle(delivered(1), Facts(owners: [1: 7, 2: 7, 3: 8]))) == [.deliver(3, to: 8)])
  }

  @Test func aSessionThatEndsWhileItsStateIsDeliveredIsNotWaitedFor() {
    let facts = Facts(owners: [1: 7])
    var (restoration, _) = begun([found(1, nil)], facts)
    #expect(deeds(restoration.handle(.ended(7), facts)) == [.end])
    #expect(restoration.items[0].place == .settled(.skipped(.ended)))
  }

  @Test func r21OnlyWhoTakesPartHoldsTheEndBack() {
    var facts = Facts(owners: [1: 7], extended: [7, 99])
    var (restoration, _) = begun([found(1, nil)], facts)
    #expect(deeds(restoration.handle(delivered(1), facts)).isEmpty)
    facts.extended = [99]
    #expect(deeds(restoration.handle(.extensionsChanged, facts)) == [.end])
  }

  @Test func aStateWhoseObjectIsReleasedIsDeliveredToTheNextOwner() {
    var facts = Facts(owners: [1: 7])
    var (restoration, _) = begun([found(1, nil)], facts)
    facts.owners = [:]
    #expect(deeds(restoration.handle(.released(1, isGone: false), facts)).isEmpty)
    facts.owners[1] = 8
    #expect(deeds(restoration.handle(.claimed(1), facts)) == [.deliver(1, to: 8)])
    #expect(deeds(restoration.handle(delivered(1), facts)) == [.end])
  }
}
