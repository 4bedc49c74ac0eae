// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// States of objects that are neither included nor referred to are not stored. If that changes, their owners are asked
/// for them (R4, R7).
extension Application {
  /// Whether states of the node are not stored.
  package func isUnsaved(_ node: Node) -> Bool { !tree.isIncluded(node) && !reach.contains(node, in: tree) }

  /// Leaves a state of an unsaved node unstored.
  func leaveUnstored(_ node: Node, by session: Session?) {
    node.note(.excluded(by: tree.excluder(of: node).flatMap { tree.path(of: $0) }))
    guard let session, node.claim?.session == session.id else { return }
    noteUnstored(node)
    closeWindow(of: node.id, for: session.id)
  }

  /// Notes that the owner may have a state that was not stored.
  func noteUnstored(_ node: Node) {
    node.isUnstored = true
    reach.noteUnstored()
  }

  /// Asks for all states that were not stored and would be now. Called after every change that may include an object or
  /// refer to one.
  func askForUnstored() {
    guard reach.isToBeAskedFor, case .open = phase else { return }
    let unstored = tree.claimed.values.filter(\.isUnstored)
    reach.noteAsked(isAnyLeft: !unstored.isEmpty)
    askForUnstored(unstored)
  }

  /// Asks for those of these objects.
  func askForUnstored(_ nodes: some Sequence<Node>) {
    for node in nodes.sorted(by: { $0.id < $1.id }) where node.isUnstored && !isUnsaved(node) {
      guard let claim = node.claim, let owner = sessions[claim.session] else { continue }
      if owner.serves(.encodeRestorableStateWithCoder) {
        saving.noteChange(in: &turn)
        saving.pull { $0.invalidate([node.id], areUnstored: true, in: &turn) }
      } else if owner.isReachable {
        // An unreachable owner is told when it returns.
        node.isUnstored = false
        notify(owner, StateWanted(object: claim.handle, path: tree.path(of: node)))
      }
    }
  }
}
