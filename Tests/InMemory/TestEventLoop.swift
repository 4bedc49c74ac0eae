// SPDX-License-Identifier: Apache-2.0

package import Dispatch
internal import Glibc
package import NIOCore
package import NIOEmbedded

/// An event loop whose time and order a test owns. Only `run` and `advance` make anything happen on it, on the thread
/// of the test. Actors can run on it.
package final class TestEventLoop: NIOSerialEventLoopExecutor, TaskExecutor {
  private typealias Timer = (deadline: NIODeadline, cancel: () -> Void)

  /// Channels in memory take no other loop.
  package let channels = EmbeddedEventLoop()
  package let description = "TestEventLoop"
  private let thread = pthread_self()
  private let timers: NIOLoopBoundBox<(byNumber: [Int: Timer], last: Int)>
  private let shortDelays: NIOLoopBoundBox<Int>
  /// What is held back; nil if nothing is to be.
  private let heldBack: NIOLoopBoundBox<[() -> Void]?>

  package init() {
    timers = NIOLoopBoundBox(([:], 0), eventLoop: channels)
    shortDelays = NIOLoopBoundBox(0, eventLoop: channels)
    heldBack = NIOLoopBoundBox(nil, eventLoop: channels)
  }

  /// How often something was put off until the loop has looked for input.
  package var shortDelayCount: Int { shortDelays.value }

  package var now: NIODeadline { channels.now }
  package var inEventLoop: Bool { channels.inEventLoop }

  package func execute(_ task: @escaping @Sendable () -> Void) {
    precondition(pthread_equal(thread, pthread_self()) != 0, "part of the broker has left its event loop")
    if heldBack.value == nil { channels.execute(task) } else { heldBack.value?.append(task) }
  }

  /// Holds back what the body has the loop execute, until the function that is returned is called.
  package func holdBack(_ body: () -> Void) -> () -> Void {
    heldBack.value = []
    body()
    let tasks = heldBack.value ?? []
    heldBack.value = nil
    return { [channels] in for task in tasks { channels.execute(task) } }
  }

  package func scheduleTask<T>(in delay: TimeAmount, _ task: @escaping @Sendable () throws -> T) -> Scheduled<T> {
    // A delay below a millisecond counts as none: such a task waits for the loop, not for a clock.
    if delay < .milliseconds(1), delay > .zero { shortDelays.value += 1 }
    return scheduleTask(deadline: delay < .milliseconds(1) ? now : now + delay, task)
  }

  package func scheduleTask<T>(deadline: NIODeadline, _ task: @escaping @Sendable () throws -> T) -> Scheduled<T> {
    let scheduled = channels.scheduleTask(deadline: deadline, task)
    timers.value.last += 1
    let (timers, number) = (timers, timers.value.last)
    timers.value.byNumber[number] = (deadline, { scheduled.cancel() })
    scheduled.futureResult.whenComplete { _ in timers.value.byNumber[number] = nil }
    return scheduled
  }

  package func shutdownGracefully(queue: DispatchQueue, _ callback: @escaping @Sendable ((any Error)?) -> Void) {
    cancelTimers()
    callback(nil)
  }

  /// Does what is due now, and what that brings.
  package func run() { channels.run() }

  /// When the next timer is due.
  package var nextDeadline: NIODeadline? { timers.value.byNumber.values.map(\.deadline).min() }

  /// Moves time to the next timer, or to `end` if none is due before; returns whether `end` is still to come.
  @discardableResult
  package func advance(to end: NIODeadline) -> Bool {
    channels.advanceTime(to: min(nextDeadline ?? end, end))
    return now < end
  }

  package var timerCount: Int { timers.value.byNumber.count }

  package func cancelTimers() { for timer in timers.value.byNumber.values { timer.cancel() } }
}

/// A call that waits until a test lets it go: a job that nobody runs before. What awaits a continuation would resume by
/// way of another thread.
package final class HeldCall<Failure: Sendable>: SerialExecutor {
  private let state: NIOLoopBoundBox<(job: UnownedJob?, failure: Failure?)>

  private actor Waiting {
    private let call: HeldCall
    init(for call: HeldCall) { self.call = call }
    nonisolated var unownedExecutor: UnownedSerialExecutor { call.asUnownedSerialExecutor() }
    var failure: Failure? { call.state.value.failure }
  }

  package init(on loop: TestEventLoop) { state = NIOLoopBoundBox((nil, nil), eventLoop: loop) }

  /// Why the call is not to continue; nil if it is.
  package nonisolated(nonsending) func wait() async -> Failure? { await Waiting(for: self).failure }

  package func enqueue(_ job: consuming ExecutorJob) { state.value.job = UnownedJob(job) }

  package func letGo(_ failure: Failure? = nil) {
    let job = state.value.job
    state.value = (nil, failure)
    job?.runSynchronously(on: asUnownedSerialExecutor())
  }
}
