// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import NIOCore
internal import SeededRandom

/// The store's thread: does one job after the other, each after a while of simulated time.
final class SimulatedExecutor: SerialExecutor {
  private struct State {
    var jobs: [UnownedJob] = []
    var isScheduled = false
    var chance: SeededGenerator
    var slownessMilliseconds: Int64 = 2
  }

  private let loop: TestEventLoop
  private let state: NIOLoopBoundBox<State>

  init(on loop: TestEventLoop, seed: UInt64) {
    self.loop = loop
    state = NIOLoopBoundBox(State(chance: SeededGenerator(seed: seed)), eventLoop: loop)
  }

  /// A job waits so long at most.
  func setSlowness(milliseconds: Int64) { state.value.slownessMilliseconds = milliseconds }

  func enqueue(_ job: consuming ExecutorJob) {
    state.value.jobs.append(UnownedJob(job))
    schedule()
  }

  private func schedule() {
    guard !state.value.isScheduled, !state.value.jobs.isEmpty else { return }
    state.value.isScheduled = true
    let delay = Int64.random(in: 0...state.value.slownessMilliseconds, using: &state.value.chance)
    if delay == 0 {
      loop.execute { self.runNext() }
    } else {
      _ = loop.scheduleTask(in: .milliseconds(delay)) { self.runNext() }
    }
  }

  private func runNext() {
    state.value.isScheduled = false
    guard !state.value.jobs.isEmpty else { return }
    state.value.jobs.removeFirst().runSynchronously(on: asUnownedSerialExecutor())
    schedule()
  }

  /// Does what is left, and what that brings, without a delay.
  func drain() {
    state.value.slownessMilliseconds = 0
    while !state.value.jobs.isEmpty {
      state.value.jobs.removeFirst().runSynchronously(on: asUnownedSerialExecutor())
    }
  }
}
