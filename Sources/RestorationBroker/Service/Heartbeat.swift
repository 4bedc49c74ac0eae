// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
package import RestorationArchive
internal import RestorationTransport

/// Beats as long as the event loop and the threads of the archives get on: a beat has gone through the loop and the
/// store, and no thread hangs.
package final class Heartbeat: Sendable {
  private struct State {
    var beats = BeatDecision()
    var task: RepeatedTask?
  }

  private let store: any ArchiveStore
  private let executor: EventLoopTaskExecutor
  private let state: NIOLoopBoundBox<State>
  private let beat: @Sendable () -> Void

  /// On the event loop.
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

  /// Ends it; it may beat once more.
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

/// Decides when to beat.
package struct BeatDecision {
  /// A question is on its way to the store and back.
  private var isUnderWay = false
  /// The store has answered while a thread seemed to hang.
  private var isOwed = false
  private var hangs = HangDetector()

  package init() {}

  /// Looks at the store; returns whether to beat now, and whether to ask it.
  package mutating func look(at progress: StoreProgress) -> (beats: Bool, asks: Bool) {
    let hasAdvanced = hangs.hasAdvanced(to: progress)
    // Behind a long queue, which is no fault as long as it gets shorter.
    let beats = !hangs.isHanging && (isOwed || isUnderWay && hasAdvanced)
    if beats { isOwed = false }
    defer { isUnderWay = true }
    return (beats, !isUnderWay)
  }

  /// The store has answered; returns whether to beat now. Otherwise the next look without a hang makes up for it.
  package mutating func cameRound() -> Bool {
    isUnderWay = false
    isOwed = hangs.isHanging
    return !hangs.isHanging
  }
}

/// Finds out whether a thread of the store hangs: it is at work and makes no step from one look to the next.
///
/// It is over when every thread that was at work at the last look without a hang has made a step. So no row of looks
/// with a hang is longer than the longest step of a single thread, however many threads are slow in turn.
package struct HangDetector {
  private var steps: UInt64 = 0
  private var suspects: [StoreProgress.Thread] = []
  package private(set) var isHanging = false

  package init() {}

  /// Looks at the store; returns whether any thread has made a step since the last look.
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
  /// Calls `beat` on the event loop, at once and then every so many microseconds, as long as the broker gets on.
  package func beat(everyMicroseconds interval: UInt64, _ beat: @escaping @Sendable () -> Void) throws -> Heartbeat {
    // Real time: it is a service manager's that waits.
    let (store, eventLoop) = (store, listener.eventLoop)
    let interval = TimeAmount.microseconds(Int64(clamping: max(1, interval)))
    return try eventLoop.submit { Heartbeat(store, on: eventLoop, every: interval, beat) }.wait()
  }
}
