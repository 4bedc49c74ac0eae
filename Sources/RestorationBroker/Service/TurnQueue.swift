// SPDX-License-Identifier: Apache-2.0

package import NIOCore
package import RestorationTransport

/// Lets pieces of long work go on, one in each turn of the event loop, so that the loop looks for input between any two
/// of them. Used on that loop only.
package final class TurnQueue {
  private let eventLoop: any EventLoop
  private let meter: LoopMeter?
  /// Resumes what has waited.
  private let executor: EventLoopTaskExecutor
  /// The first one is scheduled, or has been resumed and does not run yet.
  private var waiting: [CheckedContinuation<Void, Never>] = []

  package init(of eventLoop: any EventLoop, _ meter: LoopMeter?) {
    (self.eventLoop, self.meter, executor) = (eventLoop, meter, EventLoopTaskExecutor(eventLoop))
  }

  /// Returns in a turn of its own.
  nonisolated(nonsending) package func next() async { await withTaskExecutorPreference(executor) { await wait() } }

  nonisolated(nonsending) private func wait() async {
    await withCheckedContinuation { piece in
      waiting.append(piece)
      if waiting.count == 1 { schedule() }
    }
    // Only now: a task may be resumed in one turn and run in a later one.
    waiting.removeFirst()
    if !waiting.isEmpty { schedule() }
  }

  private func schedule() {
    eventLoop.schedule(afterTurn: meter?.turnsEnded, of: meter) { [self] in waiting[0].resume() }
  }
}
