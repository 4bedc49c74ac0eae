// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Telling why an object was saved and restored, or was not.
extension Application {
  func explain(_ request: ExplainRestoration, by _: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    let node = try requireNode(request.object)
    // Names of a model are its data as much as the state is, and what a client says of it may quote that.
    let hides = node.record.isConfidential && !request.reveal
    let reply = ExplainRestoration.Reply().with { message in
      message.path = tree.path(of: node)
      message.saved = hides ? node.savingSteps.map(\.withoutClientWords) : node.savingSteps
      message.restored =
        hides ? node.restoringSteps.compactMap(\.withoutClientWords) : node.restoringSteps
      message.verdict = verdict(on: node).rawValue
    }
    turn.answer(caller, reply)
  }

  /// What a client says of several objects at once may be about a confidential one of them: then it is only theirs.
  func concerned(_ nodes: [NodeID]) -> [NodeID] {
    let confidential = nodes.filter { tree.node($0)?.record.isConfidential == true }
    return confidential.isEmpty ? nodes : confidential
  }

  /// What went wrong comes before what went well, restoring before saving.
  private func verdict(on node: Node) -> ExplainRestoration.Verdict {
    if node.isQuarantined { return .quarantined }
    if node.isUnreadable { return .unreadable }
    return restoringVerdict(on: node) ?? savingVerdict(on: node) ?? (node.isRestored ? .restored : .saved)
  }

  /// Nil where nothing has kept it from being restored.
  private func restoringVerdict(on node: Node) -> ExplainRestoration.Verdict? {
    let verdict = node.restoringSteps.last?.verdict
    return verdict == .restored || verdict == .waiting && !isRestoring ? nil : verdict
  }

  /// Nil where its newest state is part of the next generation.
  private func savingVerdict(on node: Node) -> ExplainRestoration.Verdict? {
    if !tree.isIncluded(node), !isReferenced(node) { return .excluded }
    if !node.hasState { return .neverSaved }
    return node.isStale ? .stale : nil
  }

  /// Whether a saved object leads to it (R7).
  private func isReferenced(_ node: Node) -> Bool { tree.reachedNodes.contains(node.id) }
}

extension Node {
  /// The last round kept an older state, and nothing has been pushed since.
  fileprivate var isStale: Bool {
    for step in savingSteps.reversed() {
      switch step {
      case .stale: return true
      case .pushed, .encoded, .unchanged, .superseded: return false
      case .included, .excluded, .referenced, .asked, .notServed, .orphaned, .elementUnnamed, .early, .ownerEnded,
        .saved:
        continue
      }
    }
    return false
  }

  fileprivate var isRestored: Bool { restoringSteps.contains { $0.verdict == .restored } }
}

extension SavingStep {
  /// The same without what a client has said.
  fileprivate var withoutClientWords: SavingStep {
    switch self {
    case .elementUnnamed(let owner, _): .elementUnnamed(owner, message: nil)
    case .stale(let owner, let why, _): .stale(owner, why: why)
    case .included, .excluded, .referenced, .asked, .notServed, .orphaned, .encoded, .unchanged, .superseded, .pushed,
      .early, .ownerEnded, .saved:
      self
    }
  }
}

extension RestoringStep {
  /// The same without what a client has said; nil if it tells an identifier of the application's model.
  fileprivate var withoutClientWords: RestoringStep? {
    switch self {
    case .resolved: nil
    case .elementUnresolved(let owner, _): .elementUnresolved(owner, message: nil)
    case .skipped(let reason, _): .skipped(reason: reason)
    case .lookedUp, .located, .refused, .unitFailed, .unitStarted, .ownerEnded, .awaited, .classMismatch, .quarantined,
      .unreadable, .noState, .handedOut, .suspected, .decoded, .finished, .absent:
      self
    }
  }

  /// What it says of its object if it is the last step.
  fileprivate var verdict: ExplainRestoration.Verdict {
    switch self {
    case .finished, .decoded: .restored
    case .skipped: .skipped
    case .absent: .absent
    case .lookedUp, .located, .refused, .unitFailed, .unitStarted, .ownerEnded, .awaited, .classMismatch, .quarantined,
      .unreadable, .noState, .handedOut, .suspected, .resolved, .elementUnresolved:
      .waiting
    }
  }
}
