// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Explains why an object was saved and restored, or was not.
extension Application {
  func explain(_ request: ExplainRestoration, by _: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    if self.node(request.object) == nil, case .path(let path) = request.object,
      let closed = runs.facts.shelf.subtrees.last(where: { $0.has(path) })
    {
      let verdict = closed.isRetired ? ExplainRestoration.Verdict.retired : .closed
      return turn.answer(caller, ExplainRestoration.Reply().with { ($0.path, $0.verdict) = (path, verdict.rawValue) })
    }
    let node = try requireNode(request.object)
    // Identifiers of the model are data like the state, and messages of clients may quote both.
    let hides = node.record.isConfidential && !request.reveal
    let reply = ExplainRestoration.Reply().with { message in
      message.path = tree.path(of: node)
      message.saved = hides ? node.savingSteps.compactMap { $0.map(\.withoutClientWords) } : node.savingSteps
      message.restored = hides ? node.restoringSteps.compactMap { $0.map(\.withoutClientWords) } : node.restoringSteps
      let verdict = verdict(on: node)
      message.verdict = verdict.rawValue
      if verdict == .excluded { message.excluder = tree.excluder(of: node).map(describe(excluder:)) }
    }
    turn.answer(caller, reply)
  }

  private func describe(excluder node: Node) -> Excluder {
    var above = node.parent
    while let ancestor = above, tree.path(of: ancestor) == nil { above = ancestor.parent }
    return Excluder().with {
      $0.object = node.claim?.handle
      $0.path = tree.path(of: node)
      $0.below = above.flatMap { tree.path(of: $0) }
      $0.owner = owner(of: node)?.owner
    }
  }

  /// A client's message about several objects may quote a confidential one: then it is shown to none.
  func concerned(_ nodes: [NodeID]) -> [NodeID] {
    let confidential = nodes.filter { tree.node($0)?.record.isConfidential == true }
    return confidential.isEmpty ? nodes : confidential
  }

  /// Failures precede successes, and restoring precedes saving.
  private func verdict(on node: Node) -> ExplainRestoration.Verdict {
    if node.isQuarantined { return .quarantined }
    if node.versions.isUnreadable { return .unreadable }
    return restoringVerdict(on: node) ?? savingVerdict(on: node) ?? (node.isRestored ? .restored : .saved)
  }

  /// `nil` if nothing kept it from being restored.
  private func restoringVerdict(on node: Node) -> ExplainRestoration.Verdict? {
    let verdict = node.restoringSteps.last?.step.verdict
    return verdict == .restored || verdict == .waiting && !isRestoring ? nil : verdict
  }

  /// `nil` if its newest state will be in the next generation.
  private func savingVerdict(on node: Node) -> ExplainRestoration.Verdict? {
    if isUnsaved(node) { return .excluded }
    if !node.hasState { return .neverSaved }
    return node.isStale ? .stale : nil
  }
}

extension Node {
  /// The last round kept an older state, and nothing has been pushed since.
  fileprivate var isStale: Bool {
    for noted in savingSteps.reversed() {
      switch noted.step {
      case .stale: return true
      case .pushed, .encoded, .unchanged, .superseded: return false
      case .included, .excluded, .referenced, .asked, .notServed, .orphaned, .elementUnnamed, .early, .confirmed,
        .dropped, .ownerEnded, .saved:
        continue
      }
    }
    return false
  }

  fileprivate var isRestored: Bool { restoringSteps.contains { $0.step.verdict == .restored } }
}

extension NotedStep {
  fileprivate func map(_ change: (Step) -> Step?) -> NotedStep? {
    change(step).map { NotedStep($0, at: at, times: times) }
  }
}

extension SavingStep {
  fileprivate var withoutClientWords: SavingStep {
    switch self {
    case .elementUnnamed(let owner, _): .elementUnnamed(owner, message: nil)
    case .stale(let owner, let why, _): .stale(owner, why: why)
    case .included, .excluded, .referenced, .asked, .notServed, .orphaned, .encoded, .unchanged, .superseded, .pushed,
      .early, .confirmed, .dropped, .ownerEnded, .saved:
      self
    }
  }
}

extension RestoringStep {
  /// `nil` if the step contains an identifier of the application's model.
  fileprivate var withoutClientWords: RestoringStep? {
    switch self {
    case .resolved: nil
    case .elementUnresolved(let owner, _): .elementUnresolved(owner, message: nil)
    case .skipped(let reason, _): .skipped(reason: reason)
    case .lookedUp, .located, .refused, .passed, .unitFailed, .unitStarted, .ownerEnded, .awaited, .classMismatch,
      .quarantined, .unreadable, .noState, .handedOut, .suspected, .decoded, .finished, .absent:
      self
    }
  }

  /// The verdict if this is the last step.
  fileprivate var verdict: ExplainRestoration.Verdict {
    switch self {
    case .finished, .decoded: .restored
    case .skipped: .skipped
    case .absent: .absent
    case .lookedUp, .located, .refused, .passed, .unitFailed, .unitStarted, .ownerEnded, .awaited, .classMismatch,
      .quarantined, .unreadable, .noState, .handedOut, .suspected, .resolved, .elementUnresolved:
      .waiting
    }
  }
}
