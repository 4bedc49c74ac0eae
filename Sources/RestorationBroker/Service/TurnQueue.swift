// SPDX-License-Identifier: Apache-2.0

package import NIOCore
package import RestorationTransport

/// Runs pieces of long jobs, one in each turn of the event loop, so that the loop reads input between them. Used on
/// that loop only.
package final class TurnQueue {
  private let eventLoop: any EventLoop
  private let meter: LoopMeter?
  private let executor: EventLoopTaskExecutor
  /// The first one is scheduled, or was resumed and does not run yet.
  private var waiting: [CheckedContinuation<Void, Never>] = []

  package init(of eventLoop: any EventLoop, _ meter: LoopMeter?) {
    (self.eventLoop, self.meter, executor) = (eventLoop, meter, EventLoopTaskExecutor(eventLoop))
  }

  /// Returns in a turn of its own.
  nonisolated(nonsending) package func next() async { await withTaskExecutorPreference(executor) { await wait() } }

  /// Suspends the caller until the continuation is resumed. The caller never leaves the loop: without the preference a
  /// resumed task begins on another thread.
  nonisolated(nonsending) func suspend(_ body: (CheckedContinuation<Void, Never>) -> Void) async {
    await withTaskExecutorPreference(executor) { await withCheckedContinuation(body) }
  }

  nonisolated(nonsending) private func wait() async {
    await withCheckedContinuation { piece in
      waiting.append(piece)
      if waiting.count == 1 { schedule() }
    }
    // Not earlier: a task may be resumed in one turn and run in a later one.
    waiting.removeFirst()
    if !waiting.isEmpty { schedule() }
  }

  private func schedule() {
    eventLoop.schedule(afterTurn: meter?.turnsEnded, of: meter) { [self] in waiting[0].resume() }
  }
}
