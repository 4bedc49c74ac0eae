// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// What is saved of an object that a factory is to make (R24).
package struct SavedObject: Sendable, Equatable {
  package static let members: [Schema.Member] = [
    .required("identifierPath", .path, "The whole path."),
    .required("kind", ObjectKind.schema, "What the object is."),
    .required(
      "objectClass",
      .nullable(.string),
      "The class that the object had when the state was written (R25)."
    ),
    .required("state", .nullable(.state), "What the object wrote; it will come again to be decoded."),
    .required("coder", .nullable(ReservedKeys.schema), "The state's reserved keys."),
    .optional("deferred", .true, "The state does not fit: fetch it with `decodeRestorableState` by path."),
  ]

  package var identifierPath: IdentifierPath
  package var kind: ObjectKind
  /// The class the object had when its state was written; nil where none was named (R25).
  package var objectClass: String?
  /// Nil where it has none, or it is deferred.
  package var state: JSONText?
  package var coder: JSONText?
  /// There is a state that is too large to be sent unasked: the client may fetch it with `decodeRestorableState`.
  package var isDeferred: Bool

  package init(
    identifierPath: IdentifierPath,
    kind: ObjectKind,
    objectClass: String?,
    state: JSONText?,
    coder: JSONText?,
    isDeferred: Bool = false
  ) {
    self.identifierPath = identifierPath
    self.kind = kind
    self.objectClass = objectClass
    self.state = state
    self.coder = coder
    self.isDeferred = isDeferred
  }

  init?(_ parameters: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(parameters)
      self.identifierPath = try reader.path("identifierPath")
      self.kind = try reader.word("kind", as: ObjectKind.self)
      self.objectClass = try reader.optionalString("objectClass")
      self.state = try reader.optionalText("state")
      self.coder = try reader.optionalText("coder")
      self.isDeferred = try reader.bool("deferred")
    } catch {
      return nil
    }
  }

  func writeMembers(to writer: inout JSONWriter) {
    writer.member("identifierPath", identifierPath)
    writer.member("kind", kind.rawValue)
    writer.member("objectClass", objectClass)
    writer.member("state", state)
    writer.member("coder", coder)
    writer.member("deferred", ifTrue: isDeferred)
  }
}

/// A factory's answer: the object it made or found, or null.
package struct LocatedObject: RestorationResult, Hashable {
  package static let schema = Schema.nullable(
    .object([.required("object", .nullable(.handle), "The object that was made or found.")])
  )

  package var object: ObjectHandle?

  package init(object: ObjectHandle?) {
    self.object = object
  }

  /// Null, or `{"object": handle}` whose handle may be null as well.
  package init?(_ slice: JSONSlice) {
    guard !slice.isNull else { return }
    guard slice.kind == .object, let member = slice["object"] else { return nil }
    guard !member.isNull else { return }
    guard let object = member.integer() else { return nil }
    self.object = object
  }

  package func write(to writer: inout JSONWriter) {
    if let object {
      writer.object { $0.member("object", object) }
    } else {
      writer.null()
    }
  }
}
