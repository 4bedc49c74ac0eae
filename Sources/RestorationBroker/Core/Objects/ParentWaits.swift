// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

/// Registrations that wait for their parent, in arrival order (R3).
///
/// Invariant: each is a parked call with a timer; both end with the wait, which is then answered or handed out.
package struct ParentWaits {
  package struct Registration {
    package let session: SessionID
    package let caller: Caller
    /// It does not wait again.
    package let request: RegisterObjectForStateRestoration
    fileprivate let number: Int
    fileprivate let parent: ObjectReference
  }

  private var waiting: [Registration] = []
  private var counter = 0

  package init() {}

  package var isEmpty: Bool { waiting.isEmpty }
  package var count: Int { waiting.count }

  package mutating func wait(
    for parent: ObjectReference,
    with request: RegisterObjectForStateRestoration,
    milliseconds: Int64,
    by session: SessionID,
    for caller: Caller,
    in turn: inout Turn
  ) throws(ErrorObject) {
    let client = caller.client
    try turn.requireRoom(toWaitBeside: waiting.count { $0.caller.client == client }, of: client)
    counter += 1
    var request = request
    request.awaitParentMilliseconds = nil
    waiting.append(Registration(session: session, caller: caller, request: request, number: counter, parent: parent))
    turn.ask(.park(caller))
    turn.ask(.setTimer(.parent(turn.application, counter), milliseconds: milliseconds))
  }

  /// Ends the wait of the first one whose parent exists, to be registered; `nil` if there is none.
  package mutating func next(in turn: inout Turn, isThere: (ObjectReference) -> Bool) -> Registration? {
    guard let index = waiting.firstIndex(where: { isThere($0.parent) }) else { return nil }
    return end(at: index, in: &turn)
  }

  package mutating func timerFired(_ number: Int, in turn: inout Turn) {
    guard let index = waiting.firstIndex(where: { $0.number == number }) else { return }
    let late = waiting.remove(at: index)
    turn.refuse(parked: late.caller, .unknownParent(late.parent))
  }

  /// Refuses registrations whose session, client or archive has gone.
  package mutating func abandon(
    for error: ErrorObject = .sessionEnded(),
    in turn: inout Turn,
    where isOver: (Registration) -> Bool
  ) {
    while let index = waiting.firstIndex(where: isOver) { turn.refuse(end(at: index, in: &turn).caller, error) }
  }

  /// Nothing is registered. Returns whether the caller was waiting; it is answered elsewhere.
  package mutating func cancel(_ caller: Caller, in turn: inout Turn) -> Bool {
    guard let index = waiting.firstIndex(where: { $0.caller == caller }) else { return false }
    _ = end(at: index, in: &turn)
    return true
  }

  private mutating func end(at index: Int, in turn: inout Turn) -> Registration {
    let ended = waiting.remove(at: index)
    turn.ask(.cancelTimer(.parent(turn.application, ended.number)))
    turn.ask(.unpark(ended.caller))
    return ended
  }
}
