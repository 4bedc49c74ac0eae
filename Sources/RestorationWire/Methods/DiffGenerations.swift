// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Tells what differs between two generations, or a generation and the head, path by path.
package struct DiffGenerations: RestorationMethod {
  package static let method = "diffGenerations"
  package static let summary = "Tells what differs between two generations."
  package static let parameters: [Schema.Member] = [
    .required("from", .generation, "The generation to start from."),
    .optional("to", .generation, "The generation to come to."),
    .optional("reveal", .boolean, "Name the keys of confidential objects."),
    .optional("cursor", .name, "From the page before."),
    .optional("progressToken", ProgressToken.schema, "Asks for `progress`, which counts objects."),
  ]
  package static let errors: [ErrorDescription] = [
    .invalidParams, .unknownApplication, .archiveUnreadable, .requestCancelled,
  ]

  package var from: Int64
  /// Nil compares with the head.
  package var to: Int64?
  /// Whether the keys of confidential objects are told.
  package var reveal: Bool
  /// From the page before; fixes what is compared.
  package var cursor: String?
  package var progressToken: ProgressToken?

  package init(
    from: Int64,
    to: Int64? = nil,
    reveal: Bool = false,
    cursor: String? = nil,
    progressToken: ProgressToken? = nil
  ) {
    self.from = from
    self.to = to
    self.reveal = reveal
    self.cursor = cursor
    self.progressToken = progressToken
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    _ = try reader.required("from")
    guard let from = try reader.optionalInteger("from", in: 1...Int64.max) else {
      throw reader.wrong("from", "the number of a generation")
    }
    self.from = from
    self.to = try reader.optionalInteger("to", in: 1...Int64.max)
    self.reveal = try reader.bool("reveal")
    self.cursor = try reader.optionalName("cursor")
    self.progressToken = try ProgressToken.read(from: reader)
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("from", from)
    writer.member("to", ifPresent: to)
    writer.member("reveal", ifTrue: reveal)
    writer.member("cursor", ifPresent: cursor)
    writer.member("progressToken", ifPresent: progressToken)
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required("added", .list(.path), "Objects that only `to` has."),
      .required("removed", .list(.path), "Objects that only `from` has."),
      .required("changed", .list(ObjectDifference.schema), "Objects that both have, with states that differ."),
      .optional("cursor", .name, "For the next page; absent after the last one."),
    ])

    /// Objects that only `to` has, and those that only `from` has.
    package var added: [IdentifierPath]
    package var removed: [IdentifierPath]
    package var changed: [ObjectDifference]
    /// For the next page; nil after the last one.
    package var cursor: String?

    package init(
      added: [IdentifierPath] = [],
      removed: [IdentifierPath] = [],
      changed: [ObjectDifference] = [],
      cursor: String? = nil
    ) {
      self.added = added
      self.removed = removed
      self.changed = changed
      self.cursor = cursor
    }

    /// Nothing differs.
    package var isEmpty: Bool { added.isEmpty && removed.isEmpty && changed.isEmpty }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.added = try reader.list("added") { IdentifierPath($0) }
        self.removed = try reader.list("removed") { IdentifierPath($0) }
        self.changed = try reader.list("changed") { ObjectDifference($0) }
        self.cursor = try reader.optionalString("cursor")
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("added", added)
        writer.member("removed", removed)
        writer.member("changed", changed)
        writer.member("cursor", ifPresent: cursor)
      }
    }
  }
}

/// How one object's state differs, in `diffGenerations`.
package struct ObjectDifference: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "ObjectDifference",
    .object([
      .required("path", .path, "Its path."),
      .required(
        "keys",
        .list(.string),
        "Top-level keys of the state that only one side has, or whose values are not the same text; sorted."
      ),
      .optional("elements", .true, "The elements differ; else absent."),
      .optional("redacted", .true, "Keys are not named, because the object is confidential on one side; else absent."),
      .optional("unreadable", .true, "Keys are not known, because a state is damaged (R32); else absent."),
    ])
  )

  package var path: IdentifierPath
  /// Top-level keys that only one side has or whose values are other texts, sorted.
  package var keys: [String]
  /// Whether the elements differ.
  package var elements: Bool
  /// Keys are not told, because the object is confidential.
  package var redacted: Bool
  /// Keys are not known, because a state is damaged (R32).
  package var unreadable: Bool

  package init(
    path: IdentifierPath,
    keys: [String],
    elements: Bool = false,
    redacted: Bool = false,
    unreadable: Bool = false
  ) {
    self.path = path
    self.keys = keys
    self.elements = elements
    self.redacted = redacted
    self.unreadable = unreadable
  }

  /// Reads an item of a result; nil where it has another form.
  package init?(_ slice: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(slice)
      self.path = try reader.path("path")
      self.keys = try reader.list("keys") { $0.string() }
      self.elements = try reader.bool("elements")
      self.redacted = try reader.bool("redacted")
      self.unreadable = try reader.bool("unreadable")
    } catch {
      return nil
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("path", path)
      writer.member("keys", keys)
      writer.member("elements", ifTrue: elements)
      writer.member("redacted", ifTrue: redacted)
      writer.member("unreadable", ifTrue: unreadable)
    }
  }
}
