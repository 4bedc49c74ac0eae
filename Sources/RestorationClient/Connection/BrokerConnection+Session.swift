// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

extension BrokerConnection {
  /// Opens a session, or resumes one after its connection or the broker was lost.
  ///
  /// - Parameter token: of the session to resume. If the broker does not know it, it opens a new session
  ///   (`SessionInfo.wasResumed`).
  @discardableResult
  public func initialize(_ options: SessionOptions, resuming token: String? = nil) async throws -> SessionInfo {
    let reply = try await perform(try options.wire(resuming: token))
    sessionBegan(reply)
    return SessionInfo(reply, resuming: token)
  }

  /// Opens or resumes a session that answers the broker's calls (`Protocol/calls.md`) as JSON text;
  /// `RestorationSession` offers them as methods of objects. A thrown error becomes an error answer. Several calls may
  /// be answered at the same time.
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

  /// Ends the session; the reason decides whether its objects stay (R30).
  public func goodbye(_ reason: GoodbyeReason) async throws {
    _ = try await perform(Goodbye().with { $0.reason = reason })
    sessionEnded()
  }
}
