// SPDX-License-Identifier: Apache-2.0

// What is unwrapped is there: a session or an object that is named without being there is a fault of the model.
// swift-format-ignore-file: NeverForceUnwrap

extension ReferenceModel {
  /// Does it, and returns the answer; nil, and nothing is done, if the rules do not say what happens.
  mutating func perform(_ operation: Operation) -> String? {
    let before = self
    do {
      let answer = try self.answer(operation)
      want()
      if !isUnspecified { return answer }
    } catch Refusal.kind(let kind) where !isUnspecified {
      self = before
      return "error \(kind)"
    } catch {}
    self = before
    return nil
  }

  private mutating func answer(_ operation: Operation) throws -> String {
    // All calls of one session come while that is live, and some while no restoration is under way.
    switch operation {
    case .register(let id, _, _), .complete(let id), .place(let id, _, _, _), .rename(let id, _, _, _),
      .arrange(let id, _, _), .unregister(let id?, _, _), .decode(let id?, _), .restore(let id?, _, _):
      if !isLive(id) { throw Refusal.unspecified }
    default: break
    }
    switch operation {
    case .register, .push, .decode, .begin, .end, .wait: break
    default: if restoration != nil { throw Refusal.unspecified }
    }
    switch operation {
    case .begin(let id, let role, let isDelegate, let serves, let classes, let isSharing):
      let session = Session(role: role, isDelegate: isDelegate, serves: serves, isSharing: isSharing, active: now)
      return try begin(id, session, classes)
    case .end(let id, let ending): return try end(id, ending)
    case .wait(let milliseconds):
      for _ in 0..<milliseconds / 500 { tick() }
      return "waited"
    case .push(let session, let object, let number, let targets, let revision):
      return try push(session, object, (number, targets), revision)
    case .decode(let session, let object): return try decode(session, object)
    case .complete(let id):
      for node in owned(by: id) {
        confirm(node)
        self[node].claim!.window = nil
      }
      sessions[id]!.isCompleted = true
      closeWindows()
      return "pending \(Set(nodes.values.compactMap(\.claim).filter { $0.window != nil }.map(\.session)).count)"
    case .register(let session, let label, let facts): return try register(session, label, facts)
    case .save(let number, let isDeclined, let failing, let unchanged, let links):
      answers = Answers(number: number, failing: failing, unchanged: unchanged, links: links)
      return save(isDeclined: isDeclined)
    case .restore(let caller, let isDeclined, let making):
      restore(caller, isDeclined: isDeclined, making)
      return "asked"
    case .unregister(let session, let object, let keepsState):
      guard let id = try find(object, of: session, orVacant: true) else { throw Refusal.kind("unknownObject") }
      unregister(id, keepsState: keepsState)
      return "done"
    case .place(let session, let object, let above, let takeOver):
      let id = try find(object, of: session)!
      let above = try parent(above)
      if let above, subtree(of: id).contains(above) { throw Refusal.kind("parentCycle") }
      try move([id: (above, self[id].name)], by: session, takeOver: takeOver)
      return pathText(id)
    case .rename(let session, let object, let name, let takeOver):
      let id = try find(object, of: session)!
      guard name != nil || self[id].kind != .object else { throw Refusal.kind("invalidIdentifier") }
      try move([id: (self[id].parent, name)], by: session, takeOver: takeOver)
      return "\(pathText(id)) \(isIncluded(id) ? "included" : "excluded")"
    case .arrange(let session, let object, let children):
      return try arrange(find(object, of: session)!, children, by: session)
    }
  }

  private mutating func register(_ session: Int, _ label: Int, _ facts: Operation.Registration) throws -> String {
    let last = lastNumber
    let id = try register(session, facts, below: parent(facts.parent))
    labels[label] = self[id].claim!.number
    let isExisting = self[id].claim!.number <= last
    if isExisting { count("R1 existing") }
    let state = self[id].settled
    let words = state == nil ? "none" : classMatches(id, state) ? "available" : "available classMismatch"
    let answer = "\(pathText(id)) \(isIncluded(id) ? "included" : "excluded") \(words) \(isExisting)"
    progress()
    if !isExisting { deliver(id) }
    return answer
  }

  private mutating func unregister(_ id: ID, keepsState: Bool) {
    if self[id].claim != nil {
      if keepsState { confirm(id) }
      self[id].left = nil
      vacate(id, keepsState: keepsState && isSaved(id))
      closeWindows()
    } else if !keepsState {
      count("R13 forgotten")
      forget(id)
    }
  }

  // MARK: Sessions

  func isLive(_ id: Int) -> Bool { sessions[id].map { !$0.isDiscarded && !$0.isOver } ?? false }
  func owned(by session: Int) -> [ID] { nodes.keys.filter { self[$0].claim?.session == session }.sorted() }
  var delegate: Int? { sessions.keys.first { sessions[$0]!.isDelegate && isLive($0) } }
  /// The delegate, if it can be asked.
  var servingDelegate: Int? { delegate.flatMap { sessions[$0]!.serves ? $0 : nil } }

  /// Who makes objects of this class.
  func makers(of name: String) -> [Int] {
    sessions.keys.filter { !sessions[$0]!.isOver && sessions[$0]!.classes.contains(name) }
  }

  private mutating func begin(_ id: Int, _ session: Session, _ classes: [String]) throws -> String {
    guard sessions[id] == nil, !session.isDelegate || delegate == nil else { throw Refusal.unspecified }
    if !sessions.keys.contains(where: isLive) { beginRun() }
    let free = classes.filter { name in
      makers(of: name).allSatisfy { sessions[$0]!.isDiscarded || sessions[$0]!.isSharing && session.isSharing }
    }
    // Whom a provider makes that comes in a run that restores has tests of its own (R22).
    let isLocating = nodes.contains { id, node in
      let isMade = node.restorationClass.map(free.contains) ?? (session.isDelegate && node.kind == .viewController)
      return isMade && node.claim == nil && isConcerned(id) && !isRefused(id)
    }
    if isLocating, run.decision == .restoring, restoration == nil { throw Refusal.unspecified }
    sessions[id] = session
    for name in free {
      if !makers(of: name).isEmpty { count("R9 shared") }
      sessions[id]!.classes.append(name)
      progress()
    }
    return (["begun"] + free).joined(separator: " ")
  }

  /// What the last run has left is sealed, and what it has excluded goes (R4, R16).
  private mutating func beginRun() {
    if isNew, own != nil || !content.states.isEmpty { seal() }
    let refused = Set(items.filter { $0.place == .refused }.map(\.node))
    run = Run(number: run.number + 1, begun: now, refused: refused)
    let held = held(hasHidden: true)
    for id in nodes.keys.sorted().reversed() where nodes[id] != nil {
      self[id].declined = nil
      if self[id].claim == nil, !held.contains(id) { vacate(id, keepsState: false) }
    }
  }

  private mutating func end(_ id: Int, _ ending: Operation.Ending) throws -> String {
    let isLast = delegate == nil && sessions.keys.filter(isLive) == [id]
    guard let session = sessions[id], !session.isOver else { throw Refusal.unspecified }
    let isQuit = ending == .userQuit && (session.isDelegate || isLast)
    if isQuit, restoration != nil { throw Refusal.unspecified }
    count("R30 \(ending)")
    sessions[id]!.isOver = true
    if !sessions.keys.contains(where: isLive) { lastMinute = max(run.begun, now - 60_000)...now }
    if isQuit, !isDeveloperMode, !session.isDiscarded {
      (nodes, own, hasChanged, run.hasQuit) = ([:], nil, true, true)
      for other in sessions.keys { sessions[other]!.isDiscarded = true }
      return "done"
    }
    let owned = owned(by: id)
    for node in owned {
      self[node].left = now
      if ending == .crash {
        if self[node].claim!.window != nil { run.broken.insert(node) }
      } else {
        if !isAwaited(node) { confirm(node) }
        self[node].claim!.window = nil
      }
    }
    closeWindows(except: id)
    let (held, isClosed) = (held(hasHidden: true), ending == .closed || ending == .userQuit && !isQuit)
    for node in owned.reversed() where nodes[node] != nil {
      if !isClosed, !held.contains(node) { count("R4 goes with its session") }
      vacate(node, keepsState: !isClosed && held.contains(node))
    }
    left(owned)
    closeWindows()
    return "done"
  }

  // MARK: States

  mutating func push(_ session: Int?, _ object: Object, _ new: (Int, [String]), _ revision: Int?) throws -> String {
    if let session, !isLive(session) {
      if sessions[session]?.isOver ?? true { throw Refusal.unspecified }
      return "discarded"
    }
    let found = try find(object, of: session, orVacant: true) ?? moved(object, of: session)
    let state = try? state(new.0, new.1, of: found, by: session)
    if let found, let session, let revision, let last = self[found].revisions[session], last >= revision {
      count("R15 superseded")
      // Which error comes first is not said.
      if state == nil { throw Refusal.unspecified }
      return "superseded"
    }
    guard let state else { throw Refusal.kind("invalidReference") }
    let before = self
    let id = found ?? make(object)
    defer { progress() }
    guard write(id, state) else {
      if found == nil { self = before }
      count("R4 not stored")
      return "unsaved"
    }
    if let session { self[id].revisions[session] = revision ?? self[id].revisions[session] }
    return "stored"
  }

  /// What the session had at the path before another one moved it.
  private func moved(_ object: Object, of session: Int?) -> ID? {
    guard let session, case .path(let path) = object, let id = sessions[session]?.formerPaths[path] else { return nil }
    return nodes[id]?.claim?.session == session ? id : nil
  }

  /// An object at a new path, and those above it.
  private mutating func make(_ object: Object) -> ID {
    var (last, above): (ID?, String) = (nil, "")
    guard case .path(let path) = object else { preconditionFailure("a handle is not made") }
    for name in path.split(separator: "/") {
      above += above.isEmpty ? name : "/" + name
      // A plain object would not be below an excluded one.
      let kind = last.map(isExcluded) == true ? Operation.Kind.viewController : .object
      last = node(at: above) ?? add(Node(parent: last, name: String(name), kind: kind))
    }
    return last!
  }

  private mutating func decode(_ session: Int?, _ object: Object) throws -> String {
    if object == .path("") {
      if let session, sessions[session]!.isDelegate { sessions[session]!.knowsOwn = true }
      return words(own)
    }
    if isReplaced(object, of: session) { throw Refusal.kind("replaced") }
    guard let id = find(object) else { throw Refusal.kind("unknownObject") }
    guard let session, self[id].claim?.session == session else { return words(self[id].saved) }
    let state = self[id].settled
    guard classMatches(id, state) else {
      if restoration != nil { throw Refusal.unspecified }
      // It has looked.
      (self[id].claim!.isSettled, self[id].claim!.delivery) = (true, .done)
      return "classMismatch"
    }
    shown(id)
    if state != nil { openWindow(id) }
    return words(state)
  }

  /// Half a second passes: windows end after 10 seconds, and what is provisional is confirmed after 60 (R19, R31).
  private mutating func tick() {
    want(isAsking: true)
    now += 500
    for (id, node) in nodes {
      guard let claim = node.claim else { continue }
      if let window = claim.window, now >= window + 10_000 { self[id].claim!.window = nil }
      let isConcerned = items.contains { $0.node == id }
      if now >= claim.begun + 60_000, !isConcerned, !isAwaited(id) { confirm(id) }
    }
    progress()
    closeWindows()
  }

  // MARK: Saving

  /// What clients answer in a round.
  struct Answers {
    var number = 0
    var failing: [String] = []
    var unchanged: [String] = []
    var links: [String: [String]] = [:]
  }

  private mutating func save(isDeclined: Bool) -> String {
    var stale: [String] = []
    if let delegate = servingDelegate {
      tell(0, "\(delegate) shouldSave \(words(own))")
      if isDeclined { return "declined" }
      tell(1, "\(delegate) willEncode")
      let state = try? answers.links[""].map { try self.state(answers.number, $0) }
      if answers.links[""] != nil, state == nil { stale.append("application invalidReference") }
      if let state { (own, sessions[delegate]!.knowsOwn) = (state, true) }
    }
    // First those that the walk reaches, then those that something saved refers to.
    var (next, asked) = (inOrder(nodes.keys.filter(isIncluded), below: scope), Set<ID>())
    repeat {
      for (rank, id) in next.enumerated() where asked.insert(id).inserted && isServed(id) {
        if !isIncluded(id) { count("R7 reached and asked") }
        stale += ask(id, stage: 2, rank: isIncluded(id) ? rank : 1_000)
      }
      let targets = (own?.targets ?? []) + asked.flatMap { self[$0].saved?.targets ?? [] }
      next = targets.compactMap { $0 }.filter { nodes[$0] != nil && !asked.contains($0) }
    } while !next.isEmpty
    let left = nodes.keys.filter { self[$0].claim != nil && !asked.contains($0) }.map(pathText)
    let isNew = isNew
    if isNew {
      seal()
      for (id, session) in sessions where session.serves && !session.isOver { tell(4, "\(id) saved") }
    }
    let lists = "stale \(stale.sorted()) excluded \(left.sorted())"
    return "\(isNew ? "saved" : "unchanged") \(generation.states.count) \(lists)"
  }

  /// Returns why no state came of it.
  mutating func ask(_ id: ID, stage: Int, rank: Int = 0) -> [String] {
    let path = pathText(id)
    tell(stage, "encode", of: id, rank: rank)
    if answers.failing.contains(path) { return ["\(path) failed"] }
    if answers.unchanged.contains(path) { return [] }
    let state = try? state(answers.number, answers.links[path] ?? [], of: id, by: self[id].claim!.session)
    if let state { write(id, state) }
    return state == nil ? ["\(path) invalidReference"] : []
  }

  // MARK: Moving

  typealias Changes = [ID: (parent: ID?, name: String?)]

  private mutating func arrange(_ id: ID, _ objects: [Object], by session: Int) throws -> String {
    let listed = objects.compactMap(find)
    guard listed.count == objects.count else { throw Refusal.kind("unknownObject") }
    let isValid = listed.allSatisfy { self[$0].parent == id && self[$0].name != nil }
    guard isValid, Set(listed).count == listed.count else { throw Refusal.kind("invalidParams") }
    var changes: Changes = [:]
    for (position, child) in listed.enumerated() { changes[child] = (id, place(child, position)) }
    try makeWay(id, &changes)
    try move(changes, by: session, takeOver: false, told: Set(listed))
    return listed.map(pathText).joined(separator: " ")
  }

  private func place(_ id: ID, _ position: Int) -> String { "\(self[id].name!.prefix { $0 != "#" })#\(position)" }

  /// Vacant children that are in the way go behind those that are given, or go (R6).
  private mutating func makeWay(_ id: ID, _ changes: inout Changes) throws {
    let (count, given) = (changes.count, Set(changes.values.compactMap(\.name)))
    let others = inOrder(children(of: id).filter { changes[$0] == nil && self[$0].name != nil }) { self[$0].parent }
    var taken = given.union(others.map { self[$0].name! })
    for child in others where given.contains(self[child].name!) {
      guard subtree(of: child).allSatisfy({ self[$0].claim == nil }) else { throw Refusal.kind("duplicatePath") }
      let isClosed = run.closed.contains(child) && !self[child].isRegistered && self[child].saved == nil
      if isClosed || run.refused.contains(child) {
        self.count("R6 in the way and refused")
        forget(child)
      } else {
        self.count("R6 in the way")
        let name = place(child, (count...).first { !taken.contains(place(child, $0)) }!)
        taken.insert(name)
        changes[child] = (id, name)
      }
    }
  }

  /// Gives objects other parents and names, all or none (R6); owners of others that have another path then are told.
  private mutating func move(_ changes: Changes, by session: Int, takeOver: Bool, told: Set<ID>? = nil) throws {
    let before = self
    let change = changes.filter { self[$0.key].parent != $0.value.parent || self[$0.key].name != $0.value.name }
    let moved = Set(change.keys.flatMap(subtree))
    for (id, place) in change { (self[id].parent, self[id].name) = place }
    var isDisplaced = false
    while let (mover, other) = collision(of: moved) {
      let named = changes[mover] == nil ? nil : session
      let isPlaced = named != nil && self[mover].name?.contains("#") == true && self[mover].name != before[mover].name
      isDisplaced = try merge(other, into: mover, by: named, isPlaced, takeOver) || isDisplaced
    }
    if isDisplaced, before.isNew {
      count("R6 displaced")
      generation = before.content
    }
    for id in change.keys { prune(before[id].parent) }
    for (id, node) in nodes {
      guard let owner = node.claim?.session, owner != session, let former = before.path(of: id) else { continue }
      if former != path(of: id) { sessions[owner]!.formerPaths[former] = id }
    }
    tellMoved(from: before, by: session, told: told ?? Set(changes.keys))
  }

  /// Owners of objects that were not named are told of other paths (R6).
  mutating func tellMoved(from before: Self, by session: Int, told: Set<ID>) {
    for id in nodes.keys where before.nodes[id] != nil && before.path(of: id) != path(of: id) {
      if !self[id].revisions.isEmpty { count("R15 revision moved") }
      let isOwn = self[id].claim?.session == session && told.contains(id)
      if isServed(id), !isOwn { tell(9, "moved", of: id) }
    }
  }

  /// Something that has moved onto the path of something else, the highest first.
  func collision(of moved: Set<ID>) -> (mover: ID, other: ID)? {
    let places = Dictionary(grouping: nodes.keys.filter { self[$0].name != nil }, by: pathText)
    let ids = places.filter { $0.value.count > 1 }.min { $0.key.count < $1.key.count }?.value
    return ids.map { moved.contains($0[1]) ? ($0[1], $0[0]) : ($0[0], $0[1]) }
  }

  /// The mover takes the other's place; returns whether a state has to give way.
  private mutating func merge(_ other: ID, into mover: ID, by session: Int?, _ isPlaced: Bool, _ takeOver: Bool)
    throws -> Bool
  {
    let (one, two) = (self[mover], self[other])
    // What is vacant gives way to what is live, what is empty to what is not.
    let isEmpty = one.claim == nil && (two.claim != nil || one.saved == nil && two.saved != nil)
    if session == nil, isEmpty { return try merge(mover, into: other, by: nil, false, takeOver) }
    if subtree(of: other).contains(mover) { throw Refusal.unspecified }
    let isDisplaced = two.saved != nil && (one.saved != nil || isPlaced)
    let isFree = two.claim == nil || takeOver && session != nil && two.claim?.session != session
    guard isFree, takeOver || !isDisplaced else { throw Refusal.kind("duplicatePath") }
    if two.claim != nil { release(other, into: mover) }
    if isDisplaced, one.saved == nil { count("R6 not taken over") }
    var node = self[mover]
    if let saved = two.saved, one.saved == nil, !isDisplaced {
      count("R6 state taken over")
      (node.saved, node.hidden, node.order) = (saved, two.hidden, two.order)
      if let owner = one.claim?.session {
        node.claim!.isSettled = saved.writer == owner || sessions[owner]!.isCompleted
        (node.claim!.delivery, node.claim!.isAnnounced) = (.open, false)
      }
      node.restorationClass = one.restorationClass ?? two.restorationClass
    }
    node.isUnstored = one.isUnstored || two.isUnstored
    node.replaced.merge(two.replaced) { one, _ in one }
    node.revisions.merge(two.revisions, uniquingKeysWith: max)
    (self[mover], nodes[other]) = (node, nil)
    own?.lead(from: other, to: mover)
    for id in nodes.keys {
      self[id].saved?.lead(from: other, to: mover)
      self[id].hidden?.lead(from: other, to: mover)
      if self[id].parent == other { self[id].parent = mover }
    }
    return isDisplaced
  }
}
