// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import Synchronization

/// The time limit that `--timeout` sets for the whole tool.
///
/// Kept by a separate thread, so that neither an unanswered call nor a blocked write can delay it.
enum TimeLimit {
  private struct State {
    var limit: Seconds?
    var socket = ""
    /// The broker has answered; now the tool watches its output.
    var watches = false
    var last: (@Sendable () -> Void)?
    /// Grows whenever the clock stops or restarts; a thread with an earlier count does nothing.
    var count = 0
  }

  private static let state = Mutex(State())

  static func begin(_ limit: Seconds, waitingFor socket: String) {
    state.withLock { state in
      state.limit = limit
      state.socket = socket
    }
    start()
  }

  /// From now on the command only watches, so the end of the time is its regular end.
  static func isForWatching() { state.withLock { $0.watches = true } }

  /// Runs `last` when the time is over, before the tool ends.
  static func whenOver(_ last: @escaping @Sendable () -> Void) { state.withLock { $0.last = last } }

  /// Runs work without a limit, such as a question to the user; counts from zero afterwards.
  static func suspended<Result>(_ body: () throws -> Result) rethrows -> Result {
    state.withLock { $0.count += 1 }
    defer { start() }
    return try body()
  }

  private static func start() {
    let count = state.withLock { state -> Int? in
      guard state.limit != nil else { return nil }
      state.count += 1
      return state.count
    }
    if let count { DetachedThread.start { wait(count) } }
  }

  private static func wait(_ count: Int) {
    guard let milliseconds = state.withLock({ $0.limit?.milliseconds }) else { return }
    let end = now + milliseconds
    while end > now { poll(nil, 0, Int32(clamping: end - now)) }
    // The lock is never released: later output of other threads would contradict this one.
    state.withLock { state in
      guard state.count == count, let limit = state.limit else { return }
      let (message, hint): (String, String?) =
        if !Output.isAtLineBegin {
          (
            "the output was not read completely within \(limit) s",
            "Check the program that reads it, or give it more time by --timeout."
          )
        } else if state.watches {
          ("gave up after \(limit) s (--timeout)", nil)
        } else {
          (
            "the broker on \(state.socket) did not finish within \(limit) s",
            "It is stopped or busy: check its process, or give it more time by --timeout."
          )
        }
      state.last?()
      Failure(ExitStatus.tryAgain, kind: "timedOut", message, hint: hint).report()
      _exit(ExitStatus.tryAgain.rawValue)
    }
  }

  private static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
  }
}
