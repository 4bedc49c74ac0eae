// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The state of an object as JSON text, with what the scan found out about it.
package struct EncodedState: WireValue {
  package static let schema = Schema.state
  package static let expected = "an object"

  package static let empty = EncodedState(text: .emptyObject, references: [], reservedKey: nil, depth: 1)

  /// Prefixes of the keys that only the broker writes (R10).
  package static let reservedPrefixes = ["UIApplicationStateRestoration", "UIStateRestoration"]

  private static let reservedPrefixBytes = reservedPrefixes.map { Array($0.utf8) }

  /// Marks a reference inside a state (R14), and text that is none although it looks like one.
  package static let vocabulary = ScanVocabulary(referenceKey: "$restorable", literalKey: "$literal")

  /// Compact JSON text of one object.
  package let text: JSONText
  /// References to other objects, in the order of the text; offsets count from the beginning of `text`.
  package let references: [JSONReference]
  /// The first top-level key that is reserved, if any.
  package let reservedKey: String?
  /// Nesting of the state by itself; `{}` is 1.
  package let depth: Int

  /// The same state in storage of its own size, for one that outlives the message it came with.
  package func detached() -> EncodedState {
    EncodedState(text: text.detached(), references: references, reservedKey: reservedKey, depth: depth)
  }

  /// Of a state that is written and not looked into.
  package init(unchecked text: JSONText) {
    self.init(text: text, references: [], reservedKey: nil, depth: 1)
  }

  private init(text: JSONText, references: [JSONReference], reservedKey: String?, depth: Int) {
    self.text = text
    self.references = references
    self.reservedKey = reservedKey
    self.depth = depth
  }

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard slice.kind == .object else { throw Misfit(Self.expected) }
    self.text = slice.compactText
    self.references = slice.references
    self.reservedKey = slice.firstMemberName(withAnyPrefix: Self.reservedPrefixBytes)
    self.depth = slice.depth
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.text(text)
  }
}
