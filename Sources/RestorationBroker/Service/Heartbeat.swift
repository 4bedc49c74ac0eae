// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
package import RestorationArchive
internal import RestorationTransport

/// Beats as long as the event loop and the archives' threads make progress: each beat has passed through the loop and
/// the store, and no thread hangs.
package final class Heartbeat: Sendable {
  private struct State {
    var beats = BeatDecision()
    var task: RepeatedTask?
  }

  private let store: any ArchiveStore
  private let executor: EventLoopTaskExecutor
  private let state: NIOLoopBoundBox<State>
  private let beat: @Sendable () -> Void

  fileprivate init(
    _ store: any ArchiveStore,
    on eventLoop: any EventLoop,
    every interval: TimeAmount,
    _ beat: @escaping @Sendable () -> Void
  ) {
    (self.store, self.beat) = (store, beat)
    executor = EventLoopTaskExecutor(eventLoop)
    state = NIOLoopBoundBox(State(), eventLoop: eventLoop)
    state.value.task = eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: interval) { _ in self.pulse() }
  }

  /// Ends the heartbeat; one more beat may follow.
  package func cancel() {
    executor.eventLoop.execute {
      self.state.value.task?.cancel()
      self.state.value.task = nil
    }
  }

  private func pulse() {
    let (beats, asks) = state.value.beats.look(at: store.progress)
    if beats { beat() }
    guard asks else { return }
    Task(executorPreference: executor) {
      await self.store.comeRound()
      if self.state.value.beats.cameRound(), self.state.value.task != nil { self.beat() }
    }
  }
}

package struct BeatDecision {
  /// Whether the store has a question to answer.
  private var isUnderWay = false
  /// Whether the store has answered while a thread seemed to hang.
  private var isOwed = false
  private var hangs = HangDetector()

  package init() {}

  /// Evaluates the store's progress; returns whether to beat now, and whether to ask the store.
  package mutating func look(at progress: StoreProgress) -> (beats: Bool, asks: Bool) {
    let hasAdvanced = hangs.hasAdvanced(to: progress)
    // A question behind a long queue is no fault as long as the queue gets shorter.
    let beats = !hangs.isHanging && (isOwed || isUnderWay && hasAdvanced)
    if beats { isOwed = false }
    defer { isUnderWay = true }
    return (beats, !isUnderWay)
  }

  /// The store has answered. Returns whether to beat now; otherwise the next look without a hang does.
  package mutating func cameRound() -> Bool {
    isUnderWay = false
    isOwed = hangs.isHanging
    return !hangs.isHanging
  }
}

/// Detects a thread of the store that hangs: it is at work and makes no step from one look to the next.
///
/// A hang ends when every thread that was at work at the last look without a hang has made a step. So no series of
/// looks with a hang is longer than the longest step of one thread, however many threads are slow in turn.
package struct HangDetector {
  private var steps: UInt64 = 0
  private var suspects: [StoreProgress.Thread] = []
  package private(set) var isHanging = false

  package init() {}

  /// Returns whether any thread has made a step since the last look.
  package mutating func hasAdvanced(to progress: StoreProgress) -> Bool {
    isHanging = zip(suspects, progress.threads).contains { before, now in
      before.isAtWork && now.isAtWork && before.steps == now.steps
    }
    if !isHanging { suspects = progress.threads }
    let before = steps
    steps = progress.threads.reduce(0) { $0 &+ $1.steps }
    return steps != before
  }
}

extension Broker {
  /// Calls `beat` on the event loop, at once and then at this interval, as long as the broker makes progress.
  package func beat(everyMicroseconds interval: UInt64, _ beat: @escaping @Sendable () -> Void) throws -> Heartbeat {
    // Real time, because a service manager waits.
    let (store, eventLoop) = (store, listener.eventLoop)
    let interval = TimeAmount.microseconds(Int64(clamping: max(1, interval)))
    return try eventLoop.submit { Heartbeat(store, on: eventLoop, every: interval, beat) }.wait()
  }
}
