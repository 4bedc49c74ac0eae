// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// What a client calls one long call by, to know its `progress` notifications: a string or an integer, echoed byte for
/// byte.
package struct ProgressToken: WireValue, Hashable {
  package static let schema = Schema.shared("ProgressToken", .either([.string, .integer]))
  package static let expected = "a string or an integer of at most \(bytesMax) bytes"

  /// Bytes of the token's JSON text at most.
  package static let bytesMax = 1_024

  package let text: JSONText

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard slice.kind == .string || slice.kind == .integer, slice.text.count <= Self.bytesMax else {
      throw Misfit(Self.expected)
    }
    text = slice.compactText.detached()
  }

  package init(_ name: String) {
    text = JSONText(.string(name))
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.text(text)
  }
}
