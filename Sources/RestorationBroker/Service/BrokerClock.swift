// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import RestorationTransport

/// Reads the clocks for the core: the event loop's, so that whoever moves its time moves all deadlines.
struct BrokerClock {
  /// The wall clock is looked at this often; in between it follows the monotonic one.
  private static let wallMilliseconds: Int64 = 1_000

  private let eventLoop: any EventLoop
  let start: Moment
  private var last: Moment

  init(on eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
    start = Moment(monotonic: eventLoop.milliseconds, wall: Host.wallMilliseconds)
    last = start
  }

  var now: Moment {
    mutating get {
      let monotonic = eventLoop.milliseconds
      if monotonic - last.monotonic >= Self.wallMilliseconds {
        last = Moment(monotonic: monotonic, wall: Host.wallMilliseconds)
      }
      return Moment(monotonic: monotonic, wall: last.wall + monotonic - last.monotonic)
    }
  }
}

extension EventLoop {
  /// Milliseconds of a clock that never goes back.
  var milliseconds: Int64 { Int64(now.uptimeNanoseconds / 1_000_000) }
}
