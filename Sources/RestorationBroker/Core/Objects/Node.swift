// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// A node of an application's tree: its record in the archive and its current claim.
///
/// It belongs to the tree that holds it.
package final class Node {
  package let id: NodeID
  package internal(set) var record: NodeRecord
  package internal(set) var parent: Node?
  package internal(set) var children: Set<NodeID> = []

  package var versions = Versions()
  /// Its owner has given a state that was not stored, and was not asked for it since (R4).
  var isUnstored = false

  /// Bytes of its texts as counted for the head.
  var countedText = 0

  var pulled: Pulled?

  package private(set) var savingSteps: [NotedStep<SavingStep>] = []
  package private(set) var restoringSteps: [NotedStep<RestoringStep>] = []
  /// Gives steps their time; `nil` in a tree without an application.
  var context: CoreContext?

  package var claim: Claim?
  /// The last claim, live or not; `nil` if the node was never registered.
  package var claimRecord: ClaimRecord?

  package init(record: NodeRecord, _ context: CoreContext? = nil) {
    self.id = record.node
    self.record = record
    self.context = context
  }

  package struct Claim: Hashable, Sendable {
    package let session: SessionID
    package let handle: ObjectHandle
    /// Monotonic milliseconds since when the owner could read the state (R19).
    package internal(set) var since: Int64
    /// The owner's classes, its own first; empty if it declared none (R25).
    package var classes: [String] { didSet { origin = nil } }
    /// The origin of the owner's states (R25); `nil` until it is looked up again.
    var origin: ContextID?
    /// Highest revision that the owner has pushed (R15).
    package var revision: Int64 = 0
    /// Whether the owner has read or received the state since it claimed the node (R19).
    package var hasDecoded = false
    /// Whether the owner was told that the object is restored; it is told once (R21).
    var isFinished = false
    /// An earlier session has left the object, so it may have been saved (R22).
    var wasLeft = false
    /// The owner registered it as `fresh`: the saved state is another object's, and the first encode replaces it (R29).
    package var isFresh = false
    /// A rollback replaced the state under the owner, whose pushes must not hide the new one either (R19).
    package var isRolledBack = false
    /// The object has moved without the owner's knowledge.
    var hasMoved = false

    package init(session: SessionID, handle: ObjectHandle, since: Int64, classes: [String]) {
      (self.session, self.handle, self.since, self.classes) = (session, handle, since, classes)
    }
  }

  /// A digest of the state pulled last, so that an equal one is not written again (R16).
  struct Pulled {
    /// The row of that state. If the node has another row, the state has changed since.
    let sequence: SequenceNumber
    let digest: StateDigest
  }

  /// Whether its newest state was pulled, has this digest, and is neither damaged nor withheld.
  func wasPulled(_ digest: StateDigest) -> Bool {
    guard let pulled, pulled.sequence == state?.sequence, pulled.digest == digest else { return false }
    return !versions.isUnreadable && !isQuarantined
  }

  /// The state for all but its owner.
  package var state: StateSummary? { versions.newest }

  /// The state for its owner, also if it is withheld. An owner that registered the object as `fresh` gets none (R29).
  package var ownerState: StateSummary? { claim?.isFresh == true ? nil : versions.confirmed }

  /// The state that a decode returns and an encode expects (R15, R19).
  func state(forOwner isOwner: Bool) -> StateSummary? { isOwner ? ownerState : versions.shown }

  /// A state exists, but its owner does not get it (R35).
  package var isQuarantined: Bool {
    guard versions.hasWithheld, let state = ownerState else { return false }
    return versions.isWithheld(state)
  }

  // Patterns, because `== nil` would copy the value, and every push asks for both.

  package var isVacant: Bool { if case nil = claim { true } else { false } }

  package var hasState: Bool { if case nil = versions.newest { false } else { true } }

  /// It exists only for its descendants: it was never registered, or was unregistered (R3).
  package var isPlaceholder: Bool {
    guard claim == nil, !hasState else { return false }
    return claimRecord.map { $0.session == 0 && $0.released == 0 } ?? true
  }

  /// It was unregistered, and exists only for its descendants (R3).
  var isClosed: Bool { isPlaceholder && claimRecord != nil }

  // MARK: Explaining

  /// Notes a step. A first step drops the former ones.
  func note(_ step: SavingStep, isFirst: Bool = false) {
    let time = context?.now.wall ?? 0
    guard isFirst else { return savingSteps.note(step, at: time) }
    // In place, because every push does this.
    if savingSteps.count > 1 { savingSteps.removeSubrange(1...) }
    let first = NotedStep(step, at: Timestamp(milliseconds: time))
    if savingSteps.isEmpty { savingSteps.append(first) } else { savingSteps[0] = first }
  }

  /// Begins a save round with these steps, which many nodes share.
  func begin(with steps: [NotedStep<SavingStep>]) { savingSteps = steps }

  func forgetRestoringSteps() { restoringSteps = [] }

  func note(_ step: RestoringStep, isFirst: Bool = false) {
    if isFirst { restoringSteps = [] }
    restoringSteps.note(step, at: context?.now.wall ?? 0)
  }
}

/// Notes one step for many nodes in one event. Nodes with equal steps share one list.
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
  /// Notes a step for many nodes in one event. A first step drops the former ones.
  func note(_ step: SavingStep, of nodes: [NodeID], isFirst: Bool) {
    var sharing = StepSharing()
    for node in nodes.lazy.compactMap({ self.nodes[$0] }) {
      if isFirst { node.note(step, isFirst: true) } else { sharing.note(step, of: node) }
    }
  }
}

extension Sequence<Node> {
  var textBytes: Int { reduce(0) { $0 + $1.record.textBytes } }

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
