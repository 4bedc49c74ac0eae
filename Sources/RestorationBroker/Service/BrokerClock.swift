// SPDX-License-Identifier: Apache-2.0

internal import NIOCore

/// Reads the clocks for the core. Uses the event loop's, so that a test that moves that clock moves all deadlines.
struct BrokerClock {
  /// How often the wall clock is read; in between it follows the monotonic one.
  private static let wallMilliseconds: Int64 = 1_000

  private let eventLoop: any EventLoop
  private let wallMilliseconds: @Sendable () -> Int64
  let start: Moment
  private var last: Moment

  init(on eventLoop: any EventLoop, wallMilliseconds: @escaping @Sendable () -> Int64) {
    (self.eventLoop, self.wallMilliseconds) = (eventLoop, wallMilliseconds)
    start = Moment(monotonic: eventLoop.milliseconds, wall: wallMilliseconds())
    last = start
  }

  var now: Moment {
    mutating get {
      let monotonic = eventLoop.milliseconds
      if monotonic - last.monotonic >= Self.wallMilliseconds {
        last = Moment(monotonic: monotonic, wall: wallMilliseconds())
      }
      return Moment(monotonic: monotonic, wall: last.wall + monotonic - last.monotonic)
    }
  }
}

extension EventLoop {
  /// Milliseconds of a clock that never goes back.
  var milliseconds: Int64 { now.milliseconds }
}

extension NIODeadline {
  var milliseconds: Int64 { Int64(uptimeNanoseconds / 1_000_000) }
}
