// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive
internal import RestorationWire

/// The room of an archive: `archiveBytesMax` for the head, and as much for everything else, which is given up if
/// necessary.
extension Application {
  /// Throws if the head may not grow by this many bytes.
  func requireRoom(for bytes: Int, path: @autoclosure () -> IdentifierPath? = nil) throws(ErrorObject) {
    try budget.requireRoom(for: bytes, origins: origins.usedBytes, path: path(), in: turn)
    try turn.requireRoom(besideOthersFor: bytes)
  }

  /// Growth of the head in bytes if the node gets a state of this length and origin.
  func growth(by bytes: Int, of context: ContextID, at node: Node?) -> Int {
    bytes - (node?.state?.bytes ?? 0) + origins.growth(from: node?.state?.context, to: context)
  }

  /// Accounts for a new state of a node, or none.
  func headChanged(from old: StateSummary?, to new: StateSummary?) {
    budget.grow(by: (new?.bytes ?? 0) - (old?.bytes ?? 0), at: sequence)
    guard old?.context != new?.context else { return }
    origins.exchange(old.map { [$0.context] } ?? [], for: new.map { [$0.context] } ?? [], at: sequence)
  }

  /// Counts the head anew after its replacement.
  func countHead() {
    budget.count(tree.nodes.values, at: sequence)
    origins.count(tree.nodes.values.contexts, at: sequence)
    for hidden in tree.nodes.values.lazy.compactMap(\.versions.hidden) { origins.name(hidden.context, at: sequence) }
  }

  func committed(_ receipt: ArchiveReceipt) {
    let before = budget.counted
    budget.settle(receipt, origins: origins.usedBytes, max: turn.limits.archiveBytesMax)
    origins.forget(receipt.unnamedContexts, upTo: receipt.sequence, in: &turn)
    guard budget.excess > 0, case .open = phase else { return }
    let last = sequence
    giveUp(sealedUpTo: before)
    budget.giveUp(at: sequence, after: last, beside: generations.all)
  }

  /// Gives up the content that is needed least; the archive reports how much that frees. The pinned generation stays,
  /// and so does one whose durability is new or pending.
  private func giveUp(sealedUpTo sequence: SequenceNumber) {
    if let oldest = runs.facts.shelf.subtrees.first { return takeOffShelf([oldest]) }
    if generations.giveUpOldest(upTo: sequence, in: &turn) { return }
    guard budget.mayFindMore(beside: generations.all) else { return }
    if let oldest = tree.oldestReplacedText { return release([oldest]) }
    if let largest = tree.largestHidden(beside: generations.all) { settle([largest]) }
  }
}

extension NodeTree {
  /// The oldest withheld text that a newer state has replaced (R35).
  fileprivate var oldestReplacedText: StateRow? {
    let holders = nodes.values.filter(\.versions.hasWithheld)
    return holders.flatMap { $0.versions.withheld(areReplaced: true) }.min { $0.sequence < $1.sequence }
  }

  /// The node with the largest confirmed state that a provisional one hides and no generation holds (R19).
  package func largestHidden(beside generations: [SealedGeneration]) -> Node? {
    let hidden = nodes.values.filter { node in
      guard let hidden = node.versions.hidden, !node.versions.isSuperseded, let state = node.state else { return false }
      return !generations.contains { hidden.sequence <= $0.sequence && $0.sequence < state.sequence }
    }
    return hidden.max { ($0.versions.hidden?.bytes ?? 0, $0.id) < ($1.versions.hidden?.bytes ?? 0, $1.id) }
  }
}
