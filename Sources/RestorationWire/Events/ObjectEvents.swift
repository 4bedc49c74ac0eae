// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// An object was registered that its session had not registered before (R1).
package struct ObjectRegistered: RestorationEvent {
  package static let name = EventName.objectRegistered
  package static let summary = "A session registered an object that it had not registered before."
  package static let members: [Schema.Member] = [
    .required("object", .handle, "Handle."),
    .required("path", .nullable(.path), "The object's path; null where its own identifier is null (R4)."),
    .required("kind", ObjectKind.schema, "In `objectRegistered`: `object`, `viewController` or `view`."),
  ] + SessionIdentity.members

  package var object: ObjectHandle
  /// Nil where its own identifier is null (R4).
  package var path: IdentifierPath?
  package var kind: ObjectKind
  package var session: SessionIdentity

  package init(object: ObjectHandle, path: IdentifierPath?, kind: ObjectKind, session: SessionIdentity) {
    self.object = object
    self.path = path
    self.kind = kind
    self.session = session
  }

  package init(_ reader: ResultReader) throws(WrongShape) {
    self.object = try reader.integer("object")
    self.path = try reader.optionalPath("path")
    self.kind = try reader.word("kind", as: ObjectKind.self)
    self.session = try SessionIdentity(reader)
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("object", object)
    writer.member("path", path)
    writer.member("kind", kind)
    session.writeMembers(to: &writer)
  }
}

/// The registration of an object ended while its session goes on.
package struct ObjectUnregistered: RestorationEvent {
  package static let name = EventName.objectUnregistered
  package static let summary = "A registration ended while its session goes on."
  package static let members: [Schema.Member] = [
    .required("object", .handle, "The handle, which names nothing any more."),
    .required("path", .nullable(.path), "The object's path; null where its own identifier is null (R4)."),
    .required("cause", .openWords(Cause.self), "Why."),
    .required("stateKept", .boolean, "Whether the object's state stays in the archive."),
  ] + SessionIdentity.members

  /// Why it ended.
  package enum Cause: String, CaseIterable, Sendable, JSONWritable {
    /// By `unregisterObject`.
    case unregistered
    /// Another session has claimed the path (R1, R8).
    case replaced
  }

  /// The handle, which names nothing any more.
  package var object: ObjectHandle
  /// Nil where its own identifier is null (R4).
  package var path: IdentifierPath?
  /// Of the session that has lost it.
  package var session: SessionIdentity
  package var cause: Cause
  /// Whether its state stays in the archive.
  package var stateKept: Bool

  package init(
    object: ObjectHandle,
    path: IdentifierPath?,
    session: SessionIdentity,
    cause: Cause,
    stateKept: Bool
  ) {
    self.object = object
    self.path = path
    self.session = session
    self.cause = cause
    self.stateKept = stateKept
  }

  package init(_ reader: ResultReader) throws(WrongShape) {
    self.object = try reader.integer("object")
    self.path = try reader.optionalPath("path")
    self.session = try SessionIdentity(reader)
    self.cause = try reader.word("cause", as: Cause.self)
    self.stateKept = try reader.bool("stateKept")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("object", object)
    writer.member("path", path)
    session.writeMembers(to: &writer)
    writer.member("cause", cause)
    writer.member("stateKept", stateKept)
  }
}

/// The event `pathChanged`: an object was moved, and everything below it with it (R6).
package struct ObjectMoved: RestorationEvent {
  package static let name = EventName.pathChanged
  package static let summary =
    "An object was moved or renamed, and everything below it with it: that is not told one by one (R6)."
  package static let members: [Schema.Member] = [
    .required("object", .nullable(.handle), "Handle."),
    .required(
      "from",
      .nullable(.path),
      "The path before, as it was before the call; null where its own identifier was null."
    ),
    .required("path", .nullable(.path), "The object's path; null where its own identifier is null (R4)."),
  ]

  /// Nil where nobody has it registered.
  package var object: ObjectHandle?
  /// Its path before; nil where its own identifier was null.
  package var from: IdentifierPath?
  /// Its path from now on; nil where its own identifier is null.
  package var path: IdentifierPath?

  package init(object: ObjectHandle?, from: IdentifierPath?, path: IdentifierPath?) {
    self.object = object
    self.from = from
    self.path = path
  }

  package init(_ reader: ResultReader) throws(WrongShape) {
    self.object = try reader.optionalInteger("object")
    self.from = try reader.optionalPath("from")
    self.path = try reader.optionalPath("path")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("object", object)
    writer.member("from", from)
    writer.member("path", path)
  }
}
