// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

/// The calls of a session in order: those that wait, and those at the broker. Tickets count up in the order of
/// submission. A call that returns to the queue takes its place by ticket, so that each connection keeps the order of
/// submission.
package struct CallQueue {
  /// Names one call from its submission to its end.
  package typealias Ticket = Int
  package typealias ObjectID = ObjectPlan.ObjectID

  package struct Call: Equatable, Sendable {
    /// Whether it may be sent again if its outcome is unknown.
    package var isIdempotent: Bool
    /// Objects of this session that it names: they must be registered when it is sent.
    package var objects: [ObjectID]
    /// Its share of the window.
    package var bytes: Int
    /// Whether it fails with the connection over which it was sent.
    package var isOfOneConnection: Bool
    /// Whether another connection gets it if its outcome is unknown.
    var isRepeated: Bool { isIdempotent && !isOfOneConnection }

    package init(isIdempotent: Bool, objects: [ObjectID] = [], bytes: Int, isOfOneConnection: Bool = false) {
      (self.isIdempotent, self.objects, self.bytes) = (isIdempotent, objects, bytes)
      self.isOfOneConnection = isOfOneConnection
    }
  }

  /// The limits of calls that wait without a broker: an application's objects, and bytes.
  package enum Limit: Equatable, Sendable {
    case calls, bytes

    package var max: Int { self == .calls ? 16_384 : 64 << 20 }
  }

  package struct Entry {
    package let call: Call
    package fileprivate(set) var place = Place.waiting
    /// How often it was sent.
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

  private struct Parked {
    var tickets: [Ticket] = []
    var names: Set<ObjectID> = []
  }

  private let windowBytes: Int
  private var entries: [Ticket: Entry] = [:]
  /// In order; tickets that no longer wait are skipped.
  private var order: Deque<Ticket> = []
  private var parked: [ObjectID: Parked] = [:]
  /// Objects that parked calls name, and all that those wait for: later calls that name them may not pass.
  private var blockers: [ObjectID: Set<ObjectID>] = [:]
  package private(set) var sentBytes = 0
  private var bytes = 0

  /// - Parameter windowBytes: the most bytes at the broker, except for a single larger call.
  package init(windowBytes: Int) { self.windowBytes = windowBytes }

  package var count: Int { entries.count }
  package var isEmpty: Bool { entries.isEmpty }
  package var tickets: [Ticket] { entries.keys.sorted() }
  package var hasParked: Bool { parked.values.contains { !$0.tickets.isEmpty } }
  /// The length of the order, with some calls that no longer wait.
  package var length: Int { order.count }

  package subscript(ticket: Ticket) -> Entry? { entries[ticket] }

  /// The limit that keeps one more call from waiting without a broker.
  package func limit(for call: Call) -> Limit? {
    count >= Limit.calls.max ? .calls : bytes + call.bytes > Limit.bytes.max ? .bytes : nil
  }

  package mutating func append(_ ticket: Ticket, _ call: Call, at now: Int64) {
    bytes += call.bytes
    entries[ticket] = Entry(call: call, since: now)
    if length > 2 * count + 32 { order.removeAll { entries[$0]?.place != .waiting } }
    order.append(ticket)
  }

  /// Ends a call; `nil` if it has ended before.
  package mutating func remove(_ ticket: Ticket) -> Entry? {
    guard let entry = entries.removeValue(forKey: ticket) else { return nil }
    bytes -= entry.call.bytes
    if entry.place == .sent { sentBytes -= entry.call.bytes }
    if case .parked(let object) = entry.place { parked[object]?.tickets.removeAll { $0 == ticket } }
    return entry
  }

  package mutating func first() -> Ticket? {
    while let first = order.first, entries[first]?.place != .waiting { order.removeFirst() }
    return order.first
  }

  package func hasRoom(for bytes: Int) -> Bool { sentBytes == 0 || sentBytes + bytes <= windowBytes }

  package mutating func send(_ ticket: Ticket) {
    guard let entry = entries[ticket] else { return }
    entries[ticket]?.place = .sent
    entries[ticket]?.tries += 1
    sentBytes += entry.call.bytes
  }

  /// Returns a sent call to its place.
  package mutating func putBack(_ ticket: Ticket) {
    guard let entry = entries[ticket], entry.place == .sent else { return }
    sentBytes -= entry.call.bytes
    entries[ticket]?.place = .waiting
    order = Deque((order.filter { $0 != ticket } + [ticket]).sorted())
  }

  /// Makes a call wait for an object while others proceed.
  package mutating func park(_ ticket: Ticket, for object: ObjectID) {
    guard let call = entries[ticket]?.call else { return }
    entries[ticket]?.place = .parked(object)
    parked[object, default: Parked()].tickets.append(ticket)
    for name in call.objects {
      parked[object]?.names.insert(name)
      blockers[name, default: []].insert(object)
    }
  }

  /// The object the call must wait for, because an earlier call that names one of its objects waits.
  package func blocker(of call: Call) -> ObjectID? {
    blockers.isEmpty ? nil : call.objects.lazy.compactMap { blockers[$0]?.first }.first
  }

  /// Returns the calls that wait for the object to their places.
  package mutating func unpark(_ object: ObjectID) {
    guard let parked = parked.removeValue(forKey: object) else { return }
    for name in parked.names {
      blockers[name]?.remove(object)
      if blockers[name]?.isEmpty == true { blockers[name] = nil }
    }
    for ticket in parked.tickets { entries[ticket]?.place = .waiting }
    order = Deque((order + parked.tickets).filter { entries[$0]?.place == .waiting }.sorted())
  }

  /// Requeues all calls after the connection is lost; they wait for a broker from `since`.
  package mutating func requeue(since: Int64) {
    for (ticket, entry) in entries {
      entries[ticket]?.place = .waiting
      entries[ticket]?.since = max(since, entry.since)
    }
    order = Deque(tickets)
    parked = [:]
    blockers = [:]
    sentBytes = 0
  }
}
