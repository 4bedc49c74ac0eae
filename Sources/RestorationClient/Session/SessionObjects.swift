// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// The objects of a session, with all data to register them again.
struct SessionObjects {
  typealias ObjectID = ObjectPlan.ObjectID

  struct Record {
    let object: RestorableObject
    /// The current registration. The parent is that of another session; a parent of this session is in `parent`.
    var registration: ObjectRegistration
    var parent: ObjectID?
    /// Whether no encoder was ever given, so that the state pushed last is current.
    var isPushed: Bool
    /// The number of looks that found the program's object released.
    var releases = 0
    /// Whether the session has asked for its saved state, or received it.
    var wasDecoded = false
    /// Whether the log reports its withheld state.
    var isToldWithheld = false
    /// Whether it began without a broker and without a saved state: the state saved at its path is older (R29).
    var isFresh = false
  }

  /// The timeout for a parent of another process, which may have to be registered again too.
  private static let parentWait: Duration = .seconds(10)

  private var records: [ObjectID: Record] = [:]
  private let live: LiveObjects
  private var children: [ObjectID: Set<ObjectID>] = [:]
  private var lastID = 0
  private var lastRevision: Int64 = 0

  init(_ live: LiveObjects) { self.live = live }

  subscript(id: ObjectID) -> Record? { records[id] }

  /// In the order of their registration.
  var all: [RestorableObject] { records.values.map(\.object).sorted { $0.id < $1.id } }

  var nextID: ObjectID { lastID + 1 }

  func object(at path: IdentifierPath) -> RestorableObject? { live.object(at: path) }

  func object(handle: Int64) -> RestorableObject? { live.object(handle: handle) }

  func record(handle: Int64) -> Record? { object(handle: handle).flatMap { records[$0.id] } }

  /// The object of an answered registration: a new one, or the one with the handle. A registration with another
  /// `StateRestoring` changes nothing.
  mutating func registered(
    _ registration: ObjectRegistration,
    below parent: ObjectID?,
    restoring: (any StateRestoring)?,
    as registered: RegisteredObject,
    session: ObjectIdentifier
  ) -> RestorableObject {
    if let object = object(handle: registered.object) {
      if let restoring {
        if let other = object.restoring, other !== restoring { return object }
        object.restored(by: restoring)
        records[object.id]?.isPushed = false
      }
      records[object.id]?.registration = registration
      setParent(of: object.id, to: parent, else: registration.restorationParent)
      live.registered(object, as: registered)
      return object
    }
    lastID += 1
    let object = RestorableObject(id: lastID, session: session, registered)
    if let restoring { object.restored(by: restoring) }
    records[lastID] = Record(object: object, registration: registration, isPushed: restoring == nil)
    setParent(of: lastID, to: parent, else: registration.restorationParent)
    live.registered(object, as: registered)
    return object
  }

  /// It is registered again, in another session of the broker.
  mutating func registered(_ id: ObjectID, as registered: RegisteredObject) {
    records[id]?.registration.takeOver = false
    if let object = records[id]?.object { live.registered(object, as: registered) }
  }

  mutating func remove(_ id: ObjectID, _ error: RestorationSessionError) {
    guard let record = records.removeValue(forKey: id) else { return }
    live.remove(record.object)
    if let parent = record.parent { children[parent]?.remove(id) }
    // Objects below it stay; its path is the only name left.
    for child in children.removeValue(forKey: id) ?? [] {
      setParent(of: child, to: nil, else: record.object.path.map { .path($0) })
    }
    record.object.lost(error)
  }

  private mutating func setParent(of id: ObjectID, to parent: ObjectID?, else foreign: ObjectReference?) {
    if let former = records[id]?.parent { children[former]?.remove(id) }
    records[id]?.parent = parent
    records[id]?.registration.restorationParent = parent == nil ? foreign : nil
    if let parent { children[parent, default: []].insert(id) }
  }

  // MARK: Released objects

  /// Whether an object may be released.
  var areAsked: Bool { records.values.contains { !$0.isPushed } }

  func isReleased(_ id: ObjectID) -> Bool { records[id].map { !$0.isPushed && $0.object.restoring == nil } ?? false }

  /// The objects that were found released this many times in a row.
  mutating func released(times: Int) -> [RestorableObject] {
    var found: [RestorableObject] = []
    for (id, record) in records where !record.isPushed {
      let releases = record.object.restoring == nil ? record.releases + 1 : 0
      if releases != record.releases { records[id]?.releases = releases }
      if releases == times { found.append(record.object) }
    }
    return found.sorted { $0.id < $1.id }
  }

  /// Unregistering failed: the object is to be found again.
  mutating func stays(_ id: ObjectID) { records[id]?.releases = 0 }

  // MARK: States

  mutating func decoded(_ id: ObjectID) { records[id]?.wasDecoded = true }

  /// `nil` for a root.
  func parent(of object: RestorableObject) -> RestorableReference? {
    guard let record = records[object.id] else { return nil }
    if let parent = record.parent.flatMap({ records[$0]?.object }) { return .object(parent) }
    switch record.registration.restorationParent {
    case .path(let path)?: return .path(path)
    case .handle(let handle)?: return self.object(handle: handle).map { .object($0) }
    case nil: return nil
    }
  }

  mutating func beganAlone(_ id: ObjectID) { records[id]?.isFresh = true }

  mutating func saved(_ id: ObjectID) {
    guard records[id]?.isFresh == true else { return }
    records[id]?.isFresh = false
    // The saved state is the program's.
    records[id]?.wasDecoded = true
  }

  /// Notes a withheld state; returns whether it is the first.
  mutating func isFirstWithheld(_ id: ObjectID) -> Bool {
    guard records[id]?.isToldWithheld == false else { return false }
    records[id]?.isToldWithheld = true
    return true
  }

  /// The decoded state is no longer the saved state.
  mutating func forgetDecoding() { for id in records.keys { records[id]?.wasDecoded = false } }

  /// The number of the next state (R15). All objects count together: the broker may still have the number of a former
  /// object at the same path.
  mutating func nextRevision() -> Int64 {
    lastRevision += 1
    return lastRevision
  }

  /// The broker's name of an object; `nil` if the session no longer has it.
  func wire(_ reference: RestorableReference) -> ObjectReference? {
    switch reference {
    case .object(let object): records[object.id].map { .handle($0.object.handle) }
    case .path(let path): .path(path)
    }
  }

  /// The repeated registration of an object; it displaces another owner only while the object is fresh.
  func registrationAgain(_ id: ObjectID) -> ObjectRegistration? {
    guard let record = records[id] else { return nil }
    var registration = record.registration
    registration.takeOver = registration.takeOver && record.isFresh
    registration.fresh = record.isFresh
    if let parent = record.parent.flatMap({ records[$0] }) {
      registration.restorationParent = .handle(parent.object.handle)
    } else if registration.restorationParent != nil {
      registration.awaitParent = max(registration.awaitParent ?? .zero, Self.parentWait)
    }
    return registration
  }

  // MARK: Moves

  mutating func moved(_ id: ObjectID, below parent: RestorableReference?, to path: IdentifierPath?) {
    switch parent {
    case .object(let object): setParent(of: id, to: object.id, else: nil)
    case .path(let path): setParent(of: id, to: nil, else: .path(path))
    case nil: setParent(of: id, to: nil, else: nil)
    }
    if let object = records[id]?.object { live.moved(object, to: path) }
  }

  mutating func renamed(_ id: ObjectID, to identifier: String?, position: Int64?, _ placement: ObjectPlacement) {
    records[id]?.registration.restorationIdentifier = identifier
    records[id]?.registration.position = position
    if let object = records[id]?.object { live.moved(object, to: placement.path, included: placement.included) }
  }

  /// The broker reports another path: the object's own component, or its parent's path, may have changed.
  mutating func moved(_ id: ObjectID, to path: IdentifierPath?) {
    guard let record = records[id] else { return }
    live.moved(record.object, to: path)
    guard let path, let last = path.components.last, let component = RestorationIdentifier.split(last) else { return }
    records[id]?.registration.restorationIdentifier = component.identifier
    records[id]?.registration.position = component.position
    if record.parent == nil, record.registration.restorationParent != nil {
      records[id]?.registration.restorationParent = .path(IdentifierPath(path.components.dropLast()))
    }
  }
}
