// SPDX-License-Identifier: Apache-2.0

internal import RestorationTransport

/// There is no connection to a broker, or it was lost.
public struct BrokerConnectionError: Error, Hashable, Sendable {
  /// The kind of the error. Programs decide by this; later versions add cases.
  public struct Code: Hashable, Sendable {
    private enum Value: Hashable, Sendable {
      case noSocketPath, noBroker, refused, notPermitted, busy, failed, closed, lost, unexpectedAnswer
    }

    private let value: Value

    /// No path was given and none follows from the environment, or it cannot be a socket's path.
    public static let noSocketPath = Code(value: .noSocketPath)
    /// Nothing is at the path: no broker was started.
    public static let noBroker = Code(value: .noBroker)
    /// The socket exists but nothing listens on it: the broker has ended.
    public static let refused = Code(value: .refused)
    /// The file system does not let this user connect, or the broker this process.
    public static let notPermitted = Code(value: .notPermitted)
    /// The broker did not accept the connection for seconds, or has no connection left.
    public static let busy = Code(value: .busy)
    /// A system call failed.
    public static let failed = Code(value: .failed)
    /// `close` was called on this connection.
    public static let closed = Code(value: .closed)
    /// The broker closed the connection or ended. Calls without an answer may have taken effect or not.
    public static let lost = Code(value: .lost)
    /// The peer does not speak the protocol, could not read a message, or sent an answer of another form.
    public static let unexpectedAnswer = Code(value: .unexpectedAnswer)
  }

  public let code: Code
  /// The socket it is about; `nil` if none could be named.
  public let socketPath: String?
  /// The error and the next step, for people.
  public let message: String
  /// The broker's error, if it ended the connection by one.
  public internal(set) var refusal: RestorationError?

  /// Whether no broker runs there at all, so that starting one helps.
  public var isNotRunning: Bool { code == .noBroker || code == .refused }
}

extension BrokerConnectionError: CustomStringConvertible {
  public var description: String { message }
}

// Making
extension BrokerConnectionError {
  private static let start = "start it with `restorationd` or `systemctl --user start restorationd.socket`"
  /// The step before that if the service manager has stopped restarting the broker.
  private static let reset =
    "if it was given up, first `systemctl --user reset-failed restorationd.service restorationd.socket`"

  init(_ error: TransportError, path: String?) {
    let socket = path ?? "the socket"
    let (code, message): (Code, String) =
      switch error.code {
      case .noRuntimeDirectory:
        (
          .noSocketPath,
          "the broker's socket is unknown: neither RESTORATIOND_SOCKET nor XDG_RUNTIME_DIR is set; "
            + "set one of them or name the socket"
        )
      case .invalidPath, .notADirectory, .notASocket:
        (.noSocketPath, error.message)
      case .noSocket: (.noBroker, "no broker listens on \(socket); \(Self.start)")
      case .refused: (.refused, "no broker listens on \(socket) now; the last one ended; \(Self.start); \(Self.reset)")
      case .notPermitted, .foreignOwner, .writableByOthers:
        (.notPermitted, "this user may not connect to \(socket); every user has their own broker")
      case .busy: (.busy, "the broker on \(socket) accepts no connection: it is overloaded or stopped; try again")
      case .alreadyRunning, .systemCall, .damaged, .closed: (.failed, error.message)
      }
    self.init(code: code, socketPath: path, message: message)
  }

  init(_ ending: BrokerConnection.StateMachine.Ending, path: String) {
    switch ending {
    case .closed:
      self.init(code: .closed, socketPath: path, message: "the connection to \(path) was closed by this process")
    case .lost:
      self.init(
        code: .lost,
        socketPath: path,
        message: "the broker on \(path) closed the connection or ended; reconnect"
      )
    case .protocolFault:
      self.init(
        code: .unexpectedAnswer,
        socketPath: path,
        message: "the server on \(path) does not speak the restoration protocol"
      )
    case .refused(let error):
      let code: Code =
        switch error.code {
        case .limitExceeded where error.limit?.name.hasPrefix("connections") == true: .busy
        case .forbidden: .notPermitted
        default: .unexpectedAnswer
        }
      self.init(code: code, socketPath: path, message: error.description, refusal: error)
    }
  }

  /// The answer is not the method's.
  static func unexpectedAnswer(to method: String, path: String) -> BrokerConnectionError {
    BrokerConnectionError(
      code: .unexpectedAnswer,
      socketPath: path,
      message: "the broker on \(path) answered \(method) in a form unknown to this version"
    )
  }
}
