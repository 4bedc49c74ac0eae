// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// An error that a method may answer, as `rpc.discover` tells of it (`Protocol/errors.md`).
package struct ErrorDescription: Hashable, Sendable {
  package let code: Int
  /// The word in `data.kind`.
  package let kind: String
  /// When it comes; what the table of `Protocol/errors.md` begins with.
  package let summary: String

  private init(_ code: Int, _ kind: String, _ summary: String) {
    self.code = code
    self.kind = kind
    self.summary = summary
  }

  private init(_ code: ErrorCode, _ summary: String) {
    self.init(code.rawValue, code.kind, summary)
  }

  // MARK: Of JSON-RPC and of the Language Server Protocol

  package static let parseError = Self(-32700, "parseError", "The text is not JSON by RFC 8259, or not UTF-8.")
  package static let invalidRequest = Self(-32600, "invalidRequest", "The JSON is no JSON-RPC 2.0 message.")
  package static let methodNotFound = Self(-32601, "methodNotFound", "There is no such method.")
  package static let invalidParams = Self(
    -32602,
    "invalidParams",
    "A member is missing, of another type, out of its range, or given twice."
  )
  package static let internalError = Self(-32603, "internalError", "A fault of the broker.")
  package static let requestCancelled = Self(-32800, "requestCancelled", "The client cancelled the call.")

  // MARK: Of the restoration protocol

  package static let notInitialized = Self(
    .notInitialized,
    "The call needs an application and the connection has none."
  )
  package static let unknownObject = Self(.unknownObject, "No object has this handle or path in the application.")
  package static let duplicatePath = Self(
    .duplicatePath,
    "Another live object has the path, or a move would displace a state."
  )
  package static let invalidIdentifier = Self(
    .invalidIdentifier,
    "The identifier is not 1–255 bytes without `/`, `#` and control characters, or a plain object has none (R1, R4)."
  )
  package static let unknownParent = Self(
    .unknownParent,
    "The restoration parent is neither registered nor archived (R3)."
  )
  package static let parentCycle = Self(.parentCycle, "The new parent is the object itself or below it (R6).")
  package static let reservedKey = Self(
    .reservedKey,
    "A key of the state begins like those that only the broker writes (R10)."
  )
  package static let limitExceeded = Self(.limitExceeded, "A limit is exceeded.")
  package static let notOwner = Self(.notOwner, "Only the session that owns the object may do this.")
  package static let replaced = Self(.replaced, "Another session has taken the object over (R8).")
  package static let archiveUnreadable = Self(.archiveUnreadable, "The archive exists and cannot be used now.")
  package static let storeFailed = Self(.storeFailed, "The disk refused the write.")
  package static let timedOut = Self(.timedOut, "What was waited for did not come in time.")
  package static let forbidden = Self(.forbidden, "This client may not do this.")
  package static let invalidReference = Self(.invalidReference, "A reference in the state leads nowhere (R14).")
  package static let unsupportedProtocolVersion = Self(
    .unsupportedProtocolVersion,
    "The broker does not speak the version asked for."
  )
  package static let shuttingDown = Self(.shuttingDown, "The broker is ending.")
  package static let unknownApplication = Self(
    .unknownApplication,
    "There is no such application, and this call makes none."
  )
  package static let alreadyServed = Self(
    .alreadyServed,
    "Another live session is the delegate already, makes the objects of the restoration class, or is the view's data "
      + "source (R9)."
  )
  package static let needsForce = Self(
    .needsForce,
    "The call would destroy or replace what is saved, or goes on without something that is missing."
  )

  /// Every error there is.
  package static let all: [ErrorDescription] =
    everyCall + [
      .requestCancelled, .unknownObject, .duplicatePath, .invalidIdentifier, .unknownParent, .parentCycle, .reservedKey,
      .notOwner, .replaced, .archiveUnreadable, .storeFailed, .timedOut, .forbidden, .invalidReference,
      .unsupportedProtocolVersion, .shuttingDown, .unknownApplication, .alreadyServed, .needsForce,
    ]

  /// What any call may be answered with; methods list the others.
  package static let everyCall: [ErrorDescription] = [
    .parseError, .invalidRequest, .methodNotFound, .invalidParams, .internalError, .notInitialized, .limitExceeded,
  ]
}

extension ErrorDescription: JSONWritable {
  /// `data` of an error, whichever it is.
  package static let data = Schema.shared(
    "ErrorData",
    .object([
      .required("kind", .string, "The error's name."),
      .required("hint", .string, "One sentence that says what to do next; for people."),
      .optional("path", .list(.string), "The object the error is about."),
      .optional("pointer", .string, "JSON pointer into `params` to the member that is wrong."),
      .optional("offset", .count, "Of `parseError`: byte of the frame."),
      .optional("method", .string, "Of `methodNotFound`: what was called."),
      .optional("owners", .list(ObjectOwner.schema), "Who has what the caller wants."),
      .optional("limit", .string, "Of `limitExceeded`: the limit."),
      .optional("max", .integer, "Of `limitExceeded`: what passes."),
      .optional("value", .integer, "Of `limitExceeded`: what was sent."),
      .optional("indeterminate", .boolean, "Of `storeFailed`: whether it may be there all the same."),
      .optional("reference", .any, "Of `invalidReference`: the reference."),
      .optional("supported", .list(.integer), "Of `unsupportedProtocolVersion`: the versions that there are."),
    ])
  )

  /// Writes an error object; its message is a description, where an answer's says what is wrong.
  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("code", code)
      writer.member("message", summary)
      writer.key("data")
      writer.object { $0.member("kind", kind) }
    }
  }
}
