// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive
package import RestorationWire

/// One application with an open archive: its tree, its sessions, its run.
///
/// Invariants:
/// 1. This state equals what the archive will hold once all changes so far are durable, except between two pieces of a
///    long turn.
/// 2. If a transaction fails, this state is dropped and the application is loaded again from the archive.
/// 3. A part gets the turn and cannot reach the application. Only `restoring` may ask it while it decides
///    (`RestorationFacts`), and no answer reads `restoring`. So accesses never overlap, and Swift need not check for
///    that at run time (`@exclusivity`).
package final class Application {
  @exclusivity(unchecked) var turn: Turn
  @exclusivity(unchecked) package internal(set) var tree = NodeTree()
  @exclusivity(unchecked) package internal(set) var sessions = SessionTable()
  @exclusivity(unchecked) var origins = StateOrigins()
  @exclusivity(unchecked) package internal(set) var generations = GenerationHistory()
  @exclusivity(unchecked) var runs = RunHistory()
  @exclusivity(unchecked) package internal(set) var budget = ArchiveBudget()
  @exclusivity(unchecked) var reach = Reach()
  @exclusivity(unchecked) package internal(set) var trials = DecodeTrials()
  var parentWaits = ParentWaits()
  var calls = OutgoingCalls()
  @exclusivity(unchecked) var saving = Saving()
  @exclusivity(unchecked) var restoring = Restoring()
  @exclusivity(unchecked) var deliveries = Deliveries()
  @exclusivity(unchecked) var providers = Providers()
  var resolver = ElementResolver()
  var jobs = ArchiveJobs()

  package enum Phase {
    case opening
    case open
    /// The archive exists but cannot be used, for this reason (R20).
    case unreadable(String)
  }

  init(id: ApplicationID, name: ApplicationName, context: CoreContext) {
    turn = Turn(of: id, named: name, context)
    tree = NodeTree(last: 0, context)
  }

  package var id: ApplicationID { turn.application }
  package var name: ApplicationName { turn.name }
  package var phase: Phase { turn.phase }
  package var sequence: SequenceNumber { turn.sequence }

  /// Calls wait: the archive is opening, the transaction after a failed one is not durable yet, or a long turn runs.
  var isUnsettled: Bool { if case .opening = phase { true } else { turn.isOnTrial || turn.isLong } }

  /// The head holds content that no generation holds (R16).
  var hasUnsealedContent: Bool { generations.hasUnsealedContent(in: turn) }

  /// The archive is empty, and nothing would be restored from it.
  var isBlank: Bool {
    guard case .open = phase, !name.isSetAside, sessions.isEmpty, generations.all.isEmpty, runs.facts.damage == nil,
      runs.facts.shelf.subtrees.isEmpty
    else { return false }
    return !tree.nodes.values.contains(where: \.hasState) && restorationPlan.isEmpty
  }

  // MARK: Writing

  @discardableResult
  func write(_ change: ArchiveChange) -> SequenceNumber {
    if case .open = phase, change.isContent {
      saving.noteChange(in: &turn)
      runs.awaitBackup(in: &turn)
    }
    if case .state(let record) = change { tree.noteLength(of: record, turn.limits) }
    return turn.write(change)
  }

  func write(_ node: Node) {
    // A removed node needs no texts.
    let record = node.record.isRemoved ? .removal(of: node.id, successor: node.record.successor) : node.record
    budget.growTexts(by: record.textBytes - node.countedText, at: write(.node(record)))
    node.countedText = record.textBytes
  }

  /// Reads states once the changes up to `after` are durable.
  func read(
    _ rows: [StateRequest.Row],
    for purpose: StateRequest.Purpose,
    _ caller: Caller = .nobody,
    after: SequenceNumber
  ) {
    let request = StateRequest(caller: caller, purpose: purpose, rows: rows)
    jobs.read(.read(id, request, after: after), in: &turn)
  }

  // MARK: Finding

  func owner(of node: Node) -> Session? { node.claim.flatMap { sessions[$0.session] } }

  func node(_ reference: ObjectReference) -> Node? { tree.node(reference) }

  func requireNode(_ reference: ObjectReference, at pointer: String = "/object") throws(ErrorObject) -> Node {
    if let node = node(reference) { return node }
    throw .unknownObject(reference, at: pointer)
  }

  /// Throws `notOwner`, or `replaced` after a take-over, unless the session owns the object.
  func requireOwn(_ reference: ObjectReference, _ session: Session?) throws(ErrorObject) -> Node {
    if case .handle(let handle) = reference, let session, session.replaced.contains(handle) {
      throw .replaced()
    }
    let node = try requireNode(reference)
    guard let session, node.claim?.session == session.id else {
      if let session, session.replacedNodes.contains(node.id) { throw .replaced() }
      let owner = owner(of: node)
      throw .restoration(
        .notOwner,
        "the object belongs to \(owner.map(\.words) ?? "no session")",
        hint: "Only the session that registered the object may do this; register it first.",
        path: tree.path(of: node),
        details: ["owners": .array(owner.map { [$0.ownerJSON] } ?? [])]
      )
    }
    return node
  }
}
