// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// One object in `readArchive`, with its state.
package struct ArchivedObject: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "ArchivedObject",
    .object([
      .required("object", .nullable(.handle), "Its handle now; null where nobody claims it."),
      .required("path", .path, "Its path."),
      .required("kind", ObjectKind.schema, "`object`, `viewController` or `view`."),
      .required("objectClass", .nullable(.objectClass), "As registered."),
      .required("process", .nullable(.string), "Role of the process that wrote the state."),
      .required("orphaned", .boolean, "Its owner left without `closed` (R13)."),
      .required(
        "status",
        RestorationState.schema,
        "`available`, `none`, `unreadable`, or in the head `quarantined`: withheld from its owner (R35)."
      ),
      .required("state", .nullable(.state), "Null unless `available` or `quarantined`, and where it is redacted."),
      .required("coder", .nullable(ReservedKeys.schema), "Reserved keys of the session that wrote it."),
      .optional("elements", .elements, "Absent where there are none or they are redacted."),
      .required("bytes", .count, "Of state and elements as they are stored; 0 where there is none."),
      .required("modified", .nullable(.timestamp), "When the state was written, RFC 3339, UTC, milliseconds."),
      .required("confidential", .boolean, "Whether it is confidential."),
      .required("redacted", .boolean, "Whether that is why `state` is null."),
    ])
  )

  /// Nil where nobody claims the object now.
  package var object: ObjectHandle?
  package var path: IdentifierPath
  package var kind: ObjectKind
  /// The class and superclasses that the archive recorded; empty where none was given.
  package var classes: [String]
  /// Role of the process that owns the object or owned it last.
  package var process: String?
  /// Whether the object's owner left without closing it (R13).
  package var orphaned: Bool
  /// Whether there is a state, and if so whether it can be read and is handed out.
  package var status: RestorationState
  /// Nil unless the status is `available` or `quarantined`, and where the state is redacted.
  package var state: JSONText?
  /// Reserved keys of the session that wrote the state; nil where there is none.
  package var coder: JSONText?
  /// The elements written with the state; nil where there are none or they are redacted.
  package var elements: JSONText?
  /// Bytes of the state; 0 where there is none.
  package var bytes: Int
  /// When the state was written; nil where there is none.
  package var modified: Timestamp?
  package var confidential: Bool
  /// Whether the state is left out because it is confidential and `reveal` was not said.
  package var redacted: Bool

  package init(
    object: ObjectHandle?,
    path: IdentifierPath,
    kind: ObjectKind,
    classes: [String],
    process: String?,
    orphaned: Bool,
    status: RestorationState,
    state: JSONText?,
    coder: JSONText?,
    elements: JSONText? = nil,
    bytes: Int,
    modified: Timestamp?,
    confidential: Bool = false,
    redacted: Bool = false
  ) {
    self.object = object
    self.path = path
    self.kind = kind
    self.classes = classes
    self.process = process
    self.orphaned = orphaned
    self.status = status
    self.state = state
    self.coder = coder
    self.elements = elements
    self.bytes = bytes
    self.modified = modified
    self.confidential = confidential
    self.redacted = redacted
  }

  /// Reads an item of a result; nil where it has another form.
  package init?(_ slice: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(slice)
      self.object = try reader.optionalInteger("object")
      self.path = try reader.path("path")
      self.kind = try reader.word("kind", as: ObjectKind.self)
      self.classes = try reader.classes("objectClass")
      self.process = try reader.optionalString("process")
      self.orphaned = try reader.bool("orphaned")
      self.status = try reader.word("status", as: RestorationState.self)
      self.state = try reader.optionalText("state")
      self.coder = try reader.optionalText("coder")
      self.elements = try reader.optionalText("elements")
      self.bytes = try reader.count("bytes")
      self.modified = try reader.optional("modified") { $0.string().flatMap { Timestamp($0) } }
      self.confidential = try reader.bool("confidential")
      self.redacted = try reader.bool("redacted")
    } catch {
      return nil
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("object", object)
      writer.member("path", path)
      writer.member("kind", kind)
      writer.key("objectClass")
      ClassList.write(classes, to: &writer)
      writer.member("process", process)
      writer.member("orphaned", orphaned)
      writer.member("status", status)
      writer.member("state", state)
      writer.member("coder", coder)
      writer.member("elements", ifPresent: elements)
      writer.member("bytes", bytes)
      writer.member("modified", modified)
      writer.member("confidential", confidential)
      writer.member("redacted", redacted)
    }
  }
}
