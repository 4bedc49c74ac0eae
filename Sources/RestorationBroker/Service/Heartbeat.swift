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

  private let service: BrokerService
  private let state: NIOLoopBoundBox<State>
  private let beat: @Sendable () -> Void

  /// On the service's event loop.
  fileprivate init(_ service: BrokerService, every interval: TimeAmount, _ beat: @escaping @Sendable () -> Void) {
    self.service = service
    self.beat = beat
    state = NIOLoopBoundBox(State(), eventLoop: service.eventLoop)
    state.value.task = service.eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: interval) { _ in
      self.pulse()
    }
  }

  /// Ends it; it may beat once more.
  package func cancel() {
    service.eventLoop.execute {
      self.state.value.task?.cancel()
      self.state.value.task = nil
    }
  }

  private func pulse() {
    let progress = service.store.progress
    if state.value.isUnderWay {
      // Behind a long queue, which is no fault as long as the thread gets on with it.
      if progress != state.value.progress { beat() }
    } else {
      state.value.isUnderWay = true
      service.assumeIsolated { $0.goRound { self.cameRound() } }
    }
    state.value.progress = progress
  }

  private func cameRound() {
    state.value.isUnderWay = false
    if state.value.task != nil { beat() }
  }
}

extension BrokerService {
  fileprivate func goRound(_ completion: @escaping @Sendable () -> Void) {
    Task {
      await store.comeRound()
      completion()
    }
  }
}

extension Broker {
  /// Calls `beat` on the event loop, at once and then every so many microseconds, as long as the broker gets on.
  package func beat(everyMicroseconds interval: UInt64, _ beat: @escaping @Sendable () -> Void) throws -> Heartbeat {
    let service = service
    let interval = TimeAmount.microseconds(Int64(clamping: max(1, interval)))
    return try service.eventLoop.submit { Heartbeat(service, every: interval, beat) }.wait()
  }
}
