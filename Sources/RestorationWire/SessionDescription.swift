// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// One live session in `describeApplication`; its token is not shown.
package struct SessionDescription: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "SessionDescription",
    .object([
      .required("process", .nullable(.string), "The process role."),
      .required("pid", .integer(1...), "Number of the process."),
      .required("delegate", .boolean, "Whether it is the application's delegate (R9)."),
      .required("serves", .list(ServedMethod.schema), "What it may be called and notified of."),
    ])
  )

  /// The process role; nil where the session gave none.
  package var process: String?
  package var pid: Int64
  package var delegate: Bool
  package var serves: [ServedMethod]

  package init(process: String?, pid: Int64, delegate: Bool = false, serves: [ServedMethod] = []) {
    self.process = process
    self.pid = pid
    self.delegate = delegate
    self.serves = serves
  }

  /// Reads an item of a result; nil where it has another form.
  package init?(_ slice: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(slice)
      self.process = try reader.optionalString("process")
      self.pid = try reader.integer("pid")
      self.delegate = try reader.bool("delegate")
      // Names that a later broker knows are left out.
      self.serves = try reader.list("serves") { $0.string() }.compactMap { ServedMethod(rawValue: $0) }
    } catch {
      return nil
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("process", process)
      writer.member("pid", pid)
      writer.member("delegate", delegate)
      writer.member("serves", serves)
    }
  }
}
