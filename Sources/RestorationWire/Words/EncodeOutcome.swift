// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// How storing a state ended (R15, R30).
public enum EncodeOutcome: WireValue, Hashable {
  package static let schema = Schema.either([
    .object([
      .required("sequence", .integer(1...), "Stored, as the change with this number."),
      .required("durability", .constant("disk"), "Where it is."),
    ]),
    .object([.required("superseded", .true, "This or a higher revision is stored already.")]),
    .discarded,
  ])
  package static let expected = "an object that tells how the push ended"

  /// On disk, as the change with this number.
  case stored(sequence: Int64)
  /// An equal or higher revision is stored already (R15).
  case superseded
  /// The application's state was emptied while this session lived (R30).
  case discarded

  package init(wire slice: JSONSlice) throws(Misfit) {
    if let sequence = slice["sequence"]?.integer() {
      self = .stored(sequence: sequence)
    } else if slice["superseded"]?.bool() == true {
      self = .superseded
    } else if slice["discarded"]?.bool() == true {
      self = .discarded
    } else {
      throw Misfit(Self.expected)
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.beginObject()
    switch self {
    case .stored(let sequence):
      writer.key("sequence")
      writer.integer(sequence)
      writer.key("durability")
      writer.string("disk")
    case .superseded:
      writer.key("superseded")
      writer.bool(true)
    case .discarded:
      writer.key("discarded")
      writer.bool(true)
    }
    writer.endObject()
  }
}
