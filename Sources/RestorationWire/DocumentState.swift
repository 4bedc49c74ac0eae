// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A state in a document, with its elements and who wrote it (R25, R26, R28).
package struct DocumentState: Sendable {
  package static let schema = Schema.shared(
    "DocumentState",
    .object([
      .required("state", .state, "The state, as text unchanged but for references."),
      .optional("elements", .nullable(.elements), "Selected and topmost elements; `resolved` is false."),
      .required("writer", Writer.schema, "Who wrote the state; there exactly where `state` is."),
    ])
  )

  /// The state with its references as paths.
  package var text: JSONText
  /// The elements as they are stored; nil where there are none.
  package var elements: JSONText?
  package var writer: Writer
  /// What reading found out about the text; nil for a state that is to be written, and once that was looked at.
  package var encoded: EncodedState?
  /// The references of a state that was read, in the order of the text.
  package private(set) var references: [Reference] = []

  /// A reference in the text of a state.
  package struct Reference: Hashable, Sendable {
    /// Of the whole reference, as offsets from the first byte of `text`.
    package var range: Range<Int>
    /// Nil where it leads to nothing.
    package var target: IdentifierPath?
  }

  package init(text: JSONText, elements: JSONText?, writer: Writer) {
    self.text = text
    self.elements = elements
    self.writer = writer
  }

  /// Reads `state`, `elements` and `writer`; nil where there is no state.
  static func read(from reader: ObjectReader) throws(ErrorObject) -> DocumentState? {
    guard let slice = reader.present("state") else {
      for name in ["elements", "writer"] as [StaticString] where reader.present(name) != nil {
        throw .invalidParameter("/\(name)", "\(name) is given where there is no state", hint: "Give the state as well.")
      }
      return nil
    }
    let encoded: EncodedState = try reader.required("state")
    if let name = slice.duplicateName {
      throw .invalidParameter(
        "/state/\(JSONPointer.escaped(name))",
        "the state has the key \(name) twice",
        hint: "Give each key of a state once."
      )
    }
    var elements = try reader.optional("elements") as [Element]? ?? []
    for index in elements.indices {
      // Nobody has asked a data source, so the raw index path is what comes back.
      elements[index].resolved = false
    }
    guard let member = reader.present("writer") else { throw .missing("/writer", "writer") }
    let writer: Writer
    do throws(ErrorObject) {
      guard member.kind == .object else { throw .invalidParameter("", "writer is no object", hint: "Give an object.") }
      try member.requireDistinctNames()
      writer = try Writer(ObjectReader(member))
    } catch {
      throw error.below("/writer")
    }
    var state = DocumentState(text: encoded.text, elements: elements.isEmpty ? nil : elements.text, writer: writer)
    state.encoded = encoded
    state.references = try encoded.references.map { reference throws(ErrorObject) in
      let target = IdentifierPath(reference.target)
      guard target != nil || reference.target.isNull else { throw .unknownTarget(reference.target.compactText) }
      return Reference(range: reference.objectRange, target: target)
    }
    return state
  }

  func writeMembers(to writer: inout JSONWriter) {
    writer.member("state", text)
    writer.member("elements", ifPresent: elements)
    writer.member("writer", self.writer)
  }

  /// The session that wrote a state, as far as the state's coder and class tell.
  package struct Writer: Hashable, Sendable, JSONWritable {
    package static let schema = Schema.shared(
      "DocumentWriter",
      .object([
        .optional("objectClass", .nullable(.objectClass), "The classes that the state's writer declared (R25)."),
        .optional("process", .nullable(.string), "Its process role."),
        .optional("bundleVersion", .nullable(.name)),
        .optional("userInterfaceIdiom", .nullable(.integer), "−1 where it gave none, and where the member is absent."),
        .optional("systemVersion", .nullable(.name)),
        .optional("storyboard", .nullable(Storyboard.schema)),
        .required("written", .timestamp, "When, RFC 3339, UTC, milliseconds: `2026-02-28T09:05:00.042Z`."),
      ])
    )

    package var classes: [String]
    /// The process role.
    package var process: String?
    package var bundleVersion: String?
    package var userInterfaceIdiom: Int64
    package var systemVersion: String?
    /// The unit of a view controller's storyboard.
    package var storyboard: String?
    package var written: Timestamp

    package init(
      classes: [String],
      process: String?,
      bundleVersion: String?,
      userInterfaceIdiom: Int64,
      systemVersion: String?,
      storyboard: String?,
      written: Timestamp
    ) {
      self.classes = classes
      self.process = process
      self.bundleVersion = bundleVersion
      self.userInterfaceIdiom = userInterfaceIdiom
      self.systemVersion = systemVersion
      self.storyboard = storyboard
      self.written = written
    }

    init(_ reader: ObjectReader) throws(ErrorObject) {
      classes = (try reader.optional("objectClass") as ClassList?)?.names ?? []
      process = try reader.optional("process", .role)
      bundleVersion = try reader.optional("bundleVersion", .name)
      userInterfaceIdiom = try reader.optional("userInterfaceIdiom") ?? ReservedKeys.unspecifiedIdiom
      systemVersion = try reader.optional("systemVersion", .name)
      storyboard = (try reader.optional("storyboard") as Storyboard?)?.unit
      written = try reader.required("written")
    }

    package func writeJSON(to writer: inout JSONWriter) {
      writer.object { writer in
        if !classes.isEmpty {
          writer.key("objectClass")
          ClassList.write(classes, to: &writer)
        }
        writer.member("process", ifPresent: process)
        writer.member("bundleVersion", ifPresent: bundleVersion)
        writer.member("userInterfaceIdiom", userInterfaceIdiom)
        writer.member("systemVersion", ifPresent: systemVersion)
        writer.member("storyboard", ifPresent: storyboard.map { Storyboard(unit: $0) })
        writer.member("written", written)
      }
    }
  }
}

extension ErrorObject {
  /// −32015 for a reference of a document that leads to none of its objects.
  package static func unknownTarget(_ target: JSONText) -> ErrorObject {
    .restoration(
      .invalidReference,
      "\(target) leads to no object of the document",
      hint: "References are paths of objects in the document, or null.",
      details: ["pointer": "/state", "reference": .text(target)]
    )
  }
}
