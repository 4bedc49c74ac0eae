// SPDX-License-Identifier: Apache-2.0

// What is unwrapped is there: a session or an object that is named without being there is a fault of the model.
// swift-format-ignore-file: NeverForceUnwrap

/// Restorations (R21 to R24).
extension ReferenceModel {
  struct Restoration {
    let making: [String: Operation.Making]
    let begun: Int
    let caller: Int?
    /// The first state was handed out.
    var isDecoding = false
    /// How often sessions were asked to make something.
    var asked: [Int: Int] = [:]
    /// Items that are asked for at the same time, and whether it is said in which order.
    var racers: [Item] = []
    var isRacing = false
  }

  /// An object that the restoration is about.
  struct Item: Equatable {
    enum Place: String {
      case open, located, restored, refused, parentSkipped, sameObject, classMismatch, notServed
    }

    let node: ID
    let path: String
    /// The nearest item above.
    let above: Int?
    /// It is awaited until the deadline, or until a process of this role, which had it last, does not bring it (R23).
    var isExpected: Bool
    var role: String?
    /// The session that had it is gone; a client that is to make it was asked; sessions that left it to others.
    var hasEnded = false
    var isAsked = false
    var passed: Set<Int> = []
    /// The claim that got the state.
    var claim: Int?
    var place = Place.open

    var isAwaited: Bool { place == .open && !hasEnded && (isExpected || role != nil) }
    var isPending: Bool { place == .open || place == .located }
    var reason: String? { isPending ? hasEnded ? "ended" : nil : place == .restored ? nil : place.rawValue }
  }

  private func path(of item: Item) -> String { path(of: item.node) ?? item.path }
  private var isHalf: Bool { restoration.map { now >= $0.begun + 5_000 } ?? false }
  private var isWaiting: Bool { items.contains(where: \.isAwaited) }

  /// Items above it, the nearest first.
  private func above(_ item: Item) -> [Item] { item.above.map { [items[$0]] + above(items[$0]) } ?? [] }

  /// Whether what is above is out of the way.
  private func isFree(_ item: Item) -> Bool {
    let obstacle = above(item).first { $0.place != .open || $0.hasEnded || $0.isAwaited || !makers(of: $0).isEmpty }
    return isHalf || obstacle.map { $0.place != .open || $0.hasEnded } ?? true
  }

  /// Whether the state of an item at that place refers to one of these.
  private func isMentioned(_ ids: [ID], at place: Item.Place) -> Bool {
    let states = items.filter { $0.place == place }.compactMap { nodes[$0.node]?.settled }
    return states.contains { $0.targets.contains { $0.map(ids.contains) ?? false } }
  }

  /// Whether a restoration is about it (R22).
  func isConcerned(_ id: ID) -> Bool {
    let node = self[id]
    let isMade = node.restorationClass != nil || node.kind == .viewController && node.isRegistered
    return node.name != nil && node.claim.map { $0.delivery != .done } ?? (node.saved != nil || isMade)
  }

  mutating func restore(_ caller: Int?, isDeclined: Bool, _ making: [String: Operation.Making]) {
    let order = inOrder(nodes.keys.filter(isConcerned)) { self[$0].parent }
    let concerned = order.map { id in
      let (node, above) = (self[id], ancestors(of: id).lazy.compactMap { order.firstIndex(of: $0) }.first)
      let wasThere = node.claim == nil && node.left.map(lastMinute.contains) ?? false
      let (role, isExpected) = (wasThere ? node.role : nil, node.claim != nil || wasThere && node.role == nil)
      return Item(node: id, path: path(of: id)!, above: above, isExpected: isExpected, role: role)
    }
    guard !concerned.isEmpty || own != nil && delegate.map({ !sessions[$0]!.knowsOwn }) ?? false else {
      count("R21 nothing concerned")
      (run.decision, run.isBegun) = (.restoring, true)
      closeWindows()
      return tell(6, "restored [] skipped [] absent []")
    }
    if run.decision != .restoring, let delegate = servingDelegate {
      tell(0, "\(delegate) shouldRestore \(words(own))")
      if isDeclined { return decline() }
      sessions[delegate]!.knowsOwn = true
    }
    run.decision = .restoring
    (restoration, items) = (Restoration(making: making, begun: now, caller: caller), concerned)
    progress()
  }

  private mutating func decline() {
    count("R21 declined")
    run.decision = .declined
    for (id, node) in nodes where node.saved?.run == run.number {
      if node.hidden?.run != run.number { self[id].declined = node.hidden ?? node.declined }
      confirm(id, .open)
    }
    tell(6, "declined")
    for id in nodes.keys.sorted() { deliver(id, stage: 7) }
  }

  /// Does what can be done now.
  mutating func progress() {
    var before: [Item] = []
    while restoration != nil, items != before {
      before = items
      // What is live is there; of the rest, those that are free at the same time are asked for at the same time.
      for number in items.indices { locate(number, isFree: false) }
      let free = items.indices.filter { isFree(items[$0]) }
      let over = sessions.values.filter { !$0.isOver && ($0.isCompleted || now >= $0.active + 1_000) }.map(\.role)
      for number in free where over.contains(items[number].role) { items[number].role = nil }
      // Who was asked least depends on whose answers come first.
      let racers = free.map { before[$0] }.filter { !makers(of: $0).isEmpty }
      restoration!.isRacing = racers.count > 1 && (!restoration!.asked.isEmpty || racers.contains { $0.above != nil })
      restoration!.racers = racers
      for number in items.indices { locate(number, isFree: free.contains(number)) }
      guard items == before, isHalf || !isWaiting else { continue }
      restoration!.isDecoding = true
      for number in items.indices { handOut(number) }
    }
    if let restoration, now >= restoration.begun + 10_000 || !isWaiting { finish(restoration) }
  }

  // MARK: Locating

  private mutating func locate(_ number: Int, isFree: Bool) {
    let (item, above) = (items[number], above(items[number]))
    let isBelowRefused = above.first.map { [.refused, .parentSkipped, .sameObject].contains($0.place) } ?? false
    guard item.isPending else { return }
    if !item.hasEnded, isBelowRefused {
      items[number].place = .parentSkipped
    } else if item.place == .open, nodes[item.node]?.claim != nil {
      items[number].place = .located
    } else if item.place == .open, nodes[item.node] != nil, !item.isAsked, isFree {
      // What becomes of objects below a live one that is itself below an awaited one is not said.
      make(number, isUncertain: item.hasEnded || !isHalf && above.contains(where: \.isAwaited))
    }
  }

  /// Who can be asked for it now (R22): the delegate, or sessions of its class, first one of the process role that had
  /// the object last, one that was asked least in this restoration, the first.
  private func makers(of item: Item) -> [Int] {
    guard !item.isAsked, let node = nodes[item.node], node.claim == nil, node.kind != .view else { return [] }
    guard let made = node.restorationClass else {
      return node.kind == .viewController ? servingDelegate.map { [$0] } ?? [] : []
    }
    let role = node.saved?.role ?? node.role
    func rank(_ id: Int) -> (Int, Int, Int, Int) {
      let isOther = role == nil || sessions[id]!.role != role
      return (sessions[id]!.isDiscarded ? 1 : 0, isOther ? 1 : 0, restoration?.asked[id] ?? 0, id)
    }
    return makers(of: made).filter { !item.passed.contains($0) }.sorted { rank($0) < rank($1) }
  }

  /// Asks one, which makes the object, says that it comes, leaves it to another, or refuses.
  private mutating func make(_ number: Int, isUncertain: Bool) {
    let (item, node, makers) = (items[number], self[items[number].node], makers(of: items[number]))
    let isPlain = node.restorationClass == nil
    // A delegate that comes later is not asked.
    if isPlain, !isUncertain { items[number].isAsked = true }
    guard let maker = makers.first else { return }
    let (path, isLate) = (path(of: item), isHalf || restoration!.isDecoding)
    // Not said are: whether it is made once more; who is asked after a pass that comes at the same time; whether what
    // refers to it comes with its handle.
    let isOpen = makers.count > 1 && (restoration!.isRacing || items.contains { !$0.passed.isEmpty })
    if isUncertain || isOpen || isLate && isMentioned([item.node], at: .located) { isUnspecified = true }
    tell(isLate ? 2 : 1, "\(maker) make \(path) \(words(given(item.node), isMarked: false))")
    restoration!.asked[maker, default: 0] += 1
    items[number].isAsked = true
    var target: String? = path
    switch restoration!.making[path] {
    case .awaited:
      if !item.isExpected { count("R23 awaited by its factory") }
      items[number].isExpected = true
      return
    case .passed where !isPlain && item.passed.isEmpty, .forgotten where !isPlain && makers.count > 1:
      count("R22 passed")
      items[number].isAsked = false
      items[number].passed.insert(maker)
      return
    case .forgotten:
      count("R13 forgotten by its factory")
      // Whether those that are made at the same time still refer to it is not said.
      if isMentioned(subtree(of: item.node), at: .open) { isUnspecified = true }
      forget(item.node)
      return refuse(number)
    case .elsewhere(let other):
      // It may have been asked for, or made for something else, at the same time.
      let making = restoration!.making
      let isShared = restoration!.racers.contains { $0.path != path && making[$0.path] == .elsewhere(other) }
      let isAsked = items.contains { $0.path != path && $0.path == other && ($0.place == .open || $0.isAsked) }
      if isAsked || isShared { isUnspecified = true }
      target = other
    case .refused: target = nil
    case .passed: target = isPlain ? nil : path
    case nil: break
    }
    if let object = target.flatMap({ register($0, node.restorationClass, by: maker) }) {
      let isThere = object == item.node || nodes[item.node]?.claim != nil
      if !isThere { count("R24 same object") }
      items[number].place = isThere ? .located : .sameObject
    } else if !isPlain {
      refuse(number)
    } else if item.role == sessions[maker]!.role {
      items[number].role = nil
    }
  }

  private mutating func refuse(_ number: Int) {
    items[number].place = .refused
    run.refused.insert(items[number].node)
  }

  /// What a factory registers; nil if it cannot.
  private mutating func register(_ path: String, _ restorationClass: String?, by session: Int) -> ID? {
    let components = path.split(separator: "/").map(String.init)
    let (name, above) = (components.last!, components.dropLast().joined(separator: "/"))
    let facts = Operation.Registration(name: name, kind: .init(of: name), restorationClass: restorationClass)
    do { return try register(session, facts, below: parent(above.isEmpty ? nil : .path(above))) } catch {
      if case Refusal.unspecified = error { isUnspecified = true }
      return nil
    }
  }

  // MARK: Handing out

  private mutating func handOut(_ number: Int) {
    let item = items[number]
    guard item.place == .located, isFree(item), above(item).first?.place != .located,
      let node = nodes[item.node], let claim = node.claim
    else { return }
    items[number].claim = claim.number
    items[number].place = .restored
    guard let state = given(item.node), claim.delivery != .done else { return }
    if !classMatches(item.node, state) {
      items[number].place = .classMismatch
    } else if !isServed(item.node) {
      items[number].place = .notServed
    } else {
      if node.declined != nil { count("R21 again after a no") }
      hand(item.node, stage: 2)
      openWindow(item.node)
    }
  }

  /// A session has ended: what it was to restore is there for others.
  mutating func left(_ owned: [ID]) {
    for (number, item) in items.enumerated() where item.place == .located && owned.contains(item.node) {
      // Whether it has ended, or was not there yet, is not said.
      if !isFree(item) { isUnspecified = true }
      (items[number].place, items[number].hasEnded, items[number].isAsked) = (.open, true, false)
    }
    progress()
  }

  private mutating func finish(_ ended: Restoration) {
    if let delegate = servingDelegate {
      tell(3, "\(delegate) didDecode \(words(own))")
      sessions[delegate]!.knowsOwn = true
    }
    for item in items { if let reason = item.reason { count("skipped \(reason)") } }
    let restored = items.filter { $0.place == .restored }.map(path)
    let skipped = items.compactMap { item in item.reason.map { "\(path(of: item)) \($0)" } }
    let absent = items.filter { $0.isPending && !$0.hasEnded }.map(path)
    let over = items.filter { nodes[$0.node] != nil }
    (restoration, items) = (nil, [])
    for item in over {
      // The newest answer counts. What was refused, with all below it, hides nothing from now on (R19).
      if item.place != .refused { run.refused.remove(item.node) }
      for id in item.place == .refused ? subtree(of: item.node) : [] {
        self[id].declined = nil
        confirm(id, .open)
      }
    }
    for item in over where item.place == .restored && nodes[item.node]?.claim?.number == item.claim {
      (self[item.node].claim!.window, self[item.node].claim!.delivery) = (nil, .done)
      announce(item.node)
    }
    closeWindows()
    if ended.caller.map({ !sessions[$0]!.isOver }) ?? true {
      tell(6, "restored \(restored.sorted()) skipped \(skipped.sorted()) absent \(absent.sorted())")
    }
    for id in nodes.keys.sorted() { deliver(id, stage: 7) }
  }
}
