// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// What became of one of several applications.
struct ApplicationOutcome<Value: JSONWritable & Sendable>: JSONWritable, Sendable {
  let application: String
  /// Nil if nothing was done.
  let result: Result<Value, Failure>?

  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("application", application)
      switch result {
      case .success(let value): writer.member("result", value)
      case .failure(let failure): writer.member("error", failure)
      case nil: break
      }
    }
  }
}
