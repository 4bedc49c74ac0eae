// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

/// The restoration under way: its decisions, its callers, and their calls (R21 – R25). Events in, actions out.
///
/// Invariants:
/// 1. Actions are performed one at a time. Events during an action only add more.
/// 2. Nothing of a restoration is left when the next one begins.
package struct Restoring {
  package typealias FactoryCall = (node: NodeID, lookup: RestoringStep.Lookup, session: SessionID)
  typealias PostponedCall = (request: RestoreApplicationState, session: SessionID?, caller: Caller)

  /// Distinguishes its reads from those of an earlier restoration.
  package private(set) var number = 0
  package private(set) var decisions: Restoration?
  /// The tops of the subtrees to restore; `nil` for the whole application.
  private(set) var scope: Set<NodeID>?
  /// Its callers, each with the maximum length of the answer.
  package private(set) var callers: [(call: LongCall, bytesMax: Int)] = []
  /// The trace of the first caller that has one, for the restoration's calls.
  private(set) var trace: TraceContext?
  /// Calls about other objects, which begin when this restoration is over.
  private var postponed: [PostponedCall] = []
  /// The paths of objects when they were planned, for objects that have lost theirs at the end.
  package private(set) var paths = FormerPaths()
  /// The delegate's parameters; read once. References get their handles when they are sent.
  private(set) var application: (record: StateRecord?, coder: JSONText?)?
  private(set) var shown: Set<SessionID> = []
  /// Errors of clients that could not make or decode objects.
  package private(set) var messages: [NodeID: String] = [:]
  /// Factory calls that wait until states delivered earlier are proven (R31).
  private var heldFactoryCalls: [FactoryCall] = []
  /// The head was replaced, so the decisions are about a former one.
  private(set) var isVoid = false
  /// Requested units, the errors of failed ones, and the unit for each object.
  package private(set) var startedUnits: Set<String> = []
  package private(set) var failedUnits: [String: String] = [:]
  package private(set) var units: [NodeID: UnitName] = [:]
  private var timerDue: Int64?
  private var actions: ArraySlice<Restoration.Action> = []
  private var isPerforming = false

  package init() {}

  package var held: Int {
    (isUnderWay ? 1 : 0) + callers.count + postponed.count + heldFactoryCalls.count + actions.count
  }

  /// No automatic save round begins meanwhile (R12).
  package var isUnderWay: Bool { decisions != nil }

  /// How long to wait for a missing data source: as long as for objects, or half of the remaining time, so that the
  /// view's owner has the other half for its answer.
  func awaitedMilliseconds(at now: Int64) -> Int64 {
    guard let decisions else { return ElementResolver.milliseconds }
    let hold = decisions.isHoldOver ? 0 : decisions.holdEnd - now
    return max(hold, min(ElementResolver.milliseconds, (decisions.deadline - now) / 2), 0)
  }

  func mayConcern(_ node: NodeID) -> Bool {
    decisions.map { $0.phase == .startingDelegate || $0.phase == .asking || $0.index[node] != nil } ?? false
  }

  /// Whether it delivers the node's saved state to a session that has registered the object, or will register it.
  func awaits(_ node: NodeID) -> Bool {
    guard let decisions else { return false }
    switch decisions.phase {
    case .startingDelegate, .asking: return true
    case .locating, .delivering:
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

  /// Whether it waits for the delivery of the node's state to end.
  package func isDelivering(_ node: NodeID) -> Bool {
    if case .delivering? = item(of: node)?.place { true } else { false }
  }

  /// Whether it restores the whole application, including the node.
  func isWhole(with node: NodeID) -> Bool { scope == nil && isDelivering(node) }

  // MARK: Callers

  /// Begins a restoration and returns its deadline, or joins the one under way.
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

  /// Begins a restoration without a caller, and returns its deadline.
  mutating func begin(milliseconds: Int64, of scope: Set<NodeID>?, isDecided: Bool, in turn: inout Turn) -> Int64 {
    number += 1
    let deadline = turn.now.monotonic + milliseconds
    // If it continues that of a former broker, its end is told, too.
    let isCalled = scope == nil || !callers.isEmpty
    let begun = turn.now.monotonic
    decisions = Restoration(begun: begun, deadline: deadline, isDecided: isDecided, isCalled: isCalled)
    self.scope = scope
    return deadline
  }

  private func waitingCount(of client: ClientID) -> Int {
    callers.count { $0.call.caller.client == client } + postponed.count { $0.caller.client == client }
  }

  /// Whether it includes all of these subtrees.
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

  /// The caller stops waiting. The restoration continues: half of one is worse. Returns whether the caller was waiting.
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

  /// - Returns: the restoration as it was at its end.
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

  /// Takes an event. Returns whether the caller has to perform the actions now; `next` returns them.
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

  /// Sets the timer to the next deadline of the decisions.
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

  // MARK: Units

  package mutating func setUnits(_ units: [NodeID: UnitName]) { self.units = units }

  /// Whether a requested unit has not failed.
  package var isStarting: Bool { !startedUnits.allSatisfy { failedUnits[$0] != nil } }

  package mutating func start(_ unit: UnitName?, in turn: inout Turn) {
    guard let unit, startedUnits.insert(unit.description).inserted else { return }
    turn.ask(.startUnit(turn.application, unit: unit))
  }

  /// - Returns: the objects that no other unit brings.
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

package enum RestoringRead: Sendable, Hashable {
  /// The application's own state, for a call of this session.
  case application(SessionID, isAsking: Bool)
  /// The state of an object that the session is asked to make.
  case make(NodeID, RestoringStep.Lookup, SessionID)
  /// No state: everything written before is durable, and its answers are sent.
  case end
}

package enum RestoringCall: Hashable {
  case ask
  case make(NodeID)
  case tell
}
