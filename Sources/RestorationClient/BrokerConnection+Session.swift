// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

extension BrokerConnection {
  /// Opens a session on this connection, or resumes one after its connection or the broker was lost.
  ///
  /// - Parameter token: of the session to resume. Where the broker does not know it any more, a new session is opened;
  ///   `SessionInfo.wasResumed` tells.
  @discardableResult
  public func initialize(_ options: SessionOptions, resuming token: String? = nil) async throws -> SessionInfo {
    let reply = try await perform(try options.wire(resuming: token))
    sessionBegan(reply)
    return SessionInfo(reply, resuming: token)
  }

  /// Says that this session has restored what it wanted to (R19, R31), and gives how many sessions of the application
  /// are still restoring.
  @discardableResult
  public func completeStateRestoration() async throws -> Int64 {
    try await perform(CompleteStateRestoration()).pending
  }

  /// Ends the session and says what becomes of its objects (R30).
  public func goodbye(_ reason: GoodbyeReason) async throws {
    _ = try await perform(Goodbye(reason: reason.wire))
    sessionEnded()
  }
}
