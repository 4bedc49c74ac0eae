// SPDX-License-Identifier: Apache-2.0

internal import HeapModule
package import NIOCore

/// A clock that runs with real time and can be moved ahead, and its timers by number.
package struct ShiftedTime {
  /// How far it is ahead of real time.
  package private(set) var offset: TimeAmount
  /// Removed timers stay until they are due.
  private var timers = Heap<Timer>()
  private var waiting: Set<Int> = []
  private var last = 0

  /// Timers of one deadline fire in the order of their addition.
  private struct Timer: Comparable {
    let deadline: NIODeadline
    let number: Int

    static func < (left: Self, right: Self) -> Bool {
      (left.deadline, left.number) < (right.deadline, right.number)
    }
  }

  package init(offset: TimeAmount) { self.offset = offset }

  /// - Parameter deadline: in shifted time.
  package mutating func add(_ deadline: NIODeadline) -> Int {
    last += 1
    waiting.insert(last)
    timers.insert(Timer(deadline: deadline, number: last))
    return last
  }

  package mutating func remove(_ number: Int) { waiting.remove(number) }

  /// The deadline of the next timer in real time; `nil` if none waits.
  package var nextDeadline: NIODeadline? {
    mutating get {
      while let first = timers.min, !waiting.contains(first.number) { timers.removeMin() }
      return timers.min.map { $0.deadline - offset }
    }
  }

  /// Removes and returns the next timer due at this real time. One at a time: it may remove another that is due.
  package mutating func takeDue(at real: NIODeadline) -> Int? {
    guard let next = nextDeadline, next <= real, let timer = timers.popMin() else { return nil }
    waiting.remove(timer.number)
    return timer.number
  }

  /// Moves ahead to the next timer if it is due within `rest`, otherwise by all of `rest`; subtracts the move from
  /// `rest`. Returns whether a timer must fire before the next step.
  package mutating func step(at real: NIODeadline, _ rest: inout TimeAmount) -> Bool {
    let next = nextDeadline.map { max(.zero, $0 - real) }.flatMap { $0 <= rest ? $0 : nil }
    offset += next ?? rest
    rest -= next ?? rest
    return next != nil
  }
}
