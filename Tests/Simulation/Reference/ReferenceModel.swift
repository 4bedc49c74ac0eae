// SPDX-License-Identifier: Apache-2.0

// What is unwrapped is there: a session or an object that is named without being there is a fault of the model.
// swift-format-ignore-file: NeverForceUnwrap

/// What the protocol promises of the objects of one application: identifiers, parents, inclusion, references, states,
/// rounds, restorations and endings. It was written from `Protocol/` alone, and knows nothing of sockets, archives and
/// performance. Every client answers the broker's calls at once.
struct ReferenceModel {
  typealias ID = Int
  typealias Operation = ReferenceOperation
  typealias Object = ReferenceOperation.Object

  /// What was written in a run by a process role, or by a tool; by a session that owns the object, with its class.
  struct State: Equatable {
    var number: Int
    var targets: [ID?]
    var run: Int
    var role: String?
    var writer: Int?
    var objectClass: String?

    /// References follow the object.
    mutating func lead(from old: ID, to new: ID) { targets = targets.map { $0 == old ? new : $0 } }
  }

  struct Node {
    var parent: ID?
    /// The identifier, with its position.
    var name: String?
    var kind: Operation.Kind
    /// Roots and siblings are in this order (R11).
    var order = 0
    var objectClass: String?
    var restorationClass: String?
    /// A session has registered it and not closed it since.
    var isRegistered = false
    /// The process role of the session that had it last; when that ended, unless a restoration has missed it since.
    var role: String?
    var left: Int?
    /// The newest write, the newest confirmed one if that is another (R19), and what a declined restoration left.
    var saved: State?
    var hidden: State?
    var declined: State?
    /// Its owner has given a state that was not stored (R4).
    var isUnstored = false
    /// Revisions by session, and sessions by their claims that others have replaced.
    var revisions: [Int: Int] = [:]
    var replaced: [Int: Int] = [:]
    var claim: Claim?

    var settled: State? { hidden ?? saved }
  }

  /// Whether the owner is given what is saved: by the broker, by a restoration only, or not any more.
  enum Delivery { case due, open, done }

  struct Claim {
    let number: Int
    let session: Int
    let begun: Int
    /// What it writes hides nothing.
    var isSettled: Bool
    var delivery: Delivery
    var isToBeAnnounced = false
    var isAnnounced = false
    /// When its decode window opened.
    var window: Int?
  }

  struct Session {
    let role: String?
    let isDelegate: Bool
    let serves: Bool
    let isSharing: Bool
    /// When it began or registered something.
    var active: Int
    var classes: [String] = []
    var isCompleted = false
    var isDiscarded = false
    var isOver = false
    /// It has got, fetched or given the application's own state.
    var knowsOwn = false
    /// Where its objects were before others moved them.
    var formerPaths: [String: ID] = [:]
  }

  enum Decision { case undecided, restoring, declined }

  struct Run {
    var number = 0
    var begun = 0
    var decision = Decision.undecided
    /// A state has been handed out; a restoration has completed; the user has quit.
    var isBegun = false
    var isCompleted = false
    var hasQuit = false
    /// Objects whose windows their owners' crashes ended, and that nobody has got or written since.
    var broken: Set<ID> = []
    /// Objects that a class has refused, and that were closed.
    var refused: Set<ID> = []
    var closed: Set<ID> = []
  }

  /// What a generation holds, and where all objects were.
  struct Content: Equatable {
    var places: [ID: String] = [:]
    var states: [ID: State] = [:]
    var own: State?
  }

  /// Something that a client sees. In one operation, what has a lower stage comes first, of one session's events of a
  /// stage what has a lower rank, and of objects that are made or given their states, parents.
  typealias Event = (stage: Int, text: String, rank: Int)

  /// An error's kind, or that the rules do not say what happens. What fails changes nothing.
  enum Refusal: Error {
    case kind(String)
    case unspecified
  }

  let isDeveloperMode: Bool
  var nodes: [ID: Node] = [:]
  var sessions: [Int: Session] = [:]
  /// Numbers of claims by the labels of the calls that made them.
  var labels: [Int: Int] = [:]
  /// The application's own.
  var own: State?
  var run = Run()
  /// The last minute of the last run (R23).
  var lastMinute = 0...0
  var restoration: Restoration?
  var items: [Item] = []
  /// What clients answered in the last round, and answer when they are asked for single states.
  var answers = Answers()
  var now = 0
  var generation = Content()
  /// Something was registered, or is gone, since the newest generation.
  var hasChanged = false
  /// The rules do not say what follows from the operation.
  var isUnspecified = false
  var events: [Event] = []
  /// How often each branch was taken.
  var counts: [String: Int] = [:]
  var lastNumber = 0

  init(isDeveloperMode: Bool) { self.isDeveloperMode = isDeveloperMode }

  mutating func tell(_ stage: Int, _ text: String, rank: Int = 0) { events.append((stage, text, rank)) }
  /// Tells the owner something about its object.
  mutating func tell(_ stage: Int, _ word: String, of id: ID, rank: Int = 0) {
    tell(stage, "\(self[id].claim!.session) \(word) \(pathText(id))", rank: rank)
  }
  mutating func count(_ branch: String) { counts[branch, default: 0] += 1 }

  // MARK: The tree

  subscript(id: ID) -> Node {
    get { nodes[id]! }
    set { nodes[id] = newValue }
  }

  func ancestors(of id: ID) -> [ID] { self[id].parent.map { [$0] + ancestors(of: $0) } ?? [] }
  func children(of id: ID) -> [ID] { nodes.keys.filter { self[$0].parent == id } }
  func subtree(of id: ID) -> [ID] { [id] + children(of: id).flatMap(subtree) }
  func node(at path: String) -> ID? { nodes.keys.first { self.path(of: $0) == path } }
  func pathText(_ id: ID) -> String { path(of: id) ?? "-" }

  func path(of id: ID) -> String? {
    guard let name = nodes[id]?.name else { return nil }
    return scope(of: id).map { path(of: $0)! + "/" + name } ?? name
  }

  /// What its path is below: nothing if the parent has no path, or if a plain object is below an excluded one (R4).
  func scope(of id: ID) -> ID? {
    guard let parent = self[id].parent, self[parent].name != nil else { return nil }
    return self[id].kind == .object && isExcluded(parent) ? nil : parent
  }

  /// A null identifier excludes it, and what is below it except plain objects (R4).
  func isExcluded(_ id: ID) -> Bool {
    self[id].name == nil || self[id].kind != .object && self[id].parent.map(isExcluded) ?? false
  }

  func isIncluded(_ id: ID) -> Bool {
    let above = ancestors(of: id)
    let hasScreen = !above.isEmpty && above.allSatisfy { self[$0].kind != .object && self[$0].name != nil }
    return !isExcluded(id) && (self[id].kind != .view || hasScreen)
  }

  /// In the order of the walk: what is above first, roots and siblings as they were registered (R11).
  func inOrder(_ ids: some Sequence<ID>, below above: (ID) -> ID?) -> [ID] {
    func place(_ id: ID) -> [Int] { (above(id).map(place) ?? []) + [self[id].order] }
    return ids.map { (place($0), $0) }.sorted { $0.0.lexicographicallyPrecedes($1.0) }.map(\.1)
  }

  /// All objects that a generation holds, or with what is hidden (R19): included ones, and what they and the
  /// application refer to (R7).
  func held(hasHidden: Bool = false) -> Set<ID> {
    var (found, open) = (Set<ID>(), (own?.targets ?? []) + nodes.keys.filter(isIncluded).map(Optional.some))
    while let id = open.popLast() {
      guard let id, let node = nodes[id], found.insert(id).inserted else { continue }
      open += (node.saved?.targets ?? []) + (hasHidden ? node.hidden?.targets ?? [] : [])
    }
    return found
  }

  /// What it is given is stored.
  func isSaved(_ id: ID) -> Bool { held(hasHidden: true).contains(id) }

  mutating func add(_ node: Node) -> ID {
    lastNumber += 1
    nodes[lastNumber] = node
    (self[lastNumber].order, hasChanged) = (lastNumber, true)
    return lastNumber
  }

  /// Removes what nobody needs, with the empty objects above it.
  mutating func prune(_ id: ID?) {
    guard let id, let node = nodes[id], node.claim == nil, children(of: id).isEmpty else { return }
    guard node.name == nil || node.saved == nil && !node.isRegistered else { return }
    nodes[id] = nil
    prune(node.parent)
  }

  // MARK: Finding objects

  func node(ofClaim number: Int) -> ID? { nodes.first { $0.value.claim?.number == number }?.key }

  /// The object; nil if there is none.
  func find(_ object: Object) -> ID? {
    switch object {
    case .path(let path): node(at: path)
    case .label(let label): labels[label].flatMap(node(ofClaim:))
    }
  }

  /// The object for a change by this session; a vacant one if that may be, nil if it is to be made.
  func find(_ object: Object, of session: Int?, orVacant: Bool = false) throws -> ID? {
    let id = find(object)
    if let id, let session, self[id].claim?.session == session { return id }
    // Writes of a former owner fail, by path and by handle (R8).
    let isReplaced = id.map { id in self[id].replaced.values.contains { $0 == session } } ?? false
    if isReplaced || self.isReplaced(object, of: session) { throw Refusal.kind("replaced") }
    if case .path = object, orVacant, id.map({ self[$0].claim == nil }) ?? true { return id }
    throw Refusal.kind(id == nil ? "unknownObject" : "notOwner")
  }

  /// It is the handle of a claim that another session has replaced.
  func isReplaced(_ object: Object, of session: Int?) -> Bool {
    guard case .label(let label) = object, let claim = labels[label], let session else { return false }
    return nodes.values.contains { $0.replaced[claim] == session }
  }

  func parent(_ object: Object?) throws -> ID? {
    guard let object else { return nil }
    guard let id = find(object) else { throw Refusal.kind("unknownParent") }
    return id
  }

  // MARK: Claims

  func isServed(_ id: ID) -> Bool { self[id].claim.map { sessions[$0.session]!.serves } ?? false }

  mutating func register(_ session: Int, _ facts: Operation.Registration, below parent: ID?) throws -> ID {
    guard facts.name != nil || facts.kind != .object else { throw Refusal.kind("invalidIdentifier") }
    let scope = parent.flatMap { facts.kind == .object && isExcluded($0) ? nil : path(of: $0) }
    let found = facts.name.flatMap { self.node(at: (scope.map { $0 + "/" } ?? "") + $0) }
    if let found, let parent, subtree(of: found).contains(parent) { throw Refusal.unspecified }
    if let found, let claim = self[found].claim, claim.session != session {
      guard facts.takeOver else { throw Refusal.kind("duplicatePath") }
      count("R8 taken over")
      release(found, into: found)
      self[found].isRegistered = false
    }
    let before = self
    let id = found ?? add(Node(parent: parent, name: facts.name, kind: facts.kind))
    let former = self[id]
    var node = former
    (node.parent, node.kind, node.objectClass, node.isRegistered) = (parent, facts.kind, facts.objectClass, true)
    if let made = facts.restorationClass { node.restorationClass = made.isEmpty ? nil : made }
    let isSame = (node.kind, node.objectClass) == (former.kind, former.objectClass)
    if !isSame || node.restorationClass != former.restorationClass { hasChanged = true }
    if node.claim == nil {
      lastNumber += 1
      let isOwn = node.saved?.writer == session && node.hidden == nil
      let isSettled = node.saved == nil || isOwn || sessions[session]!.isCompleted
      let delivery: Delivery = node.saved != nil ? .due : former.isRegistered ? .open : .done
      node.claim = Claim(number: lastNumber, session: session, begun: now, isSettled: isSettled, delivery: delivery)
      node.role = sessions[session]!.role
    }
    self[id] = node
    sessions[session]!.active = now
    if found != nil {
      prune(before[id].parent)
      if collision(of: []) != nil { throw Refusal.unspecified }
      tellMoved(from: before, by: session, told: [id])
    }
    return id
  }

  /// Ends a claim, and leaves the rest to whoever takes the object over.
  mutating func release(_ id: ID, into taker: ID) {
    if isServed(id) { tell(9, "replaced", of: id) }
    self[taker].replaced[self[id].claim!.number] = self[id].claim!.session
    self[id].claim = nil
    closeWindows()
  }

  /// The session has nothing to do with the object from now on.
  mutating func vacate(_ id: ID, keepsState: Bool) {
    var node = self[id]
    node.claim = nil
    if !keepsState || node.name == nil {
      if node.saved != nil { hasChanged = true }
      if node.isRegistered { run.closed.insert(id) }
      (node.saved, node.hidden, node.declined, node.restorationClass, node.role) = (nil, nil, nil, nil, nil)
      (node.isRegistered, node.left, node.isUnstored, node.revisions) = (false, nil, false, [:])
    }
    self[id] = node
    prune(id)
  }

  /// A vacant object goes, with all vacant ones below it (R13).
  mutating func forget(_ id: ID) {
    children(of: id).forEach { forget($0) }
    if let node = nodes[id], node.claim == nil { vacate(id, keepsState: false) }
  }

  // MARK: States

  /// What a session or a tool writes. A reference that leads nowhere fails it, unless it is optional: those of every
  /// third are (R14).
  func state(_ number: Int, _ targets: [String], of id: ID? = nil, by session: Int? = nil) throws -> State {
    let found = targets.map(node(at:))
    guard number % 3 == 0 || !found.contains(nil) else { throw Refusal.kind("invalidReference") }
    var state = State(number: number, targets: found, run: run.number, role: session.flatMap { sessions[$0]!.role })
    if let id, let claim = self[id].claim { (state.writer, state.objectClass) = (claim.session, self[id].objectClass) }
    return state
  }

  /// The classes of the owner contain that of the state, or one of them is unknown (R25).
  func classMatches(_ id: ID, _ state: State?) -> Bool {
    Set([state?.objectClass, self[id].objectClass].compactMap { $0 }).count < 2
  }

  /// Stores a state that its owner gives, or if there is no owner, anybody (R19); false if it is not saved (R4).
  @discardableResult
  mutating func write(_ id: ID, _ state: State) -> Bool {
    defer { closeWindows() }
    if self[id].claim != nil { run.broken.remove(id) }
    self[id].claim?.window = nil
    self[id].isUnstored = !isSaved(id) && self[id].claim != nil
    guard isSaved(id) else { return false }
    var node = self[id]
    var isSettled = node.claim?.isSettled ?? true
    if !isSettled, isGivenUp(id) {
      count(run.decision == .declined ? "R19 confirmed by a no" : "R19 confirmed by a refusal")
      isSettled = true
    }
    // What it wrote after a no that is taken back counts.
    if isAwaited(id), node.hidden != nil || node.saved?.writer != node.claim?.session { isSettled = false }
    if node.saved != state { hasChanged = true }
    (node.hidden, node.saved, node.declined) = (isSettled ? nil : node.settled, state, nil)
    if isSettled { node.claim?.delivery = .done } else { count("R19 provisional") }
    node.claim?.isSettled = isSettled
    self[id] = node
    return true
  }

  /// Owners of what they gave in vain, and what is saved now, are told, or asked for it after a while (R4, R7).
  mutating func want(isAsking: Bool = false) {
    func isWanted(_ id: ID) -> Bool {
      self[id].isUnstored && self[id].claim != nil && (isAsking || !isServed(id)) && isSaved(id)
    }
    while let id = nodes.keys.sorted().first(where: isWanted) {
      self[id].isUnstored = false
      if isServed(id) { _ = ask(id, stage: 9) } else { tell(9, "wanted", of: id) }
    }
  }

  /// The newest state is what every client gets from now on; with `open` a restoration may still give an older one.
  mutating func confirm(_ id: ID, _ delivery: Delivery = .done) {
    var node = self[id]
    if node.hidden != nil {
      count("R19 confirmed")
      if node.claim?.delivery != .done { node.claim?.delivery = delivery }
    }
    if delivery == .done || node.claim?.session == node.saved?.writer { node.claim?.isSettled = true }
    node.hidden = nil
    self[id] = node
  }

  // MARK: Delivery

  /// A class has refused it, or something above it, in this run.
  func isRefused(_ id: ID) -> Bool { !run.refused.isDisjoint(with: [id] + ancestors(of: id)) }
  private func isOfRun(_ id: ID) -> Bool { self[id].settled?.run == run.number }
  private func isGivenUp(_ id: ID) -> Bool { run.decision == .declined && !isOfRun(id) || isRefused(id) }

  /// What the owner is given.
  func given(_ id: ID) -> State? { (run.decision == .restoring ? self[id].declined : nil) ?? self[id].settled }

  /// In this run its owner is given what is saved, if it serves that (R29).
  func isDue(_ id: ID) -> Bool {
    let isInRun = run.decision == .restoring || run.decision == .declined && isOfRun(id)
    let isDue = self[id].claim?.delivery == .due && isInRun && isServed(id)
    return isDue && !isRefused(id) && classMatches(id, self[id].settled)
  }

  /// Its owner is about to be given what is saved: only that settles what it writes (R19).
  func isAwaited(_ id: ID) -> Bool {
    guard let claim = self[id].claim, claim.delivery != .done, self[id].saved != nil else { return false }
    return isDue(id) || items.contains { $0.node == id && $0.isPending }
  }

  /// Gives the owner what is saved, unless a restoration is about to do that.
  mutating func deliver(_ id: ID, stage: Int = 2) {
    guard isDue(id), !items.contains(where: { $0.node == id && $0.isPending }) else { return }
    count("R29 given")
    hand(id, stage: stage)
    run.broken.remove(id)
    announce(id, stage: max(5, stage))
    closeWindows()
  }

  mutating func hand(_ id: ID, stage: Int) {
    tell(stage, "\(self[id].claim!.session) decode \(pathText(id)) \(words(given(id)))")
    shown(id)
  }

  /// The owner shows what is saved: what it wrote before is dropped (R19).
  mutating func shown(_ id: ID) {
    (self[id].claim!.window, self[id].claim!.isSettled, self[id].claim!.delivery) = (nil, true, .done)
    guard var older = self[id].hidden else { return }
    count("R19 dropped")
    (older.run, older.writer) = (run.number, nil)
    (self[id].saved, self[id].hidden) = (older, nil)
    if isSaved(id) { hasChanged = true }
  }

  /// A state in words, with the paths of its targets, and a mark at those that are live.
  func words(_ state: State?, isMarked: Bool = true) -> String {
    guard let state else { return "none" }
    let targets = state.targets.map { target in
      target.flatMap { id in path(of: id).map { $0 + (isMarked && self[id].claim != nil ? "*" : "") } } ?? "-"
    }
    return ([String(state.number)] + targets).joined(separator: " ")
  }

  // MARK: Windows

  mutating func openWindow(_ id: ID) {
    (self[id].claim!.window, self[id].claim!.isToBeAnnounced, run.isBegun) = (now, true, true)
    run.broken.remove(id)
  }

  /// If the last window has closed, the restoration completes, and objects that were fetched are announced (R19, R21).
  mutating func closeWindows(except leaving: Int? = nil) {
    if nodes.values.contains(where: { $0.claim?.window != nil }) { return }
    if run.isBegun, !run.isCompleted, run.broken.isEmpty {
      run.isCompleted = true
      for (id, node) in nodes where node.claim == nil { self[id].left = nil }
    }
    for (id, node) in nodes where restoration == nil && node.claim?.isToBeAnnounced == true {
      if node.claim?.session != leaving { announce(id) }
    }
  }

  mutating func announce(_ id: ID, stage: Int = 5) {
    if isServed(id), !self[id].claim!.isAnnounced { tell(stage, "finished", of: id) }
    (self[id].claim!.isToBeAnnounced, self[id].claim!.isAnnounced) = (false, true)
  }

  // MARK: Generations

  /// What a generation of the head would hold.
  var content: Content {
    let held = held()
    let states = nodes.filter { held.contains($0.key) }.compactMapValues(\.saved)
    let places = nodes.keys.map { ($0, "\(self[$0].parent ?? 0) \(pathText($0))") }
    return Content(places: Dictionary(uniqueKeysWithValues: places), states: states, own: own)
  }

  /// The head is not what the newest generation holds, or something new is there (R16).
  var isNew: Bool {
    if run.hasQuit, own == nil, content.states.isEmpty { return false }
    return hasChanged || content != generation
  }

  mutating func seal() { (generation, hasChanged) = (content, false) }
}
