// SPDX-License-Identifier: Apache-2.0

/// The calls of a session from submission to end, in order: which wait, which are with the broker.
///
/// Tickets count up in the order of submission. What goes back into the queue goes to its place by ticket, so that the
/// order of sending is that of submission on each connection anew.
package struct CallQueue {
  /// Names one call from its submission to its end.
  package typealias Ticket = Int
  package typealias ObjectID = ObjectPlan.ObjectID

  package struct Call: Equatable, Sendable {
    /// Whether it may be sent again where its outcome is not known.
    package var isIdempotent: Bool
    /// Objects of this session that it names: they have to be registered when it is sent.
    package var objects: [ObjectID]
    /// What it takes of the window.
    package var bytes: Int

    package init(isIdempotent: Bool, objects: [ObjectID] = [], bytes: Int) {
      self.isIdempotent = isIdempotent
      self.objects = objects
      self.bytes = bytes
    }
  }

  package struct Entry {
    package let call: Call
    package fileprivate(set) var place = Place.waiting
    /// Connections it was sent on.
    package fileprivate(set) var tries = 0
    /// Since when it waits for a broker, in milliseconds.
    package fileprivate(set) var since: Int64
  }

  package enum Place: Equatable {
    case waiting
    /// Out of the queue until this object is registered.
    case parked(ObjectID)
    case sent
  }

  private let windowBytes: Int
  private var entries: [Ticket: Entry] = [:]
  /// In order from `head` on; tickets that do not wait any more are passed over.
  private var order: [Ticket] = []
  private var head = 0
  private var parked: [ObjectID: [Ticket]] = [:]
  package private(set) var sentBytes = 0

  /// - Parameter windowBytes: what may be with the broker, unless a single larger call is all there is.
  package init(windowBytes: Int) {
    self.windowBytes = windowBytes
  }

  package var count: Int { entries.count }
  package var isEmpty: Bool { entries.isEmpty }
  package var tickets: [Ticket] { entries.keys.sorted() }

  package subscript(ticket: Ticket) -> Entry? { entries[ticket] }

  package mutating func append(_ ticket: Ticket, _ call: Call, at now: Int64) {
    entries[ticket] = Entry(call: call, since: now)
    order.append(ticket)
  }

  /// Ends a call; nil where it has ended before.
  package mutating func remove(_ ticket: Ticket) -> Entry? {
    guard let entry = entries.removeValue(forKey: ticket) else { return nil }
    if entry.place == .sent { sentBytes -= entry.call.bytes }
    if case .parked(let object) = entry.place { parked[object]?.removeAll { $0 == ticket } }
    return entry
  }

  /// The first that waits.
  package mutating func first() -> Ticket? {
    while head < order.count, entries[order[head]]?.place != .waiting { head += 1 }
    // Moved at most once each: what goes is at least as much as what stays.
    if head * 2 >= order.count {
      order.removeFirst(head)
      head = 0
    }
    return head < order.count ? order[head] : nil
  }

  package func hasRoom(for bytes: Int) -> Bool {
    sentBytes == 0 || sentBytes + bytes <= windowBytes
  }

  package mutating func send(_ ticket: Ticket) {
    guard let entry = entries[ticket] else { return }
    entries[ticket]?.place = .sent
    entries[ticket]?.tries += 1
    sentBytes += entry.call.bytes
  }

  /// Lets a call wait for an object while others go on.
  package mutating func park(_ ticket: Ticket, for object: ObjectID) {
    entries[ticket]?.place = .parked(object)
    parked[object, default: []].append(ticket)
  }

  /// Puts what waited for the object back to its place.
  package mutating func unpark(_ object: ObjectID) {
    guard let tickets = parked.removeValue(forKey: object), !tickets.isEmpty else { return }
    for ticket in tickets { entries[ticket]?.place = .waiting }
    order = (order[head...] + tickets).filter { entries[$0]?.place == .waiting }.sorted()
    head = 0
  }

  /// The connection is lost: everything waits again, for a broker and since now.
  package mutating func requeue(at now: Int64) {
    for ticket in entries.keys {
      entries[ticket]?.place = .waiting
      entries[ticket]?.since = now
    }
    order = tickets
    head = 0
    parked = [:]
    sentBytes = 0
  }
}
