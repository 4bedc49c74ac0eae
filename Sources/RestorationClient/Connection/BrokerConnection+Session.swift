// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

extension BrokerConnection {
  /// Opens a session on this connection, or resumes a session after its connection or the broker was lost.
  ///
  /// - Parameter token: of the session to resume. If the broker no longer knows it, a new session is opened; see
  ///   `SessionInfo.wasResumed`.
  @discardableResult
  public func initialize(_ options: SessionOptions, resuming token: String? = nil) async throws -> SessionInfo {
    let reply = try await perform(try options.wire(resuming: token))
    sessionBegan(reply)
    return SessionInfo(reply, resuming: token)
  }

  /// Opens or resumes a session that answers the broker's calls (`Protocol/calls.md`): parameters as JSON text in, the
  /// result's JSON text out. A thrown error becomes an error answer.
  ///
  /// For clients that want the raw calls; `RestorationSession` offers them as methods of objects. Calls are answered as
  /// they come, several at the same time if the broker makes several.
  ///
  /// - Parameter served: names of the calls; besides the notifications that `options` names.
  @discardableResult
  public func initialize(
    _ options: SessionOptions,
    resuming token: String? = nil,
    serving served: [String],
    answer: @escaping @Sendable (_ method: String, _ parametersText: String) async throws -> String
  ) async throws -> SessionInfo {
    let calls = try served.enumerated().map { index, name in
      guard let method = ServedMethod(rawValue: name) else {
        throw RestorationError(
          .invalidParameter("/serves/\(index)", "the broker does not call \(name)", hint: "Give names of calls.")
        )
      }
      return method
    }
    let notifications = BrokerNotification.Kind.allCases.filter(options.notifications.contains).map(\.wire)
    let call = try options.wire(
      resuming: token,
      serving: notifications + calls.filter { !notifications.contains($0) },
      messageBytesMax: SessionOptions.sessionMessageBytesMax
    )
    await link.respond(by: BrokerCallResponder(answer: answer))
    let reply = try await perform(call)
    sessionBegan(reply)
    return SessionInfo(reply, resuming: token)
  }

  /// Says that this session has restored its objects (R19, R31). Returns how many sessions of the application are still
  /// restoring.
  @discardableResult
  public func completeStateRestoration() async throws -> Int64 { try await perform(CompleteStateRestoration()).pending }

  /// Ends the session and says what becomes of its objects (R30).
  public func goodbye(_ reason: GoodbyeReason) async throws {
    _ = try await perform(Goodbye().with { $0.reason = reason })
    sessionEnded()
  }
}
