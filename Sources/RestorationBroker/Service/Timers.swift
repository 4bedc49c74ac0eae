// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// The core's timers by name. A timer replaces the one of its name; a cancelled one never fires.
package struct Timers {
  private let eventLoop: any EventLoop
  private var scheduled: [TimerName: Scheduled<Void>] = [:]

  package init(on eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  package var count: Int { scheduled.count }
  package var names: some Collection<TimerName> { scheduled.keys }

  /// - Parameter fire: must call `fired`.
  package mutating func set(_ name: TimerName, milliseconds: Int64, _ fire: @escaping @Sendable () -> Void) {
    cancel(name)
    scheduled[name] = eventLoop.scheduleTask(in: .milliseconds(milliseconds), fire)
  }

  package mutating func fired(_ name: TimerName) { scheduled[name] = nil }

  package mutating func cancel(_ name: TimerName) { scheduled.removeValue(forKey: name)?.cancel() }

  package mutating func cancelAll() {
    for timer in scheduled.values { timer.cancel() }
    scheduled = [:]
  }
}
