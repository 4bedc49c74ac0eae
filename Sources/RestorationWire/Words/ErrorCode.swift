// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The kind of an error. Programs decide by it, never by the message (`Protocol/errors.md`).
///
/// Each comment says what the caller can do.
public struct ErrorCode: RawRepresentable, Hashable, Sendable {
  /// The number in the JSON-RPC error object.
  public let rawValue: Int

  /// Any number, because later brokers have more.
  public init(rawValue: Int) { self.rawValue = rawValue }
}

// Of JSON-RPC and of the Language Server Protocol
extension ErrorCode {
  /// The text is not JSON.
  public static let parseError = ErrorCode(rawValue: -32700)
  /// Not a JSON-RPC 2.0 message, or a second session was requested on a connection.
  public static let invalidRequest = ErrorCode(rawValue: -32600)
  /// The broker has no such method.
  public static let methodNotFound = ErrorCode(rawValue: -32601)
  /// A parameter is missing, has the wrong type or is out of range; `pointer` names it.
  public static let invalidParams = ErrorCode(rawValue: -32602)
  /// A fault of the broker; see its log.
  public static let internalError = ErrorCode(rawValue: -32603)
  /// Nothing: the client cancelled the call (LSP).
  public static let requestCancelled = ErrorCode(rawValue: -32800)
}

// Of the restoration protocol
extension ErrorCode {
  /// Call `initialize` first, or name the `application` in the call.
  public static let notInitialized = ErrorCode(rawValue: -32001)
  /// Register the object, or use a path the archive knows.
  public static let unknownObject = ErrorCode(rawValue: -32002)
  /// Another live object has this path; choose another identifier or ask for `takeOver`.
  public static let duplicatePath = ErrorCode(rawValue: -32003)
  /// Use 1–255 bytes of UTF-8 without `/`, `#` and control characters (R1).
  public static let invalidIdentifier = ErrorCode(rawValue: -32004)
  /// Register the parent first, or wait for it with `awaitParentMilliseconds` (R3).
  public static let unknownParent = ErrorCode(rawValue: -32005)
  /// An object cannot be its own ancestor (R6).
  public static let parentCycle = ErrorCode(rawValue: -32006)
  /// Keys of the coder cannot be written; rename the key (R10).
  public static let reservedKey = ErrorCode(rawValue: -32007)
  /// Send less, or raise the named limit in the broker's configuration.
  public static let limitExceeded = ErrorCode(rawValue: -32008)
  /// Only the session that owns the object may do this.
  public static let notOwner = ErrorCode(rawValue: -32009)
  /// Another session has taken the path over; stop writing to this object (R8).
  public static let replaced = ErrorCode(rawValue: -32010)
  /// The archive exists and cannot be used now; see the broker's log (R20).
  public static let archiveUnreadable = ErrorCode(rawValue: -32011)
  /// The disk refused the write; `indeterminate` says whether it may be stored all the same (R15).
  public static let storeFailed = ErrorCode(rawValue: -32012)
  /// The awaited event did not come in time; try again.
  public static let timedOut = ErrorCode(rawValue: -32013)
  public static let forbidden = ErrorCode(rawValue: -32014)
  /// A reference in the state has no target; register the target first (R14).
  public static let invalidReference = ErrorCode(rawValue: -32015)
  /// Use one of the versions in `supported`.
  public static let unsupportedProtocolVersion = ErrorCode(rawValue: -32016)
  /// The broker is ending; connect again.
  public static let shuttingDown = ErrorCode(rawValue: -32017)
  /// The application does not exist, and this call does not make it.
  public static let unknownApplication = ErrorCode(rawValue: -32018)
  /// Another live session already serves this (R9).
  public static let alreadyServed = ErrorCode(rawValue: -32019)
  /// Pass `force: true` to confirm.
  public static let needsForce = ErrorCode(rawValue: -32020)
  /// The object's state is not the expected one; decode it again (R15).
  public static let stateChanged = ErrorCode(rawValue: -32021)
  /// Another host has the application: end it there, wait, or pass `takeOver: true` to `initialize` (R36).
  public static let ownedElsewhere = ErrorCode(rawValue: -32022)
  /// Another host has taken over the application, and the session has ended: stop, or begin a new one (R36).
  public static let fenced = ErrorCode(rawValue: -32023)
}

extension ErrorCode: CustomStringConvertible {
  /// `data.kind` and the cause of each error; the table of `Protocol/errors.md` begins with this text.
  private static let rows: [ErrorCode: (kind: String, summary: String)] = [
    .parseError: ("parseError", "The text is not JSON by RFC 8259, or not UTF-8."),
    .invalidRequest: ("invalidRequest", "The JSON is not a JSON-RPC 2.0 message."),
    .methodNotFound: ("methodNotFound", "Unknown method."),
    .invalidParams: ("invalidParams", "A member is missing, of another type, out of its range, or given twice."),
    .internalError: ("internalError", "A fault of the broker."),
    .requestCancelled: ("requestCancelled", "The client cancelled the call."),
    .notInitialized: ("notInitialized", "The call needs an application and the connection has none."),
    .unknownObject: ("unknownObject", "No object has this handle or path in the application."),
    .duplicatePath: ("duplicatePath", "Another live object has the path, or a move would displace a state."),
    .invalidIdentifier: (
      "invalidIdentifier",
      "The identifier is not 1–255 bytes without `/`, `#` and control characters, or a plain object has none (R1, R4)."
    ),
    .unknownParent: ("unknownParent", "The restoration parent is neither registered nor archived (R3)."),
    .parentCycle: ("parentCycle", "The new parent is the object itself or below it (R6)."),
    .reservedKey: ("reservedKey", "A key of the state is reserved for the broker (R10)."),
    .limitExceeded: ("limitExceeded", "A limit is exceeded."),
    .notOwner: ("notOwner", "Only the session that owns the object may do this."),
    .replaced: ("replaced", "Another session has taken the object over (R8)."),
    .archiveUnreadable: ("archiveUnreadable", "The archive exists and cannot be used now."),
    .storeFailed: ("storeFailed", "The disk refused the write."),
    .timedOut: ("timedOut", "The awaited event did not come in time."),
    .forbidden: ("forbidden", "This client may not do this."),
    .invalidReference: ("invalidReference", "A reference in the state has no target (R14)."),
    .unsupportedProtocolVersion: ("unsupportedProtocolVersion", "The broker does not speak the requested version."),
    .shuttingDown: ("shuttingDown", "The broker is ending."),
    .unknownApplication: ("unknownApplication", "Unknown application (this call does not create one)."),
    .alreadyServed: (
      "alreadyServed",
      "Another live session is already the delegate, makes the restoration class's objects, or is the view's data "
        + "source (R9)."
    ),
    .needsForce: (
      "needsForce",
      "The call would destroy or replace saved state, or proceed although something is missing."
    ),
    .stateChanged: ("stateChanged", "The object's newest state is not the one that the call expects (R15)."),
    .ownedElsewhere: ("ownedElsewhere", "Another host has the application (R36)."),
    .fenced: ("fenced", "Another host has got the application, and the session has ended (R36)."),
  ]

  /// In descending order of codes.
  package static let all = rows.keys.sorted { $0.rawValue > $1.rawValue }

  /// Errors that any call may return; methods list the others.
  package static let everyCall: [ErrorCode] = [
    .parseError, .invalidRequest, .methodNotFound, .invalidParams, .internalError, .notInitialized, .limitExceeded,
    .forbidden, .ownedElsewhere, .fenced,
  ]

  /// The word in `data.kind`; for an unknown code its number.
  public var kind: String { Self.rows[self]?.kind ?? String(rawValue) }

  /// The error's cause; `nil` if the code is unknown here.
  package var summary: String? { Self.rows[self]?.summary }

  /// The word in `data.kind`; for an unknown code its number.
  public var description: String { kind }
}

extension ErrorObject {
  /// - Parameters:
  ///   - hint: a sentence that says what to do next.
  ///   - path: the object concerned.
  ///   - details: further members of `data`.
  package static func restoration(
    _ code: ErrorCode,
    _ message: String,
    hint: String,
    path: IdentifierPath? = nil,
    details: JSONObject = [:]
  ) -> ErrorObject {
    var data: JSONObject = ["kind": .string(code.kind), "hint": .string(hint)]
    if let path { data["path"] = path.json }
    for (name, value) in details.members { data[name] = value }
    return ErrorObject(code: code.rawValue, message: message, data: .object(data))
  }

  /// - Parameter pointer: JSON pointer into the parameters, such as `/object`.
  package static func invalidParameter(_ pointer: String, _ message: String, hint: String) -> ErrorObject {
    ErrorObject(
      code: -32602,
      message: message,
      data: .object(["kind": "invalidParams", "hint": .string(hint), "pointer": .string(pointer)])
    )
  }

  /// Characters of a path in a message.
  private static let pathMax = 300

  /// −32008: `value` exceeds `max` of `limit`, a name that `limits` reports.
  ///
  /// - Parameter hint: the next step; `nil`: to send less.
  package static func limitExceeded(
    _ limit: String,
    max: Int,
    value: Int,
    path: IdentifierPath? = nil,
    hint: String? = nil
  ) -> ErrorObject {
    // The longest of paths would leave no room for the reason.
    let place = path.map { $0.components.isEmpty ? "" : "\("\($0)".prefix(pathMax)): " } ?? ""
    return .restoration(
      .limitExceeded,
      "\(place)\(limit) is \(max), this value is \(value)",
      hint: hint ?? "Send less, or raise \(limit) in the broker's configuration.",
      path: path,
      details: ["limit": .string(limit), "max": .integer(Int64(max)), "value": .integer(Int64(value))]
    )
  }
}
