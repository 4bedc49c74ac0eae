// SPDX-License-Identifier: Apache-2.0

/// The objects of a session as far as registering them again goes: who is registered, and what waits for whom.
///
/// Identities count up in the order of registration.
package struct ObjectPlan {
  /// Names an object for as long as its session lives, whatever handles it has.
  package typealias ObjectID = Int

  package enum Status: Equatable {
    case registered
    /// The broker does not know it any more and has not been told yet.
    case pending
    /// The broker has been told and has not answered.
    case registering
    /// It is not this session's any more.
    case lost
  }

  private struct Entry {
    var parent: ObjectID?
    var status: Status
  }

  private var entries: [ObjectID: Entry] = [:]
  /// Pending objects by the parent that they wait for.
  private var dependents: [ObjectID: [ObjectID]] = [:]
  /// Those that are neither registered nor lost.
  package private(set) var unsettled = 0

  package init() {}

  package var count: Int { entries.count }

  /// Nil for one that was never registered, or is not any more.
  package func status(of object: ObjectID) -> Status? { entries[object]?.status }

  /// - Parameter parent: nil for a root, and where the parent is not of this session.
  package mutating func add(_ object: ObjectID, below parent: ObjectID?) {
    entries[object] = Entry(parent: parent, status: .registered)
  }

  package mutating func move(_ object: ObjectID, below parent: ObjectID?) {
    entries[object]?.parent = parent
  }

  /// Gives those that waited for it, in order.
  package mutating func remove(_ object: ObjectID) -> [ObjectID] {
    let ready = settle(object, as: .lost)
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

  /// The connection is lost: what was not answered has to be said again.
  package mutating func interrupt() {
    dependents = [:]
    for (object, entry) in entries where entry.status == .registering {
      entries[object]?.status = .pending
    }
  }

  /// The objects to be registered now, in order; the others follow when their parents are settled.
  package mutating func begin() -> [ObjectID] {
    var ready: [ObjectID] = []
    let pending = entries.filter { $0.value.status == .pending }
    for object in pending.keys.sorted() {
      if let parent = pending[object]?.parent, pending[parent] != nil {
        dependents[parent, default: []].append(object)
      } else {
        ready.append(object)
      }
    }
    for object in ready { entries[object]?.status = .registering }
    return ready
  }

  /// What became of an object; gives those that waited for it, in order.
  package mutating func settle(_ object: ObjectID, as status: Status) -> [ObjectID] {
    guard let entry = entries[object] else { return [] }
    if entry.status == .pending || entry.status == .registering { unsettled -= 1 }
    entries[object]?.status = status
    let ready = (dependents.removeValue(forKey: object) ?? []).filter { entries[$0]?.status == .pending }
    for object in ready { entries[object]?.status = .registering }
    return ready
  }
}
