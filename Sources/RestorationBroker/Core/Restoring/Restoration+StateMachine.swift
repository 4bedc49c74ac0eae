// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

extension Restoration {
  /// Takes an event; returns the actions in their order.
  package mutating func handle(_ event: Event, _ facts: some RestorationFacts) -> [Action] {
    guard phase != .over else { return [] }
    switch event {
    case .started: start(facts)
    case .decided(let isYes): decide(isYes)
    case .joined(let now), .delegateNotStarted(let now):
      guard phase == .startingDelegate else { break }
      enter(.asking)
      noteAsked(at: now)
      ask(facts)
    case .unitFailed(let nodes):
      for number in nodes.compactMap({ index[$0] }) {
        let place = items[number].place
        guard place == .awaited || place == .waiting else { continue }
        (items[number].isComing, items[number].role) = (false, nil)
        if place == .awaited { waitOn(number, facts) }
      }
    case .planned(let plan, let now):
      notePlanned(at: now)
      begin(plan, facts)
    case .made(let node, let made, let session): take(made, of: node, by: session, facts)
    case .classesChanged: askMakers(facts)
    case .claimed(let node): claim(node, facts)
    case .released(let node, let isGone): release(node, isGone: isGone, facts)
    case .delivered(let node, let outcome, let step):
      if let number = index[node], case .delivering = items[number].place { settle(number, outcome, because: step) }
    case .told: if phase == .telling { enter(.waiting) }
    case .extensionsChanged: break
    case .rolesChanged: waitOnRoles(facts)
    case .returned(let session):
      lines[session]?.isUnreachable = false
      askMakers(facts)
    case .ended(let session): end(session, facts)
    case .discarded:
      settleAll { _ in .skipped(.discarded) }
      finish()
    case .time(let now): pass(now, facts)
    }
    advance(facts)
    defer { actions = [] }
    return actions
  }

  private mutating func start(_ facts: some RestorationFacts) {
    if isDecided { return actions.append(.plan) }
    guard facts.isDelegateMissing else { return ask(facts) }
    enter(.startingDelegate)
    actions.append(.startDelegate)
  }

  private mutating func ask(_ facts: some RestorationFacts) {
    if let delegate = facts.delegate(serving: .shouldRestoreApplicationState) {
      participants.insert(delegate)
      actions.append(.ask(delegate))
    } else {
      actions.append(.plan)
    }
  }

  private mutating func decide(_ isYes: Bool) {
    guard phase == .asking else { return }
    if isYes {
      actions.append(.plan)
    } else {
      decline()
      finish()
    }
  }

  private mutating func begin(_ plan: [Planned], _ facts: some RestorationFacts) {
    guard phase == .asking else { return }
    enter(.locating)
    for planned in plan {
      let parent = planned.parent.flatMap { index[$0] }
      if let parent { items[parent].children.append(items.count) }
      index[planned.node] = items.count
      items.append(
        Item(
          node: planned.node,
          parent: parent,
          isExpected: planned.isExpected,
          isAncestor: planned.isAncestor,
          role: planned.role,
          lookups: planned.lookups[...],
          isComing: planned.hasUnit
        )
      )
    }
    unlocated = items.count
    unsettled = items.count
    for number in items.indices where items[number].parent == nil { locate(number, facts) }
  }

  /// Enters the next phase as soon as this one has nothing left to do.
  private mutating func advance(_ facts: some RestorationFacts) {
    if phase == .locating, unlocated == 0 || isHoldOver {
      enter(.delivering)
      for number in items.indices { deliver(number) }
    }
    if phase == .delivering, unsettled == 0 { tell(facts) }
    if phase == .waiting, participants.allSatisfy({ !facts.isExtended($0) }) { finish() }
  }

  private mutating func tell(_ facts: some RestorationFacts) {
    // Without a caller, only owners are told.
    guard isCalled, let delegate = facts.delegate(serving: .didDecodeRestorableState) else {
      enter(.waiting)
      return
    }
    enter(.telling)
    participants.insert(delegate)
    actions.append(.tell(delegate))
  }

  private mutating func finish() {
    enter(.over)
    actions.append(.end)
  }

  // MARK: Time

  private mutating func pass(_ now: Int64, _ facts: some RestorationFacts) {
    if phase == .startingDelegate {
      enter(.asking)
      noteAsked(at: now)
      ask(facts)
    } else if phase == .asking {
      actions.append(.plan)
    } else if now >= deadline {
      let isDelivering = phase == .locating || phase == .delivering
      settleAll { item in
        switch item.place {
        case .awaited where item.shownTo != nil: .skipped(.late)
        case .waiting, .awaited: .absent
        case .asked, .located, .delivering, .settled: .skipped(.late)
        }
      }
      // It is told, but its answer is no longer waited for.
      if isDelivering { tell(facts) }
      finish()
    } else {
      if let roleCheck, now >= roleCheck { waitOnRoles(facts) }
      guard !isHoldOver, now >= holdEnd else { return }
      endHold()
      // Objects above them may never come, although they were not refused.
      for number in items.indices where items[number].place == .waiting { locate(number, facts) }
      for number in items.indices { deliver(number) }
    }
  }

  /// Nothing more is located or delivered.
  private mutating func settleAll(_ outcome: (Item) -> Outcome) {
    enter(.waiting)
    for number in items.indices where !items[number].place.isSettled {
      let isLost = items[number].parent.map { isUnmade(items[$0]) } ?? false
      settle(number, isLost ? .skipped(.parentSkipped) : outcome(items[number]))
    }
  }

  // MARK: Locating

  private enum Standing {
    case clear, blocked, onlyExisting, skipped
  }

  /// Refused or failed, so that its children have no parent.
  private func isUnmade(_ item: Item) -> Bool {
    if case .settled(.skipped) = item.place { item.owner == nil } else { false }
  }

  /// Whether what is above an object lets it be looked for.
  private func standing(of item: Item) -> Standing {
    guard let parent = item.parent.map({ items[$0] }) else { return .clear }
    switch parent.place {
    case .waiting, .asked: return .blocked
    case .awaited: return isHoldOver ? .clear : .onlyExisting
    case .located, .delivering: return .clear
    case .settled: return isUnmade(parent) ? .skipped : .clear
    }
  }

  /// Looks for an object, and then for those below it that have waited for it.
  private mutating func locate(_ first: Int, _ facts: some RestorationFacts) {
    var next = [first]
    while let number = next.popLast() {
      switch items[number].place {
      case .waiting: search(number, facts)
      // An object above it was refused after it was found, or awaited.
      case .awaited, .located:
        guard standing(of: items[number]) == .skipped else { continue }
        items[number].owner = nil
        settle(number, .skipped(.parentSkipped))
      case .asked, .delivering, .settled: continue
      }
      guard items[number].place != .waiting else { continue }
      next += items[number].children.reversed()
    }
  }

  private mutating func locateChildren(of number: Int, _ facts: some RestorationFacts) {
    for child in items[number].children { locate(child, facts) }
  }

  private mutating func search(_ number: Int, _ facts: some RestorationFacts) {
    let standing = standing(of: items[number])
    switch standing {
    case .blocked: return
    case .skipped: settle(number, .skipped(.parentSkipped))
    case .onlyExisting, .clear:
      // A registered object is not made again.
      if let owner = facts.registrant(of: items[number].node) {
        note(number, .lookedUp(.existing, owner))
        place(number, with: owner)
      } else if standing == .clear {
        tryLookups(number, facts)
      }
    }
  }

  /// Tries the lookups of R22 and R23, one after the other.
  private mutating func tryLookups(_ number: Int, _ facts: some RestorationFacts) {
    let node = items[number].node
    while let lookup = items[number].lookups.first {
      switch lookup {
      case .restorationClass, .delegate:
        let maker = maker(of: number, by: lookup, facts)
        note(number, .lookedUp(lookup, maker?.session))
        if let maker { return ask(number, maker) }
        // A class disables every other way of making it: the class is awaited (R22, R23).
        if lookup == .restorationClass { return wait(for: number, facts) }
      case .existing: note(number, .lookedUp(lookup, nil))
      case .storyboard:
        note(number, .lookedUp(lookup, nil))
        items[number].isComing = true
        actions.append(.startUnit(node))
      }
      items[number].lookups.removeFirst()
    }
    wait(for: number, facts)
  }

  private mutating func wait(for number: Int, _ facts: some RestorationFacts) {
    guard isAwaited(number, facts) else { return settle(number, .absent) }
    put(number, .awaited)
    note(number, .awaited)
  }

  /// Whether a session may be about to register it. Notes when to check that again.
  private mutating func isAwaited(_ number: Int, _ facts: some RestorationFacts) -> Bool {
    if items[number].isExpected || items[number].isComing { return true }
    guard let role = items[number].role, let end = facts.awaitedUntil(role) else { return false }
    roleCheck = min(end, roleCheck ?? end)
    return true
  }

  /// Something that was to bring an awaited object does not.
  private mutating func waitOn(_ number: Int, _ facts: some RestorationFacts) {
    guard !isAwaited(number, facts) else { return }
    settle(number, .absent)
    locateChildren(of: number, facts)
  }

  private mutating func waitOnRoles(_ facts: some RestorationFacts) {
    guard roleCheck != nil else { return }
    roleCheck = nil
    for number in items.indices where items[number].role != nil && items[number].place == .awaited {
      waitOn(number, facts)
    }
  }

  /// Picks the session nearest to the last owner's process, then the least asked, then the first registered (R22).
  private func maker(of number: Int, by lookup: Lookup, _ facts: some RestorationFacts) -> Maker? {
    let item = items[number]
    let makers = facts.makers(of: item.node, by: lookup).filter { maker in
      !item.passed.contains(maker.session) && lines[maker.session]?.isUnreachable != true
        && (item.shownTo ?? maker.session) == maker.session
    }
    let questions = { (maker: Maker) in lines[maker.session]?.questionCount ?? 0 }
    return makers.min { ($0.nearness, questions($0)) < ($1.nearness, questions($1)) }
  }

  private mutating func ask(_ number: Int, _ maker: Maker) {
    put(number, .asked(maker.session))
    participants.insert(maker.session)
    items[number].isShared = maker.isShared
    lines[maker.session, default: Line()].ask(number)
    askNext(maker.session)
  }

  private mutating func askNext(_ session: SessionID) {
    while let number = lines[session]?.takeQuestion() {
      // It may have been settled while it was waiting to be asked for.
      guard items[number].place == .asked(session), let lookup = items[number].lookups.first else { continue }
      lines[session]?.asked += 1
      if items[number].isShared { items[number].shownTo = session }
      actions.append(.make(items[number].node, lookup, by: session))
    }
  }

  private mutating func take(_ made: Made, of node: NodeID, by session: SessionID, _ facts: some RestorationFacts) {
    lines[session]?.asked -= 1
    defer { askNext(session) }
    // Another session may have registered it meanwhile.
    guard let number = index[node], items[number].place == .asked(session) else { return }
    let lookup = items[number].lookups.first
    if made != .lost { items[number].shownTo = nil }
    // A delegate cannot pass: there is no other one.
    var made = made == .passed && lookup == .delegate ? .null : made
    if made == .forgotten, lookup == .restorationClass {
      items[number].passed.insert(session)
      if maker(of: number, by: .restorationClass, facts) != nil { made = .passed }
    }
    switch made {
    case .object:
      if let owner = facts.registrant(of: node) {
        place(number, with: owner)
      } else {
        settle(number, .skipped(.sameObject))
      }
      locateChildren(of: number, facts)
    case .null, .forgotten:
      if let lookup { note(number, .refused(lookup)) }
      if lookup == .restorationClass || made == .forgotten {
        settle(number, .skipped(.refused))
        locateChildren(of: number, facts)
        if made == .forgotten { actions.append(.forget(node)) }
      } else {
        items[number].lookups.removeFirst()
        // The role that had it last has just said that it does not come.
        if facts.isOfRole(session, items[number].role) { items[number].role = nil }
        searchAgain(number, facts)
      }
    case .passed:
      note(number, .passed(session))
      items[number].passed.insert(session)
      searchAgain(number, facts)
    case .awaited:
      // It may have been registered before the answer.
      (items[number].lookups, items[number].isExpected) = ([], true)
      searchAgain(number, facts)
    case .failed:
      settle(number, .skipped(.failed))
      locateChildren(of: number, facts)
    case .lost:
      lose(session)
      unask(session, facts, also: number)
    }
  }

  private mutating func searchAgain(_ number: Int, _ facts: some RestorationFacts) {
    put(number, .waiting)
    locate(number, facts)
    // Objects below it could only be looked at while it was awaited.
    if items[number].place != .waiting { locateChildren(of: number, facts) }
  }

  /// This session is no longer asked: its objects are looked up again, a delegate's by the next lookup.
  private mutating func unask(_ session: SessionID, _ facts: some RestorationFacts, also number: Int? = nil) {
    let questions = (lines[session]?.takeQuestions() ?? []) + (number.map { [$0] } ?? [])
    for number in questions.sorted() where items[number].place == .asked(session) {
      if items[number].lookups.first == .delegate { items[number].lookups.removeFirst() }
      searchAgain(number, facts)
    }
  }

  /// Asks for the objects whose classes have a maker now.
  private mutating func askMakers(_ facts: some RestorationFacts) {
    guard phase == .locating || phase == .delivering else { return }
    for number in items.indices where items[number].lookups.first == .restorationClass {
      guard items[number].place == .awaited || items[number].place.mayComeBack,
        maker(of: number, by: .restorationClass, facts) != nil
      else { continue }
      searchAgain(number, facts)
    }
  }

  private mutating func place(_ number: Int, with owner: SessionID) {
    items[number].owner = owner
    participants.insert(owner)
    put(number, .located(owner))
    note(number, .located(owner))
    deliver(number)
  }

  // MARK: Owners

  private mutating func claim(_ node: NodeID, _ facts: some RestorationFacts) {
    guard let number = index[node], let owner = facts.registrant(of: node), phase == .locating || phase == .delivering
    else { return }
    switch items[number].place {
    case .waiting: locate(number, facts)
    // Its maker registers it before it answers.
    case .asked(owner): break
    case .asked, .awaited, .settled(.absent), .settled(.skipped(.ended)):
      place(number, with: owner)
      locateChildren(of: number, facts)
    case .located, .delivering, .settled: break
    }
  }

  private mutating func release(_ node: NodeID, isGone: Bool, _ facts: some RestorationFacts) {
    guard let number = index[node] else { return }
    switch items[number].place {
    case .located, .delivering:
      // It was there once: the next session that registers it gets the state.
      items[number].lookups = []
      if isGone { settle(number, .absent) } else { wait(for: number, facts) }
    case .waiting, .asked, .awaited:
      guard isGone else { break }
      settle(number, .absent)
      locateChildren(of: number, facts)
    case .settled: break
    }
  }

  private mutating func end(_ session: SessionID, _ facts: some RestorationFacts) {
    guard participants.remove(session) != nil else { return }
    lines[session] = nil
    for number in items.indices {
      switch items[number].place {
      case .located(session), .delivering(session):
        if let owner = facts.registrant(of: items[number].node), owner != session {
          place(number, with: owner)
        } else {
          settle(number, .skipped(.ended))
        }
      // It may have been its state that ended the session: no other one is shown it.
      case .asked where items[number].shownTo == session, .awaited where items[number].shownTo == session:
        settle(number, .skipped(.failed))
        locateChildren(of: number, facts)
      case .asked(session):
        if items[number].lookups.first == .delegate { items[number].lookups.removeFirst() }
        searchAgain(number, facts)
      case .waiting, .asked, .awaited, .located, .delivering, .settled: break
      }
    }
  }

  /// Nothing can be sent to it until it comes back.
  mutating func lose(_ session: SessionID) {
    lines[session, default: Line()].isUnreachable = true
  }

  mutating func settle(_ number: Int, _ outcome: Outcome, because step: RestoringStep? = nil) {
    let wasMissing = items[number].place.isUnlocated
    put(number, .settled(outcome))
    if let step { note(number, .because(step)) }
    note(number, .settled(outcome))
    // After the hold, missing objects delay no others.
    if !(isHoldOver && wasMissing) { deliverChildren(of: number) }
  }

  mutating func note(_ number: Int, _ note: Note) { actions.append(.note(items[number].node, note)) }
}
