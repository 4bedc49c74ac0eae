// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Where an object or a process comes from: a systemd user unit that brings it back (R22).
package struct Storyboard: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "Storyboard",
    .object([
      .required("unit", .text(pattern: nil, length: 1...nameBytesMax), "The systemd user unit."),
    ])
  )

  package var unit: String

  /// Bytes of UTF-8 a unit's name has at most, as systemd has it.
  package static let nameBytesMax = 255

  package init(unit: String) {
    self.unit = unit
  }

  /// Reads the unit of the member `storyboard`; nil where the member is absent or null.
  package static func unit(from reader: ParameterReader) throws(ErrorObject) -> String? {
    guard let slice = reader.present("storyboard") else { return nil }
    guard slice.kind == .object else { throw reader.wrong("storyboard", "an object with a unit") }
    guard let unit = slice["unit"]?.string(), (1...nameBytesMax).contains(unit.utf8.count) else {
      throw reader.wrong("storyboard/unit", "the name of a systemd unit")
    }
    return unit
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { $0.member("unit", unit) }
  }
}
