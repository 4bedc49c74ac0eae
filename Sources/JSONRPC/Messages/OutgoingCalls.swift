// SPDX-License-Identifier: Apache-2.0

/// Our unfinished calls to the peer. Ids are 1, 2, 3 …
struct OutgoingCalls {
  private var open: [Int] = []
  private var lastID = 0
  /// Number of forgotten calls whose answers may still come.
  private var forgotten = 0

  /// For the next conversation with the same peer.
  var past: CallsMade { CallsMade(lastID: lastID, unanswered: forgotten + open.count) }

  var isEmpty: Bool { open.isEmpty }

  init(after past: CallsMade = CallsMade()) {
    lastID = past.lastID
    forgotten = past.unanswered
  }

  func isOpen(_ callID: Int) -> Bool { open.contains(callID) }

  mutating func begin() -> Int {
    lastID += 1
    open.append(lastID)
    return lastID
  }

  /// Ends the call with this id; `nil` if there is none.
  mutating func end(_ id: RequestID) -> Int? {
    guard let integer = id.integer, let callID = Int(exactly: integer), remove(callID) else { return nil }
    return callID
  }

  /// Ends the call of an unreadable answer: if its id was not read, the oldest.
  mutating func end(_ broken: BrokenMessage) -> Int? {
    guard let id = broken.id else {
      // The answer may have been another's, so that the oldest call's answer may still come.
      defer { open.first.map { forget($0) } }
      return open.first
    }
    if let callID = end(id) { return callID }
    _ = forgives(id)
    return nil
  }

  mutating func forget(_ callID: Int) { if remove(callID) { forgotten += 1 } }

  /// Whether an unexpected response can be the late answer to a forgotten call.
  mutating func forgives(_ id: RequestID) -> Bool {
    guard forgotten > 0, let integer = id.integer, integer > 0, integer <= lastID else { return false }
    forgotten -= 1
    return true
  }

  mutating func endAll() -> [Int] {
    defer { open = [] }
    return open
  }

  private mutating func remove(_ callID: Int) -> Bool {
    guard let index = open.firstIndex(of: callID) else { return false }
    open.remove(at: index)
    return true
  }
}

/// The calls made to a peer so far, for another conversation with the same peer.
package struct CallsMade: Hashable, Sendable {
  package var lastID: Int
  package var unanswered: Int

  package init(lastID: Int = 0, unanswered: Int = 0) { (self.lastID, self.unanswered) = (lastID, unanswered) }
}
