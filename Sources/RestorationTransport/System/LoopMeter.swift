// SPDX-License-Identifier: Apache-2.0

package import NIOCore
package import NIOPosix
internal import Synchronization

/// Measures how long an event loop does not read input and so keeps everybody waiting. Uses the CPU time of its thread,
/// which is independent of the machine's other work.
package final class LoopMeter: NIOEventLoopMetricsDelegate {
  private let turns = Mutex(LoopTurns())
  private let ended = Atomic<Int>(0)

  package init() {}

  /// The number of turns that have ended. After a change the loop has read input, if there was some.
  package var turnsEnded: Int { ended.load(ordering: .relaxed) }

  package func processedTick(info: NIOEventLoopTickInfo) {
    ended.wrappingAdd(1, ordering: .relaxed)
    turns.withLock { $0.ended(at: info.endTime) { SystemCalls.threadNanoseconds } }
  }

  package var longestTurnMilliseconds: Int64 { turns.withLock { $0.longest } / 1_000_000 }

  package var durations: Durations { turns.withLock { $0.durations } }

  /// All the CPU time of the loop; read it on the event loop.
  package var busyMilliseconds: Int64 { SystemCalls.threadNanoseconds / 1_000_000 }
}

extension EventLoop {
  /// Runs work in a turn after `turn`, when the loop has read input; called on the loop.
  ///
  /// The loop runs everything that is due before it reads, including what becomes due meanwhile. If the work comes up
  /// too early, it is postponed for twice as long. Without a meter it runs after the pause.
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

/// The turns of an event loop, each from one reading of input to the next.
///
/// Reading a thread's CPU time takes a system call, and many turns take no longer than that. So it is read at most once
/// a millisecond, and turns that end in between count with the next one. The longest turn is reported too long by less.
package struct LoopTurns {
  private static let resolution = TimeAmount.milliseconds(1)

  private var reading: (time: NIODeadline, nanoseconds: Int64)?
  /// In nanoseconds of CPU time.
  package private(set) var longest: Int64 = 0
  /// For each reading, the time of the turns that ended since the one before.
  package private(set) var durations = Durations()

  package init() {}

  /// Call when a turn has ended.
  ///
  /// - Parameter read: returns the CPU time of the loop, in nanoseconds.
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
