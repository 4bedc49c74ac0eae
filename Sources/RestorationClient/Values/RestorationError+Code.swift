// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

extension RestorationError {
  /// Which error it is. Programs decide by this, never by the message.
  public struct Code: RawRepresentable, Hashable, Sendable {
    /// The number of the JSON-RPC error object.
    public let rawValue: Int

    /// A code of any number; later brokers know more of them.
    public init(rawValue: Int) {
      self.rawValue = rawValue
    }

    private init(_ wire: ErrorCode) {
      rawValue = wire.rawValue
    }
  }
}

// Of JSON-RPC
extension RestorationError.Code {
  /// The text is not JSON.
  public static let parseError = Self(rawValue: -32700)
  /// No JSON-RPC 2.0 message, or a session asked for on a connection that has one.
  public static let invalidRequest = Self(rawValue: -32600)
  /// The broker has no such method.
  public static let methodNotFound = Self(rawValue: -32601)
  /// A parameter is missing, of another type or out of its range; `pointer` says which.
  public static let invalidParams = Self(rawValue: -32602)
  /// A fault of the broker; its log says more.
  public static let internalError = Self(rawValue: -32603)
}

// Of the restoration protocol
extension RestorationError.Code {
  /// Call `initialize` first, or name the `application` in the call.
  public static let notInitialized = Self(.notInitialized)
  /// Register the object, or use a path the archive knows.
  public static let unknownObject = Self(.unknownObject)
  /// Another live object has this path (`owners`); choose another identifier or ask for `takeOver`.
  public static let duplicatePath = Self(.duplicatePath)
  /// Use 1–255 bytes of UTF-8 without `/`, `#` and control characters (R1).
  public static let invalidIdentifier = Self(.invalidIdentifier)
  /// Register the parent first, or wait for it with `awaitParent` (R3).
  public static let unknownParent = Self(.unknownParent)
  /// An object cannot be its own ancestor (R6).
  public static let parentCycle = Self(.parentCycle)
  /// Only the broker writes such keys; rename it (R10).
  public static let reservedKey = Self(.reservedKey)
  /// Send less, or raise the limit in the broker's configuration; `limit` says which.
  public static let limitExceeded = Self(.limitExceeded)
  /// Only the session that owns the object may do this.
  public static let notOwner = Self(.notOwner)
  /// Another session has taken the object over; stop writing to it (R8).
  public static let replaced = Self(.replaced)
  /// The archive exists and cannot be used now; look at the broker's log (R20).
  public static let archiveUnreadable = Self(.archiveUnreadable)
  /// The disk refused the write; `indeterminate` says whether it may be there all the same (R15).
  public static let storeFailed = Self(.storeFailed)
  /// What was waited for did not come in time; try again.
  public static let timedOut = Self(.timedOut)
  /// This client may not do this.
  public static let forbidden = Self(.forbidden)
  /// A reference in the state leads nowhere; register its target first (R14).
  public static let invalidReference = Self(.invalidReference)
  /// Use one of `supportedVersions`.
  public static let unsupportedProtocolVersion = Self(.unsupportedProtocolVersion)
  /// The broker is ending; connect again.
  public static let shuttingDown = Self(.shuttingDown)
  /// There is no such application, and this call makes none.
  public static let unknownApplication = Self(.unknownApplication)
  /// Another live session serves this already (R9).
  public static let alreadyServed = Self(.alreadyServed)
  /// Say `force` if you mean it.
  public static let needsForce = Self(.needsForce)
}

extension RestorationError.Code: CustomStringConvertible {
  /// The name the protocol has for the code, else its number.
  public var description: String {
    switch self {
    case .parseError: "parseError"
    case .invalidRequest: "invalidRequest"
    case .methodNotFound: "methodNotFound"
    case .invalidParams: "invalidParams"
    case .internalError: "internalError"
    default: ErrorCode(rawValue: rawValue)?.kind ?? String(rawValue)
    }
  }
}
