// SPDX-License-Identifier: Apache-2.0

package import NIOCore
package import NIOPosix
internal import Synchronization

/// Measures how long an event loop does not look for input, which is how long it keeps everybody else waiting: in CPU
/// time of its thread, so that it does not matter what else the machine does.
package final class LoopMeter: NIOEventLoopMetricsDelegate {
  private let turns = Mutex(LoopTurns())
  private let ended = Atomic<Int>(0)

  package init() {}

  /// How many turns have ended. A change says that the loop has looked for input, and may have found some.
  package var turnsEnded: Int { ended.load(ordering: .relaxed) }

  package func processedTick(info: NIOEventLoopTickInfo) {
    ended.wrappingAdd(1, ordering: .relaxed)
    turns.withLock { $0.ended(at: info.endTime) { SystemCalls.threadNanoseconds } }
  }

  package var longestTurnMilliseconds: Int64 { turns.withLock { $0.longest } / 1_000_000 }

  package var durations: Durations { turns.withLock { $0.durations } }

  /// All the CPU time of the loop; ask on the event loop.
  package var busyMilliseconds: Int64 { SystemCalls.threadNanoseconds / 1_000_000 }
}

extension EventLoop {
  /// Does work in a turn after `turn`, when the loop has looked for input; called on the loop.
  ///
  /// What is due the loop does before it looks, and what becomes due meanwhile, too. If the work comes up too early, it
  /// is put off for twice as long. Without a meter it is done after the pause.
  package func schedule(
    afterTurn turn: Int?,
    of meter: LoopMeter?,
    in pause: TimeAmount = .microseconds(20),
    _ work: @escaping () -> Void
  ) {
    assumeIsolated().scheduleTask(in: pause) {
      guard let meter, meter.turnsEnded == turn else { return work() }
      self.schedule(afterTurn: turn, of: meter, in: pause * 2, work)
    }
  }
}

/// The turns of an event loop: all that it does between two looks for input.
///
/// A thread's CPU time takes a system call to read, and many turns take no longer than that. So it is read at most once
/// a millisecond, and what ends in between counts with the next turn: the longest is told too long by less than that.
package struct LoopTurns {
  private static let resolution = TimeAmount.milliseconds(1)

  /// The last reading.
  private var reading: (time: NIODeadline, nanoseconds: Int64)?
  /// In nanoseconds of CPU time.
  package private(set) var longest: Int64 = 0
  /// Of each reading: of the turns that ended since the one before.
  package private(set) var durations = Durations()

  package init() {}

  /// A turn has ended.
  ///
  /// - Parameter read: the CPU time of the loop, in nanoseconds.
  package mutating func ended(at now: NIODeadline, _ read: () -> Int64) {
    if let reading, now - reading.time < Self.resolution { return }
    let nanoseconds = read()
    if let reading {
      let duration = nanoseconds - reading.nanoseconds
      longest = max(longest, duration)
      durations.add(nanoseconds: duration)
    }
    reading = (now, nanoseconds)
  }
}
