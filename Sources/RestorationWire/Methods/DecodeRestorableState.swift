// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Gives an object its state back (R19, R25, R26).
package struct DecodeRestorableState: RestorationMethod {
  package static let method = "decodeRestorableState"
  package static let summary = "Gives a state back."
  package static let errors: [ErrorDescription] = [
    .unknownObject, .replaced, .unknownApplication, .archiveUnreadable, .storeFailed, .requestCancelled,
  ]

  /// The empty path is the application itself: what its delegate saved.
  package var object = ObjectReference.blank

  package init() {}

  package init(_ parameters: Parameters) throws(ErrorObject) {
    try self.init(walking: parameters)
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    var target = Target(reference: object)
    try members.required(
      "object",
      &target,
      "The object; live, vacant or archived. The empty path is the application itself."
    )
    object = target.reference
  }

  private struct Target: WireValue {
    static let schema = Schema.either([.handle, .list(.string)])
    static let expected = ObjectReference.expected

    var reference: ObjectReference

    init(reference: ObjectReference) {
      self.reference = reference
    }

    init(wire slice: JSONSlice) throws(Misfit) {
      if let reference = ObjectReference(slice) {
        self.reference = reference
      } else {
        guard slice.elements?.isEmpty == true else { throw Misfit(Self.expected) }
        reference = .path([])
      }
    }

    func writeJSON(to writer: inout JSONWriter) {
      reference.writeJSON(to: &writer)
    }
  }

  package struct Reply: WireObject {
    package var status = DecodingStatus.none
    package var state: JSONText?
    package var coder: JSONText?
    package var elements = JSONText.emptyArray

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("status", &status, "Whether there is a state, and if not why not.")
      try members.nullable("state", &state, .state, "The state as it was encoded; null unless `available`.")
      try members.nullable(
        "coder",
        &coder,
        .coder,
        "The reserved keys of the session that wrote the state; null where there is none."
      )
      try members.added(
        "elements",
        &elements,
        .elements,
        "As encoded, each with `resolved`: whether `indexPath` was found from `identifier` today."
      )
    }

    /// Writes a reply of these members, and the coder by `writingCoder`.
    package static func write(
      _ status: DecodingStatus,
      state: JSONText?,
      elements: JSONText?,
      to writer: inout JSONWriter,
      writingCoder: (inout JSONWriter) -> Void
    ) {
      writer.beginObject()
      writer.key("status")
      writer.string(status.rawValue)
      writer.key("state")
      writer.text(orNull: state)
      writer.key("coder")
      writingCoder(&writer)
      writer.key("elements")
      if let elements {
        writer.text(elements)
      } else {
        writer.beginArray()
        writer.endArray()
      }
      writer.endObject()
    }
  }
}

extension JSONWriter {
  /// Writes the text, or null where there is none.
  package mutating func text(orNull text: JSONText?) {
    if let text {
      self.text(text)
    } else {
      null()
    }
  }
}
