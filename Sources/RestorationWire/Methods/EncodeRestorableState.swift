// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Stores the state of one object; acknowledged when it is on disk (R15).
package struct EncodeRestorableState: RestorationMethod {
  package static let method = "encodeRestorableState"
  package static let summary = "Stores a state."
  package static let parameters: [Schema.Member] = [
    .required("object", .reference, "The object; of this session, or a path that no live session owns."),
    .required("state", .state, "The state."),
    .optional("elements", .elements, "Selected and topmost rows of a view (R28)."),
    .optional(
      "revision",
      .integer(1...),
      "Counts up per path and session, also where the session gives the path up and registers it again."
    ),
  ]
  package static let errors: [ErrorDescription] = [
    .reservedKey, .limitExceeded, .unknownObject, .notOwner, .replaced, .invalidReference, .invalidIdentifier,
    .archiveUnreadable, .storeFailed,
  ]

  package var object: ObjectReference
  package var state: EncodedState
  package var elements: [Element]
  /// Counts up per object and session; an equal or lower one is not stored again.
  package var revision: Int64?

  package init(object: ObjectReference, state: EncodedState, elements: [Element] = [], revision: Int64? = nil) {
    self.object = object
    self.state = state
    self.elements = elements
    self.revision = revision
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.object = try reader.reference("object")
    guard let state = EncodedState(try reader.required("state")) else { throw reader.wrong("state", "an object") }
    self.state = state
    self.elements = try Element.read(from: reader, "elements")
    self.revision = try reader.optionalInteger("revision", in: 1...Int64.max)
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.key("object")
    object.write(to: &writer)
    writer.key("state")
    writer.text(state.text)
    if !elements.isEmpty {
      writer.key("elements")
      Element.write(elements, to: &writer)
    }
    if let revision {
      writer.key("revision")
      writer.integer(revision)
    }
  }

  /// How the push ended.
  package enum Reply: RestorationResult, Hashable {
    package static let schema = Schema.either([
      .object([
        .required("sequence", .integer(1...), "Stored, as the change with this number."),
        .required("durability", .constant("disk"), "Where it is."),
      ]),
      .object([.required("superseded", .true, "This or a higher revision is stored already.")]),
      .discarded,
    ])

    /// On disk, as the change with this number.
    case stored(sequence: Int64)
    /// An equal or higher revision is stored already (R15).
    case superseded
    /// The application's state was emptied while this session lived (R30).
    case discarded

    package init?(_ slice: JSONSlice) {
      if let sequence = slice["sequence"]?.integer() {
        self = .stored(sequence: sequence)
      } else if slice["superseded"]?.bool() == true {
        self = .superseded
      } else if slice["discarded"]?.bool() == true {
        self = .discarded
      } else {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
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
}
