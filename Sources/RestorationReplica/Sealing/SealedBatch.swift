// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// What of a batch is sealed, as one text: the replica is not told where its transactions end, and what sealing adds is
/// added once; a transaction is often shorter than 200 bytes.
package struct SealedBatch: Hashable, Sendable {
  /// The change that it follows, so that batches of two branches cannot be put together; `nil` if there is none, or the
  /// host does not know it. Not a part of the place: who begins to read in the middle of a batch does not know it.
  package var preceding: ChangeID?
  package var batch: ReplicaBatch

  package init(_ batch: ReplicaBatch, behind preceding: ChangeID?) { (self.batch, self.preceding) = (batch, preceding) }

  /// Reads a batch that begins behind a sequence; `nil` if the text is not one.
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
