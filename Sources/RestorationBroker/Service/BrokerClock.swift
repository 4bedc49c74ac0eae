// SPDX-License-Identifier: Apache-2.0

internal import RestorationTransport

/// Reads the clocks for the core.
struct BrokerClock: Sendable {
  let start: Moment
  let processID: Int64

  init() {
    self.start = Self.read()
    self.processID = Host.processID
  }

  var now: Moment { Self.read() }

  private static func read() -> Moment {
    Moment(monotonic: Host.monotonicMilliseconds, wall: Host.wallMilliseconds)
  }
}
