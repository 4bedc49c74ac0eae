// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

/// Registrations that wait for their parent, in arrival order (R3).
///
/// When something appears, each is looked at. Of many only some are in one event, and the others in the next ones, so
/// that nobody else waits for all of them.
///
/// Invariants:
/// 1. Each is a parked call with a timer; both end with the wait, which is then answered or handed out.
/// 2. `next` has not come to the end of a look if and only if the timer that continues it is set.
package struct ParentWaits {
  package struct Registration {
    package let session: SessionID
    package let caller: Caller
    /// It does not wait again.
    package let request: RegisterObjectForStateRestoration
    fileprivate let parent: ObjectReference
  }

  /// How many are looked at in one event.
  private static let looksMax = 256
  /// Stands for the look in the name of its timer; waits count from 1.
  private static let look = 0

  /// By number, in `order`, which is cheaper to take from.
  private var waiting: [Int: Registration] = [:]
  private var order: [Int] = []
  /// How many each client has.
  private var counts: [ClientID: Int] = [:]
  private var counter = 0
  /// The place in `order` of the next one to be looked at.
  private var place = 0
  /// Something has appeared since the look under way began.
  private var isDueAgain = false
  private var isTimerSet = false
  private var looksLeft = 0

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

  // MARK: Looking

  /// A path leads somewhere: `next` looks at all, from the first on. If a look is under way, another one follows.
  package mutating func appeared() {
    if isTimerSet { isDueAgain = true }
    looksLeft = isTimerSet ? 0 : Self.looksMax
  }

  /// Ends the wait of the next one whose parent exists, to be registered, so that something may have appeared.
  ///
  /// - Returns: nil if no parent exists, or if others are looked at when the timer fires.
  package mutating func next(in turn: inout Turn, isThere: (ObjectReference) -> Bool) -> Registration? {
    while looksLeft > 0 {
      if place == order.count {
        guard isDueAgain, !isEmpty else { break }
        (place, isDueAgain) = (0, false)
      }
      looksLeft -= 1
      if let parent = waiting[order[place]]?.parent, isThere(parent) {
        isDueAgain = true
        return end(at: place, in: &turn)
      }
      place += 1
    }
    guard !isTimerSet else { return nil }
    if place < order.count || isDueAgain && !isEmpty {
      setTimer(milliseconds: 1, in: &turn)
    } else {
      (place, isDueAgain) = (0, false)
    }
    return nil
  }

  // MARK: Ending

  /// - Parameter isSettled: whether it is known what the archive holds.
  /// - Returns: whether the look goes on, as if something had appeared.
  package mutating func timerFired(_ number: Int, isSettled: Bool, in turn: inout Turn) -> Bool {
    if number == Self.look {
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
    // The last one first: what is behind a removed one has to be moved.
    for index in order.indices.reversed() where waiting[order[index]].map(isOver) ?? false {
      if let over = end(at: index, in: &turn) { turn.refuse(over.caller, error) }
    }
  }

  /// Nothing is registered. Returns whether the caller was waiting; it is answered elsewhere.
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
    if index < place { place -= 1 }
    guard let removed = waiting.removeValue(forKey: order.remove(at: index)) else { return nil }
    let left = (counts[removed.caller.client] ?? 0) - 1
    counts[removed.caller.client] = left > 0 ? left : nil
    if isEmpty, isTimerSet {
      (isTimerSet, isDueAgain) = (false, false)
      turn.ask(.cancelTimer(.parent(turn.application, Self.look)))
    }
    return removed
  }

  private mutating func setTimer(milliseconds: Int64, in turn: inout Turn) {
    isTimerSet = true
    turn.ask(.setTimer(.parent(turn.application, Self.look), milliseconds: milliseconds))
  }
}
