// SPDX-License-Identifier: Apache-2.0

/// One compact JSON value as text. It shares the storage it was cut from: store `detached()` for longer than a request.
package struct JSONText: Sendable, Equatable, Hashable {
  package let bytes: ArraySlice<UInt8>

  /// Unchecked: the bytes must be exactly one valid, compact JSON value.
  package init(validated bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  /// Unchecked: the bytes must be exactly one valid, compact JSON value.
  package init(validated bytes: [UInt8]) { self.bytes = bytes[...] }

  package init(_ value: JSONValue) {
    var writer = JSONWriter()
    writer.value(value)
    self.init(validated: writer.bytes)
  }

  package static let null = JSONText(validated: Array("null".utf8))
  package static let emptyObject = JSONText(validated: Array("{}".utf8))
  package static let emptyArray = JSONText(validated: Array("[]".utf8))

  package var string: String { String(decoding: bytes, as: UTF8.self) }

  /// For messages to people: only the beginning of a long text.
  package var brief: String {
    // A scalar has at most 4 bytes, so the bytes cut off are beyond the beginning.
    let text = String(decoding: bytes.prefix(4 * (Self.briefLengthMax + 1)), as: UTF8.self)
    let rest = text.unicodeScalars.dropFirst(Self.briefLengthMax)
    return rest.isEmpty ? text : String(text[..<rest.startIndex]) + "…"
  }

  private static let briefLengthMax = 60

  package var count: Int { bytes.count }

  /// The same text in storage of its own size.
  package func detached() -> JSONText { JSONText(validated: Array(bytes)) }
}
