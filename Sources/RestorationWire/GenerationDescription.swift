// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// One generation in `listGenerations` (R16).
package struct GenerationDescription: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "GenerationDescription",
    .object([
      .required("generation", .generation, "1, 2, 3 …; a number is never used twice."),
      .required("kind", .string, "`startup`: what the run before left."),
      .required("committed", .timestamp, "RFC 3339, UTC, milliseconds."),
      .required("objects", .count, "Objects that have a state in it, and bytes of their states."),
      .required("bytes", .count, "Objects that have a state in it, and bytes of their states."),
      .required("pinned", .boolean, "This run started from it, and it is held (R16)."),
    ])
  )

  /// 1, 2, 3 …; a number is never used twice.
  package var generation: Int64
  /// What caused it, e.g. `startup`; later versions add words.
  package var kind: String
  package var committed: Timestamp
  package var objects: Int
  package var bytes: Int
  /// Whether the current run started from it and it is held.
  package var pinned: Bool

  package init(generation: Int64, kind: String, committed: Timestamp, objects: Int, bytes: Int, pinned: Bool) {
    self.generation = generation
    self.kind = kind
    self.committed = committed
    self.objects = objects
    self.bytes = bytes
    self.pinned = pinned
  }

  /// Reads an item of a result; nil where it has another form.
  package init?(_ slice: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(slice)
      self.generation = try reader.integer("generation")
      self.kind = try reader.string("kind")
      self.committed = try reader.value("committed") { $0.string().flatMap { Timestamp($0) } }
      self.objects = try reader.count("objects")
      self.bytes = try reader.count("bytes")
      self.pinned = try reader.bool("pinned")
    } catch {
      return nil
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("generation", generation)
      writer.member("kind", kind)
      writer.member("committed", committed)
      writer.member("objects", objects)
      writer.member("bytes", bytes)
      writer.member("pinned", pinned)
    }
  }
}
