// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// A save round of an application: its received states and its callers (R11, R12).
///
/// Invariant: no state is written before its commit.
package struct SaveRound {
  package typealias Action = StateMachine.Action
  /// A caller, and the longest lists of its answer.
  package typealias Waiting = (call: LongCall, bytesMax: Int)

  /// Names it to clients: 1, 2, 3 … as long as the broker runs.
  package let number: Int64
  let begun: Moment
  private let frameBytesMax: Int
  package var machine: StateMachine
  package internal(set) var callers: [Waiting] = []
  /// The trace of its calls: that of the first caller that has one.
  private(set) var trace: TraceContext?
  /// It does not end when its last caller cancels: it began by itself, or a caller's connection is gone.
  var isWanted = false
  /// Received states in order of arrival.
  private(set) var staged: [StagedState] = []
  private var places: [NodeID: Int] = [:]
  /// The growth of the archive by them.
  private(set) var stagedBytes = 0
  /// The application's own state, and who gave it.
  var application: (state: CheckedState, session: SessionID)?
  /// Why there is none although the delegate was to give one; `refusal` is nil if its session was lost.
  var applicationStale: (session: SessionID, owner: ObjectOwner, refusal: EncodeRefusal?)?
  /// Views with an element that was not named when it was asked for (R28).
  private var unnamed: Set<NodeID> = []
  /// Nodes that the generation will hold, as far as it is known.
  private var reached: Set<NodeID> = []
  /// The last handle at the walk: later claims are not of this round, even in the same millisecond.
  private(set) var lastHandle: ObjectHandle = 0

  init(number: Int64, deadline: Int64, in turn: borrowing Turn) {
    (self.number, begun, frameBytesMax) = (number, turn.now, turn.limits.frameBytesMax)
    machine = StateMachine(deadline: begun.monotonic + deadline)
  }

  mutating func join(_ caller: Waiting) {
    callers.append(caller)
    trace = trace ?? caller.call.trace
  }

  mutating func handle<Result>(_ event: (inout Self) -> Result) -> Result { event(&self) }

  package enum Question {
    case decide, prepare, encode
    case identify(StateMachine.Question)
  }

  /// The progress for each caller that is due a message.
  mutating func progress(isLast: Bool = false, at now: Moment) -> [(LongCall, ArchiveProgress?)] {
    let (done, total) = machine.progress
    return callers.indices.map { index in
      let progress = callers[index].call.progress(done, of: total, isLast: isLast, at: now)
      return (callers[index].call, progress)
    }
  }
}

/// The objects of the round (R7, R11).
extension SaveRound {
  private typealias Finding = (id: NodeID, step: SavingStep)

  /// Finds the objects to ask for: included ones in walk order, then those that the application's own state refers to.
  package mutating func walk(_ tree: NodeTree, _ sessions: SessionTable, in turn: borrowing Turn) -> [Action] {
    lastHandle = turn.lastHandle
    let rest = machine.walks(among: tree.count)
    var found: [Node] = []
    reached.reserveCapacity(tree.count)
    var (ancestry, excluders): (Ancestry, [NodeID: IdentifierPath?]) = (Ancestry(), [:])
    tree.applicationNode?.note(.included, isFirst: true)
    let included = [NotedStep(SavingStep.included, at: Timestamp(milliseconds: turn.now.wall))]
    for node in tree.walkOrder(&ancestry) {
      if let excluder = ancestry.excluder(of: node) {
        // One path for all that it excludes.
        let path = excluders[excluder] ?? tree.path(of: excluder)
        excluders[excluder] = .some(path)
        node.note(.excluded(by: path), isFirst: true)
      } else {
        node.begin(with: included)
        reached.insert(node.id)
        found.append(node)
      }
    }
    let own = application?.state.referencedNodes ?? tree.applicationNode?.state?.referencedNodes ?? []
    found += admit(own.map { ($0, .referenced(by: nil)) }, tree)
    return rest + reach(found, tree, sessions, areAll: excluders.isEmpty)
  }

  /// Adds the targets of states that the round will not change (R7). Asks the owners that it can ask; their answers
  /// have further targets. `areAll`: these are all nodes, so that references lead to no others.
  private mutating func reach(
    _ found: [Node],
    _ tree: NodeTree,
    _ sessions: SessionTable,
    areAll: Bool = false
  ) -> [Action] {
    var targets: [EncodeTarget] = []
    var (ancestry, sharing) = (Ancestry(), StepSharing())
    var next = found[...]
    while let node = next.popFirst() {
      if let target = EncodeTarget(node, &ancestry, sessions, frameBytesMax: frameBytesMax) {
        targets.append(target)
      } else {
        sharing.note(node.claim.flatMap { sessions[$0.session] }.map { .notServed($0.owner) } ?? .orphaned, of: node)
        if !areAll { next += admit(references(of: node.id, tree), tree) }
      }
    }
    return machine.found(targets)
  }

  /// The nodes among these that the round has not reached before.
  private mutating func admit(_ found: [Finding], _ tree: NodeTree) -> [Node] {
    found.compactMap { id, step in
      guard let node = tree.node(id), reached.insert(node.id).inserted else { return nil }
      node.note(step)
      return node
    }
  }

  /// The nodes that a node's newest state refers to, and the round has not reached.
  private func references(of id: NodeID, _ tree: NodeTree) -> [Finding] {
    guard let node = tree.nodes[id] else { return [] }
    // Without a copy of the state: nearly all refer to nothing.
    let table = places[id].map { staged[$0].record.references } ?? node.state?.references
    let targets = ArchiveReferences.targets(ofTable: table).filter { !reached.contains($0) }
    guard !targets.isEmpty else { return [] }
    let step = SavingStep.referenced(by: tree.path(of: node))
    return targets.map { ($0, step) }
  }

  /// Objects that were reached too late to be asked for. They are saved as they are.
  func late(_ tree: NodeTree, besides unreached: Set<NodeID>, _ sessions: SessionTable) -> [EncodeTarget] {
    let known = Set(machine.known.lazy.compactMap { tree.node($0)?.id })
    var ancestry = Ancestry()
    return tree.claimed.compactMap { handle, node in
      guard handle <= lastHandle, !known.contains(node.id), !unreached.contains(node.id) else { return nil }
      return EncodeTarget(node, &ancestry, sessions, frameBytesMax: frameBytesMax)
    }
    .sorted { $0.node < $1.node }
  }

  // MARK: Answers

  mutating func answered(
    _ session: SessionID,
    _ fates: [NodeID: EncodeBatcher.Fate],
    _ tree: NodeTree,
    _ sessions: SessionTable,
    _ providers: Providers
  ) -> [Action] {
    let batch = machine.batches.asked(of: session).map(\.node)
    let found = batch.filter { fates[$0] != .later }.flatMap { references(of: $0, tree) }
    // Before the answer is taken, so that the round is not over while there is something to ask.
    var actions = reach(admit(found, tree), tree, sessions)
    for node in batch where fates[node] == .encoded { actions += nameElements(of: node, sessions, providers) }
    return actions + machine.answered(session, fates)
  }

  /// A session cannot be asked now. Its objects are saved as they are, with the targets of their references (R7).
  mutating func lost(_ session: SessionID, isBack: Bool, _ tree: NodeTree, _ sessions: SessionTable) -> [Action] {
    let found = isBack ? [] : machine.batches.unanswered(by: session).flatMap { references(of: $0.node, tree) }
    return reach(admit(found, tree), tree, sessions) + machine.lost(session, isBack: isBack)
  }

  /// Keeps a state until the commit.
  mutating func stage(_ state: StagedState, growth: Int) {
    places[state.target.node] = staged.count
    staged.append(state)
    stagedBytes += max(0, growth)
  }

  func staged(_ node: NodeID) -> StagedState? { places[node].map { staged[$0] } }

  // MARK: Elements

  /// Asks data sources for the identifiers of a view's elements that have none (R28).
  private mutating func nameElements(of node: NodeID, _ sessions: SessionTable, _ providers: Providers) -> [Action] {
    guard let source = providers.dataSource(of: node).flatMap({ sessions[$0] }), source.isReachable,
      source.serves(.modelIdentifierForElementAtIndexPath), let staged = staged(node)
    else { return [] }
    let questions = staged.elements.indices.filter { staged.elements[$0]?.identifier == nil }
      .map { StateMachine.Question(node: node, element: $0) }
    return questions.isEmpty ? [] : machine.ask(source.id, questions)
  }

  /// A data source has answered for an element; nil removes the element (R28).
  mutating func name(_ question: StateMachine.Question, as identifier: String?) {
    guard let place = places[question.node] else { return }
    if let identifier {
      staged[place].elements[question.element]?.identifier = identifier
      staged[place].elements[question.element]?.unresolved = .noDataSource
    } else {
      staged[place].elements[question.element] = nil as RestorableElement?
    }
  }

  /// A data source has not answered. Returns whether to tell that: once a round for each view.
  mutating func noteUnnamed(_ view: NodeID) -> Bool { unnamed.insert(view).inserted }
}

extension NodeTree {
  /// All nodes, parents before children, siblings by age. An object below an exclusion is unscoped: a root (R4).
  fileprivate func walkOrder(_ ancestry: inout Ancestry) -> [Node] {
    func isRoot(_ node: Node) -> Bool {
      guard let parent = node.parent else { return true }
      return node.record.kind == .object && ancestry.isExcluded(parent)
    }
    var order: [Node] = []
    order.reserveCapacity(count)
    var stack = Array(byAge { isRoot($0) && $0.record.kind != .application }.reversed())
    while let node = stack.popLast() {
      order.append(node)
      guard !node.children.isEmpty else { continue }
      stack += node.children.sorted(by: >).compactMap { nodes[$0] }.filter { !isRoot($0) }
    }
    return order
  }
}

/// A state that has come in a round and waits for its commit.
struct StagedState {
  let target: EncodeTarget
  /// Everything but the elements.
  var record: StateRecord
  /// The writer, whose number may be another one when it is stored.
  let origin: StateOrigin
  /// nil for those that the data source lacks (R28).
  var elements: [RestorableElement?]
  let digest: StateDigest
  /// The application's last change when it came: a newer row of the object is the session's last word (R12).
  let sequence: SequenceNumber
}
