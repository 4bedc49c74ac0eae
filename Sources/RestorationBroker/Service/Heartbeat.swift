// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import RestorationArchive

/// Beats as long as the event loop and the archives' thread get on: each beat has gone through both.
package final class Heartbeat: Sendable {
  private struct State {
    /// On its way to the archives' thread and back.
    var isUnderWay = false
    var progress: UInt64 = 0
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
    let progress = store.progress
    if state.value.isUnderWay {
      // Behind a long queue, which is no fault as long as the thread gets on with it.
      if progress != state.value.progress { beat() }
    } else {
      state.value.isUnderWay = true
      Task(executorPreference: executor) {
        await self.store.comeRound()
        self.state.value.isUnderWay = false
        if self.state.value.task != nil { self.beat() }
      }
    }
    state.value.progress = progress
  }
}

extension Broker {
  /// Calls `beat` on the event loop, at once and then every so many microseconds, as long as the broker gets on.
  package func beat(everyMicroseconds interval: UInt64, _ beat: @escaping @Sendable () -> Void) throws -> Heartbeat {
    let (store, eventLoop) = (store, service.eventLoop)
    let interval = TimeAmount.microseconds(Int64(clamping: max(1, interval)))
    return try eventLoop.submit { Heartbeat(store, on: eventLoop, every: interval, beat) }.wait()
  }
}
