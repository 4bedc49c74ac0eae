// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Errors of the restoration protocol; the comment tells the caller what to do next (`Protocol/errors.md`).
package enum ErrorCode: Int, CaseIterable, Sendable {
  /// Call `initialize` first, or name the `application` in the call.
  case notInitialized = -32001
  /// Register the object, or use a path the archive knows.
  case unknownObject = -32002
  /// Another live object has this path; choose another identifier or ask for `takeOver`.
  case duplicatePath = -32003
  /// Use 1–255 bytes of UTF-8 without `/`, `#` and control characters (R1).
  case invalidIdentifier = -32004
  /// Register the parent first, or wait for it with `awaitParentMilliseconds` (R3).
  case unknownParent = -32005
  /// An object cannot be its own ancestor (R6).
  case parentCycle = -32006
  /// Keys of the coder cannot be written; rename the key (R10).
  case reservedKey = -32007
  /// Send less, or raise the named limit in the broker's configuration.
  case limitExceeded = -32008
  /// Only the session that owns the object may do this.
  case notOwner = -32009
  /// Another session has taken the path over; stop writing to this object (R8).
  case replaced = -32010
  /// The archive exists and cannot be used now; look at the broker's log (R20).
  case archiveUnreadable = -32011
  /// The disk refused the write; `indeterminate` says whether it may be there all the same (R15).
  case storeFailed = -32012
  /// What was waited for did not come in time; try again.
  case timedOut = -32013
  /// This client may not do this.
  case forbidden = -32014
  /// A reference in the state leads nowhere; register its target first (R14).
  case invalidReference = -32015
  /// Use one of the versions in `supported`.
  case unsupportedProtocolVersion = -32016
  /// The broker is ending; connect again.
  case shuttingDown = -32017
  /// No such application, and this call makes none.
  case unknownApplication = -32018
  /// Another live session serves this already (R9).
  case alreadyServed = -32019
  /// Say `force: true` if you mean it.
  case needsForce = -32020

  /// The word in `data.kind`.
  package var kind: String {
    switch self {
    case .notInitialized: "notInitialized"
    case .unknownObject: "unknownObject"
    case .duplicatePath: "duplicatePath"
    case .invalidIdentifier: "invalidIdentifier"
    case .unknownParent: "unknownParent"
    case .parentCycle: "parentCycle"
    case .reservedKey: "reservedKey"
    case .limitExceeded: "limitExceeded"
    case .notOwner: "notOwner"
    case .replaced: "replaced"
    case .archiveUnreadable: "archiveUnreadable"
    case .storeFailed: "storeFailed"
    case .timedOut: "timedOut"
    case .forbidden: "forbidden"
    case .invalidReference: "invalidReference"
    case .unsupportedProtocolVersion: "unsupportedProtocolVersion"
    case .shuttingDown: "shuttingDown"
    case .unknownApplication: "unknownApplication"
    case .alreadyServed: "alreadyServed"
    case .needsForce: "needsForce"
    }
  }
}

extension ErrorObject {
  /// An error of the restoration protocol.
  ///
  /// - Parameters:
  ///   - hint: a sentence that says what to do next.
  ///   - path: the object it is about.
  ///   - details: further members of `data`.
  package static func restoration(
    _ code: ErrorCode,
    _ message: String,
    hint: String,
    path: IdentifierPath? = nil,
    details: JSONObject = [:]
  ) -> ErrorObject {
    var data: JSONObject = ["kind": .string(code.kind), "hint": .string(hint)]
    if let path {
      data["path"] = path.json
    }
    for (name, value) in details.members {
      data[name] = value
    }
    return ErrorObject(code: code.rawValue, message: message, data: .object(data))
  }

  /// −32602 for one member of the parameters.
  ///
  /// - Parameter pointer: JSON pointer into the parameters, such as `/object`.
  package static func invalidParameter(_ pointer: String, _ message: String, hint: String) -> ErrorObject {
    ErrorObject(
      code: -32602,
      message: message,
      data: .object(["kind": "invalidParams", "hint": .string(hint), "pointer": .string(pointer)])
    )
  }

  /// −32008: `value` is more than `max` of the limit called `limit` (a name `limits` reports).
  package static func limitExceeded(_ limit: String, max: Int, value: Int, path: IdentifierPath? = nil) -> ErrorObject {
    .restoration(
      .limitExceeded,
      "\(limit) is \(max), this is \(value)",
      hint: "Send less, or raise \(limit) in the broker's configuration.",
      path: path,
      details: ["limit": .string(limit), "max": .integer(Int64(max)), "value": .integer(Int64(value))]
    )
  }
}
