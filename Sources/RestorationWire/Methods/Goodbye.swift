// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Ends the session and says what becomes of its objects (R30).
package struct Goodbye: RestorationMethod {
  package static let method = "goodbye"
  package static let summary = "Ends the session."
  package static let parameters: [Schema.Member] = [
    .required("reason", .words(Reason.self), "What becomes of the objects (R30)."),
  ]
  package static let errors: [ErrorDescription] = [.archiveUnreadable, .storeFailed]

  package typealias Reply = EmptyResult

  package enum Reason: String, CaseIterable, Sendable {
    /// The session's objects are over; their state is removed.
    case closed
    /// The user quit the application; its state is discarded.
    case userQuit
    /// The process comes back, e.g. after an update; everything is kept.
    case restart
    /// The user's session ends; everything is kept.
    case logout
  }

  package var reason: Reason

  package init(reason: Reason) {
    self.reason = reason
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    _ = try reader.required("reason")
    guard let reason = try reader.optionalWord("reason", as: Reason.self) else {
      throw reader.wrong("reason", "one of \(Reason.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    self.reason = reason
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("reason", reason.rawValue)
  }
}
