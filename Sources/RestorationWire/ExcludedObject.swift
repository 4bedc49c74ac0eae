// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A live object that a generation leaves out, and what excludes it (R4, R5).
package struct ExcludedObject: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "ExcludedObject",
    .object([
      .required("object", .handle, "Its handle."),
      .required("path", .nullable(.path), "Its path; null where its own identifier is null."),
      .required("process", .nullable(.string), "Its owner."),
      .required("pid", .nullable(.integer(1...)), "Its owner."),
      .required(
        "by",
        .reference,
        "The object whose identifier is null, or that a view must not be below; the object itself where it is at "
          + "fault."
      ),
    ])
  )

  package var object: ObjectHandle
  /// Nil where its own identifier is null.
  package var path: IdentifierPath?
  /// The process role that the owner's session gave.
  package var process: String?
  package var pid: Int64?
  /// The object whose identifier is null, or that a view must not be below; the object itself where it is at fault.
  package var by: ObjectReference

  package init(object: ObjectHandle, path: IdentifierPath?, process: String?, pid: Int64?, by: ObjectReference) {
    self.object = object
    self.path = path
    self.process = process
    self.pid = pid
    self.by = by
  }

  /// Reads an item of a result; nil where it has another form.
  package init?(_ slice: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(slice)
      self.object = try reader.integer("object")
      self.path = try reader.optionalPath("path")
      self.process = try reader.optionalString("process")
      self.pid = try reader.optionalInteger("pid")
      self.by = try reader.value("by") { ObjectReference($0) }
    } catch {
      return nil
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("object", object)
      writer.member("path", path)
      writer.member("process", process)
      writer.member("pid", pid)
      writer.member("by", by)
    }
  }
}
