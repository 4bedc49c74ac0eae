// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// The sealed part of a batch, as one text. This hides the ends of transactions from the replica, and the overhead of
/// sealing occurs once; many transactions are shorter than 200 bytes.
package struct SealedBatch: Hashable, Sendable {
  /// The change before the batch, so that batches of two branches cannot be combined; `nil` if there is none or the
  /// host does not know it. It is not a part of the place, because a reader that starts inside a batch does not know
  /// it.
  package var preceding: ChangeID?
  package var batch: ReplicaBatch

  package init(_ batch: ReplicaBatch, behind preceding: ChangeID?) { (self.batch, self.preceding) = (batch, preceding) }

  /// A batch after this sequence; `nil` if the text is invalid.
  package init?(_ text: [UInt8], after: SequenceNumber) {
    var rest = text[...]
    switch rest.popFirst() {
    case 0: break
    case 1:
      preceding = rest.takeChange()
      guard preceding != nil else { return nil }
    default: return nil
    }
    guard let batch = ReplicaBatch(rest, after: after) else { return nil }
    self.batch = batch
  }

  package var text: [UInt8] {
    var text: [UInt8] = [preceding == nil ? 0 : 1]
    if let preceding { text.append(preceding) }
    return text + batch.encoded
  }
}
