// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import NIOCore
internal import SeededRandom

/// A thread of the store: does one job after the other. Each begins after a while of simulated time, and after another
/// while, in which whatever waits behind it waits on, it is known that it has ended.
final class SimulatedExecutor: SerialExecutor, TaskExecutor {
  private struct State {
    var jobs: [UnownedJob] = []
    var isBusy = false
    /// Tells the end of the job that is under way.
    var end: (() -> Void)?
    var chance: SeededGenerator
    var slownessMilliseconds: Int64 = 2
  }

  private let loop: TestEventLoop
  private let state: NIOLoopBoundBox<State>

  init(on loop: TestEventLoop, seed: UInt64) {
    self.loop = loop
    state = NIOLoopBoundBox(State(chance: SeededGenerator(seed: seed)), eventLoop: loop)
  }

  /// A job takes so long at most.
  func setSlowness(milliseconds: Int64) { state.value.slownessMilliseconds = milliseconds }

  func enqueue(_ job: consuming ExecutorJob) {
    state.value.jobs.append(UnownedJob(job))
    schedule()
  }

  private func schedule() {
    guard !state.value.isBusy, !state.value.jobs.isEmpty else { return }
    state.value.isBusy = true
    let duration = random(upTo: state.value.slownessMilliseconds)
    let wait = random(upTo: duration)
    after(milliseconds: wait) { self.runNext(takingMilliseconds: duration - wait) }
  }

  private func random(upTo milliseconds: Int64) -> Int64 {
    Int64.random(in: 0...milliseconds, using: &state.value.chance)
  }

  private func after(milliseconds: Int64, _ body: @escaping @Sendable () -> Void) {
    if milliseconds == 0 { return loop.execute(body) }
    _ = loop.scheduleTask(in: .milliseconds(milliseconds), body)
  }

  private func runNext(takingMilliseconds duration: Int64) {
    guard !state.value.jobs.isEmpty else { return state.value.isBusy = false }
    let job = state.value.jobs.removeFirst()
    state.value.end = loop.holdBack { job.runSynchronously(on: asUnownedSerialExecutor()) }
    after(milliseconds: duration) { self.endJob() }
  }

  private func endJob() {
    state.value.isBusy = false
    state.value.end?()
    state.value.end = nil
    schedule()
  }

  /// Does what is left, and what that brings, without a delay.
  func drain() {
    state.value.slownessMilliseconds = 0
    state.value.end?()
    state.value.end = nil
    while !state.value.jobs.isEmpty {
      state.value.jobs.removeFirst().runSynchronously(on: asUnownedSerialExecutor())
    }
  }
}
