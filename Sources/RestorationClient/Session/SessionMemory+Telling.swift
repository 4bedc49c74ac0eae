// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// What the first broker is told: objects, parents first, each state as soon as what it names is registered, and then
/// what has left its path and what is forgotten.
///
/// What has left a path is registered there again and then unregistered by its handle, as the program did it: so it
/// goes to the closed shelf, and what others have below it stays. That and a forgotten path come after what is below
/// them, which would have no parent otherwise, but before another object at their path, which is its parent then.
extension SessionMemory {
  /// One thing that a broker is told. Numbers below zero are departures.
  enum Item: Hashable {
    case forget(IdentifierPath)
    case register(ObjectID)
    /// `nil` for the application's own state.
    case encode(ObjectID?)
    case unregister(ObjectID)
  }

  struct Message {
    let item: Item
    fileprivate let number: Int
    let method: String
    let parameters: JSONText
  }

  /// How often a state that is kept is tried again where what is above it is not there: for about as long as an object
  /// waits for a parent of another process.
  private static let triesMax = 18

  enum Refusal {
    /// The broker is ending, or makes no sense: the next one is told.
    case ending
    /// It stays in memory, to be said again.
    case kept(RestorationError)
    /// It is refused for good, and dropped.
    case dropped(String, RestorationError)
    /// The object is refused for good.
    case lost(ObjectID, RestorationError)
    /// The user has quit the application.
    case discarded(ObjectID)
  }

  /// What a broker has been told.
  struct Telling {
    /// The broker's answers to registrations.
    fileprivate(set) var names: [ObjectID: RegisteredObject] = [:]
    /// The numbers of messages without an answer.
    fileprivate var asked: [Item: Int] = [:]
    /// To be said again later.
    fileprivate var putOff: Set<Item> = []
    /// Objects whose parents, of other processes, are not there yet.
    fileprivate var orphans: Set<ObjectID> = []
    fileprivate var lastNumber = 0

    /// The object has changed since.
    mutating func again(_ id: ObjectID) {
      names[id] = nil
      orphans.remove(id)
      for item in [Item.register(id), .unregister(id)] { (asked[item], _) = (nil, putOff.remove(item)) }
      again(encoding: id)
    }

    /// The state has changed since.
    mutating func again(encoding target: ObjectID?) {
      asked[.encode(target)] = nil
      putOff.remove(.encode(target))
    }

    fileprivate func name(_ id: ObjectID) -> ObjectReference? { names[id].map { .handle($0.object) } }
  }

  /// Another connection; if the session was not resumed, the broker knows nothing.
  mutating func beginTelling(isResumed: Bool, _ objects: inout SessionObjects) {
    tellAgain()
    telling.asked = [:]
    guard !isResumed else { return }
    telling.names = [:]
    for (target, state) in states where state.isStored {
      states[target]?.isStored = false
      if let target { objects.beganAlone(target) }
    }
  }

  /// What was put off is said again.
  mutating func tellAgain() { (telling.putOff, telling.orphans) = ([], []) }

  /// Whether everything is told except states, and objects whose parents are missing: they can follow later.
  var isTold: Bool {
    forgotten.isEmpty && departures.isEmpty
      && telling.putOff.allSatisfy { if case .encode = $0 { true } else { false } }
  }

  /// Everything is told. What is left are states.
  mutating func settle() {
    telling = Telling()
    states = states.filter { !$0.value.isStored }
  }

  // MARK: Messages

  /// The messages that can be said now, in order. They are to be answered before more are asked for.
  mutating func messages(_ objects: SessionObjects) -> [Message] {
    ready(objects).filter { telling.asked[$0] == nil && !telling.putOff.contains($0) }.map { item in
      telling.lastNumber += 1
      telling.asked[item] = telling.lastNumber
      let (method, parameters) = message(item, objects)
      return Message(item: item, number: telling.lastNumber, method: method, parameters: parameters)
    }
  }

  private func ready(_ objects: SessionObjects) -> [Item] {
    let gone = departures.sorted { $0.key > $1.key }
    let left = Set(departures.values.map(\.path))
    // Objects come first: they are to have room.
    var waiting = objects.all.filter { !isOrphan($0.id, objects) }.map { (id: $0.id, path: $0.path) }
    waiting += gone.map { (id: $0.key, path: Optional($0.value.path)) }
    waiting.removeAll { telling.names[$0.id] != nil }
    let paths = Set(waiting.compactMap(\.path))
    func isOver(_ path: IdentifierPath) -> Bool { paths.contains(path) || !paths.contains { $0.isBelow(path) } }
    let first = waiting.filter { id, path in
      let isFree = path.map { path in
        !forgotten.contains(path) && (id < 0 || !left.contains(path)) && !path.ancestors.contains { paths.contains($0) }
      }
      return isFree ?? true && objects[id]?.parent.map { telling.names[$0] != nil } ?? true
    }
    let pushes = targets.filter { target in
      guard let state = states[target], !state.isStored else { return false }
      return target.map { telling.names[$0] != nil } ?? true
        && state.objects.allSatisfy { objects[$0] == nil || telling.names[$0] != nil || isOrphan($0, objects) }
    }
    let last = gone.filter { id, departure in
      telling.names[id] != nil && states[id]?.isStored ?? true && isOver(departure.path)
    }
    return first.map { .register($0.id) } + pushes.map { .encode($0) } + last.map { .unregister($0.key) }
      + forgotten.filter(isOver).map { .forget($0) }
  }

  private func isOrphan(_ id: ObjectID, _ objects: SessionObjects) -> Bool {
    guard !telling.orphans.isEmpty else { return false }
    return telling.orphans.contains(id) || objects[id]?.parent.map { isOrphan($0, objects) } ?? false
  }

  private func message(_ item: Item, _ objects: SessionObjects) -> (String, JSONText) {
    func message<Method: RestorationMethod>(_ call: Method) -> (String, JSONText) {
      (Method.method, BrokerConnection.parameters(of: call))
    }
    switch item {
    case .forget(let path): return message(UnregisterObject().with { $0.object = .path(path) })
    case .register(let id): return message(registration(id, objects))
    case .encode(let target):
      let object = target.flatMap { telling.name($0) } ?? .path([])
      let state = states[target]?.encoding(as: object) { id in
        telling.name(id) ?? objects[id]?.object.path.map { .path($0) }
      }
      return message(state ?? EncodeRestorableState())
    case .unregister(let id):
      return message(
        UnregisterObject().with {
          $0.object = telling.name(id) ?? .path([])
          $0.keepState = departures[id]?.keepsState ?? false
        }
      )
    }
  }

  private func registration(_ id: ObjectID, _ objects: SessionObjects) -> RegisterObjectForStateRestoration {
    if let departure = departures[id] {
      var registration = departure.registration
      registration.restorationParent = departure.path.ancestors.last.map { .path($0) }
      (registration.awaitParent, registration.takeOver) = (nil, false)
      registration.fresh = states[id] != nil
      return registration.wire
    }
    var registration = objects.registrationAgain(id) ?? ObjectRegistration("")
    registration.awaitParent = nil
    if let parent = objects[id]?.parent { registration.restorationParent = telling.name(parent) }
    return registration.wire
  }

  // MARK: Answers

  /// Takes the answer to a message; `nil` if it is good, or of no more interest.
  mutating func answered(
    _ message: Message,
    _ answer: Result<JSONSlice, RestorationError>,
    _ objects: inout SessionObjects
  ) -> Refusal? {
    guard telling.asked[message.item] == message.number else { return nil }
    telling.asked[message.item] = nil
    switch (message.item, answer) {
    case (let item, .failure(let error)): return refused(item, error, objects)
    case (.forget(let path), _): forgotten.removeAll { $0 == path }
    case (.register(let id), .success(let result)):
      guard let reply = RegisterObjectForStateRestoration.Reply(result) else {
        guard result.saysDiscarded else { return .ending }
        if departures[id] == nil { return .discarded(id) }
        depart(id)
        return nil
      }
      telling.names[id] = reply
    case (.encode(let target), _):
      states[target]?.isStored = true
      if let target { objects.saved(target) }
    case (.unregister(let id), _):
      if let departure = departures[id], departure.isForgotten { forgotten.append(departure.path) }
      depart(id)
    }
    return nil
  }

  private mutating func depart(_ id: ObjectID) {
    departures[id] = nil
    forget(id)
  }

  private mutating func refused(_ item: Item, _ error: RestorationError, _ objects: SessionObjects) -> Refusal? {
    if error.code == .shuttingDown { return .ending }
    if SessionDriver.isPassing(error) {
      telling.putOff.insert(item)
      return .kept(error)
    }
    switch item {
    case .forget(let path):
      forgotten.removeAll { $0 == path }
      return error.code == .unknownObject ? nil : .dropped("\(path)", error)
    case .register(let id):
      guard let departure = departures[id] else {
        guard error.code == .unknownParent, objects[id]?.parent == nil else { return .lost(id, error) }
        telling.orphans.insert(id)
        return nil
      }
      let hasState = states[id] != nil
      if error.code == .unknownParent, hasState, departure.tries < Self.triesMax {
        departures[id]?.tries += 1
        telling.putOff.insert(item)
        return nil
      }
      depart(id)
      // Where nothing is above, nothing is saved.
      return error.code == .unknownParent && !hasState ? nil : .dropped("\(departure.path)", error)
    case .encode(let target):
      if error.code == .unknownObject, let target { telling.names[target] = nil }
      if error.code == .unknownObject || error.code == .invalidReference, target.map({ $0 > 0 }) ?? true {
        telling.putOff.insert(item)
        return .kept(error)
      }
      states[target] = nil
      let path = target.flatMap { objects[$0]?.object.path ?? departures[$0]?.path } ?? []
      return .dropped("\(path)", error)
    case .unregister(let id):
      let path = departures[id]?.path ?? []
      depart(id)
      return error.code == .unknownObject ? nil : .dropped("\(path)", error)
    }
  }
}

extension IdentifierPath {
  /// The paths above it, from the outermost on.
  fileprivate var ancestors: [IdentifierPath] {
    (1..<max(1, components.count)).map { IdentifierPath(Array(components.prefix($0))) }
  }
}
