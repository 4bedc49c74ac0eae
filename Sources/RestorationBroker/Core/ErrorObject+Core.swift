// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// The errors of the core (`Protocol/errors.md`): each names the offending value and the next step.
extension ErrorObject {
  static func invalidComponent(of path: IdentifierPath, _ pointer: String) -> ErrorObject {
    let component = path.components.first { RestorationIdentifier.split($0) == nil } ?? ""
    return .restoration(
      .invalidIdentifier,
      "a component of the path is an invalid restoration identifier: \(JSONText(.string(component)).brief)",
      hint: "Use 1 to 255 bytes of UTF-8 without '/' and control characters, and '#' only before a position.",
      path: path,
      details: ["pointer": .string(pointer)]
    )
  }

  static func unknownParent(_ reference: ObjectReference) -> ErrorObject {
    let path: IdentifierPath? = if case .path(let path) = reference { path } else { nil }
    if let path, !path.isPossible { return invalidComponent(of: path, "/restorationParent") }
    return .restoration(
      .unknownParent,
      "the restoration parent \(reference) is neither registered nor known from the archive",
      hint: "Register the parent first, or wait for it with awaitParentMilliseconds.",
      path: path,
      details: ["pointer": "/restorationParent"]
    )
  }

  static func duplicatePath(_ path: IdentifierPath?, _ owner: Session, _ claimant: Session) -> ErrorObject {
    .restoration(
      .duplicatePath,
      "\(path.map(\.description) ?? "the path") is registered by \(owner.words)",
      hint: """
        Choose another identifier or position, or register with takeOver. A program that runs several times gives \
        initialize the instance "auto".
        """,
      path: path,
      details: ["owners": [owner.ownerJSON, claimant.ownerJSON]]
    )
  }

  /// The path has an object or the state of a former one.
  static func occupied(
    _ path: IdentifierPath?,
    by owner: Session?,
    claimant: Session? = nil,
    hint: String
  ) -> ErrorObject {
    .restoration(
      .duplicatePath,
      "\(path.map(\.description) ?? "the path") is taken\(owner.map { " by \($0.words)" } ?? "")",
      hint: hint,
      path: path,
      details: ["owners": .array(owner.map { [$0, claimant].compactMap { $0?.ownerJSON } } ?? [])]
    )
  }

  static func sessionEnded() -> ErrorObject {
    .restoration(
      .notInitialized,
      "the session ended while the call waited",
      hint: "Call initialize, and register again."
    )
  }

  static func storeError(_ error: ArchiveError) -> ErrorObject {
    switch error.kind {
    case .unreadable: return unreadable(error.message)
    case .limit(let name, let max, let value):
      let hint = "Forget applications that are no longer needed, or raise \(name) in the broker's configuration."
      return .limitExceeded(name, max: max, value: value, path: nil, hint: hint)
    case .absent: return unknownApplication(error.message)
    case .indeterminate: return storeFailed(error.message, indeterminate: true)
    case .definite, .changed: return storeFailed(error.message, indeterminate: false, hint: failedCallHint)
    case .refused: return storeFailed(error.message, indeterminate: false, refused: true, hint: failedCallHint)
    case .fenced, .full: return storeFailed(error.message, indeterminate: false)
    case .elsewhere(let host, let since): return ownedElsewhere(ArchiveLoss(host: host, since: since))
    case .lost(let host): return fenced(ArchiveLoss(host: host))
    case .unconfirmed: return unconfirmed(error.message)
    }
  }

  /// The error for callers that wait for a failed transaction.
  static func commitFailed(_ error: ArchiveError) -> ErrorObject {
    switch error.kind {
    case .elsewhere, .lost, .unconfirmed: storeError(error)
    case .definite, .refused, .indeterminate, .fenced, .unreadable, .changed, .absent, .limit, .full:
      storeFailed(error.message, indeterminate: error.kind.isFatal)
    }
  }

  private static func unconfirmed(_ message: String) -> ErrorObject {
    .restoration(
      .storeFailed,
      message,
      hint: "What is stored on this host is still sent, unless another host has gone on. "
        + "Send it again with its revision if it has to be confirmed.",
      details: ["indeterminate": true, "unconfirmed": true]
    )
  }

  static func ownedElsewhere(_ loss: ArchiveLoss) -> ErrorObject {
    .restoration(
      .ownedElsewhere,
      "the application is used on \(loss.host ?? "another host")",
      hint: "End it there, wait until it is no longer used there, or call initialize with takeOver: true.",
      details: place(loss)
    )
  }

  /// For a session that ended because another host has the archive.
  static func fenced(_ loss: ArchiveLoss) -> ErrorObject {
    .restoration(
      .fenced,
      "the application is used on \(loss.host ?? "another host") now, and the session here has ended",
      hint: "Continue there. To continue here, call initialize with takeOver: true, and register again.",
      details: place(loss)
    )
  }

  private static func place(_ loss: ArchiveLoss) -> JSONObject {
    [
      "host": loss.host.map { .string($0) } ?? .null,
      "since": loss.time.map { .string($0.description) } ?? .null,
    ]
  }

  static func unknownApplication(_ message: String) -> ErrorObject {
    .restoration(.unknownApplication, message, hint: "See listApplications for the known applications.")
  }

  /// For reads, and for writes that failed for another reason than lack of space.
  private static let failedCallHint = "Nothing was changed. Fix the problem above, then call again."

  static func storeFailed(
    _ message: String,
    indeterminate: Bool,
    refused: Bool = false,
    hint: String? = nil
  ) -> ErrorObject {
    .restoration(
      .storeFailed,
      message,
      hint: indeterminate
        ? "The broker restarts; then check whether the write is there, or send it again with its revision."
        : hint ?? "Nothing was stored. Make room or fix the problem above, then send it again.",
      details: refused ? ["indeterminate": false, "refused": true] : ["indeterminate": .bool(indeterminate)]
    )
  }

  static func unknownObject(_ reference: ObjectReference, at pointer: String = "/object") -> ErrorObject {
    switch reference {
    case .path(let path) where !path.isPossible: invalidComponent(of: path, pointer)
    case .handle(let handle):
      .restoration(
        .unknownObject,
        "unknown handle \(handle)",
        hint: "Register the object; handles are valid only while the object is registered."
      )
    case .path(let path):
      .restoration(
        .unknownObject,
        "unknown object \(path)",
        hint: "Register the object, or use a path that describeApplication lists.",
        path: path
      )
    }
  }

  static func replaced() -> ErrorObject {
    .restoration(
      .replaced,
      "another session has taken the object over",
      hint: "Stop writing to it, or register it again with takeOver."
    )
  }

  static func unreadable(_ why: String) -> ErrorObject {
    .restoration(
      .archiveUnreadable,
      "the archive cannot be used: \(why)",
      hint:
        "Nothing was changed. When the problem above is over, call again. Sessions that met it must end first."
    )
  }

  static func staleCursor() -> ErrorObject {
    .invalidParameter(
      "/cursor",
      "the cursor is from another call, or expired",
      hint: "Begin again without cursor; a cursor is valid for a minute, on the connection that received it."
    )
  }

  static func invalidCursor() -> ErrorObject {
    .invalidParameter(
      "/cursor",
      "the cursor is from another call",
      hint: "Give the cursor of the previous page unchanged."
    )
  }

  static func alreadyServed(
    _ what: String,
    _ other: Session,
    hint: String = "Only one session at a time may; end the other one first.",
    path: IdentifierPath?
  ) -> ErrorObject {
    .restoration(
      .alreadyServed,
      "\(other.words) \(what)",
      hint: hint,
      path: path,
      details: ["owners": [other.ownerJSON]]
    )
  }

  static func notServing(_ methods: String) -> ErrorObject {
    .invalidRequest(hint: "List \(methods) in serves at initialize: the broker will call it.")
  }

  static func shuttingDown() -> ErrorObject {
    .restoration(
      .shuttingDown,
      "the broker is ending",
      hint: "Call again, over this connection if it stays open: the next broker may adopt it."
    )
  }
}

extension Session {
  /// The session as messages for people name it.
  var words: String {
    let role = facts.role.map { "\"\($0)\"" } ?? "a session without role"
    return facts.process.map { "\(role) (pid \($0.pid))" } ?? role
  }

  /// The session as an entry of `data.owners`.
  var ownerJSON: JSONValue {
    var object: JSONObject = ["process": facts.role.map { .string($0) } ?? .null]
    object["pid"] = facts.process.map { .integer($0.pid) } ?? .null
    return .object(object)
  }
}
