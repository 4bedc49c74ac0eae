// SPDX-License-Identifier: Apache-2.0

// What is unwrapped is there: a session or an object that is named without being there is a fault of the model.
// swift-format-ignore-file: NeverForceUnwrap

/// What the protocol promises of the objects of one application: identifiers, parents, inclusion, references, states
/// and their early ones, rounds, restorations and endings. It was written from `Protocol/` alone; it knows nothing of
/// sockets, archives and performance. Every client answers the broker's calls at once.
struct ReferenceModel {
  typealias ID = Int
  typealias Operation = ReferenceOperation

  /// What a client wrote, and the class of the object that wrote it.
  struct State: Hashable {
    var number: Int
    var targets: [ID?]
    var objectClass: String?
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
    /// The process roles of the session that had it last, and of the one that wrote its state.
    var ownerRole: String?
    var writerRole: String?
    /// The owner that wrote it last, and the role of who wrote what is hidden.
    var writer: Int?
    var hiddenRole: String?
    /// A session has registered it and not closed it since; an earlier one has left it; a restoration has missed it.
    var isRegistered = false
    var isLeft = false
    var isMissed = false
    /// When the session ended that had it last; nil if that has let go of it before.
    var left: Int?
    /// The newest write, the newest one that is not early if that is another, and what a declined restoration left.
    var saved: State?
    var hidden: State?
    var declined: State?
    /// It was written in this run, and so was the hidden one.
    var isWritten = false
    var isHiddenWritten = false
    /// Its owner has given a state that was not stored (R4).
    var isUnstored = false
    /// By session.
    var revisions: [Int: Int] = [:]
    /// Sessions whose claims others have replaced.
    var replaced: [Int: Int] = [:]
    var claim: Claim?

    var settled: State? { hidden ?? saved }
  }

  /// What a session has with an object that it registered.
  struct Claim {
    let number: Int
    let session: Int
    var begun: Int
    /// What it writes hides nothing; it was restored, or written by its owner; its finish is to be announced.
    var isSettled: Bool
    var isDone = false
    /// What was saved when it was claimed is still to be given to the owner.
    var isDue = false
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
    let run: Int
    /// When it began or registered something.
    var active: Int
    var classes: [String] = []
    var isCompleted = false
    var isDiscarded = false
    var isOver = false
    /// It has got, fetched or given the application's own state.
    var knowsOwn = false
  }

  enum Decision {
    case undecided, restoring, declined
  }

  /// What happens in the time from the first session to the last one.
  struct Run {
    var number = 0
    /// A state has been handed out; the crash of their owner ended the windows of these objects, and no other has got or
    /// written them since.
    var isCompleted = false
    var isBegun = false
    var hasQuit = false
    var broken: Set<ID> = []
    var decision = Decision.undecided
    /// When it began, when the run before did, and when the last session of that ended.
    var begun = 0
    var formerBegun = 0
    var formerEnd = 0
    var refused: Set<ID> = []
    var closed: Set<ID> = []
  }

  /// What a generation holds.
  struct Content: Equatable {
    var parents: [ID: ID?] = [:]
    var paths: [ID: String?] = [:]
    var states: [ID: State] = [:]
    var own: State?
  }

  /// Something that a client sees. In one operation, what has a lower stage comes first, and of one session's events of
  /// a stage what has a lower rank, and parents before what is below them.
  struct Event: Hashable {
    let stage: Int
    let text: String
    let rank: Int
    let path: String?
  }

  /// An error's kind. What fails changes nothing.
  struct Refusal: Error { let kind: String }

  let isDeveloperMode: Bool
  var nodes: [ID: Node] = [:]
  var sessions: [Int: Session] = [:]
  /// Numbers of claims by the labels of the calls that made them.
  var labels: [Int: Int] = [:]
  /// The application's own.
  var own: State?
  var run = Run()
  var restoration: Restoration?
  /// What clients answered in the last round, and answer when they are asked for single states.
  var answers = Answers()
  var now = 0
  /// When a session last ended.
  var lastEnd = 0
  /// What the newest generation holds.
  var generation = Content()
  /// Something was registered, or is gone, since the newest generation.
  var hasChanged = false
  /// The rules do not say what follows from the operation.
  var isUnspecified = false
  /// Items that are asked for at the same time, and whether it is said in which order.
  var racers: [Restoration.Item] = []
  var isRacing = false
  var events: [Event] = []
  /// How often each branch was taken.
  var counts: [String: Int] = [:]
  var lastNumber = 0

  init(isDeveloperMode: Bool) { self.isDeveloperMode = isDeveloperMode }

  mutating func tell(_ stage: Int, _ text: String, rank: Int = 0, path: String? = nil) {
    events.append(Event(stage: stage, text: text, rank: rank, path: path))
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

  /// What its path is below: nothing if the parent has no path, or if a plain object is below an excluded one (R4).
  func scope(of id: ID) -> ID? {
    guard let parent = self[id].parent, self[parent].name != nil else { return nil }
    return self[id].kind == .object && isExcluded(parent) ? nil : parent
  }

  func path(of id: ID) -> String? {
    guard let name = nodes[id]?.name else { return nil }
    return scope(of: id).map { path(of: $0)! + "/" + name } ?? name
  }

  func node(at path: String) -> ID? { nodes.keys.first { self.path(of: $0) == path } }

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

  /// All objects that a generation holds: included ones, and what they and the application refer to (R7).
  ///
  /// - Parameters:
  ///   - unknown: objects whose states are still to come.
  ///   - hasHidden: what hidden states refer to counts as well.
  func held(awaiting unknown: Set<ID> = [], hasHidden: Bool = false) -> Set<ID> {
    var found = Set(nodes.keys.filter(isIncluded))
    var (open, targets) = (Array(found), own?.targets ?? [])
    repeat {
      for node in open.filter({ !unknown.contains($0) }).map({ self[$0] }) {
        targets += (node.saved?.targets ?? []) + (hasHidden ? node.hidden?.targets ?? [] : [])
      }
      open = targets.compactMap { $0 }.filter { nodes[$0] != nil && found.insert($0).inserted }
      targets = []
    } while !open.isEmpty
    return found
  }

  /// What it is given is stored.
  func isSaved(_ id: ID) -> Bool { isIncluded(id) || held(hasHidden: true).contains(id) }

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
  func find(_ object: Operation.Object) -> ID? {
    switch object {
    case .path(let path): node(at: path)
    case .label(let label): labels[label].flatMap(node(ofClaim:))
    }
  }

  /// The object for a change by this session; a vacant one if that may be, nil if it is to be made.
  func find(_ object: Operation.Object, of session: Int?, orVacant: Bool = false) throws -> ID? {
    let id = find(object)
    if let id, let session, self[id].claim?.session == session { return id }
    // Writes of a former owner fail, by path and by handle (R8).
    let isReplaced = id.map { id in self[id].replaced.values.contains { $0 == session } } ?? false
    if isReplaced || self.isReplaced(object, of: session) { throw Refusal(kind: "replaced") }
    if case .path = object, orVacant, id.map({ self[$0].claim == nil }) ?? true { return id }
    throw Refusal(kind: id == nil ? "unknownObject" : "notOwner")
  }

  /// It is the handle of a claim that another session has replaced.
  func isReplaced(_ object: Operation.Object, of session: Int?) -> Bool {
    guard case .label(let label) = object, let claim = labels[label], let session else { return false }
    return nodes.values.contains { $0.replaced[claim] == session }
  }

  // MARK: Claims

  mutating func register(_ session: Int, _ facts: Operation.Registration, below parent: ID?) throws -> ID {
    guard let name = facts.name ?? (facts.kind == .object ? nil : "") else { throw Refusal(kind: "invalidIdentifier") }
    let scope = parent.flatMap { facts.kind == .object && isExcluded($0) ? nil : path(of: $0) }
    let found = name.isEmpty ? nil : node(at: (scope.map { $0 + "/" } ?? "") + name)
    if let found, let parent, subtree(of: found).contains(parent) { throw Refusal(kind: "unspecified") }
    if let found, let claim = self[found].claim, claim.session != session {
      guard facts.takeOver else { throw Refusal(kind: "duplicatePath") }
      count("R8 taken over")
      release(found, into: found)
      self[found].isLeft = false
    }
    let before = self
    let id = found ?? add(Node(parent: parent, name: facts.name, kind: facts.kind))
    var node = self[id]
    if facts.restorationClass == nil, node.restorationClass != nil { count("5 class stays") }
    (node.parent, node.kind, node.objectClass, node.isRegistered) = (parent, facts.kind, facts.objectClass, true)
    if let made = facts.restorationClass { node.restorationClass = made.isEmpty ? nil : made }
    let isOther = node.kind != self[id].kind || node.objectClass != self[id].objectClass
    if isOther || node.restorationClass != self[id].restorationClass { hasChanged = true }
    if node.claim == nil {
      lastNumber += 1
      let isOwn = node.writer == session && node.hidden == nil
      let isSettled = node.saved == nil || isOwn || sessions[session]!.isCompleted
      node.claim = Claim(number: lastNumber, session: session, begun: now, isSettled: isSettled)
      let isDue = node.settled != nil
      node.claim?.isDue = isDue
      (node.isMissed, node.ownerRole) = (false, sessions[session]!.role)
    }
    self[id] = node
    sessions[session]!.active = now
    if found != nil {
      prune(before[id].parent)
      if collision(of: []) != nil { throw Refusal(kind: "unspecified") }
      tellMoved(from: before, by: session, told: [id])
    }
    return id
  }

  /// Ends a claim, and leaves the rest to whoever takes the object over.
  mutating func release(_ id: ID, into taker: ID) {
    guard let claim = self[id].claim else { return }
    self[taker].replaced[claim.number] = claim.session
    self[id].claim = nil
    if sessions[claim.session]!.serves { tell(9, "\(claim.session) replaced \(path(of: id) ?? "-")") }
    closeWindows()
  }

  /// The session has nothing to do with the object from now on.
  mutating func vacate(_ id: ID, keepsState: Bool) {
    self[id].claim = nil
    if keepsState, self[id].name != nil {
      self[id].isLeft = true
    } else {
      var node = self[id]
      if node.saved != nil { hasChanged = true }
      if node.isRegistered { run.closed.insert(id) }
      (node.saved, node.hidden, node.declined, node.restorationClass, node.ownerRole) = (nil, nil, nil, nil, nil)
      (node.isRegistered, node.isLeft, node.isUnstored, node.revisions) = (false, false, false, [:])
      self[id] = node
    }
    prune(id)
  }

  /// A vacant object goes, with all vacant ones below it (R13).
  mutating func forget(_ id: ID) {
    children(of: id).forEach { forget($0) }
    if let node = nodes[id], node.claim == nil { vacate(id, keepsState: false) }
  }

  // MARK: States

  /// The classes of the owner contain that of the state, or one of them is unknown (R25).
  func classMatches(_ id: ID, _ state: State?) -> Bool {
    guard let written = state?.objectClass, let declared = self[id].objectClass else { return true }
    return written == declared
  }

  /// Stores a state that its owner gives, or if there is no owner, anybody (R19); false if it is not saved (R4).
  @discardableResult
  mutating func write(_ id: ID, _ state: State) -> Bool {
    defer { closeWindows() }
    if self[id].claim != nil { run.broken.remove(id) }
    var node = self[id]
    node.claim?.window = nil
    let isStored = isSaved(id)
    node.isUnstored = !isStored && node.claim != nil
    self[id] = node
    if !isStored { return false }
    var isSettled = node.claim?.isSettled ?? true
    if !isSettled, isGivenUp(id) {
      count(run.decision == .declined ? "14 not early after a no" : "14 not early after a refusal")
      isSettled = true
    }
    // What it wrote after a no that is taken back counts.
    if isAwaited(id), node.hidden != nil || node.writer != node.claim?.session { isSettled = false }
    if !isSettled { count("R19 early") }
    if node.hidden == nil { (node.isHiddenWritten, node.hiddenRole) = (node.isWritten, node.writerRole) }
    let isOther = node.saved != state
    (node.hidden, node.declined) = (isSettled ? nil : node.settled, nil)
    (node.saved, node.isWritten, node.writer) = (state, true, node.claim?.session)
    if isSettled { node.claim?.isDone = true }
    node.claim?.isSettled = isSettled
    if let session = node.claim?.session { node.writerRole = sessions[session]!.role }
    self[id] = node
    if isOther { hasChanged = true }
    return true
  }

  /// What its owner gave in vain, and what is saved now (R4, R7).
  func wanted(fromServing serves: Bool) -> [ID] {
    let unstored = nodes.filter { $0.value.isUnstored && $0.value.claim.map { sessions[$0.session]!.serves } == serves }
    return unstored.keys.filter(isSaved).sorted()
  }

  /// Owners that cannot be asked are told.
  mutating func tellWanted() {
    for id in wanted(fromServing: false) {
      self[id].isUnstored = false
      tell(9, "\(self[id].claim!.session) wanted \(path(of: id) ?? "-")")
    }
  }

  /// The newest state is what every client gets from now on.
  mutating func settle(_ id: ID) {
    unhide(id)
    self[id].claim?.isSettled = true
  }

  /// The same of what is written so far.
  mutating func unhide(_ id: ID, mayBeAskedFor: Bool = false) {
    if self[id].hidden != nil {
      count("R19 settled")
      self[id].claim?.isDue = false
      if !mayBeAskedFor { self[id].claim?.isDone = true }
    }
    self[id].hidden = nil
    if let claim = self[id].claim, claim.session == self[id].writer { self[id].claim!.isSettled = true }
  }

  // MARK: Delivery

  /// A class has refused it, or something above it, in this run.
  func isRefused(_ id: ID) -> Bool {
    let now = restoration?.items.filter { $0.place == .skipped("refused") }.map(\.node) ?? []
    return !run.refused.union(now).isDisjoint(with: [id] + ancestors(of: id))
  }

  /// What is saved was written in this run.
  private func isOfRun(_ id: ID) -> Bool { self[id].hidden == nil ? self[id].isWritten : self[id].isHiddenWritten }

  private func isGivenUp(_ id: ID) -> Bool { run.decision == .declined && !isOfRun(id) || isRefused(id) }

  /// In this run its owner is given what is saved, if it serves that (R29).
  func isDue(_ id: ID) -> Bool {
    guard let claim = self[id].claim, claim.isDue, !claim.isDone, !isRefused(id) else { return false }
    let isInRun = run.decision == .restoring || run.decision == .declined && isOfRun(id)
    return isInRun && sessions[claim.session]!.serves && classMatches(id, self[id].settled)
  }

  /// Its owner is about to be given what is saved: only that settles what it writes (R19).
  func isAwaited(_ id: ID) -> Bool {
    guard let claim = self[id].claim, !claim.isDone, self[id].saved != nil else { return false }
    let item = restoration?.items.first { $0.node == id }
    return isDue(id) || item?.place == .open || item?.place == .located
  }

  /// Gives the owner what is saved, unless a restoration is under way, after which that is done.
  mutating func deliver(_ id: ID, stage: Int = 2) {
    guard restoration == nil, isDue(id), let claim = self[id].claim else { return }
    count("R29 given")
    let path = path(of: id) ?? "-"
    let state = (run.decision == .restoring ? self[id].declined : nil) ?? self[id].settled
    tell(stage, "\(claim.session) decode \(path) \(words(state))", path: "decode \(path)")
    run.broken.remove(id)
    shown(id)
    announce(id, stage: max(5, stage))
    closeWindows()
  }

  /// The owner shows what is saved: what it wrote before is dropped (R19).
  mutating func shown(_ id: ID) {
    var node = self[id]
    node.claim?.window = nil
    node.claim?.isSettled = true
    node.claim?.isDone = true
    if node.hidden != nil {
      count("R19 dropped")
      (node.saved, node.hidden, node.isWritten, node.writer) = (node.hidden, nil, true, nil)
      node.writerRole = node.hiddenRole
      if isSaved(id) { hasChanged = true }
    }
    self[id] = node
  }

  /// A state in words, with the paths of its targets, and a mark at those that are live.
  func words(_ state: State?, isMarked: Bool = true) -> String {
    guard let state else { return "none" }
    let targets = state.targets.map { target in
      target.flatMap { id in path(of: id).map { $0 + (isMarked && self[id].claim != nil ? "*" : "") } } ?? "-"
    }
    return ([String(state.number)] + targets).joined(separator: " ")
  }

  /// The state with these references; one that leads nowhere fails, unless it is optional: those of every third are
  /// (R14).
  func state(_ number: Int, _ targets: [String], of objectClass: String?) throws -> State {
    let found = targets.map(node(at:))
    guard number % 3 == 0 || !found.contains(nil) else { throw Refusal(kind: "invalidReference") }
    return State(number: number, targets: found, objectClass: objectClass)
  }

  // MARK: Windows

  mutating func openWindow(_ id: ID) {
    nodes[id]!.claim?.window = now
    run.broken.remove(id)
    self[id].claim?.isToBeAnnounced = true
    run.isBegun = true
  }

  /// If the last window has closed, objects that were fetched are announced, and the restoration completes (R19, R21).
  mutating func closeWindows(except leaving: Int? = nil) {
    guard !nodes.values.contains(where: { $0.claim?.window != nil }) else { return }
    if run.isBegun { completeRestoration() }
    for id in nodes.keys where restoration == nil && self[id].claim?.isToBeAnnounced == true {
      if self[id].claim?.session != leaving { announce(id) }
    }
  }

  mutating func announce(_ id: ID, stage: Int = 5) {
    guard let claim = nodes[id]?.claim else { return }
    let session = claim.session
    (self[id].claim!.isToBeAnnounced, self[id].claim!.isAnnounced) = (false, true)
    if !claim.isAnnounced, sessions[session]!.serves { tell(stage, "\(session) finished \(path(of: id) ?? "-")") }
  }

  mutating func completeRestoration() {
    guard !run.isCompleted, run.broken.isEmpty else { return }
    run.isCompleted = true
    for id in nodes.keys where self[id].claim == nil { self[id].isMissed = true }
  }

  // MARK: Generations

  /// What a generation of the head would hold.
  var content: Content {
    let held = held()
    return Content(
      parents: nodes.mapValues(\.parent),
      paths: Dictionary(uniqueKeysWithValues: nodes.keys.map { ($0, path(of: $0)) }),
      states: nodes.filter { held.contains($0.key) }.compactMapValues(\.saved),
      own: own
    )
  }

  /// The head is not what the newest generation holds, or something new is there (R16).
  var isNew: Bool {
    if run.hasQuit, own == nil, content.states.isEmpty { return false }
    return hasChanged || content != generation
  }

  mutating func seal() { (generation, hasChanged) = (content, false) }
}
