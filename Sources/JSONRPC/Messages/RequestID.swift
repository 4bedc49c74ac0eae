// SPDX-License-Identifier: Apache-2.0

/// The id of a request. It is written back byte for byte. Ids are equal if their JSON values are (`"a"` and
/// `"\u0061"`).
package struct RequestID: Sendable {
  /// Of its text, which is stored during the call and repeated in the answer.
  package static let bytesMax = 1_024

  private enum Storage: Sendable {
    case null
    /// A number whose shortest text is the text received.
    case integer(Int64)
    /// Any other number without fraction and exponent, as text.
    case number(String)
    /// A string: the text received, quotes included, and its value when the text has escapes.
    case string(text: String, value: String?)
  }

  private let storage: Storage

  private init(_ storage: Storage) { self.storage = storage }

  /// The id `null`, which names no request: any number of them may be in flight.
  package static let null = RequestID(.null)

  package init(_ number: Int) { storage = .integer(Int64(number)) }

  package init(_ string: String) {
    var writer = JSONWriter()
    writer.string(string)
    let text = String(decoding: writer.bytes, as: UTF8.self)
    storage = .string(text: text, value: writer.bytes.contains(UInt8(ascii: "\\")) ? string : nil)
  }

  /// `nil` unless the value is a string, null, or a number without fraction and exponent, and not too long.
  package init?(_ value: JSONSlice) {
    guard value.text.count <= Self.bytesMax else { return nil }
    switch value.kind {
    case .null:
      storage = .null
    case .integer:
      let text = value.text
      if let number = value.integer(), text.first != UInt8(ascii: "-") || number != 0 {
        storage = .integer(number)
      } else {
        storage = .number(String(decoding: text, as: UTF8.self))
      }
    case .string:
      let text = value.text
      storage = .string(
        text: String(decoding: text, as: UTF8.self),
        value: text.contains(UInt8(ascii: "\\")) ? value.string() : nil
      )
    case .object, .array, .real, .bool:
      return nil
    }
  }

  package var isNull: Bool { if case .null = storage { true } else { false } }

  /// The number, if it fits into 64 bits.
  package var integer: Int64? {
    switch storage {
    case .integer(let number): number
    case .number("-0"): 0
    case .null, .number, .string: nil
    }
  }

  package var text: String {
    switch storage {
    case .null: "null"
    case .integer(let number): String(number)
    case .number(let text), .string(let text, _): text
    }
  }

  package func write(to writer: inout JSONWriter) {
    switch storage {
    case .null: writer.null()
    case .integer(let number): writer.integer(number)
    case .number(let text), .string(let text, _): writer.text(Array(text.utf8)[...])
    }
  }

  /// Equal ids have equal fingerprints; different ones seldom do. For fast searches only.
  var fingerprint: UInt64 {
    if let integer { return UInt64(bitPattern: integer) }
    var fingerprint: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in canonical.utf8 { fingerprint = (fingerprint ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return fingerprint
  }

  /// The text with a string's escapes resolved.
  private var canonical: String { if case .string(_, let value?) = storage { "\"\(value)\"" } else { text } }
}

extension RequestID: Hashable {
  package static func == (left: RequestID, right: RequestID) -> Bool {
    if let number = left.integer { return number == right.integer }
    return right.integer == nil && left.canonical.utf8.elementsEqual(right.canonical.utf8)
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(fingerprint) }
}

extension RequestID: CustomStringConvertible {
  package var description: String { text }
}
