// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Who owns a registered object, as errors and notifications name it (R1, R8).
package struct ObjectOwner: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "Owner",
    .object([
      .required("process", .nullable(.string), "The process role."),
      .required("pid", .integer(1...), "Number of the process."),
    ])
  )

  /// The process role that the session gave; nil where it gave none.
  package var process: String?
  package var pid: Int64

  package init(process: String?, pid: Int64) {
    self.process = process
    self.pid = pid
  }

  /// Reads an owner; nil where it has another form.
  package init?(_ slice: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(slice)
      self.process = try reader.optionalString("process")
      self.pid = try reader.integer("pid")
    } catch {
      return nil
    }
  }

  /// For `data.owners` of `duplicatePath`.
  package var json: JSONValue {
    .object(["process": process.map { .string($0) } ?? .null, "pid": .integer(pid)])
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("process", process)
      writer.member("pid", pid)
    }
  }
}
