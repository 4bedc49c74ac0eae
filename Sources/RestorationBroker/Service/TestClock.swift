// SPDX-License-Identifier: Apache-2.0

package import Dispatch
package import NIOCore
internal import RestorationTransport
internal import Synchronization

/// An event loop whose time a test can move ahead. It passes all work to the real loop behind it and runs with that
/// loop's time.
package final class TestClock: NIOSerialEventLoopExecutor {
  private struct Moved {
    var time: ShiftedTime
    var tasks: [Int: @Sendable () -> Void] = [:]
    /// Fires on the real loop, when the next timer is due or before.
    var alarm: (due: NIODeadline, timer: Scheduled<Void>)?
  }

  /// A timer shorter than this waits for the loop's work, not for a clock.
  private static let shortest = TimeAmount.milliseconds(1)
  /// By how many milliseconds it can be ahead: a hundred years.
  package static let offsets: ClosedRange<Int64> = 0...36_525 * 24 * 3_600 * 1_000

  package let description = "TestClock"
  private let real: any EventLoop
  private let state: Mutex<Moved>

  /// - Parameter offset: how far this clock is ahead at the beginning.
  package init(over real: any EventLoop, offset: TimeAmount = .zero) {
    self.real = real
    state = Mutex(Moved(time: ShiftedTime(offset: offset)))
  }

  package var offset: TimeAmount { state.withLock { $0.time.offset } }
  package var now: NIODeadline { real.now + offset }
  fileprivate var realNow: NIODeadline { real.now }
  package var inEventLoop: Bool { real.inEventLoop }

  /// Milliseconds since 1970, UTC, moved ahead as this clock is.
  package var wallMilliseconds: Int64 { Host.wallMilliseconds + offset.nanoseconds / 1_000_000 }

  package func execute(_ task: @escaping @Sendable () -> Void) { real.execute(task) }

  @discardableResult
  package func scheduleTask<T>(in delay: TimeAmount, _ task: @escaping @Sendable () throws -> T) -> Scheduled<T> {
    delay < Self.shortest ? real.scheduleTask(in: delay, task) : scheduleTask(deadline: now + delay, task)
  }

  @discardableResult
  package func scheduleTask<T>(deadline: NIODeadline, _ task: @escaping @Sendable () throws -> T) -> Scheduled<T> {
    let promise = makePromise(of: T.self)
    let number = state.withLock { state in
      let number = state.time.add(deadline)
      state.tasks[number] = {
        do {
          promise.assumeIsolated().succeed(try task())
        } catch {
          promise.fail(error)
        }
      }
      return number
    }
    setAlarm()
    return Scheduled(promise: promise) { [self] in
      state.withLock { state in
        state.time.remove(number)
        state.tasks[number] = nil
      }
    }
  }

  package func shutdownGracefully(queue: DispatchQueue, _ callback: @escaping @Sendable ((any Error)?) -> Void) {
    real.shutdownGracefully(queue: queue, callback)
  }

  // MARK: Moving it

  /// Moves ahead to the next timer if it is due within `rest`, otherwise by all of `rest`; subtracts the move from
  /// `rest` and fires due timers. Returns whether more may be due. Called on the loop.
  package func step(_ rest: inout TimeAmount) -> Bool {
    let isMore = state.withLock { $0.time.step(at: real.now, &rest) }
    fire()
    return isMore
  }

  /// Returns after this real time, when the loop has done its earlier work.
  nonisolated(nonsending) fileprivate func pause(_ time: TimeAmount) async {
    try? await real.scheduleTask(in: time) {}.futureResult.get()
  }

  private func fire() {
    while let task = takeDue() { task() }
    setAlarm()
  }

  private func takeDue() -> (@Sendable () -> Void)? {
    state.withLock { state in
      state.time.takeDue(at: real.now).flatMap { state.tasks.removeValue(forKey: $0) }
    }
  }

  /// An early alarm finds nothing to do and sets the next one.
  private func setAlarm() {
    state.withLock { state in
      guard let due = state.time.nextDeadline, state.alarm.map({ due < $0.due }) ?? true else { return }
      state.alarm?.timer.cancel()
      let timer = real.scheduleTask(deadline: due) { [self] in
        self.state.withLock { $0.alarm = nil }
        fire()
      }
      state.alarm = (due, timer)
    }
  }
}

/// Decides how long a move of the clock waits for work in progress, with one look a millisecond.
package struct MoveBudget {
  package struct UsedUp: Error, CustomStringConvertible {
    package var description: String { "the broker was not done within \(MoveBudget.seconds) seconds" }
  }

  /// Of real time. The test kits wait longer.
  private static let seconds: Int64 = 50
  /// Clients can keep archives at work: after this many looks in a step, or in all, the move no longer waits for them.
  private static let stepLooksMax = 1_000
  private var archiveLooks = 10_000
  private let end: NIODeadline

  /// - Parameter now: in real time.
  package init(at now: NIODeadline) { end = now + .seconds(Self.seconds) }

  /// Returns whether to look again; throws if it took too long. `look` counts from 0 in each step; `now` is real time.
  package mutating func isWaiting(
    forOwnWork isAtOwnWork: Bool,
    forArchives areArchivesAtWork: Bool,
    look: Int,
    at now: NIODeadline
  ) throws(UsedUp) -> Bool {
    guard now < end else { throw UsedUp() }
    if isAtOwnWork { return true }
    guard areArchivesAtWork, look < Self.stepLooksMax, archiveLooks > 0 else { return false }
    archiveLooks -= 1
    return true
  }
}

extension BrokerService {
  /// Moves the clock from timer to timer. Returns when the due work is done, with all that the broker has begun by
  /// itself. Clients are not waited for: a deadline of theirs that the clock passes is over. After an error the clock
  /// stays where it is.
  func advance(_ clock: TestClock, by time: TimeAmount) async throws(MoveBudget.UsedUp) {
    var (rest, budget) = (time, MoveBudget(at: clock.realNow))
    try await settle(clock, &budget)
    while clock.step(&rest) { try await settle(clock, &budget) }
    try await settle(clock, &budget)
  }

  private func settle(_ clock: TestClock, _ budget: inout MoveBudget) async throws(MoveBudget.UsedUp) {
    await clock.pause(.zero)
    var look = 0
    while try budget.isWaiting(
      forOwnWork: isAtOwnWork,
      forArchives: archives.isAtWork,
      look: look,
      at: clock.realNow
    ) {
      look += 1
      await clock.pause(.milliseconds(1))
    }
  }
}

extension Broker {
  /// Carries out a clock command of the process that has started this broker. Returns `ok` and by how many milliseconds
  /// the clock is ahead, or `error` and the reason. Blocks its thread, which must not be the event loop's.
  package func obey(_ line: String, on clock: TestClock) -> String {
    let (words, ahead) = (line.split(separator: " "), clock.offset.nanoseconds / 1_000_000)
    let range = 0...TestClock.offsets.upperBound - ahead
    guard words.count == 2, words[0] == "advance", let milliseconds = Int64(words[1]), range.contains(milliseconds)
    else { return "error \"\(line)\" is not \"advance MILLISECONDS\", from 0 to \(range.upperBound)" }
    do {
      try EventLoopTaskExecutor(listener.eventLoop).wait { [service] in
        try await service.advance(clock, by: .milliseconds(milliseconds))
      }
      return "ok \(clock.offset.nanoseconds / 1_000_000)"
    } catch {
      return "error \"\(line)\": \(error); the clock is ahead by \(clock.offset.nanoseconds / 1_000_000) ms"
    }
  }
}
