// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// A call of a session was not carried out, or its outcome is unknown.
public struct RestorationSessionError: Error, Hashable, Sendable {
  /// The kind of the error. Programs decide by this; later versions add cases.
  public struct Code: Hashable, Sendable {
    private enum Value: Hashable, Sendable {
      case ended, timedOut, outcomeUnknown, notRegistered, duplicateObject, discarded, limitExceeded, reentrant
    }

    private let value: Value

    /// The session has ended: by `end`, or by the broker (`refusal`). The call has not reached the broker.
    public static let ended = Code(value: .ended)
    /// No broker answered within `brokerTimeout`. Only the call of `start` may have reached a broker.
    public static let timedOut = Code(value: .timedOut)
    /// The connection ended before the answer. The call may have taken effect, and is not sent again: it is not
    /// idempotent, was sent too often, or no broker came in time.
    public static let outcomeUnknown = Code(value: .outcomeUnknown)
    /// The session no longer has the object: it was unregistered, taken over, or not registered again after the broker
    /// had lost the session (`refusal`).
    public static let notRegistered = Code(value: .notRegistered)
    /// Another object of this program is registered under the path. It stays; the one given is not registered.
    public static let duplicateObject = Code(value: .duplicateObject)
    /// The user has quit the application, or its state was discarded, during this session: it stores nothing any more
    /// (R30).
    public static let discarded = Code(value: .discarded)
    /// Without a broker, 16,384 calls, or 64 MiB of them, wait already. This call has not reached a broker; the others
    /// stay.
    public static let limitExceeded = Code(value: .limitExceeded)
    /// The call would wait for the answer from which it was made. It has not reached the broker.
    public static let reentrant = Code(value: .reentrant)
  }

  public let code: Code
  /// The broker's error, if that is the reason: for `notRegistered`, e.g. `duplicatePath` with its `owners`.
  public let refusal: RestorationError?
  /// The error and the next step, for people.
  public let message: String

  init(_ code: Code, _ message: String, refusal: RestorationError? = nil) {
    (self.code, self.refusal, self.message) = (code, refusal, message)
  }
}

extension RestorationSessionError: CustomStringConvertible {
  public var description: String { refusal.map { "\(message): \($0)" } ?? message }
}

// Making
extension RestorationSessionError {
  static func ended(_ refusal: RestorationError?) -> RestorationSessionError {
    let isOver = refusal == nil || refusal?.code == .fenced
    let reason = isOver ? "the session has ended" : "the broker does not resume the session"
    return RestorationSessionError(.ended, "\(reason); start another one", refusal: refusal)
  }

  static func timedOut(_ socketPath: String) -> RestorationSessionError {
    RestorationSessionError(.timedOut, "no broker answered on \(socketPath) in time; try again")
  }

  static func outcomeUnknown(_ method: String) -> RestorationSessionError {
    RestorationSessionError(
      .outcomeUnknown,
      "the connection ended before \(method) was answered; check whether it took effect, or call it again"
    )
  }

  static func duplicateObject(_ path: IdentifierPath?) -> RestorationSessionError {
    RestorationSessionError(
      .duplicateObject,
      "this process has registered another object as \(path?.description ?? "this one"); give one of them another "
        + "identifier or position, or unregister the first one"
    )
  }

  static func limitExceeded(_ limit: CallQueue.Limit, _ socketPath: String) -> RestorationSessionError {
    let what = limit == .calls ? "calls" : "bytes of calls"
    return RestorationSessionError(
      .limitExceeded,
      "more than \(limit.max) \(what) cannot wait for a broker on \(socketPath); call again when one is there"
    )
  }

  static func reentrant() -> RestorationSessionError {
    RestorationSessionError(.reentrant, "a save would wait for the answer to the broker that calls for it; save later")
  }

  static func discarded(_ method: String) -> RestorationSessionError {
    RestorationSessionError(
      .discarded,
      "\(method) has no effect: the application was quit or emptied meanwhile; end this session and start another one"
    )
  }

  static func notRegistered(_ path: IdentifierPath?, _ refusal: RestorationError?) -> RestorationSessionError {
    let name = path?.description ?? "the object"
    return RestorationSessionError(
      .notRegistered,
      "\(name) is no longer registered by this session; register it again",
      refusal: refusal
    )
  }
}

extension JSONSlice {
  /// Whether the answer to a write says that nothing of the session is stored (R30).
  var saysDiscarded: Bool { self["discarded"]?.bool() == true }
}
