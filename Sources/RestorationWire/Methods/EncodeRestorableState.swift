// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Stores the state of one object; acknowledged when it is on disk (R15).
package struct EncodeRestorableState: RestorationMethod {
  package static let method = "encodeRestorableState"
  package static let summary = "Stores a state."
  package static let errors: [ErrorDescription] = [
    .reservedKey, .limitExceeded, .unknownObject, .notOwner, .replaced, .invalidReference, .invalidIdentifier,
    .archiveUnreadable, .storeFailed,
  ]

  package var object = ObjectReference.blank
  package var state = EncodedState.empty
  package var elements: [Element] = []
  package var revision: Int64?

  package init() {}

  package init(_ parameters: Parameters) throws(ErrorObject) {
    try self.init(walking: parameters)
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, "The object; of this session, or a path that no live session owns.")
    try members.required("state", &state, "The state.")
    try members.member("elements", &elements, default: [], "Selected and topmost rows of a view (R28).")
    try members.optional(
      "revision",
      &revision,
      .from(1),
      "Counts up per path and session, also where the session gives the path up and registers it again."
    )
  }

  /// The object that a call is about, which may be wrong in other members.
  package static func object(of parameters: Parameters) -> ObjectReference? {
    parameters.first("object").flatMap { ObjectReference($0) }
  }

  /// How the push ended.
  package enum Reply: WireValue, Hashable {
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
}
