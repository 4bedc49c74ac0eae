// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// How far a call has come that asked for this by its `progressToken`.
package struct Progress: RestorationNotification, Hashable {
  package static let method = ServedMethod.progress

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
      self.progressToken = try reader.value("progressToken") { ProgressToken($0) }
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
