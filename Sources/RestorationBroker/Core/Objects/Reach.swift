// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

/// The objects that are saved only because a saved state refers to them (R7). Cached until a change may affect the set.
struct Reach {
  /// `nil` until it is needed.
  private var nodes: Set<NodeID>?
  /// Since owners were last asked, an unsaved object may have become a saved one (R4).
  private var mayHaveGrown = false
  /// Owners may have given states that were not stored.
  private var hasUnstored = false

  var isToBeAskedFor: Bool { mayHaveGrown && hasUnstored }

  /// Whether a node that is not included is saved anyway.
  mutating func contains(_ node: Node, in tree: NodeTree) -> Bool {
    if nodes == nil { nodes = tree.reachedNodes }
    return nodes?.contains(node.id) ?? false
  }

  mutating func noteUnstored() { hasUnstored = true }

  mutating func noteAsked(isAnyLeft: Bool) { (mayHaveGrown, hasUnstored) = (false, isAnyLeft) }

  /// An object may be reached no longer.
  mutating func mayShrink() { nodes = nil }

  /// An object may be included or reached now.
  mutating func mayGrow() { (nodes, mayHaveGrown) = (nil, true) }

  mutating func note(_ old: Node.References, _ new: Node.References, in tree: NodeTree) {
    guard old != new else { return }
    let (former, present) = (old.targets, new.targets)
    func leadsOut(_ targets: Set<NodeID>) -> Bool {
      targets.contains { tree.node($0).map { !tree.isIncluded($0) } ?? false }
    }
    if leadsOut(former.subtracting(present)) { mayShrink() }
    if leadsOut(present.subtracting(former)) { mayGrow() }
  }
}

extension Node {
  /// References of its states: the newest, and the confirmed one that it hides (R7, R19).
  struct References: Equatable {
    let newest: String?
    let hidden: String?

    var targets: Set<NodeID> {
      Set(ArchiveReferences.targets(ofTable: newest) + ArchiveReferences.targets(ofTable: hidden))
    }
  }

  var hasReferences: Bool {
    if case .some = versions.newest?.references { return true }
    if case .some = versions.hidden?.references { return true }
    return false
  }

  var references: References { References(newest: state?.references, hidden: versions.hidden?.references) }
}
