// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// What is saved of an object that a factory is to make (R24).
package struct SavedObject: WireObject, Hashable {
  package var identifierPath: IdentifierPath = []
  package var kind = ObjectKind.object
  /// Nil if no class was named.
  package var objectClass: String?
  /// Nil if there is none, or it is deferred.
  package var state: JSONText?
  package var coder: JSONText?
  package var isDeferred = false

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("identifierPath", &identifierPath, "The whole path.")
    try members.required("kind", &kind, "What the object is.")
    try members.nullable("objectClass", &objectClass, "The class that the object had when the state was written (R25).")
    try members.nullable("state", &state, .state, "What the object wrote; it will come again to be decoded.")
    try members.nullable("coder", &coder, .coder, "The state's reserved keys.")
    try members.mark("deferred", &isDeferred, "The state does not fit: fetch it with `decodeRestorableState` by path.")
  }
}

/// A factory's answer: the object it made or found, or null.
package struct LocatedObject: WireValue, Hashable {
  package static let schema = Schema.nullable(
    .object([.required("object", .nullable(.handle), "The object that was made or found.")])
  )
  package static let expected = "null, or an object with a handle"

  package var object: ObjectHandle?

  package init(object: ObjectHandle?) {
    self.object = object
  }

  /// Null, or `{"object": handle}` whose handle may be null as well.
  package init(wire slice: JSONSlice) throws(Misfit) {
    guard !slice.isNull else { return }
    guard slice.kind == .object, let member = slice["object"] else { throw Misfit(Self.expected) }
    object = try Optional(wire: member)
  }

  package func writeJSON(to writer: inout JSONWriter) {
    if let object {
      writer.object { $0.member("object", object) }
    } else {
      writer.null()
    }
  }
}
