// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// One object in `describeApplication`, without its state.
package struct ObjectDescription: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "ObjectDescription",
    .object([
      .required("node", .integer(1...), "Names it within its archive, for ever, also while nobody claims it."),
      .required(
        "parent",
        .nullable(.integer(1...)),
        "`node` of its restoration parent, also where its path begins anew (R4); null for a root."
      ),
      .required("object", .nullable(.handle), "Handle, and process of the owner; null where nobody claims the object."),
      .required("path", .nullable(.path), "Null where its own identifier is null."),
      .required("kind", ObjectKind.schema, "`object`, `viewController` or `view`."),
      .required("objectClass", .nullable(.objectClass), "As registered."),
      .required("process", .nullable(.string), "Role of the process that owns it, or wrote it last."),
      .required(
        "pid",
        .nullable(.integer(1...)),
        "Handle, and process of the owner; null where nobody claims the object."
      ),
      .required("included", .boolean, "A generation holds it by itself (R4, R5)."),
      .required("orphaned", .boolean, "Its owner left without `closed` (R13)."),
      .required("bytes", .count, "Of its state; 0 where there is none."),
      .required("modified", .nullable(.timestamp), "When the state was written."),
      .required("revision", .nullable(.integer(1...)), "The highest that its present owner has given (R15)."),
      .required("confidential", .boolean, "Its state is for nobody's eyes unless they ask."),
      .optional("quarantined", .true, "Present and true where its state is withheld from its owner (R35)."),
    ])
  )

  /// Names the node within its archive, for ever; later ones have higher numbers.
  package var node: Int64
  /// The node of the restoration parent, also where the path begins anew below it (R4); nil for a root.
  package var parent: Int64?
  /// Nil where nobody claims the object now.
  package var object: ObjectHandle?
  /// Nil where the object's own identifier is null (R4).
  package var path: IdentifierPath?
  package var kind: ObjectKind
  /// The object's class and its superclasses; empty where none was given.
  package var classes: [String]
  /// Role of the process that owns the object or owned it last.
  package var process: String?
  /// Nil where nobody claims the object now.
  package var pid: Int64?
  package var included: Bool
  /// Whether the object's owner left without closing it (R13).
  package var orphaned: Bool
  /// Bytes of the state; 0 where there is none.
  package var bytes: Int
  /// When the state was written; nil where there is none.
  package var modified: Timestamp?
  /// Highest revision of the present owner (R15); nil where it has given none.
  package var revision: Int64?
  /// Whether the state is redacted where people look.
  package var confidential: Bool
  /// Whether the state is withheld from its owner (R35).
  package var quarantined: Bool

  package init(
    node: Int64,
    parent: Int64?,
    object: ObjectHandle?,
    path: IdentifierPath?,
    kind: ObjectKind,
    classes: [String],
    process: String?,
    pid: Int64?,
    included: Bool,
    orphaned: Bool,
    bytes: Int,
    modified: Timestamp?,
    revision: Int64? = nil,
    confidential: Bool = false,
    quarantined: Bool = false
  ) {
    self.node = node
    self.parent = parent
    self.object = object
    self.path = path
    self.kind = kind
    self.classes = classes
    self.process = process
    self.pid = pid
    self.included = included
    self.orphaned = orphaned
    self.bytes = bytes
    self.modified = modified
    self.revision = revision
    self.confidential = confidential
    self.quarantined = quarantined
  }

  /// Reads an item of a result; nil where it has another form.
  package init?(_ slice: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(slice)
      self.node = try reader.integer("node")
      self.parent = try reader.optionalInteger("parent")
      self.object = try reader.optionalInteger("object")
      self.path = try reader.optionalPath("path")
      self.kind = try reader.word("kind", as: ObjectKind.self)
      self.classes = try reader.classes("objectClass")
      self.process = try reader.optionalString("process")
      self.pid = try reader.optionalInteger("pid")
      self.included = try reader.bool("included")
      self.orphaned = try reader.bool("orphaned")
      self.bytes = try reader.count("bytes")
      self.modified = try reader.optional("modified") { $0.string().flatMap { Timestamp($0) } }
      self.revision = try reader.optionalInteger("revision")
      self.confidential = try reader.bool("confidential")
      self.quarantined = try reader.bool("quarantined")
    } catch {
      return nil
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("node", node)
      writer.member("parent", parent)
      writer.member("object", object)
      writer.member("path", path)
      writer.member("kind", kind)
      writer.key("objectClass")
      ClassList.write(classes, to: &writer)
      writer.member("process", process)
      writer.member("pid", pid)
      writer.member("included", included)
      writer.member("orphaned", orphaned)
      writer.member("bytes", bytes)
      writer.member("modified", modified)
      writer.member("revision", revision)
      writer.member("confidential", confidential)
      writer.member("quarantined", ifTrue: quarantined)
    }
  }
}
