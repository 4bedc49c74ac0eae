// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// What a client calls one long call by, to know its `progress` notifications: a string or an integer, echoed byte for
/// byte.
package struct ProgressToken: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared("ProgressToken", .either([.string, .integer]))

  /// Bytes of the token's JSON text at most.
  package static let bytesMax = 1_024

  package let text: JSONText

  /// Nil where `slice` is neither a string nor an integer, or too long.
  package init?(_ slice: JSONSlice) {
    guard slice.kind == .string || slice.kind == .integer, slice.text.count <= Self.bytesMax else { return nil }
    text = slice.compactText.detached()
  }

  package init(_ name: String) {
    text = JSONText(.string(name))
  }

  /// Reads the member `progressToken`; nil where it is absent or null.
  package static func read(from reader: ParameterReader) throws(ErrorObject) -> ProgressToken? {
    guard let slice = reader.present("progressToken") else { return nil }
    guard let token = ProgressToken(slice) else {
      throw reader.wrong("progressToken", "a string or an integer of at most \(bytesMax) bytes")
    }
    return token
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.text(text)
  }
}
