// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// An object that only this tool prints, or that it prints with other members than the protocol's
/// (`Protocol/restorationctl.md`). All other output consists of the protocol's own values.
struct PrintedObject: JSONWritable {
  let members: (inout JSONWriter) -> Void

  func writeJSON(to writer: inout JSONWriter) { writer.object(members) }
}

extension JSONText {
  /// Text that is known to be compact and right.
  init(compact text: String) { self.init(validated: Array(text.utf8)) }
}

struct ApplicationOutcome<Value: JSONWritable & Sendable>: JSONWritable, Sendable {
  let application: String
  /// `nil` if nothing was done.
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
