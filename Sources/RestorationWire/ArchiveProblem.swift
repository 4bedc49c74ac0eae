// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Something `verifyArchive` found wrong.
package struct ArchiveProblem: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "ArchiveProblem",
    .object([
      .required("kind", .openWords(Kind.self), "One of the words below; the set is open."),
      .optional(
        "path",
        .path,
        "The object's path, in the generation where one is named; absent where it is not known."
      ),
      .optional("generation", .generation, "The newest generation that shows it; absent where the head does."),
      .required("message", .string, "For people."),
    ])
  )

  package enum Kind: String, CaseIterable, Sendable {
    /// A stored state cannot be read, or its checksum is wrong (R32).
    case state
    /// A stored text is not what it must be.
    case text
    /// A reference inside a state leads nowhere it can ever have led.
    case reference
    /// An object's description cannot be read or makes no sense.
    case object
    /// The tree is none: a parent is missing, two objects have one path, or an object is its own ancestor.
    case tree
    /// The file is not what the store wrote.
    case file
  }

  /// A word of `Kind`; later brokers add words.
  package var kind: String
  /// The object's path, in the generation where one is named; nil where it has none or is not known.
  package var path: IdentifierPath?
  /// The newest generation that shows it, where the head does not.
  package var generation: Int64?
  /// For people.
  package var message: String

  package init(_ kind: Kind, path: IdentifierPath? = nil, generation: Int64? = nil, _ message: String) {
    self.kind = kind.rawValue
    self.path = path
    self.generation = generation
    self.message = message
  }

  /// Reads an item of a result; nil where it has another form.
  package init?(_ slice: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(slice)
      self.kind = try reader.string("kind")
      self.path = try reader.optionalPath("path")
      self.generation = try reader.optionalInteger("generation")
      self.message = try reader.string("message")
    } catch {
      return nil
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("kind", kind)
      writer.member("path", ifPresent: path)
      writer.member("generation", ifPresent: generation)
      writer.member("message", message)
    }
  }
}
