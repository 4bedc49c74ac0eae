// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A call of the broker to a client that lists its name in `serves` (`Protocol/calls.md`); its members are the
/// parameters.
package protocol RestorationCall: WireObject {
  associatedtype Answer: WireValue

  static var method: ServedMethod { get }

  /// One sentence: what is asked.
  static var summary: String { get }
}

/// The answer `true` or `false`.
package struct Decision: WireValue, Hashable {
  package static let schema = Bool.schema
  package static let expected = Bool.expected

  package var isYes: Bool

  package init(_ isYes: Bool) {
    self.isYes = isYes
  }

  package init(wire slice: JSONSlice) throws(Misfit) {
    isYes = try Bool(wire: slice)
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.bool(isYes)
  }
}

/// An answer that only says that the call has been dealt with; any value will do.
package struct Acknowledgement: WireValue, Hashable {
  package static let schema = Schema.any
  package static let expected = "a value"

  package init() {}

  package init(wire _: JSONSlice) {}

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { _ in }
  }
}
