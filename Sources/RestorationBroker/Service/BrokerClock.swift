// SPDX-License-Identifier: Apache-2.0

internal import RestorationTransport

/// Reads the clocks for the core.
struct BrokerClock: Sendable {
  /// The wall clock is looked at this often; in between it follows the monotonic one.
  private static let wallMilliseconds: Int64 = 1_000

  let start: Moment
  private var last: Moment

  init() {
    self.start = Moment(monotonic: Host.monotonicMilliseconds, wall: Host.wallMilliseconds)
    self.last = start
  }

  var now: Moment {
    mutating get {
      let monotonic = Host.monotonicMilliseconds
      if monotonic - last.monotonic >= Self.wallMilliseconds {
        last = Moment(monotonic: monotonic, wall: Host.wallMilliseconds)
      }
      return Moment(monotonic: monotonic, wall: last.wall + monotonic - last.monotonic)
    }
  }
}
