// SPDX-License-Identifier: Apache-2.0

// What is unwrapped is there: a session or an object that is named without being there is a fault of the model.
// swift-format-ignore-file: NeverForceUnwrap

/// Save rounds and restorations.
extension ReferenceModel {
  // MARK: Saving

  /// What clients answer in a round.
  struct Answers {
    var number = 0
    var failing: [String] = []
    var unchanged: [String] = []
    var links: [String: [String]] = [:]
  }

  mutating func save(_ answers: Answers, isDeclined: Bool) -> String {
    self.answers = answers
    var stale: [String] = []
    if let delegate = servingDelegate {
      tell(0, "\(delegate) shouldSave \(words(own))")
      if isDeclined { return "declined" }
      tell(1, "\(delegate) willEncode")
      if let links = answers.links[""] {
        if let state = try? state(answers.number, links, of: nil) {
          (own, sessions[delegate]!.knowsOwn) = (state, true)
        } else {
          stale.append("application invalidReference")
        }
      }
    }
    // First those that the walk reaches, then those that something saved refers to.
    let served = Set(nodes.keys.filter { self[$0].claim.map { sessions[$0.session]!.serves } ?? false })
    var asked: Set<ID> = []
    var next = inOrder(served.filter(isIncluded), below: scope)
    repeat {
      for (rank, id) in next.enumerated() {
        if !isIncluded(id) { count("R7 reached and asked") }
        stale += ask(id, answers, stage: 2, rank: isIncluded(id) ? rank : 1_000)
      }
      asked.formUnion(next)
      next = held(awaiting: served.subtracting(asked)).intersection(served).subtracting(asked).sorted()
    } while !next.isEmpty
    let (held, isNew) = (held(), isNew)
    let left = nodes.keys.filter { self[$0].claim != nil && !held.contains($0) }.map { path(of: $0) ?? "-" }
    if isNew {
      seal()
      for (id, session) in sessions where session.serves && !session.isOver { tell(4, "\(id) saved") }
    }
    let lists = "stale \(stale.sorted()) excluded \(left.sorted())"
    return "\(isNew ? "saved" : "unchanged") \(generation.states.count) \(lists)"
  }

  /// Returns why no state came of it.
  mutating func ask(_ id: ID, _ answers: Answers, stage: Int, rank: Int = 0) -> [String] {
    let path = path(of: id) ?? "-"
    tell(stage, "\(self[id].claim!.session) encode \(path)", rank: rank)
    if answers.failing.contains(path) { return ["\(path) failed"] }
    if answers.unchanged.contains(path) { return [] }
    let state = try? state(answers.number, answers.links[path] ?? [], of: self[id].objectClass)
    guard let state else { return ["\(path) invalidReference"] }
    write(id, state)
    return []
  }

  // MARK: Restoring

  struct Restoration {
    enum Place: Equatable {
      case open, located, restored
      case skipped(String)
    }

    struct Item {
      let node: ID
      let path: String
      /// The nearest item above.
      let above: Int?
      /// The process role that had it last, as long as it is awaited for that.
      var role: String?
      /// It is awaited until the deadline; the session that had it is gone; a client that is to make it was asked.
      var isExpected: Bool
      var hasEnded = false
      var isAsked = false
      /// Sessions that left it to others.
      var passed: Set<Int> = []
      /// The claim that got the state.
      var claim: Int?
      var place = Place.open

      /// Until the deadline, or until a process of its role shows that it does not come (R23).
      var isAwaited: Bool { !hasEnded && (isExpected || role != nil) }
    }

    let making: [String: Operation.Making]
    let begun: Int
    let caller: Int?
    var items: [Item]
    /// The first state was handed out.
    var isDecoding = false
    /// How often sessions were asked to make something.
    var asked: [Int: Int] = [:]

    func hasChanged(since before: Restoration) -> Bool {
      asked != before.asked || items.map(\.place) != before.items.map(\.place)
        || items.map(\.role) != before.items.map(\.role)
    }

    func above(_ item: Item) -> Item? { item.above.map { items[$0] } }
  }

  func isRestoring(_ id: ID) -> Bool { restoration?.items.contains { $0.node == id } == true }

  /// Whether a restoration is about it (R22).
  func isConcerned(_ id: ID) -> Bool {
    let node = self[id]
    if let claim = node.claim { return node.name != nil && (node.saved != nil || node.isLeft) && !claim.isDone }
    let isMade = node.restorationClass != nil || node.kind == .viewController && node.isRegistered
    return node.name != nil && (node.saved != nil || isMade)
  }

  mutating func restore(_ caller: Int?, isDeclined: Bool, _ making: [String: Operation.Making]) -> String {
    let order = inOrder(nodes.keys.filter(isConcerned)) { self[$0].parent }
    let isOver = !sessions.keys.contains(where: isLive)
    let end = isOver ? lastEnd : run.formerEnd
    let awaited = max(isOver ? run.begun : run.formerBegun, end - 60_000)
    let items = order.map { id in
      let node = self[id]
      let above = ancestors(of: id).lazy.compactMap { order.firstIndex(of: $0) }.first
      let wasThere = node.left.map { awaited <= $0 && $0 <= end } ?? false
      let isAwaited = node.claim == nil && node.isRegistered && !node.isMissed && wasThere
      let role = isAwaited ? node.ownerRole : nil
      if node.claim != nil, node.restorationClass != nil { count("3 live and not made again") }
      return Restoration.Item(
        node: id,
        path: path(of: id)!,
        above: above,
        role: role,
        isExpected: node.claim != nil || isAwaited && role == nil
      )
    }
    guard !items.isEmpty || own != nil && delegate.map({ !sessions[$0]!.knowsOwn }) ?? false else {
      count("1 nothing concerned")
      run.decision = .restoring
      if !nodes.values.contains(where: { $0.claim?.window != nil }) { completeRestoration() }
      tell(6, "restored [] skipped [] absent []")
      return "asked"
    }
    if run.decision != .restoring, let delegate = servingDelegate {
      tell(0, "\(delegate) shouldRestore \(words(own))")
      if isDeclined {
        count("R21 declined")
        run.decision = .declined
        for (id, node) in nodes {
          self[id].declined = (node.isWritten && !node.isHiddenWritten ? node.hidden : nil) ?? node.declined
          if node.isWritten { unhide(id, mayBeAskedFor: true) }
        }
        tell(6, "declined")
        for id in nodes.keys.sorted() { deliver(id, stage: 7) }
        return "asked"
      }
      sessions[delegate]!.knowsOwn = true
    }
    run.decision = .restoring
    restoration = Restoration(making: making, begun: now, caller: caller, items: items)
    progress()
    return "asked"
  }

  /// Does what can be done now.
  mutating func progress() {
    while let before = restoration {
      // What is live is there; of the rest, those that are free at the same time are asked for at the same time.
      for number in before.items.indices { locate(number, isFree: false) }
      let free = Set(before.items.indices.filter(isFree))
      let over = sessions.values.filter { !$0.isOver && ($0.isCompleted || now >= $0.active + 1_000) }.compactMap(
        \.role
      )
      for number in free where restoration!.items[number].role.map(over.contains) ?? false {
        restoration!.items[number].role = nil
      }
      // Who was asked least depends on whose answers come first.
      racers = free.map { before.items[$0] }.filter { !makers(of: $0).isEmpty }
      isRacing = racers.count > 1 && (!before.asked.isEmpty || racers.contains { $0.above != nil })
      for number in before.items.indices { locate(number, isFree: free.contains(number)) }
      if restoration!.hasChanged(since: before) { continue }
      if isHalf || !isWaiting {
        restoration!.isDecoding = true
        for number in before.items.indices { handOut(number) }
      }
      if !restoration!.hasChanged(since: before) { break }
    }
    if let restoration, now >= restoration.begun + 10_000 || !isWaiting { finish(restoration) }
  }

  private var isHalf: Bool { restoration.map { now >= $0.begun + 5_000 } ?? false }

  private var isWaiting: Bool { restoration?.items.contains { $0.place == .open && $0.isAwaited } == true }

  private func path(of item: Restoration.Item) -> String { path(of: item.node) ?? item.path }

  /// Whether the object above is out of the way.
  private func isFree(_ number: Int) -> Bool {
    guard !isHalf, let above = restoration!.items[number].above else { return true }
    let item = restoration!.items[above]
    return item.place != .open || item.hasEnded || !item.isAwaited && makers(of: item).isEmpty && isFree(above)
  }

  /// What becomes of objects below a live one that is itself below an awaited one is not said.
  private func isBelowAwaited(_ number: Int) -> Bool {
    guard !isHalf, let above = restoration!.items[number].above else { return false }
    let item = restoration!.items[above]
    return item.place == .open && item.isAwaited || isBelowAwaited(above)
  }

  private mutating func locate(_ number: Int, isFree: Bool) {
    let item = restoration!.items[number]
    guard item.place == .open || item.place == .located else { return }
    if !item.hasEnded, case .skipped(let why) = restoration!.above(item)?.place,
      ["refused", "parentSkipped", "sameObject"].contains(why)
    {
      restoration!.items[number].place = .skipped("parentSkipped")
    } else if item.place == .open, let node = nodes[item.node] {
      if node.claim != nil {
        restoration!.items[number].place = .located
      } else if !item.isAsked, isFree {
        make(number, node, isUncertain: item.hasEnded || isBelowAwaited(number))
      }
    }
  }

  /// Asks sessions of its class, or the delegate, one after the other (R22).
  private mutating func make(_ number: Int, _ node: Node, isUncertain: Bool) {
    let (isPlain, makers) = (node.restorationClass == nil, makers(of: restoration!.items[number]))
    // A delegate that comes later is not asked.
    if isPlain, !isUncertain { restoration!.items[number].isAsked = true }
    guard let maker = makers.first else { return }
    // Whether it is made once more is not said.
    if isUncertain { isUnspecified = true }
    // Who is asked after a pass that comes at the same time is not said.
    if makers.count > 1, isRacing || restoration!.items.contains(where: { !$0.passed.isEmpty }) { isUnspecified = true }
    restoration!.items[number].isAsked = true
    guard let refusal = make(number, node, by: maker, hasOthers: !isPlain && makers.count > 1) else { return }
    if refusal == "pass" {
      restoration!.items[number].passed.insert(maker)
      restoration!.items[number].isAsked = false
    } else if refusal == "forget" || !isPlain {
      restoration!.items[number].place = .skipped("refused")
    } else if let role = restoration!.items[number].role, role == sessions[maker]!.role {
      restoration!.items[number].role = nil
    }
  }

  private func role(of node: Node) -> String? { (node.saved == nil ? nil : node.writerRole) ?? node.ownerRole }

  /// Who can be asked for it now, sessions of its class or the delegate.
  private func makers(of item: Restoration.Item) -> [Int] {
    guard !item.isAsked, let node = nodes[item.node], node.claim == nil else { return [] }
    guard let made = node.restorationClass else {
      return node.kind == .viewController ? servingDelegate.map { [$0] } ?? [] : []
    }
    return node.kind == .view ? [] : makers(of: made, role: role(of: node)).filter { !item.passed.contains($0) }
  }

  /// A client makes an object, which it registers for that, says that it comes, or refuses; returns how it refuses.
  private mutating func make(_ number: Int, _ node: Node, by session: Int, hasOthers: Bool) -> String? {
    let item = restoration!.items[number]
    let path = path(of: item)
    let isLate = isHalf || restoration!.isDecoding
    // Whether what refers to it comes with its handle is not said.
    let isMentioned = restoration!.items.contains {
      $0.place == .located && nodes[$0.node]?.settled?.targets.contains(item.node) == true
    }
    if isLate, isMentioned { isUnspecified = true }
    let state = words(node.declined ?? node.settled, isMarked: false)
    tell(isLate ? 2 : 1, "\(session) make \(path) \(state)", path: "make \(path)")
    restoration!.asked[session, default: 0] += 1
    var other: String?
    switch restoration!.making[path] {
    case .awaited:
      if !item.isExpected { count("6 awaited by its factory") }
      restoration!.items[number].isExpected = true
      return nil
    case .passed where node.restorationClass != nil && item.passed.isEmpty:
      count("10 passed")
      return "pass"
    case .forgotten:
      if hasOthers { return "pass" }
      count("11 forgotten by its factory")
      let gone = Set(subtree(of: item.node))
      // Whether those that are made at the same time still refer to it is not said.
      let isMentioned = restoration!.items.contains { other in
        other.place == .open && nodes[other.node]?.settled?.targets.contains { $0.map(gone.contains) ?? false } == true
      }
      if isMentioned { isUnspecified = true }
      forget(item.node)
      return "forget"
    case .passed where node.restorationClass == nil, .refused: return "null"
    case .elsewhere(let path): other = path
    case .passed, nil: break
    }
    // It may have been asked for, or made for something else, at the same time.
    let isShared = racers.contains { racer in
      racer.path != path && other.map { restoration!.making[racer.path] == .elsewhere($0) } ?? false
    }
    let isAsked = restoration!.items.contains { asked in
      asked.path != path && asked.path == other && (asked.place == .open || asked.isAsked)
    }
    if isAsked || isShared { isUnspecified = true }
    guard let object = register(other ?? path, node.restorationClass, by: session) else { return "null" }
    let isThere = object == item.node || nodes[item.node]?.claim != nil
    if !isThere { count("4 same object") }
    restoration!.items[number].place = isThere ? .located : .skipped("sameObject")
    return nil
  }

  /// What a factory registers; nil if it cannot.
  private mutating func register(_ path: String, _ restorationClass: String?, by session: Int) -> ID? {
    var components = path.split(separator: "/").map(String.init)
    let name = components.removeLast()
    let above = components.isEmpty ? nil : node(at: components.joined(separator: "/"))
    guard components.isEmpty || above != nil else { return nil }
    let kind = Operation.Kind(of: name)
    let facts = Operation.Registration(name: name, kind: kind, restorationClass: restorationClass)
    do { return try register(session, facts, below: above) } catch {
      if (error as? Refusal)?.kind == "unspecified" { isUnspecified = true }
      return nil
    }
  }

  private mutating func handOut(_ number: Int) {
    let item = restoration!.items[number]
    guard item.place == .located, isFree(number), restoration!.above(item)?.place != .located,
      let node = nodes[item.node], let claim = node.claim
    else { return }
    let state = node.declined ?? node.settled
    var place = Restoration.Place.restored
    if state != nil, !claim.isDone {
      if !classMatches(item.node, state) {
        place = .skipped("classMismatch")
      } else if !sessions[claim.session]!.serves {
        place = .skipped("notServed")
      } else {
        if node.declined != nil { count("9 again after a no") }
        let path = path(of: item.node) ?? "-"
        tell(2, "\(claim.session) decode \(path) \(words(state))", path: "decode \(path)")
        shown(item.node)
        openWindow(item.node)
      }
    }
    (restoration!.items[number].place, restoration!.items[number].claim) = (place, claim.number)
  }

  /// A session has ended: what it was to restore is there for others.
  mutating func left(_ session: Int, _ owned: [ID]) {
    for (number, item) in (restoration?.items ?? []).enumerated() {
      guard item.place == .located, owned.contains(item.node) else { continue }
      // Whether it has ended, or was not there yet, is not said.
      if !isFree(number) { isUnspecified = true }
      restoration!.items[number].place = nodes[item.node] == nil ? .skipped("ended") : .open
      (restoration!.items[number].hasEnded, restoration!.items[number].isAsked) = (true, false)
    }
    progress()
  }

  private mutating func finish(_ ended: Restoration) {
    if let delegate = servingDelegate {
      tell(3, "\(delegate) didDecode \(words(own))")
      sessions[delegate]!.knowsOwn = true
    }
    var (restored, skipped, absent): ([String], [String], [String]) = ([], [], [])
    for item in ended.items {
      switch item.place {
      case .restored: restored.append(path(of: item))
      case .skipped(let why): skipped.append("\(path(of: item)) \(why)")
      case .open, .located:
        if item.hasEnded { skipped.append("\(path(of: item)) ended") } else { absent.append(path(of: item)) }
      }
    }
    for word in skipped { count("skipped " + word.split(separator: " ")[1]) }
    for item in ended.items { settle(item) }
    restoration = nil
    for item in ended.items where item.place == .restored && nodes[item.node]?.claim?.number == item.claim {
      (self[item.node].claim!.window, self[item.node].claim!.isDone) = (nil, true)
      announce(item.node)
    }
    closeWindows()
    if ended.caller.map({ !sessions[$0]!.isOver }) ?? true {
      tell(6, "restored \(restored.sorted()) skipped \(skipped.sorted()) absent \(absent.sorted())")
    }
    for id in nodes.keys.sorted() { deliver(id, stage: 7) }
  }

  /// What was refused, with all below it, hides nothing from now on (R19).
  private mutating func settle(_ item: Restoration.Item) {
    guard nodes[item.node] != nil else { return }
    // The newest answer counts.
    run.refused.remove(item.node)
    if item.place == .skipped("refused") {
      run.refused.insert(item.node)
      for id in subtree(of: item.node) {
        if self[id].hidden != nil { count(id == item.node ? "14 settled by a refusal" : "14 settled below a refusal") }
        self[id].declined = nil
        unhide(id, mayBeAskedFor: true)
      }
    }
  }
}
