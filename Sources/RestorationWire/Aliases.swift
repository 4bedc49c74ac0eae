// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Names of earlier versions of an application and what they are called today (R25).
///
/// An alias is followed once: the new name of one is not looked up again.
package struct Aliases: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "Aliases",
    .object([
      .optional("classes", .nullable(.map(.string)), "Archived class names, and today's."),
      .optional("identifiers", .nullable(.map(.string)), "Archived restoration identifiers, and today's."),
    ])
  )

  /// Archived class name → today's class name.
  package var classes: [String: String]
  /// Archived restoration identifier → today's.
  package var identifiers: [String: String]

  package init(classes: [String: String] = [:], identifiers: [String: String] = [:]) {
    self.classes = classes
    self.identifiers = identifiers
  }

  package var isEmpty: Bool {
    classes.isEmpty && identifiers.isEmpty
  }

  /// Reads the member `name`, an object of two objects of strings; each of the three may be absent or null.
  package static func read(from reader: ParameterReader, _ name: String) throws(ErrorObject) -> Aliases {
    guard let slice = reader.present(name) else { return Aliases() }
    guard slice.kind == .object else { throw reader.wrong(name, "an object of classes and identifiers") }
    return Aliases(
      classes: try names(slice["classes"], at: "\(name)/classes", of: reader),
      identifiers: try names(slice["identifiers"], at: "\(name)/identifiers", of: reader)
    )
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.key("classes")
      Self.write(classes, to: &writer)
      writer.key("identifiers")
      Self.write(identifiers, to: &writer)
    }
  }

  private static func names(
    _ slice: JSONSlice?,
    at place: String,
    of reader: ParameterReader
  ) throws(ErrorObject) -> [String: String] {
    guard let slice, !slice.isNull else { return [:] }
    guard let members = slice.members else { throw reader.wrong(place, "an object of strings") }
    var names: [String: String] = [:]
    for (old, value) in members {
      guard let new = value.string() else {
        throw reader.wrong("\(place)/\(JSONPointer.escaped(old))", "a string")
      }
      names[old] = new
    }
    return names
  }

  private static func write(_ names: [String: String], to writer: inout JSONWriter) {
    writer.object { writer in
      for (old, new) in names.sorted(by: { $0.key < $1.key }) {
        writer.key(old)
        writer.string(new)
      }
    }
  }
}
