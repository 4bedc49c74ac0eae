// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// How far a call has come that asked for this by its `progressToken`.
package struct Progress: RestorationNotification, Hashable {
  package static let method = ServedMethod.progress
  package static let summary = "A call that this connection made with a `progressToken` has come so far."
  package static let parameters: [Schema.Member] = [
    .required("progressToken", ProgressToken.schema, "As the call gave it, byte for byte."),
    .required("done", .count, "Never goes back within a call."),
    .optional("total", .count, "What `done` goes up to; absent where it is not known."),
    .optional("message", .string, "For people; absent where there is nothing to say."),
  ]

  package var progressToken: ProgressToken
  /// Never goes back within one call; what is counted is the method's matter.
  package var done: Int64
  /// Nil where it is not known.
  package var total: Int64?
  /// For people.
  package var message: String?

  package init(progressToken: ProgressToken, done: Int64, total: Int64?, message: String? = nil) {
    self.progressToken = progressToken
    self.done = done
    self.total = total
    self.message = message
  }

  package init?(_ parameters: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(parameters)
      self.progressToken = try reader.value("progressToken") { try? ProgressToken(wire: $0) }
      self.done = try reader.integer("done")
      self.total = try reader.optionalInteger("total")
      self.message = try reader.optionalString("message")
    } catch {
      return nil
    }
  }

  package func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("progressToken", progressToken)
      writer.member("done", done)
      writer.member("total", ifPresent: total)
      writer.member("message", ifPresent: message)
    }
  }
}
