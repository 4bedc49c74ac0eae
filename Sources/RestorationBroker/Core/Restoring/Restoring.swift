// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

/// The restoration that is under way: what it decides, who waits for it, and what it takes to carry it out
/// (R21 – R25). Events in, actions out.
///
/// Invariants:
/// 1. One action is carried out at a time; what leads to others meanwhile does not begin them.
/// 2. Nothing of one restoration is there when the next one begins.
package struct Restoring {
  package typealias FactoryCall = (node: NodeID, lookup: RestoringStep.Lookup, session: SessionID)
  typealias PostponedCall = (request: RestoreApplicationState, session: SessionID?, caller: Caller)

  /// Tells its reads from those of an earlier one.
  package private(set) var number = 0
  package private(set) var decisions: Restoration?
  /// The tops of the subtrees it is about; nil for all there is.
  private(set) var scope: Set<NodeID>?
  /// Who gets the answer, each with the bytes that it may have.
  package private(set) var callers: [(call: LongCall, bytesMax: Int)] = []
  /// Of its calls: that of the first caller who is in one.
  private(set) var trace: TraceContext?
  /// Calls about other objects, which begin when this restoration is over.
  private var postponed: [PostponedCall] = []
  /// The paths that objects had when they were planned, for those that have none in the end.
  package private(set) var paths = FormerPaths()
  /// What the delegate is given; read once. Its references have the handles of the moment when it is sent.
  private(set) var application: (record: StateRecord?, coder: JSONText?)?
  /// Delegates that have got it.
  private(set) var shown: Set<SessionID> = []
  /// What clients have said of objects that they could not make or fill.
  package private(set) var messages: [NodeID: String] = [:]
  /// Objects whose factories are not called before states handed out earlier are proven (R31).
  private var heldFactoryCalls: [FactoryCall] = []
  /// What was handed out without its state, which has not been fetched.
  private(set) var deferred: Set<NodeID> = []
  /// The head was replaced: what was decided is of the former one.
  private(set) var isVoid = false
  /// Units that were to start, why some of them did not, and the one that brings an object.
  package private(set) var startedUnits: Set<String> = []
  package private(set) var failedUnits: [String: String] = [:]
  package private(set) var units: [NodeID: UnitName] = [:]
  private var timerDue: Int64?
  private var actions: ArraySlice<Restoration.Action> = []
  private var isPerforming = false

  package init() {}

  /// Zero when every client has left and nothing is under way.
  package var held: Int {
    (isUnderWay ? 1 : 0) + callers.count + postponed.count + heldFactoryCalls.count + actions.count
  }

  /// No save round begins by itself meanwhile (R12).
  package var isUnderWay: Bool { decisions != nil }

  /// How long a data source that is not there is awaited: as long as objects are, or half of the time that is left, so
  /// that the view's owner has as much for its answer.
  func awaitedMilliseconds(at now: Int64) -> Int64 {
    guard let decisions else { return 0 }
    let hold = decisions.isHoldOver ? 0 : decisions.holdEnd - now
    return max(hold, min(ElementResolver.milliseconds, (decisions.deadline - now) / 2), 0)
  }

  /// Whether it may still bring the node's saved state.
  func mayConcern(_ node: NodeID) -> Bool {
    decisions.map { $0.phase == .startingDelegate || $0.phase == .asking || $0.index[node] != nil } ?? false
  }

  /// Whether it gives the node's saved state to whoever has registered it, or registers it.
  func awaits(_ node: NodeID) -> Bool {
    guard let decisions else { return false }
    switch decisions.phase {
    case .startingDelegate, .asking: return true
    case .locating, .decoding:
      return item(of: node).map { !$0.place.isSettled || $0.place.mayComeBack } ?? false
    case .telling, .waiting, .over: return false
    }
  }

  /// Whether a class has refused the object, or one above it.
  func hasRefused(_ node: Node) -> Bool {
    isUnderWay
      && Swift.sequence(first: node, next: \.parent).contains { item(of: $0.id)?.place == .settled(.skipped(.refused)) }
  }

  func item(of node: NodeID) -> Restoration.Item? {
    decisions.flatMap { decisions in decisions.index[node].map { decisions.items[$0] } }
  }

  /// Whether the session is being handed the node's state, or was and has not answered.
  package func isHanding(_ node: NodeID, to session: SessionID) -> Bool { item(of: node)?.place == .handed(session) }

  /// What the session has been handed and has not answered.
  package func batch(of session: SessionID) -> [NodeID] { decisions?.batch(of: session) ?? [] }

  // MARK: Callers

  /// Begins a restoration, or joins the one that is under way.
  ///
  /// - Returns: the deadline of the one that begins.
  package mutating func begin(
    for call: LongCall,
    bytesMax: Int,
    milliseconds: Int64,
    of scope: Set<NodeID>? = nil,
    isDecided: Bool = false,
    in turn: inout Turn
  ) throws(ErrorObject) -> Int64? {
    let client = call.caller.client
    if isUnderWay { try turn.requireRoom(toWaitBeside: waitingCount(of: client), of: client) }
    callers.append((call, bytesMax))
    trace = trace ?? call.trace
    turn.ask(.park(call.caller))
    return isUnderWay ? nil : begin(milliseconds: milliseconds, of: scope, isDecided: isDecided, in: &turn)
  }

  /// Begins one for which nobody waits.
  ///
  /// - Returns: its deadline.
  mutating func begin(milliseconds: Int64, of scope: Set<NodeID>?, isDecided: Bool, in turn: inout Turn) -> Int64 {
    number += 1
    let deadline = turn.now.monotonic + milliseconds
    // The end of one that was going on when the broker died is told as well.
    let isCalled = scope == nil || !callers.isEmpty
    let begun = turn.now.monotonic
    decisions = Restoration(begun: begun, deadline: deadline, isDecided: isDecided, isCalled: isCalled)
    self.scope = scope
    return deadline
  }

  private func waitingCount(of client: ClientID) -> Int {
    callers.count { $0.call.caller.client == client } + postponed.count { $0.caller.client == client }
  }

  /// Whether it does all that a call about these subtrees asks for.
  func covers(_ scope: Set<NodeID>?) -> Bool { self.scope.map { scope?.isSubset(of: $0) ?? false } ?? true }

  mutating func postpone(_ call: PostponedCall, in turn: inout Turn) throws(ErrorObject) {
    try turn.requireRoom(toWaitBeside: waitingCount(of: call.caller.client), of: call.caller.client)
    postponed.append(call)
    turn.ask(.park(call.caller))
  }

  mutating func takePostponed(in turn: inout Turn) -> [PostponedCall] {
    defer { postponed = [] }
    for call in postponed { turn.ask(.unpark(call.caller)) }
    return postponed
  }

  /// The caller stops waiting; the restoration continues, because half of one is worse than all of it.
  ///
  /// - Returns: whether it waited.
  package mutating func leave(_ caller: Caller, in turn: inout Turn) -> Bool {
    if let index = callers.firstIndex(where: { $0.call.caller == caller }) {
      callers.remove(at: index)
    } else if let index = postponed.firstIndex(where: { $0.caller == caller }) {
      postponed.remove(at: index)
    } else {
      return false
    }
    turn.ask(.unpark(caller))
    return true
  }

  package mutating func progress(isLast: Bool = false, at now: Moment) -> [(ArchiveProgress?, LongCall)] {
    guard let decisions, isLast || !decisions.items.isEmpty else { return [] }
    return callers.indices.map { index in
      let (done, total) = (decisions.settledCount, decisions.items.count)
      return (callers[index].call.progress(done, of: total, isLast: isLast, at: now), callers[index].call)
    }
  }

  /// The restoration is over. Returns what there was of it.
  package mutating func end(in turn: inout Turn) -> Restoring? {
    guard isUnderWay else { return nil }
    if timerDue != nil { turn.ask(.cancelTimer(.restoration(turn.application))) }
    let over = self
    self = Restoring()
    (number, isPerforming, postponed) = (over.number, over.isPerforming, over.postponed)
    return over
  }

  mutating func giveHeadUp() { isVoid = isUnderWay }

  // MARK: Deciding

  /// Takes in an event.
  ///
  /// - Returns: whether actions are to be carried out now; `next` gives them.
  package mutating func take(_ event: Restoration.Event, _ facts: some RestorationFacts) -> Bool {
    actions += decisions?.handle(event, facts) ?? []
    guard isUnderWay, !isPerforming else { return false }
    isPerforming = true
    return true
  }

  package mutating func next() -> Restoration.Action? {
    let action = actions.popFirst()
    isPerforming = action != nil
    return action
  }

  /// Sets the timer for when the decisions want to be told the time.
  package mutating func watch(in turn: inout Turn) {
    guard decisions?.due != timerDue else { return }
    timerDue = decisions?.due
    if let timerDue {
      turn.ask(.setTimer(.restoration(turn.application), milliseconds: max(1, timerDue - turn.now.monotonic)))
    } else {
      turn.ask(.cancelTimer(.restoration(turn.application)))
    }
  }

  package mutating func timerFired() { timerDue = nil }

  // MARK: Carrying out

  package mutating func setPaths(_ paths: FormerPaths) { self.paths = paths }

  mutating func setApplication(_ record: StateRecord? = nil, coder: JSONText?) { application = (record, coder) }

  mutating func noteShown(to delegate: SessionID) { shown.insert(delegate) }

  package mutating func note(_ message: String?, of nodes: [NodeID]) { for node in nodes { messages[node] = message } }

  package mutating func hold(_ call: FactoryCall) { heldFactoryCalls.append(call) }

  package mutating func takeHeldCalls() -> [FactoryCall] {
    defer { heldFactoryCalls = [] }
    return heldFactoryCalls
  }

  mutating func noteDeferred(_ node: NodeID) { deferred.insert(node) }

  mutating func noteFetched(_ node: NodeID) { deferred.remove(node) }

  // MARK: Units

  package mutating func setUnits(_ units: [NodeID: UnitName]) { self.units = units }

  /// Whether a unit was asked to start and has not failed.
  package var isStarting: Bool { !startedUnits.allSatisfy { failedUnits[$0] != nil } }

  package mutating func start(_ unit: UnitName?, in turn: inout Turn) {
    guard let unit, startedUnits.insert(unit.description).inserted else { return }
    turn.ask(.startUnit(turn.application, unit: unit))
  }

  /// - Returns: the objects that nothing else brings.
  package mutating func unitFailed(_ unit: String, _ message: String) -> [NodeID] {
    failedUnits[unit] = message
    // Objects that were never registered may come with any unit, as long as one is left.
    return (decisions?.items ?? []).filter { item in
      let own = units[item.node]?.description
      return !item.place.isSettled && (own == unit || own == nil && item.isComing && !isStarting)
    }
    .map(\.node)
  }
}

/// What a restoration reads.
package enum RestoringRead: Sendable, Hashable {
  /// What owners show now, in place of what they had written before.
  case shown
  /// The application's own state, and who is to be called with it.
  case application(SessionID, isAsking: Bool)
  /// The state of an object that the session is to make.
  case make(NodeID, RestoringStep.Lookup, SessionID)
  /// The states of a batch.
  case batch(Addressee)
  /// Nothing: everything written before is durable, and its answers are sent.
  case end
}

/// What a restoration has called a client for.
package enum RestoringCall: Hashable {
  case ask
  case make(NodeID)
  case handOut(Addressee)
  case tell
}
