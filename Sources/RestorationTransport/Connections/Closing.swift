// SPDX-License-Identifier: Apache-2.0

/// The states of a connection, from its opening to its end. Pure: events in, the next step out.
///
///     opening ──▶ open ── close after output ──▶ ending ──▶ flushing ── peer may still send ──▶ lingering ──▶ closed
///                  │                               │           └─────── peer has ended ──────────────────────▶ closed
///                  └── close at once, overflow ────┴──▶ aborting ────────────────────────────────────────────▶ closed
///
/// A connection lingers because closing a socket with unread input fails the peer's next write. Many clients write
/// everything before they read our last messages.
///
/// Invariants:
/// 1. States only advance. The channel may become inactive in every state.
/// 2. The first reason counts. Waiting for output can be cancelled, but not requested later.
/// 3. The end of the output is awaited once.
/// 4. The end is reported once, and only if the connection was opened.
package struct Closing {
  package enum Step: Hashable {
    /// Call `outputIsTaken` when the kernel has taken all output.
    case awaitOutput
    /// Shut the output down, and discard input until the peer ends or the time is over.
    case linger
    case close
  }

  private enum State {
    case opening, open
    /// Nothing is delivered; collected output will be written.
    case ending
    /// All output is written; the kernel has not taken all of it.
    case flushing
    case aborting
    /// The kernel has all output, and the output is shut down.
    case lingering
    case closed
  }

  private let lingers: Bool
  private var state = State.opening
  private var reason = CloseReason.peerClosed

  /// - Parameter lingers: whether the peer gets time to read the last messages.
  package init(lingers: Bool) { self.lingers = lingers }

  package var isOpen: Bool { state == .open }
  package var isLingering: Bool { state == .lingering }
  package var isClosed: Bool { state == .closed }
  /// Whether the connection ends once collected output is sent.
  package var isEnding: Bool { state == .ending || state == .flushing }
  package var dropsOutput: Bool { state == .aborting }

  /// - Returns: false if the connection was opened before, or has ended.
  package mutating func open() -> Bool {
    guard state == .opening else { return false }
    state = .open
    return true
  }

  /// Stops delivering.
  ///
  /// - Returns: whether the state has changed.
  package mutating func begin(_ reason: CloseReason, afterOutput: Bool) -> Bool {
    switch state {
    case .open: (self.reason, state) = (reason, afterOutput ? .ending : .aborting)
    case .ending, .flushing, .lingering:
      if afterOutput { return false }
      state = .aborting
    case .opening, .aborting, .closed: return false
    }
    return true
  }

  package mutating func advance() -> Step? {
    if state == .aborting { return .close }
    guard state == .ending else { return nil }
    state = .flushing
    return .awaitOutput
  }

  package mutating func outputIsTaken(inputHasEnded: Bool) -> Step? {
    guard state == .flushing else { return nil }
    guard lingers, !inputHasEnded else { return .close }
    state = .lingering
    return .linger
  }

  /// The channel is inactive.
  ///
  /// - Returns: why the connection has ended; `nil` if it was never opened, or its end was reported before.
  package mutating func end() -> CloseReason? {
    defer { state = .closed }
    return state == .opening || state == .closed ? nil : reason
  }
}
