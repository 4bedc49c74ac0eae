// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

/// The broker's calls to a session, from their arrival to their end. Pure: events in, actions out.
///
/// Invariants:
/// 1. At most one ordered call runs; ordered calls begin in the order of their arrival.
/// 2. Other calls run at once: an ordered call may wait for them, such as for a data source during a decode.
/// 3. A dropped call never begins. If a running call is dropped, it is cancelled, and the next waits for its end.
package struct ServedCallQueue {
  /// Names one call from its arrival to its end.
  package typealias Number = Int

  package enum Lane: CaseIterable, Sendable {
    case inOrder
    case atOnce
    /// In order too, but without an answer: it is not dropped with the connection it came on.
    case notice
  }

  /// Carried out in this order.
  package enum Action: Equatable, Sendable {
    /// To be reported by `ended`.
    case begin(Number)
    /// The answer of this call is no longer awaited; `ended` must still report it.
    case cancel(Number)
    case drop(Number)
  }

  private var lastNumber = 0
  private var waiting: Deque<(number: Number, lane: Lane)> = []
  private var current: (number: Number, lane: Lane)?
  private var others: Set<Number> = []

  package init() {}

  package var count: Int { waiting.count + (current == nil ? 0 : 1) + others.count }

  package mutating func makeNumber() -> Number {
    lastNumber += 1
    return lastNumber
  }

  package mutating func add(_ number: Number, _ lane: Lane) -> [Action] {
    if lane == .atOnce {
      others.insert(number)
      return [.begin(number)]
    }
    waiting.append((number, lane))
    return next()
  }

  package mutating func ended(_ number: Number) -> [Action] {
    if others.remove(number) != nil { return [] }
    guard current?.number == number else { return [] }
    current = nil
    return next()
  }

  /// Drops the calls of a lost connection.
  package mutating func drop() -> [Action] {
    var actions = others.sorted().map { Action.cancel($0) }
    if let current, current.lane == .inOrder { actions.append(.cancel(current.number)) }
    actions += waiting.filter { $0.lane == .inOrder }.map { .drop($0.number) }
    waiting.removeAll { $0.lane == .inOrder }
    return actions
  }

  private mutating func next() -> [Action] {
    guard current == nil, let next = waiting.popFirst() else { return [] }
    current = next
    return [.begin(next.number)]
  }
}
