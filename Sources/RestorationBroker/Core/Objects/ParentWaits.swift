// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

/// Registrations that wait for their parent, in the order of their arrival (R3).
///
/// When a path appears, all are checked, some in this event and the rest in later ones, so that other events are not
/// delayed.
///
/// Invariants:
/// 1. Each is a parked call with a timer. Both end with the wait, and the call is answered or returned to be
///    registered.
/// 2. The timer of the pass is set if and only if `next` has not completed it.
package struct ParentWaits {
  package struct Registration {
    package let session: SessionID
    package let caller: Caller
    /// Without `awaitParentMilliseconds`, so that it does not wait again.
    package let request: RegisterObjectForStateRestoration
    fileprivate let parent: ObjectReference
  }

  /// The most registrations that are checked in one event.
  private static let checksMax = 256
  /// Names the timer of a pass; waits count from 1.
  private static let pass = 0

  /// By number. `order` has the numbers, because removal from it is cheaper.
  private var waiting: [Int: Registration] = [:]
  private var order: [Int] = []
  private var counts: [ClientID: Int] = [:]
  private var counter = 0
  /// The next index in `order` to check.
  private var position = 0
  /// Whether a path has appeared since the pass began.
  private var isDueAgain = false
  private var isTimerSet = false
  private var checksLeft = 0

  package init() {}

  package var isEmpty: Bool { order.isEmpty }
  package var count: Int { order.count }

  package mutating func wait(
    for parent: ObjectReference,
    with request: RegisterObjectForStateRestoration,
    milliseconds: Int64,
    by session: SessionID,
    for caller: Caller,
    in turn: inout Turn
  ) throws(ErrorObject) {
    let client = caller.client
    try turn.requireRoom(toWaitBeside: counts[client] ?? 0, of: client)
    counts[client, default: 0] += 1
    counter += 1
    var request = request
    request.awaitParentMilliseconds = nil
    waiting[counter] = Registration(session: session, caller: caller, request: request, parent: parent)
    order.append(counter)
    turn.ask(.park(caller))
    turn.ask(.setTimer(.parent(turn.application, counter), milliseconds: milliseconds))
  }

  // MARK: Checking

  /// A path has appeared: `next` checks all registrations. If a pass is under way, another one follows.
  package mutating func appeared() {
    if isTimerSet { isDueAgain = true }
    checksLeft = isTimerSet ? 0 : Self.checksMax
  }

  /// Ends the wait of the next registration whose parent exists, and returns it to be registered.
  ///
  /// - Returns: `nil` if no parent exists, or the timer continues the pass.
  package mutating func next(in turn: inout Turn, isThere: (ObjectReference) -> Bool) -> Registration? {
    while checksLeft > 0 {
      if position == order.count {
        guard isDueAgain, !isEmpty else { break }
        (position, isDueAgain) = (0, false)
      }
      checksLeft -= 1
      if let parent = waiting[order[position]]?.parent, isThere(parent) {
        isDueAgain = true
        return end(at: position, in: &turn)
      }
      position += 1
    }
    guard !isTimerSet else { return nil }
    if position < order.count || isDueAgain && !isEmpty {
      setTimer(milliseconds: 1, in: &turn)
    } else {
      (position, isDueAgain) = (0, false)
    }
    return nil
  }

  // MARK: Ending

  /// - Parameter isSettled: whether the archive's content is known.
  /// - Returns: whether the pass continues, as after `appeared`.
  package mutating func timerFired(_ number: Int, isSettled: Bool, in turn: inout Turn) -> Bool {
    if number == Self.pass {
      isTimerSet = false
      if !isSettled { setTimer(milliseconds: 10, in: &turn) }
      return isSettled
    }
    if let index = order.firstIndex(of: number), let late = remove(at: index, in: &turn) {
      turn.refuse(parked: late.caller, .unknownParent(late.parent))
    }
    return false
  }

  /// Refuses registrations whose session, client or archive has gone.
  package mutating func abandon(
    for error: ErrorObject = .sessionEnded(),
    in turn: inout Turn,
    where isOver: (Registration) -> Bool
  ) {
    // From the last one, so that fewer entries move.
    for index in order.indices.reversed() where waiting[order[index]].map(isOver) ?? false {
      if let over = end(at: index, in: &turn) { turn.refuse(over.caller, error) }
    }
  }

  /// - Returns: whether the caller was waiting. It is answered elsewhere.
  package mutating func cancel(_ caller: Caller, in turn: inout Turn) -> Bool {
    guard let index = order.firstIndex(where: { waiting[$0]?.caller == caller }) else { return false }
    return end(at: index, in: &turn) != nil
  }

  private mutating func end(at index: Int, in turn: inout Turn) -> Registration? {
    turn.ask(.cancelTimer(.parent(turn.application, order[index])))
    let ended = remove(at: index, in: &turn)
    if let ended { turn.ask(.unpark(ended.caller)) }
    return ended
  }

  private mutating func remove(at index: Int, in turn: inout Turn) -> Registration? {
    if index < position { position -= 1 }
    guard let removed = waiting.removeValue(forKey: order.remove(at: index)) else { return nil }
    let left = (counts[removed.caller.client] ?? 0) - 1
    counts[removed.caller.client] = left > 0 ? left : nil
    if isEmpty, isTimerSet {
      (isTimerSet, isDueAgain) = (false, false)
      turn.ask(.cancelTimer(.parent(turn.application, Self.pass)))
    }
    return removed
  }

  private mutating func setTimer(milliseconds: Int64, in turn: inout Turn) {
    isTimerSet = true
    turn.ask(.setTimer(.parent(turn.application, Self.pass), milliseconds: milliseconds))
  }
}
