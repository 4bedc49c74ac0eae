// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

/// Which objects of an application are saved only because something saved refers to them (R7), as long as nothing has
/// changed that this follows from.
struct Reach {
  /// Nil until somebody asks.
  private var nodes: Set<NodeID>?
  /// Since owners were last asked for what was not stored, something may be saved that was not (R4).
  private var mayHaveGrown = false
  /// Owners may have given states that were not stored.
  private var hasUnstored = false

  /// Whether owners are to be asked for what was not stored.
  var isToBeAskedFor: Bool { mayHaveGrown && hasUnstored }

  /// Whether a node that is not included is saved all the same.
  mutating func contains(_ node: Node, in tree: NodeTree) -> Bool {
    if nodes == nil { nodes = tree.reachedNodes }
    return nodes?.contains(node.id) ?? false
  }

  /// A state was not stored.
  mutating func noteUnstored() { hasUnstored = true }

  /// Owners were asked for all that may be saved now.
  mutating func noteAsked(isAnyLeft: Bool) { (mayHaveGrown, hasUnstored) = (false, isAnyLeft) }

  /// Something may be reached no longer.
  mutating func mayShrink() { nodes = nil }

  /// Something may be included or reached that was not.
  mutating func mayGrow() { (nodes, mayHaveGrown) = (nil, true) }

  /// The states of a node are others, or gone.
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
  /// What its states refer to: the newest, and an older one that hides from its owner (R7, R19).
  struct References: Equatable {
    let newest: String?
    let hidden: String?

    var targets: Set<NodeID> {
      Set(ArchiveReferences.targets(ofTable: newest) + ArchiveReferences.targets(ofTable: hidden))
    }
  }

  var hasReferences: Bool {
    if case .some = state?.references { true } else if case .some = beforeClaim?.references { true } else { false }
  }

  var references: References { References(newest: state?.references, hidden: beforeClaim?.references) }
}
