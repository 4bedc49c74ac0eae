// SPDX-License-Identifier: Apache-2.0

internal import NIOCore

/// The end of a connection, step by step, each taken in `endTick` or in a channel event after it:
///
///     open ── close, fault, overdue frame ──▶ closing ── kernel has all output ──▶ lingering ── peer's end ─▶ closed
///       └──── peer has ended, all answered ──▶ closing ── kernel has all output ────────────────────────────▶ closed
///       └──── close at once, overflow ───────▶ closing ─────────────────────────────────────────────────────▶ closed
///
/// Lingering matters because a socket closed with unread input fails the peer's next write, and many clients write
/// everything before they read our last words.
extension ConnectionHandler {
  /// Nothing is delivered from here on; the first reason stays, but waiting for output can be called off.
  func beginClosing(_ reason: CloseReason, afterOutput: Bool) {
    switch phase {
    case .open:
      phase = .closing(reason, afterOutput: afterOutput)
    case .closing(let reason, afterOutput: true), .lingering(let reason):
      if afterOutput { return }
      phase = .closing(reason, afterOutput: false)
    case .opening, .closing, .closed:
      return
    }
    queueForEndOfTick()
  }

  func advanceClosing(_ context: ChannelHandlerContext) {
    guard case .closing(_, let afterOutput) = phase else { return }
    guard afterOutput else {
      closeForPeer(context)
      return
    }
    guard !awaitsOutput else { return }
    awaitsOutput = true
    // An empty write completes when everything before it has.
    let promise = context.eventLoop.makePromise(of: Void.self)
    promise.futureResult.assumeIsolated().whenSuccess { [self] in outputIsTaken() }
    context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: promise)
  }

  private func outputIsTaken() {
    guard let context, case .closing(let reason, afterOutput: true) = phase else { return }
    guard !inputHasEnded, limits.lingerSeconds > 0 else {
      closeForPeer(context)
      return
    }
    phase = .lingering(reason)
    context.close(mode: .output, promise: nil)
    // The peer's end of input closes the channel by itself, now that our output is closed.
    guard phase == .lingering(reason) else { return }
    lingerTimer = context.eventLoop.assumeIsolated()
      .scheduleTask(in: .seconds(Int64(limits.lingerSeconds))) { [weak self] in
        guard let self, let context = self.context else { return }
        closeForPeer(context)
      }
    requestInput()
  }
}
