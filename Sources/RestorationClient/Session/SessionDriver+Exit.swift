// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import NIOCore
internal import Synchronization

/// A program that exits says goodbye, so that it has not crashed (R30). A signal, a trap or `_exit` says nothing. A
/// child after `fork` has no event loop, and leaves the sessions to its parent.
extension SessionDriver {
  private struct Begun { weak var driver: SessionDriver? }

  /// The exit's timeout for the broker.
  private static let exitMilliseconds: Int64 = 1_000
  private static let begun = Mutex<[Begun]>([])
  /// The process whose exit is followed.
  private static let process: pid_t = {
    atexit { SessionDriver.leaveAll() }
    return getpid()
  }()

  func endAtExit() {
    _ = Self.process
    Self.begun.withLock { begun in
      begun.removeAll { $0.driver == nil }
      begun.append(Begun(driver: self))
    }
  }

  private static func leaveAll() {
    guard getpid() == process else { return }
    let drivers = begun.withLock { $0.compactMap(\.driver) }
    let farewells = drivers.filter { $0.events.state == .connected && !$0.eventLoop.inEventLoop }.map { driver in
      let promise = driver.eventLoop.makePromise(of: Void.self)
      driver.enter { $0.leaveAtExit(within: Self.exitMilliseconds, promise) }
      return promise.futureResult
    }
    for farewell in farewells { try? farewell.wait() }
  }
}
