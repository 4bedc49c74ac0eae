// SPDX-License-Identifier: Apache-2.0

// What is unwrapped is there: a session or an object that is named without being there is a fault of the model.
// swift-format-ignore-file: NeverForceUnwrap

extension ReferenceModel {
  /// Does it, and returns the answer; nil, and nothing is done, if the rules do not say what happens.
  mutating func perform(_ operation: Operation) -> String? {
    let before = self
    var answer: String?
    do {
      answer = try self.answer(operation)
      tellWanted()
    } catch {
      let kind = (error as? Refusal)?.kind ?? ""
      (answer, isUnspecified) = ("error \(kind)", isUnspecified || kind == "unspecified")
      if !isUnspecified { self = before }
    }
    if isUnspecified { answer = nil }
    if answer == nil { self = before }
    return answer
  }

  private mutating func answer(_ operation: Operation) throws -> String? {
    // Some calls come while no restoration is under way, all of one session while that is live.
    guard operation.session.map(isLive) ?? true, restoration == nil || operation.isMeanwhile else { return nil }
    switch operation {
    case .begin(let id, let role, let isDelegate, let serves, let classes, let isSharing):
      let run = run.number + (sessions.keys.contains(where: isLive) ? 0 : 1)
      let session = Session(
        role: role,
        isDelegate: isDelegate,
        serves: serves,
        isSharing: isSharing,
        run: run,
        active: now
      )
      return begin(id, session, classes)
    case .end(let id, let ending): return end(id, ending)
    case .wait(let milliseconds):
      for _ in 0..<milliseconds / 500 { tick() }
      return "waited"
    case .push(let session, let object, let number, let targets, let revision):
      return try push(session, object, number, targets, revision)
    case .decode(let session, let object): return try decode(session, object)
    case .complete(let id):
      for node in owned(by: id) {
        settle(node)
        self[node].claim?.window = nil
      }
      sessions[id]!.isCompleted = true
      closeWindows()
      return "pending \(Set(nodes.values.compactMap { $0.claim?.window == nil ? nil : $0.claim?.session }).count)"
    case .register(let session, let label, let facts): return try register(session, label, facts)
    case .save(let number, let isDeclined, let failing, let unchanged, let links):
      return save(Answers(number: number, failing: failing, unchanged: unchanged, links: links), isDeclined: isDeclined)
    case .restore(let caller, let isDeclined, let making): return restore(caller, isDeclined: isDeclined, making)
    case .unregister(let session, let object, let keepsState):
      guard let id = try find(object, of: session, orVacant: true) else { throw Refusal(kind: "unknownObject") }
      if self[id].claim == nil {
        count("11 forgotten")
        if !keepsState { forget(id) }
      } else {
        if keepsState { settle(id) }
        self[id].left = nil
        vacate(id, keepsState: keepsState && isSaved(id))
        closeWindows()
      }
      return "done"
    case .place(let session, let object, let above, let takeOver):
      guard let id = try find(object, of: session) else { return nil }
      let above = try parent(above)
      if let above, subtree(of: id).contains(above) { throw Refusal(kind: "parentCycle") }
      try move([id: (above, self[id].name)], by: session, takeOver: takeOver)
      return path(of: id) ?? "-"
    case .rename(let session, let object, let name, let takeOver):
      guard let id = try find(object, of: session) else { return nil }
      guard name != nil || self[id].kind != .object else { throw Refusal(kind: "invalidIdentifier") }
      try move([id: (self[id].parent, name)], by: session, takeOver: takeOver)
      return "\(path(of: id) ?? "-") \(isIncluded(id) ? "included" : "excluded")"
    case .arrange(let session, let object, let children):
      guard let id = try find(object, of: session) else { return nil }
      return try arrange(id, children, by: session)
    }
  }

  private mutating func register(_ session: Int, _ label: Int, _ facts: Operation.Registration) throws -> String {
    let above = try parent(facts.parent)
    let existing = owned(by: session)
    let id = try register(session, facts, below: above)
    labels[label] = self[id].claim?.number
    if existing.contains(id) { count("13 existing") }
    let state = self[id].settled
    let hasState = state == nil ? "none" : classMatches(id, state) ? "available" : "available classMismatch"
    defer {
      progress()
      if !existing.contains(id) { deliver(id) }
    }
    return "\(path(of: id) ?? "-") \(isIncluded(id) ? "included" : "excluded") \(hasState) \(existing.contains(id))"
  }

  private func parent(_ object: Operation.Object?) throws -> ID? {
    guard let object else { return nil }
    guard let id = find(object) else { throw Refusal(kind: "unknownParent") }
    return id
  }

  // MARK: Sessions

  func isLive(_ id: Int) -> Bool { sessions[id].map { !$0.isDiscarded && !$0.isOver } ?? false }

  func owned(by session: Int) -> [ID] { nodes.keys.filter { self[$0].claim?.session == session }.sorted() }

  var delegate: Int? { sessions.keys.first { sessions[$0]!.isDelegate && isLive($0) } }

  /// The delegate, if it can be asked.
  var servingDelegate: Int? { delegate.flatMap { sessions[$0]!.serves ? $0 : nil } }

  /// Who makes objects of this class, first who is asked first: one of the process role that had the object last, one
  /// that was asked least in this restoration, the first (R22).
  func makers(of name: String, role: String? = nil) -> [Int] {
    func rank(_ id: Int) -> [Int] {
      let (session, asked) = (sessions[id]!, restoration?.asked[id] ?? 0)
      return [session.isDiscarded ? 1 : 0, role != nil && session.role == role ? 0 : 1, asked, id]
    }
    return sessions.keys.filter { !sessions[$0]!.isOver && sessions[$0]!.classes.contains(name) }
      .sorted { rank($0).lexicographicallyPrecedes(rank($1)) }
  }

  private mutating func begin(_ id: Int, _ session: Session, _ classes: [String]) -> String? {
    guard sessions[id] == nil, !session.isDelegate || delegate == nil else { return nil }
    if session.run > run.number { beginRun() }
    sessions[id] = session
    if session.isDelegate { markLocating { $0.restorationClass == nil && $0.kind == .viewController } }
    let free = classes.filter { name in
      makers(of: name).allSatisfy { sessions[$0]!.isDiscarded || sessions[$0]!.isSharing && session.isSharing }
    }
    if free.contains(where: { !makers(of: $0).isEmpty }) { count("10 shared") }
    for name in free {
      sessions[id]!.classes.append(name)
      markLocating { $0.restorationClass == name }
      progress()
    }
    return (["begun"] + free).joined(separator: " ")
  }

  /// Whom a provider makes that comes in a run that restores has tests of its own (R22).
  private mutating func markLocating(_ isMade: (Node) -> Bool) {
    guard run.decision == .restoring, restoration == nil else { return }
    let vacant = nodes.filter { $0.value.claim == nil && isMade($0.value) }.keys
    if vacant.contains(where: { isConcerned($0) && !isRefused($0) }) { isUnspecified = true }
  }

  /// What the last run has left is sealed, and what it has excluded goes (R4, R16).
  private mutating func beginRun() {
    if isNew, own != nil || !content.states.isEmpty { seal() }
    run = Run(number: run.number + 1, begun: now, formerBegun: run.begun, formerEnd: lastEnd)
    let held = held(hasHidden: true)
    for id in nodes.keys.sorted().reversed() where nodes[id] != nil {
      (self[id].isWritten, self[id].isHiddenWritten, self[id].declined) = (false, false, nil)
      if self[id].claim == nil, !held.contains(id) { vacate(id, keepsState: false) }
    }
  }

  private mutating func end(_ id: Int, _ ending: Operation.Ending) -> String? {
    guard let session = sessions[id], !session.isOver else { return nil }
    let owned = owned(by: id)
    if ending == .crash { run.broken.formUnion(owned.filter { self[$0].claim?.window != nil }) }
    count("R30 \(ending)")
    let isLast = delegate == nil && sessions.keys.filter(isLive) == [id]
    let isQuit = ending == .userQuit && (session.isDelegate || isLast)
    if isQuit, restoration != nil { return nil }
    sessions[id]!.isOver = true
    lastEnd = now
    for node in owned { self[node].left = now }
    if isQuit, !isDeveloperMode, !session.isDiscarded {
      (nodes, own, hasChanged, run.hasQuit) = ([:], nil, true, true)
      for other in sessions.keys { sessions[other]!.isDiscarded = true }
      return "done"
    }
    if ending != .crash {
      for node in owned {
        if !isAwaited(node) { settle(node) }
        self[node].claim?.window = nil
      }
      closeWindows(except: id)
    }
    let held = held(hasHidden: true)
    let isClosed = ending == .closed || ending == .userQuit && !isQuit
    for node in owned.reversed() where nodes[node] != nil {
      if !isClosed, !held.contains(node) { count("1 goes with its session") }
      vacate(node, keepsState: !isClosed && held.contains(node))
    }
    left(id, owned)
    closeWindows()
    return "done"
  }

  // MARK: States

  private mutating func push(
    _ session: Int?,
    _ object: Operation.Object,
    _ number: Int,
    _ targets: [String],
    _ revision: Int?
  )
    throws -> String?
  {
    if let session, sessions[session].map(\.isOver) ?? true { return nil }
    if let session, !isLive(session) { return "discarded" }
    let found = try find(object, of: session, orVacant: true)
    let objectClass = found.flatMap { self[$0].claim == nil ? nil : self[$0].objectClass }
    let state = try? state(number, targets, of: objectClass)
    if let found, let session, let revision, let last = self[found].revisions[session], last >= revision {
      count("16 superseded")
      // Which error comes first is not said.
      return state == nil ? nil : "superseded"
    }
    guard let state else { throw Refusal(kind: "invalidReference") }
    let before = self
    let id = found ?? make(object.path ?? "")
    defer { progress() }
    guard write(id, state) else {
      if found == nil { self = before }
      count("2 not stored")
      return "unsaved"
    }
    if let session { self[id].revisions[session] = revision ?? self[id].revisions[session] }
    if self[id].claim == nil { self[id].writerRole = session.flatMap { sessions[$0]!.role } }
    return "stored"
  }

  /// An object at a new path, and those above it.
  private mutating func make(_ path: String) -> ID {
    var (last, above): (ID?, String) = (nil, "")
    for name in path.split(separator: "/") {
      above += above.isEmpty ? name : "/" + name
      // A plain object would not be below an excluded one.
      let kind = last.map(isExcluded) == true ? Operation.Kind.viewController : .object
      last = node(at: above) ?? add(Node(parent: last, name: String(name), kind: kind))
    }
    return last!
  }

  private mutating func decode(_ session: Int?, _ object: Operation.Object) throws -> String? {
    if object == .path("") {
      if let session, sessions[session]!.isDelegate { sessions[session]!.knowsOwn = true }
      return words(own)
    }
    if isReplaced(object, of: session) { throw Refusal(kind: "replaced") }
    guard let id = find(object) else { throw Refusal(kind: "unknownObject") }
    guard let session, self[id].claim?.session == session else {
      return words(self[id].saved)
    }
    let state = self[id].settled
    guard classMatches(id, state) else {
      // It has looked.
      (self[id].claim!.isSettled, self[id].claim!.isDone) = (true, true)
      return restoration == nil ? "classMismatch" : nil
    }
    shown(id)
    if state != nil { openWindow(id) }
    return words(state)
  }

  /// Half a second passes, and what is due happens: windows end after 10 seconds, early marks after 60 (R19, R31).
  private mutating func tick() {
    while let id = wanted(fromServing: true).first {
      self[id].isUnstored = false
      _ = ask(id, answers, stage: 9)
      tellWanted()
    }
    now += 500
    for id in nodes.keys {
      guard let claim = self[id].claim else { continue }
      if let window = claim.window, now >= window + 10_000 { self[id].claim!.window = nil }
      if now >= claim.begun + 60_000, !isRestoring(id), !isAwaited(id) { settle(id) }
    }
    progress()
    closeWindows()
  }

  // MARK: Moving

  private mutating func arrange(_ id: ID, _ objects: [Operation.Object], by session: Int) throws -> String {
    let listed = objects.compactMap(find)
    guard listed.count == objects.count else { throw Refusal(kind: "unknownObject") }
    let isValid = listed.allSatisfy { self[$0].parent == id && self[$0].name != nil }
    guard isValid, Set(listed).count == listed.count else { throw Refusal(kind: "invalidParams") }
    var changes: Changes = [:]
    for (position, child) in listed.enumerated() { changes[child] = (id, place(child, position)) }
    try makeWay(id, &changes)
    try move(changes, by: session, takeOver: false, told: Set(listed))
    return listed.map { path(of: $0) ?? "-" }.joined(separator: " ")
  }

  private func place(_ id: ID, _ position: Int) -> String { "\(self[id].name!.prefix { $0 != "#" })#\(position)" }

  /// Vacant children that are in the way go behind those that are given, or go (R6).
  private mutating func makeWay(_ id: ID, _ changes: inout Changes) throws {
    let count = changes.count
    let given = Set(changes.values.compactMap(\.name))
    let others = inOrder(children(of: id).filter { changes[$0] == nil && self[$0].name != nil }) { self[$0].parent }
    var taken = given.union(others.map { self[$0].name! })
    for child in others where given.contains(self[child].name!) {
      guard subtree(of: child).allSatisfy({ self[$0].claim == nil }) else { throw Refusal(kind: "duplicatePath") }
      let isClosed = run.closed.contains(child) && !self[child].isRegistered && self[child].saved == nil
      if isClosed || run.refused.contains(child) {
        self.count("12 in the way and refused")
        forget(child)
      } else {
        self.count("12 in the way")
        let name = place(child, (count...).first { !taken.contains(place(child, $0)) }!)
        taken.insert(name)
        changes[child] = (id, name)
      }
    }
  }

  typealias Changes = [ID: (parent: ID?, name: String?)]

  /// Gives objects other parents and names, all or none (R6); owners of others that have another path then are told.
  private mutating func move(_ changes: Changes, by session: Int, takeOver: Bool, told: Set<ID>? = nil) throws {
    let before = self
    let change = changes.filter { self[$0.key].parent != $0.value.parent || self[$0.key].name != $0.value.name }
    if change.isEmpty { return }
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
    tellMoved(from: before, by: session, told: told ?? Set(changes.keys))
  }

  /// Owners of objects that were not named are told of other paths (R6).
  mutating func tellMoved(from before: Self, by session: Int, told: Set<ID>) {
    for id in nodes.keys where before.nodes[id] != nil && before.path(of: id) != path(of: id) {
      if !self[id].revisions.isEmpty { count("16 revision moved") }
      guard let owner = self[id].claim?.session, sessions[owner]!.serves else { continue }
      if owner != session || !told.contains(id) { tell(9, "\(owner) moved \(path(of: id) ?? "-")") }
    }
  }

  /// Something that has moved onto the path of something else, the highest first.
  func collision(of moved: Set<ID>) -> (mover: ID, other: ID)? {
    var found: [String: ID] = [:]
    for (id, path) in nodes.keys.compactMap({ id in path(of: id).map { (id, $0) } }).sorted(by: {
      $0.1.count < $1.1.count
    }) {
      guard let other = found.updateValue(id, forKey: path) else { continue }
      return moved.contains(id) ? (id, other) : (other, id)
    }
    return nil
  }

  /// The mover takes the other's place; returns whether a state has to give way.
  private mutating func merge(_ other: ID, into mover: ID, by session: Int?, _ isPlaced: Bool, _ takeOver: Bool)
    throws -> Bool
  {
    let (one, two) = (self[mover], self[other])
    // What is vacant gives way to what is live, what is empty to what is not.
    let isEmpty = one.claim == nil && (two.claim != nil || one.saved == nil && two.saved != nil)
    if session == nil, isEmpty { return try merge(mover, into: other, by: nil, false, takeOver) }
    if subtree(of: other).contains(mover) { throw Refusal(kind: "unspecified") }
    if let claim = two.claim {
      guard let session, takeOver, claim.session != session else { throw Refusal(kind: "duplicatePath") }
      release(other, into: mover)
    }
    let isDisplaced = two.saved != nil && (one.saved != nil || isPlaced)
    if isDisplaced, one.saved == nil { count("12 not taken over") }
    if isDisplaced, !takeOver { throw Refusal(kind: "duplicatePath") }
    if one.saved == nil, two.saved != nil, !isDisplaced {
      count("R6 state taken over")
      var node = self[mover]
      (node.saved, node.hidden, node.order) = (two.saved, two.hidden, two.order)
      (node.writer, node.writerRole) = (two.writer, two.writerRole)
      (node.isWritten, node.isHiddenWritten) = (two.isWritten, two.isHiddenWritten)
      if let owner = node.claim?.session {
        node.claim?.isSettled = two.writer == owner || sessions[owner]!.isCompleted
        node.claim?.isDone = false
        node.claim?.isAnnounced = false
      }
      node.restorationClass = one.restorationClass ?? two.restorationClass
      self[mover] = node
    }
    for child in children(of: other) { self[child].parent = mover }
    self[mover].isUnstored = one.isUnstored || two.isUnstored
    self[mover].replaced.merge(two.replaced) { one, _ in one }
    self[mover].revisions.merge(two.revisions, uniquingKeysWith: max)
    nodes[other] = nil
    lead(from: other, to: mover)
    return isDisplaced
  }

  /// References follow the object.
  mutating func lead(from old: ID, to new: ID) {
    func led(_ state: State?) -> State? {
      state.map {
        State(number: $0.number, targets: $0.targets.map { $0 == old ? new : $0 }, objectClass: $0.objectClass)
      }
    }
    for (id, node) in nodes { (self[id].saved, self[id].hidden) = (led(node.saved), led(node.hidden)) }
    own = led(own)
  }
}

extension ReferenceOperation {
  /// The session that does it, unless it is a tool.
  var session: Int? {
    switch self {
    case .register(let id, _, _), .place(let id, _, _, _), .rename(let id, _, _, _), .arrange(let id, _, _): id
    case .complete(let id): id
    case .unregister(let id, _, _), .decode(let id, _), .restore(let id, _, _): id
    case .push, .begin, .end, .save, .wait: nil
    }
  }

  /// What follows from the others during a restoration is not said.
  var isMeanwhile: Bool {
    switch self {
    case .register, .push, .decode, .begin, .end, .wait: true
    case .unregister, .place, .rename, .arrange, .complete, .save, .restore: false
    }
  }
}

extension ReferenceOperation.Object {
  var path: String? { if case .path(let path) = self { path } else { nil } }
}
