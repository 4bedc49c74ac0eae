// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A call of the broker to a client that lists its name in `serves` (`Protocol/calls.md`).
///
/// Both directions are here, so that broker and client read and write by the same words.
package protocol RestorationCall: Sendable {
  associatedtype Answer: RestorationResult

  static var method: ServedMethod { get }

  /// One sentence: what is asked.
  static var summary: String { get }

  static var parameters: [Schema.Member] { get }

  /// Reads the parameters; nil where they have not the form `Protocol/calls.md` gives them.
  init?(_ parameters: JSONSlice)

  /// Writes the parameters as one JSON value.
  func write(to writer: inout JSONWriter)
}

extension RestorationCall {
  /// The parameters as JSON text.
  package var parameters: JSONText {
    var writer = JSONWriter()
    write(to: &writer)
    return JSONText(validated: writer.bytes)
  }
}

/// The answer `true` or `false`.
package struct Decision: RestorationResult, Hashable {
  package static let schema = Schema.boolean

  package var isYes: Bool

  package init(_ isYes: Bool) {
    self.isYes = isYes
  }

  package init?(_ slice: JSONSlice) {
    guard let isYes = slice.bool() else { return nil }
    self.isYes = isYes
  }

  package func write(to writer: inout JSONWriter) {
    writer.bool(isYes)
  }
}

/// An answer that only says that the call has been dealt with; any value will do.
package struct Acknowledgement: RestorationResult, Hashable {
  package static let schema = Schema.any

  package init() {}

  package init?(_ slice: JSONSlice) {}

  package func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.endObject()
  }
}
