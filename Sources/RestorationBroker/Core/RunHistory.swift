// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// The current or last run of an application, and its record in the archive (R16, R20).
///
/// Invariant: the code that changes the record writes it in the same event, so that it becomes durable.
package struct RunHistory {
  private var record = RunRecord(run: 0, restorations: 0, facts: "{}")
  package private(set) var facts = RunFacts()

  private var isBackupAwaited = false
  /// Older states that provisional ones had replaced when the delegate declined. Each counts while nothing newer than
  /// `upTo` was written.
  private var declined: [NodeID: (state: StateSummary, upTo: SequenceNumber)] = [:]

  /// Nodes that may have a withheld state.
  package private(set) var withholding: Set<NodeID> = []

  package init() {}

  package var number: Int64 { record.run }
  /// Completed restorations of all runs.
  package var restorations: Int64 { record.restorations }
  package var blame: Blame {
    get { facts.blame }
    set { facts.blame = newValue }
  }
  package var units: [RunFacts.Unit] {
    get { facts.units }
    set { facts.units = newValue }
  }

  var affinity: String? {
    get { facts.affinity }
    set { facts.affinity = newValue }
  }

  package mutating func load(_ record: RunRecord?, damage: String?) {
    self.record = record ?? self.record
    facts = RunFacts(stored: self.record.facts)
    if let damage { facts.damage = damage }
  }

  package mutating func write(withheld: Int, withholdsAll: Bool, in turn: inout Turn) {
    (facts.withheld, facts.withholdsAll) = (Int64(withheld), withholdsAll)
    record.facts = facts.stored
    turn.write(.run(record))
  }

  // MARK: Runs

  /// - Parameter wall: milliseconds since 1970.
  package mutating func begin(hasState: Bool, after sequence: SequenceNumber = 0, at wall: Int64 = 0) {
    record.run += 1
    facts.previousOutcome = facts.outcome
    facts.outcome = .clean
    facts.beganPristine = !hasState
    facts.isOpen = true
    facts.endedByUserQuit = false
    facts.hasCompletedRestoration = false
    (facts.formerBegun, facts.begun, facts.formerEnd) = (facts.begun, wall, facts.used)
    facts.began = sequence
    forgetRefusals()
  }

  /// - Parameter isLast: whether the run has no other session.
  package mutating func sessionEnded(_ outcome: RunFacts.Outcome, role: String?, isLast: Bool, at wall: Int64 = 0) {
    facts.used = wall
    if outcome == .crashed { facts.outcome = .crashed }
    if let role, facts.outcomeByRole[role] != nil || facts.outcomeByRole.count < RunFacts.rolesMax {
      facts.outcomeByRole[role] = outcome
    }
    guard isLast else { return }
    facts.isOpen = false
    facts.damage = nil
  }

  mutating func noteUse(in turn: borrowing Turn) { facts.used = turn.now.wall }

  package mutating func userQuit() { facts.endedByUserQuit = true }

  /// A new state does not depend on the ends of earlier runs (R20).
  package mutating func forgetOutcomes() {
    facts.outcome = .clean
    facts.outcomeByRole = [:]
    facts.endedByUserQuit = false
  }

  package mutating func forgetRoles() { facts.outcomeByRole = [:] }

  /// The reason reported to a session of the role (R20).
  package func reason(for role: String?, hasState: Bool, isToRestore: Bool) -> RestorationReason {
    if facts.damage != nil { return .recover }
    guard hasState else { return .pristine }
    if isToRestore { return .restore }
    if let role, let outcome = facts.outcomeByRole[role] { return outcome == .crashed ? .recover : .launch }
    if facts.beganPristine { return .pristine }
    return facts.previousOutcome == .crashed ? .recover : .launch
  }

  // MARK: Restorations

  package mutating func completeRestoration() -> Bool {
    guard !facts.hasCompletedRestoration else { return false }
    facts.hasCompletedRestoration = true
    record.restorations += 1
    return true
  }

  /// The delegate has declined what this run started from; it may be asked for again (R22).
  ///
  /// - Parameter tops: the objects it was asked about, with all below them; `nil` for all.
  mutating func decline(_ nodes: some Sequence<Node>, below tops: [NodeID]?, upTo sequence: SequenceNumber) {
    for node in nodes {
      // Only states that are confirmed just now and were in the generation the run started from.
      let isSettled = node.versions.isProvisional && (node.state?.sequence ?? 0) > facts.began
      let former = isSettled ? node.versions.hidden.flatMap { $0.sequence <= facts.began ? $0 : nil } : nil
      declined[node.id] = (declinedState(of: node) ?? former).map { (state: $0, upTo: sequence) }
    }
    if let tops { refuse(tops) } else { facts.decision = .declined }
  }

  /// The run restores from now on; `isUnderWay` if anything is to be restored.
  package mutating func restore(isUnderWay: Bool = false) {
    (facts.decision, facts.isRestoring) = (.restoring, isUnderWay)
  }

  mutating func endRestoration() { facts.isRestoring = false }

  /// Whether the state is delivered to any session that registers its object; in a declined run only if written in it
  /// (R29).
  func delivers(_ state: StateSummary) -> Bool {
    switch facts.decision {
    case .undecided: false
    case .restoring: true
    case .declined: state.sequence > facts.began
    }
  }

  /// The state that the run started from, if a no has confirmed a newer one and nothing was written since.
  func declinedState(of node: Node) -> StateSummary? {
    guard !declined.isEmpty, let state = node.state, let declined = declined[node.id] else { return nil }
    return state.sequence <= declined.upTo ? declined.state : nil
  }

  /// The objects must not be restored as they were saved.
  ///
  /// - Parameters:
  ///   - asked: all objects that were asked about; their former refusals are void.
  ///   - settled: the objects and all below them.
  package mutating func refuse(_ nodes: [NodeID], of asked: [NodeID] = [], settling settled: [NodeID] = []) {
    facts.refused.subtract(asked)
    facts.refused.formUnion(nodes)
    if !declined.isEmpty { for node in settled { declined[node] = nil } }
  }

  package mutating func forgetRefusals() {
    (facts.decision, facts.isRestoring, facts.refused, declined) = (.undecided, false, [], [:])
  }

  /// A dropped object's refusal still counts for the objects below it, unless its node is gone.
  mutating func forget(_ node: NodeID, isGone: Bool) {
    if isGone, !facts.refused.isEmpty { facts.refused.remove(node) }
  }

  /// Whether the saved state of the node, or of one above it, was declined or refused in this run. New states then hide
  /// nothing (R19).
  func isGivenUp(_ node: Node) -> Bool {
    facts.decision == .declined && (node.ownerState?.sequence ?? 0) <= facts.began || isRefused(node)
  }

  func isRefused(_ node: Node) -> Bool {
    guard !facts.refused.isEmpty else { return false }
    var current: Node? = node
    while let node = current {
      if facts.refused.contains(node.id) { return true }
      current = node.parent
    }
    return false
  }

  // MARK: The shelf

  /// - Returns: the subtrees that no longer fit.
  mutating func close(_ subtree: ClosedShelf.Subtree) -> [ClosedShelf.Subtree] { facts.shelf.add(subtree) }

  mutating func reopen(_ subtree: ClosedShelf.Subtree) { facts.shelf.remove(subtree) }

  /// - Returns: the rows that are no longer needed.
  mutating func emptyShelf() -> [StateRow] {
    defer { facts.shelf = ClosedShelf() }
    return facts.shelf.rows
  }

  /// Forgets units whose processes were missing when a restoration completed (R13, R23).
  package mutating func forgetOldUnits() { facts.units.removeAll { $0.run < record.run } }

  // MARK: Backup copies

  private static let backupMilliseconds: Int64 = 24 * 3_600 * 1_000
  /// The copy waits for more writes of about the same time.
  private static let settlingMilliseconds: Int64 = 300_000

  /// Schedules a backup copy after a change of content, if the last one is a day old (R32).
  package mutating func awaitBackup(in turn: inout Turn) {
    guard !isBackupAwaited else { return }
    let age = turn.now.wall - facts.backedUp
    // If the copy is from the future, the clock was wrong.
    guard age >= Self.backupMilliseconds || age < 0 else { return }
    isBackupAwaited = true
    turn.ask(.setTimer(.backup(turn.application), milliseconds: Self.settlingMilliseconds))
  }

  /// - Returns: whether the copy is still due.
  package mutating func backUp(in turn: borrowing Turn) -> Bool {
    defer { isBackupAwaited = false }
    if isBackupAwaited { facts.backedUp = turn.now.wall }
    return isBackupAwaited
  }

  /// Notes since when a copy in an earlier format exists.
  package mutating func keepFormer(_ isKept: Bool, in turn: borrowing Turn) {
    facts.former = isKept ? facts.former ?? RunFacts.Former(since: turn.now.wall, restorations: restorations) : nil
  }

  /// Whether that copy is no longer needed: the present format has worked for 30 days and in 3 restorations. Neither
  /// suffices alone, because the clock may have been wrong. The first restoration may have begun before.
  package mutating func isFormerDue(in turn: borrowing Turn) -> Bool {
    guard var former = facts.former else { return false }
    // A time in the future was recorded while the clock was wrong.
    former.since = min(former.since, turn.now.wall)
    facts.former = former
    return restorations - former.restorations >= 3 && turn.now.wall - former.since >= 30 * 24 * 3_600 * 1_000
  }

  package mutating func quarantine(in turn: borrowing Turn) { facts.quarantined = turn.now.wall }

  mutating func withhold(_ nodes: some Sequence<NodeID>) { withholding.formUnion(nodes) }

  package mutating func forgetBlame() {
    facts.blame = Blame()
    facts.quarantined = 0
    withholding = []
  }

  // MARK: Logging out

  /// Processes that end from now on have not crashed (R30).
  package mutating func logOut() { facts.isLogout = true }

  /// - Returns: whether the user had logged out. Live processes were not logged out.
  package mutating func logIn() -> Bool {
    defer { facts.isLogout = false }
    return facts.isLogout
  }
}
