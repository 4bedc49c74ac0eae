// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

/// The state of an object that no generation would hold: it is neither included nor reached, and so its state stays off
/// the disk (R4, R15). What is known of the texts stands in the node, as it does for all others.
///
/// Confined to the node that holds it.
package final class KeptState {
  /// What the archive still has of it, until the next generation; nil if there is nothing.
  private(set) var stored: StateSummary?
  /// The texts of the node's `state` and `beforeClaim`; nil if the archive has them, or there are none.
  private var newest: StateRecord?
  private var former: StateRecord?
  /// Whether they are others than the archive has.
  private(set) var isChanged = false
  private var isFormerChanged = false
  /// How many states it was given.
  private(set) var count = 0
  /// What was counted of it: by how many bytes storing it enlarges the head, and the origins of its states.
  private(set) var counted: (bytes: Int, contexts: [ContextID])
  /// A former broker may have known a newer one, so that the owner is asked when it can be saved again.
  var isLost = false

  init(stored: StateSummary?, isLost: Bool = false) {
    (self.stored, self.isLost) = (stored, isLost)
    counted = (0, stored.map { [$0.context] } ?? [])
  }

  /// What the archive does not have of it, the oldest first.
  func records(of node: Node) -> [StateRecord] {
    guard isChanged || stored == nil, let state = node.state, var newest else { return [] }
    newest.isEarly = state.isEarly
    let isFormerWanted = node.beforeClaim != nil && (isFormerChanged || stored == nil)
    return [isFormerWanted ? former : nil, newest].compactMap { $0 }
  }

  /// The text of one of the node's states; nil if the archive has it.
  func text(of summary: StateSummary, at node: Node) -> StateRecord? { summary == node.state ? newest : former }

  /// Takes a state in place of the node's present one.
  func take(_ record: StateRecord, for node: Node, at sequence: SequenceNumber) {
    if !record.isEarly {
      (node.beforeClaim, former) = (nil, nil)
    } else if let old = node.state, !old.isEarly {
      (node.beforeClaim, former, isFormerChanged) = (old, newest, isChanged)
    }
    (newest, isChanged, isLost) = (record, true, false)
    count += 1
    (node.isUnreadable, node.pulled) = (false, nil)
    node.state = StateSummary(record, at: sequence)
  }

  /// The text of a state that the archive has was read.
  func takeText(_ record: StateRecord, of node: Node, at sequence: SequenceNumber) {
    if !isChanged, node.state?.sequence == sequence {
      newest = record
    } else if node.beforeClaim?.sequence == sequence {
      former = record
    }
  }

  /// Counts it anew; returns what was counted before.
  func count(of node: Node) -> (bytes: Int, contexts: [ContextID]) {
    defer {
      let contexts = [node.state, node.beforeClaim].compactMap { $0?.context }
      counted = ((node.state?.bytes ?? 0) - (stored?.bytes ?? 0), contexts)
    }
    return counted
  }

  /// What the archive has is not early either.
  func settle() {
    stored?.isEarly = false
    (former, isFormerChanged) = (nil, false)
  }

  /// The archive is to have nothing of it.
  ///
  /// - Returns: what it had; nil if that is needed, because the texts were not read yet.
  func removeStored(of node: Node) -> StateSummary? {
    guard let stored, newest != nil, node.beforeClaim == nil || former != nil else { return nil }
    self.stored = nil
    return stored
  }
}

/// What is kept of an object, the oldest first, without the archive's numbers: while the archive is closed or loaded
/// again, and for the next broker.
struct KeptRecords {
  var states: [(record: StateRecord, origin: StateOrigin)] = []
  var isLost = false
}
