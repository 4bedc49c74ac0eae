// SPDX-License-Identifier: Apache-2.0

/// Plans the repeated registration of a session's objects. Identities count up in the order of registration.
package struct ObjectPlan {
  /// Names an object for as long as its session lives, whatever handles it has.
  package typealias ObjectID = Int

  package enum Status: Equatable {
    case registered
    /// The broker no longer knows it, and its registration is not sent.
    case pending
    /// Its registration is sent and not answered.
    case registering
  }

  private struct Entry {
    var parent: ObjectID?
    var status: Status
  }

  private var entries: [ObjectID: Entry] = [:]
  /// Pending objects by the parent that they wait for.
  private var dependents: [ObjectID: [ObjectID]] = [:]
  package private(set) var unsettled = 0

  package init() {}

  package var count: Int { entries.count }

  /// `nil` if the object was never registered, or is lost.
  package func status(of object: ObjectID) -> Status? { entries[object]?.status }

  /// May add an existing object that is about to be registered again; does not settle it.
  ///
  /// - Parameter parent: `nil` for a root, or if the parent is not of this session.
  package mutating func add(_ object: ObjectID, below parent: ObjectID?) {
    entries[object] = Entry(parent: parent, status: entries[object]?.status ?? .registered)
  }

  package mutating func move(_ object: ObjectID, below parent: ObjectID?) { entries[object]?.parent = parent }

  /// Removes an object; returns the objects that waited for it, in order.
  package mutating func remove(_ object: ObjectID) -> [ObjectID] {
    let ready = settle(object)
    entries[object] = nil
    return ready
  }

  /// The broker has forgotten everything.
  package mutating func forgetRegistrations() {
    for (object, entry) in entries where entry.status == .registered {
      entries[object]?.status = .pending
      unsettled += 1
    }
  }

  /// Makes unanswered registrations pending after the connection is lost.
  package mutating func interrupt() {
    dependents = [:]
    for (object, entry) in entries where entry.status == .registering { entries[object]?.status = .pending }
  }

  /// The objects to be registered now, in order; the others follow when their parents are settled.
  package mutating func begin() -> [ObjectID] {
    dependents = [:]
    var ready: [ObjectID] = []
    let pending = entries.keys.filter { entries[$0]?.status == .pending }.sorted()
    for object in pending {
      if let parent = entries[object]?.parent, let status = entries[parent]?.status, status != .registered {
        dependents[parent, default: []].append(object)
      } else {
        ready.append(object)
      }
    }
    // If the answer to a move was lost, objects may seem to be below each other: one of them comes first.
    var reached: Set<ObjectID> = []
    var next = ready + entries.keys.filter { entries[$0]?.status == .registering }
    for object in pending {
      while let object = next.popLast() {
        if reached.insert(object).inserted { next += dependents[object] ?? [] }
      }
      if !reached.contains(object) {
        ready.append(object)
        next = [object]
      }
    }
    for object in ready { entries[object]?.status = .registering }
    return ready
  }

  /// Marks an object as registered; returns the objects that waited for it, in order.
  package mutating func settle(_ object: ObjectID) -> [ObjectID] {
    guard let entry = entries[object] else { return [] }
    if entry.status != .registered { unsettled -= 1 }
    entries[object]?.status = .registered
    let ready = (dependents.removeValue(forKey: object) ?? []).filter { entries[$0]?.status == .pending }
    for object in ready { entries[object]?.status = .registering }
    return ready
  }
}
