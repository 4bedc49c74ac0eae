// SPDX-License-Identifier: Apache-2.0

/// How far a connection has come, from its opening to its end. Pure: what happens in, the next step out.
///
///     opening ──▶ open ── close after output ──▶ ending ──▶ flushing ── peer may still send ──▶ lingering ──▶ closed
///                  │                               │           └─────── peer has ended ──────────────────────▶ closed
///                  └── close at once, overflow ────┴──▶ aborting ────────────────────────────────────────────▶ closed
///
/// Lingering matters because a socket closed with unread input fails the peer's next write, and many clients write
/// everything before they read our last words.
///
/// Invariants:
/// 1. A state is never left for one before it; the channel may become inactive in each.
/// 2. The first reason stays. Waiting for output can be called off, but not called for later.
/// 3. The end of the output is awaited once.
/// 4. An end is reported once, and only of a connection that was opened.
package struct Closing {
  package enum Step: Hashable {
    /// Tell by `outputIsTaken` when the peer has taken all output.
    case awaitOutput
    /// End the output, and discard input until the peer's end or the end of its time.
    case linger
    case close
  }

  private enum State {
    case opening, open
    /// Nothing is delivered any more; all output so far is to be written.
    case ending
    /// The end of the output is on its way to the kernel.
    case flushing
    /// Ends without regard to output.
    case aborting
    /// All output is with the kernel and shut down.
    case lingering
    case closed
  }

  private let lingers: Bool
  private var state = State.opening
  private var reason = CloseReason.peerClosed

  /// - Parameter lingers: whether the peer is left time to read the last words.
  package init(lingers: Bool) { self.lingers = lingers }

  package var isOpen: Bool { state == .open }
  package var isLingering: Bool { state == .lingering }
  package var isClosed: Bool { state == .closed }
  /// Whether the connection ends when the peer has been sent what was collected.
  package var isEnding: Bool { state == .ending || state == .flushing }
  /// Whether what was collected is not written any more.
  package var dropsOutput: Bool { state == .aborting }

  /// The channel is active.
  ///
  /// - Returns: false if the connection was opened before or has ended.
  package mutating func open() -> Bool {
    guard state == .opening else { return false }
    state = .open
    return true
  }

  /// Nothing is delivered from here on.
  ///
  /// - Returns: whether that changes anything.
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

  /// What was collected is written.
  package mutating func advance() -> Step? {
    if state == .aborting { return .close }
    guard state == .ending else { return nil }
    state = .flushing
    return .awaitOutput
  }

  /// The kernel has all output.
  package mutating func outputIsTaken(inputHasEnded: Bool) -> Step? {
    guard state == .flushing else { return nil }
    guard lingers, !inputHasEnded else { return .close }
    state = .lingering
    return .linger
  }

  /// The channel is inactive.
  ///
  /// - Returns: why the connection has ended; nil if it was never opened, or if its end was reported before.
  package mutating func end() -> CloseReason? {
    defer { state = .closed }
    return state == .opening || state == .closed ? nil : reason
  }
}
