// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// One node of an application's tree: its record in the archive, and its current claim.
///
/// Confined to the tree that holds it.
package final class Node {
  package let id: NodeID
  package internal(set) var record: NodeRecord
  package internal(set) var parent: Node?
  package internal(set) var children: Set<NodeID> = []

  /// The newest state, and the newest that is not early if that is another one (R19); texts stay in the archive.
  package var state: StateSummary?
  package var beforeClaim: StateSummary?
  /// The newest row was found damaged; cleared by the next write (R32).
  package var isUnreadable = false
  /// Its owner has given a state that was not stored, and has not been asked for it since (R4).
  var isUnstored = false

  /// Bytes of its texts, as the head was counted.
  var countedText = 0

  /// Rows that are withheld, or were until a newer one replaced them, oldest first; nearly always `nil` (R35).
  package internal(set) var withheld: [WithheldRow]?

  /// The state at the last pull; see `Pulled`.
  var pulled: Pulled?

  /// Its steps in the last save round, and pushes since.
  package private(set) var savingSteps: [NotedStep<SavingStep>] = []
  /// Its steps in the last restoration.
  package private(set) var restoringSteps: [NotedStep<RestoringStep>] = []
  /// Tells the time of steps; `nil` in a tree that no application works with.
  var context: CoreContext?

  /// The owner could not take in what it was given: what it writes next takes the place of that (R29).
  var hasFailed = false

  /// The claim; `nil` while the node is vacant.
  package var claim: Claim?
  /// The last claim, live or not; `nil` if the node was never registered.
  package var claimRecord: ClaimRecord?

  package init(record: NodeRecord, _ context: CoreContext? = nil) {
    self.id = record.node
    self.record = record
    self.context = context
  }

  /// A live session's hold on a node.
  package struct Claim: Hashable, Sendable {
    package let session: SessionID
    package let handle: ObjectHandle
    /// Monotonic milliseconds from which the owner could look at the state (R19).
    package internal(set) var since: Int64
    /// The classes the owner declared, its own first; empty where it declared none (R25).
    package var classes: [String] { didSet { origin = nil } }
    /// The number of what is recorded of the owner with its states (R25); nil until it is looked up anew.
    var origin: ContextID?
    /// Highest revision the owner has pushed (R15).
    package var revision: Int64 = 0
    /// Whether the owner has asked for the state since it claimed the node, or was given it (R19).
    package var hasDecoded = false
    /// Whether the owner was told that the object is restored: once, whatever else concerns it then (R21).
    var isFinished = false
    /// An earlier session has left the object, so that it may have been saved (R22).
    var wasLeft = false
    /// Its owner says that it is a new object: what is saved is not its state, and goes when it is first encoded (R29).
    var isFresh = false
    /// The state was replaced under the owner by that of a generation, which its pushes must not hide either (R19).
    package var isRolledBack = false
    /// The owner has not been told where the object is since it moved.
    var hasMoved = false

    package init(session: SessionID, handle: ObjectHandle, since: Int64, classes: [String]) {
      (self.session, self.handle, self.since, self.classes) = (session, handle, since, classes)
    }
  }

  /// A pulled state by which it is known again, so that it is not written twice (R16).
  struct Pulled {
    /// The row it is in: any other one has come in between.
    let sequence: SequenceNumber
    let digest: StateDigest
  }

  /// Whether its newest state is one that was pulled and had this digest, and is in use.
  func wasPulled(_ digest: StateDigest) -> Bool {
    pulled.map { $0.sequence == state?.sequence && $0.digest == digest } ?? false && !isUnreadable && !isQuarantined
  }

  // Patterns, because `== nil` copies what it compares: the two are asked for with every push.

  package var isVacant: Bool { if case nil = claim { true } else { false } }

  package var hasState: Bool { if case nil = state { false } else { true } }

  /// It was never registered, or was unregistered: it exists only for its descendants (R3).
  package var isPlaceholder: Bool {
    guard claim == nil, state == nil else { return false }
    return claimRecord.map { $0.session == 0 && $0.released == 0 } ?? true
  }

  /// It was unregistered, and is there for its descendants only (R3).
  var isClosed: Bool { isPlaceholder && claimRecord != nil }

  /// The state for an owner that has not decoded; other readers get `state` (R19).
  package var stateBeforeClaim: StateSummary? {
    guard let state, claim?.isFresh != true else { return nil }
    return state.isEarly ? beforeClaim : state
  }

  /// Numbers of the origins of what is counted of it (R25).
  var contexts: [ContextID] { state.map { [$0.context] } ?? [] }

  // MARK: Quarantine

  /// Those rows of what is withheld that nothing newer has taken the place of.
  var withheldInUse: [StateRow] {
    let current = [state, beforeClaim].compactMap { $0?.sequence }
    return (withheld ?? []).map(\.row).filter { current.contains($0.sequence) }
  }

  /// Whether a state of it is withheld from owners.
  package func isWithheld(_ state: StateSummary) -> Bool { withheldSince(state.sequence) != nil }

  /// Since when a state of it is withheld, in milliseconds since 1970; nil where it is not.
  func withheldSince(_ state: SequenceNumber) -> Int64? { withheld?.first { $0.row.sequence == state }?.since }

  /// Its owner would be given nothing, although there is a state (R35).
  package var isQuarantined: Bool {
    guard withheld != nil, let state = stateBeforeClaim else { return false }
    return isWithheld(state)
  }

  // MARK: Explaining

  /// Notes a step; a first step drops the former ones.
  func note(_ step: SavingStep, isFirst: Bool = false) {
    let time = context?.now.wall ?? 0
    guard isFirst else { return savingSteps.note(step, at: time) }
    // In place, because this is done for every push.
    if savingSteps.count > 1 { savingSteps.removeSubrange(1...) }
    let first = NotedStep(step, at: Timestamp(milliseconds: time))
    if savingSteps.isEmpty { savingSteps.append(first) } else { savingSteps[0] = first }
  }

  /// A save round begins with these steps, which many nodes share.
  func begin(with steps: [NotedStep<SavingStep>]) { savingSteps = steps }

  /// It can be restored again.
  func forgetRestoringSteps() { restoringSteps = [] }

  func note(_ step: RestoringStep, isFirst: Bool = false) {
    if isFirst { restoringSteps = [] }
    restoringSteps.note(step, at: context?.now.wall ?? 0)
  }
}

/// Notes a step of many nodes in one event: those with the same steps share one list of them, which is made once.
struct StepSharing {
  private var last: (steps: [NotedStep<SavingStep>], step: SavingStep, result: [NotedStep<SavingStep>])?

  mutating func note(_ step: SavingStep, of node: Node) {
    let steps = node.savingSteps
    if let last, last.step == step, last.steps == steps { return node.begin(with: last.result) }
    node.note(step)
    last = (steps, step, node.savingSteps)
  }
}

extension NodeTree {
  /// Notes a step of many nodes in one event; a first step drops the former ones.
  func note(_ step: SavingStep, of nodes: [NodeID], isFirst: Bool) {
    var sharing = StepSharing()
    for node in nodes.lazy.compactMap({ self.nodes[$0] }) {
      if isFirst { node.note(step, isFirst: true) } else { sharing.note(step, of: node) }
    }
  }
}

extension Sequence<Node> {
  /// Bytes of their texts.
  var textBytes: Int { reduce(0) { $0 + $1.record.textBytes } }

  /// Numbers of the origins of what is counted of them (R25).
  var contexts: [ContextID] { compactMap { $0.state?.context } }
}

extension Array {
  private static var stepsMax: Int { 32 }

  fileprivate mutating func note<Step>(_ step: Step, at milliseconds: Int64) where Element == NotedStep<Step> {
    let time = Timestamp(milliseconds: milliseconds)
    if let last = indices.last, self[last].step == step {
      self[last].at = time
      self[last].times += 1
    } else if count < Self.stepsMax {
      append(NotedStep(step, at: time))
    }
  }
}
