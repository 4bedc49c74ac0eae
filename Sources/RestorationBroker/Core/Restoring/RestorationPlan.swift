// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// The objects of a restoration and their lookups (R22, R23). Reads the parts and changes nothing.
struct RestorationPlan {
  let tree: NodeTree
  let sessions: SessionTable
  let origins: StateOrigins
  let runs: RunHistory
  /// The tops of its subtrees; nil for the whole application.
  var scope: Set<NodeID>?

  // MARK: Concern

  /// The vacant objects to make again, of those that are made in this way.
  func vacant(where isMade: (Node) -> Bool) -> [NodeID] {
    let unsaved = unsaved
    let vacant = tree.nodes.values.filter { $0.isVacant && isMade($0) && concerns($0, besides: unsaved) }
    return vacant.filter { !runs.isRefused($0) }.map(\.id)
  }

  var isEmpty: Bool {
    let unsaved = unsaved
    return !tree.subtrees(of: scope).contains { concerns($0, besides: unsaved) }
  }

  /// The nodes above the subtrees.
  private var ancestors: Set<NodeID> {
    var ancestors: Set<NodeID> = []
    for top in scope ?? [] {
      var node = tree.node(top)?.parent
      while let ancestor = node, ancestors.insert(ancestor.id).inserted { node = ancestor.parent }
    }
    return ancestors
  }

  /// Nodes that are removed when the run begins, if none has begun (R4).
  private var unsaved: Set<NodeID> {
    sessions.allAreDiscarded ? Set(tree.unsaved(among: tree.nodes.values).map(\.id)) : []
  }

  /// Whether a session has left a state that its present owner has neither decoded nor replaced. An excluded object
  /// without references to it has gone with its session (R4).
  private func concerns(_ node: Node, besides unsaved: Set<NodeID>) -> Bool {
    guard !unsaved.contains(node.id), node.record.component != nil, node !== tree.applicationNode else { return false }
    if node.hasState { return node.claim?.hasDecoded != true }
    if let claim = node.claim { return claim.wasLeft && !claim.hasDecoded }
    return !node.isPlaceholder && (node.record.kind == .viewController || node.record.restorationClass != nil)
  }

  // MARK: Objects

  /// The objects and vacant ancestors, parents first, siblings by age. `isStarting`: a unit was asked to start.
  func objects(_ units: [NodeID: UnitName], isStarting: Bool) -> [Restoration.Planned] {
    var plan: [Restoration.Planned] = []
    let (unsaved, ancestors) = (unsaved, ancestors)
    let roots = tree.nodes.values.filter { $0.parent == nil }.sorted { $0.id > $1.id }
    var next: [(node: Node, above: NodeID?, isInside: Bool)] = roots.map { ($0, nil, scope == nil) }
    while let (node, above, isBelow) = next.popLast() {
      let isInside = isBelow || scope?.contains(node.id) == true
      guard isInside || ancestors.contains(node.id) else { continue }
      let isPlanned = (isInside || node.isVacant) && concerns(node, besides: unsaved)
      if isPlanned {
        plan.append(planned(node, below: above, units[node.id], isStarting: isStarting, isAncestor: !isInside))
      }
      let nearest = isPlanned ? node.id : above
      for child in node.children.sorted(by: >) {
        if let child = tree.nodes[child] { next.append((child, nearest, isInside)) }
      }
    }
    return plan
  }

  private func planned(
    _ node: Node,
    below parent: NodeID?,
    _ unit: UnitName?,
    isStarting: Bool,
    isAncestor: Bool
  ) -> Restoration.Planned {
    let isAwaited = node.isVacant && isAwaited(node)
    let role = isAwaited ? lastOwner(of: node)?.role : nil
    return Restoration.Planned(
      node: node.id,
      parent: parent,
      lookups: lookups(for: node, unit),
      isExpected: !node.isVacant || isAwaited && role == nil,
      role: role,
      hasUnit: isStarting && !isKnown(node),
      isAncestor: isAncestor
    )
  }

  /// A process that ended this long before the last one of its run is not awaited in the next run.
  private static let awaitedMilliseconds: Int64 = 60_000

  /// Whether its process at the end of the last run may be about to register it. Objects that were released, were there
  /// in this run, or were missing when a restoration completed, are not awaited (R23).
  private func isAwaited(_ node: Node) -> Bool {
    let isOver = sessions.allAreDiscarded
    let end = isOver ? runs.facts.used : runs.facts.formerEnd
    let begin = max(isOver ? runs.facts.begun : runs.facts.formerBegun, end - Self.awaitedMilliseconds)
    guard node.claimRecord?.released == 0, let left = sessions.orphaned(node) else { return false }
    return left.restorations >= runs.restorations && begin <= left.since && left.since <= end
  }

  /// Whether a session ever registered it; an object that only has a state may belong to any process.
  private func isKnown(_ node: Node) -> Bool { (node.claimRecord?.session ?? 0) != 0 }

  /// The role of the process that had it last.
  private func role(of node: Node) -> String? {
    if let state = node.state, let role = origins[state.context]?.role { return role }
    return lastOwner(of: node)?.role
  }

  /// How near a session is to the process that had the object last (R22).
  func nearness(of session: Session, to node: Node) -> Restoration.Maker.Nearness {
    let last = lastOwner(of: node)
    if let unit = last?.knownUnit, unit == session.facts.knownUnit { return .sameUnit }
    if let role = role(of: node), role == session.facts.role { return .sameRole }
    return .other
  }

  /// The facts of the object's present or last session.
  func lastOwner(of node: Node) -> SessionFacts? {
    node.claimRecord.flatMap { sessions[$0.session]?.facts } ?? ended(node)
  }

  private func ended(_ node: Node) -> SessionFacts? {
    node.claimRecord.flatMap { sessions.ended($0.session) }.map { SessionFacts(stored: $0.facts) }
  }

  /// The lookups of a vacant object (R22, R23).
  private func lookups(for node: Node, _ unit: UnitName?) -> [RestoringStep.Lookup] {
    guard node.record.kind == .view || node.record.restorationClass == nil else { return [.restorationClass] }
    let ways: [RestoringStep.Lookup] = node.record.kind == .viewController ? [.delegate, .existing] : [.existing]
    return unit == nil ? ways : ways + [.storyboard]
  }

  // MARK: Units

  /// The unit of each vacant object: the registered one, else that of the process that had the object last.
  var units: [NodeID: UnitName] {
    var ofSessions: [SessionID: UnitName?] = [:]
    var units: [NodeID: UnitName] = [:]
    for node in tree.nodes.values where node.isVacant {
      // Imported objects start nothing before a process has registered them.
      guard let session = node.claimRecord?.session, session != 0,
        ![.closed, .userQuit].contains(sessions.ending(of: session))
      else { continue }
      if let own = node.record.storyboard ?? node.ownerState.flatMap({ origins[$0.context]?.storyboard }) {
        units[node.id] = UnitName(own)
      } else {
        let known = ofSessions[session] ?? ended(node)?.knownUnit.flatMap { UnitName($0) }
        ofSessions[session] = known
        units[node.id] = known
      }
    }
    return units
  }

  // MARK: Roles

  /// Milliseconds without a registration after which a session is taken to have registered what it had.
  private static let quietMilliseconds: Int64 = 1_000

  /// Until when a session of this process role may be about to register objects; nil if none is (R23).
  func awaitedUntil(_ role: String, at now: Int64) -> Int64? {
    let present = sessions.values.filter { $0.facts.role == role && !$0.isDiscarded && !$0.hasExited }
    guard !present.isEmpty else { return .max }
    guard !present.contains(where: \.hasCompletedRestoration) else { return nil }
    let end = (present.map(\.lastRegistered).min() ?? now) + Self.quietMilliseconds
    return end > now ? end : nil
  }
}

extension NodeTree {
  /// The nodes of these subtrees; all nodes if `tops` is nil.
  func subtrees(of tops: Set<NodeID>?) -> [Node] {
    guard let tops else { return Array(nodes.values) }
    return tops.compactMap { self.node($0) }.flatMap { subtree(of: $0) }
  }
}
