// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// The text of a sealed batch.
package struct SealedBatch: Hashable, Sendable {
  /// The change before the batch, so that batches of two branches cannot be combined; `nil` if there is none or the
  /// host does not know it. It is not a part of the place, because a reader that starts inside a batch does not know
  /// it.
  package var preceding: ChangeID?
  package var body: [UInt8]

  package init(_ body: [UInt8], behind preceding: ChangeID?) { (self.body, self.preceding) = (body, preceding) }

  /// `nil` if the text is invalid.
  package init?(_ text: [UInt8]) {
    var rest = text[...]
    switch rest.popFirst() {
    case 0: break
    case 1:
      preceding = rest.takeChange()
      guard preceding != nil else { return nil }
    default: return nil
    }
    body = Array(rest)
  }

  package var text: [UInt8] {
    var text: [UInt8] = [preceding == nil ? 0 : 1]
    if let preceding { text.append(preceding) }
    return text + body
  }
}
