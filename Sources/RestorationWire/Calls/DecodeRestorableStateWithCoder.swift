// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Hands a session the states of some of its objects, parents first (R21).
package struct DecodeRestorableStateWithCoder: RestorationCall {
  package typealias Answer = Acknowledgement

  package static let method = ServedMethod.decodeRestorableStateWithCoder
  package static let summary = "Fills these objects (R21)."

  package var objects: [Object] = []

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("objects", &objects, "The objects, each with its state or deferred.")
  }

  package struct Object: WireValue, Hashable {
    package static let schema = Schema.shared(
      "DecodedObject",
      .either([
        .object(Name.members + Content.members),
        .object(Name.members + [.required("deferred", .true, "To be fetched with `decodeRestorableState`.")]),
      ])
    )
    package static let expected = "an object"
    package static let plural = "objects"

    private typealias Name = EncodeRestorableStateWithCoder.Object

    package var object: ObjectHandle
    package var path: IdentifierPath?
    /// Nil if the state is too large to be sent unasked.
    package var content: Content?

    package init(object: ObjectHandle, path: IdentifierPath?, content: Content?) {
      self.object = object
      self.path = path
      self.content = content
    }

    package init(wire slice: JSONSlice) throws(Misfit) {
      let name = try Name(wire: slice)
      self.init(object: name.object, path: name.path, content: nil)
      if slice["deferred"]?.bool() != true { content = try Content(wire: slice) }
    }

    package func writeJSON(to writer: inout JSONWriter) {
      writer.object { writer in
        Name(object: object, path: path).writeMembers(to: &writer)
        if let content { content.writeMembers(to: &writer) } else { writer.member("deferred", true) }
      }
    }
  }

  /// Of an object.
  package struct Content: WireObject, Hashable {
    package var state = JSONText.emptyObject
    package var coder: JSONText?
    package var elements = JSONText.emptyArray

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("state", &state, .state, "The state.")
      try members.nullable("coder", &coder, .coder, "Its reserved keys.")
      try members.added("elements", &elements, .elements, "Its elements.")
    }
  }
}
