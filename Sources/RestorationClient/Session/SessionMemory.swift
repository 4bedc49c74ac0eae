// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// Stands in for the broker from the start of a session until one comes, and decides then what that one is told.
///
/// Pure: it answers as a broker without an archive would. Whether a parent exists, and whether another process has a
/// path, it does not know.
struct SessionMemory {
  typealias ObjectID = ObjectPlan.ObjectID

  /// A state that was encoded, with what it refers to: objects may move, or go, before it is told.
  struct State {
    fileprivate var call: EncodeRestorableState
    /// The object of this session that each reference leads to; `nil` if it leads elsewhere.
    fileprivate let targets: [ObjectID?]
    /// Whether a broker has it.
    var isStored = false

    var objects: [ObjectID] { Array(Set(targets.compactMap { $0 })).sorted() }

    var bytes: Int { call.state.text.count }
    var revision: Int64? { call.revision }

    /// The call that stores it. A reference to an object without a name leads to nothing.
    func encoding(as object: ObjectReference, _ name: (ObjectID) -> ObjectReference?) -> EncodeRestorableState {
      call.with {
        $0.object = object
        $0.state = EncodedState(unchecked: text { writer, id in writer.member("$restorable", name(id)) })
      }
    }

    /// The text with other references to objects of this session; `write` writes the members of one.
    fileprivate func text(_ write: (inout JSONWriter, ObjectID) -> Void) -> JSONText {
      let text = call.state.text.bytes
      var bytes: [UInt8] = []
      var end = text.startIndex
      for (reference, target) in zip(call.state.references, targets) {
        guard let target else { continue }
        bytes += text[end..<text.startIndex + reference.objectRange.lowerBound]
        JSONWriter.append(to: &bytes) { writer in writer.object { write(&$0, target) } }
        end = text.startIndex + reference.objectRange.upperBound
      }
      return JSONText(validated: bytes + text[end...])
    }
  }

  /// A path that an object has left: it was unregistered or moved.
  struct Departure {
    let path: IdentifierPath
    let registration: ObjectRegistration
    /// If false, what is saved there is removed before another object is registered there.
    var keepsState: Bool
    /// Whether the path is forgotten then.
    var isForgotten = false
    /// How often the broker has not known what is above it.
    var tries = 0
  }

  /// How many paths that were left, and how many that were forgotten, are remembered: the newest.
  private static let pathsMax = 10_000

  /// Why there is no broker.
  let reason: BrokerConnectionError
  /// The newest of each object, and as `nil` the application's own; what a departure has kept is under its number.
  var states: [ObjectID?: State] = [:]
  /// At most one of each path, by numbers that count down from -1, in the order of the program.
  var departures: [ObjectID: Departure] = [:]
  /// Paths that were forgotten, each once.
  var forgotten: [IdentifierPath] = []
  private var lastDeparture = 0
  var telling = Telling()

  init(because reason: BrokerConnectionError) { self.reason = reason }

  /// Of the states, in order.
  var targets: [ObjectID?] { states.keys.sorted { ($0 ?? .max) < ($1 ?? .max) } }

  /// What an object is named by meanwhile: handles of brokers count up from 1, these down from the last.
  private static func handle(of id: ObjectID) -> ObjectHandle { (1 << 53) - ObjectHandle(id) }

  // MARK: Calls

  /// The result of a call. Throws an `ErrorObject` as a broker would refuse it, and a `BrokerConnectionError` if only a
  /// broker can answer it.
  mutating func answer(
    _ method: String,
    _ parameters: JSONText?,
    _ objects: inout SessionObjects
  ) throws -> JSONText {
    let parameters = Self.read(parameters)
    switch method {
    case RegisterObjectForStateRestoration.method:
      return try register(RegisterObjectForStateRestoration(parameters), &objects).text
    case UnregisterObject.method:
      try unregister(UnregisterObject(parameters), objects)
      return .emptyObject
    case SetRestorationParent.method: return try move(SetRestorationParent(parameters), &objects).text
    case SetRestorationIdentifier.method: return try rename(SetRestorationIdentifier(parameters), &objects).text
    case SetChildren.method: return try order(SetChildren(parameters), &objects).text
    case EncodeRestorableState.method: return try encode(EncodeRestorableState(parameters), &objects).text
    case DecodeRestorableState.method:
      return (try decode(DecodeRestorableState(parameters), objects) ?? DecodeRestorableState.Reply()).text
    case InvalidateRestorableState.method, RegisterRestorationClass.method, RegisterDataSource.method:
      return .emptyObject
    case CompleteStateRestoration.method: return CompleteStateRestoration.Reply().text
    case ExtendStateRestoration.method: return ExtendStateRestoration.Reply().with { $0.pending = 1 }.text
    case RestoreApplicationState.method: return RestoreResult().text
    case SaveApplicationState.method: return SaveResult().with { $0.reason = "noBroker" }.text
    default: throw needsBroker(method)
    }
  }

  /// The error of a call that only a broker can answer.
  func needsBroker(_ method: String) -> BrokerConnectionError {
    let message = "\(method) needs a broker: \(reason.message)"
    return BrokerConnectionError(code: reason.code, socketPath: reason.socketPath, message: message)
  }

  /// The result of decoding what the broker has not learnt yet; `nil` if it has learnt everything of that object.
  func answerDecoding(_ parameters: JSONText?, _ objects: SessionObjects) throws -> JSONText? {
    try decode(DecodeRestorableState(Self.read(parameters)), objects)?.text
  }

  private static func read(_ parameters: JSONText?) -> Parameters {
    parameters?.scanned.map { .named($0) } ?? .none
  }

  // MARK: Objects

  private func find(_ reference: ObjectReference, _ objects: SessionObjects) -> RestorableObject? {
    switch reference {
    case .handle(let handle): objects.object(handle: handle)
    case .path(let path): objects.object(at: path)
    }
  }

  private func path(
    below parent: ObjectReference?,
    _ identifier: String?,
    _ position: Int64?,
    _ objects: SessionObjects
  ) throws(ErrorObject) -> IdentifierPath? {
    var above: IdentifierPath? = []
    switch parent {
    case nil: break
    case .path(let path): above = path
    case .handle(let handle):
      guard let object = objects.object(handle: handle) else { throw Self.unknown("the object \(handle)") }
      above = object.path
    }
    guard let identifier else { return nil }
    guard RestorationIdentifier.isValid(identifier), above?.isPossible != false else {
      throw .restoration(
        .invalidIdentifier,
        "\"\(identifier)\" or an identifier above it is invalid",
        hint: "Use 1 to 255 bytes without slash, number sign and control characters."
      )
    }
    return above.map { $0 + [RestorationIdentifier.component(identifier, position: position)] }
  }

  private static func unknown(_ name: String) -> ErrorObject {
    .restoration(.unknownObject, "\(name) is not registered", hint: "Register it again.")
  }

  private mutating func register(
    _ call: RegisterObjectForStateRestoration,
    _ objects: inout SessionObjects
  ) throws(ErrorObject) -> RegisteredObject {
    if call.restorationIdentifier == nil, call.kind == .object {
      throw .restoration(.invalidIdentifier, "an object needs an identifier", hint: "Only views may have none.")
    }
    let path = try path(below: call.restorationParent, call.restorationIdentifier, call.position, objects)
    let found = path.flatMap { objects.object(at: $0) }
    let id = found?.id ?? objects.nextID
    if let path, found == nil {
      // What was kept there is given to the next object.
      if call.isFresh { remove(at: path) } else { states[id] = takeKept(at: path, &objects) }
    }
    telling.again(id)
    return RegisteredObject().with {
      $0.object = found?.handle ?? Self.handle(of: id)
      ($0.path, $0.included, $0.existing) = (path, path != nil, found != nil)
      $0.restoration = ObjectRestoration().with { $0.state = states[id] == nil ? .none : .available }
    }
  }

  private mutating func unregister(_ call: UnregisterObject, _ objects: SessionObjects) throws(ErrorObject) {
    switch (call.object, find(call.object, objects)) {
    case (.handle, let object?):
      let state = states.removeValue(forKey: object.id)
      leave(object, objects, call.keepState, state)
      telling.again(object.id)
    case (.path(let path), nil):
      if let id = remove(at: path) {
        departures[id]?.isForgotten = true
      } else if !forgotten.contains(path) {
        forgotten.append(path)
        if forgotten.count > Self.pathsMax { forgotten.removeFirst() }
      }
    case (.path(let path), _?):
      throw .restoration(.notOwner, "\(path) is registered", hint: "Unregister the object.", path: path)
    case (.handle, nil): throw Self.unknown("\(call.object)")
    }
  }

  private mutating func leave(
    _ object: RestorableObject,
    _ objects: SessionObjects,
    _ keepsState: Bool = false,
    _ state: State? = nil
  ) {
    guard let path = object.path, let registration = objects[object.id]?.registration else { return }
    var departure = Departure(path: path, registration: registration, keepsState: keepsState)
    if let former = departed(from: path) {
      // What an earlier one has left there stays as it is.
      if keepsState, state == nil { return }
      departure.isForgotten = departures[former]?.isForgotten ?? false && !keepsState
      drop(former)
    }
    lastDeparture -= 1
    departures[lastDeparture] = departure
    if keepsState { states[lastDeparture] = state }
    guard departures.count > Self.pathsMax else { return }
    // What is kept is not forgotten, and what has others below it is needed to register them.
    let paths = objects.all.compactMap(\.path)
    let oldest = departures.sorted { $0.key > $1.key }.first { id, departure in
      states[id] == nil && !paths.contains { $0.isBelow(departure.path) }
    }
    if let oldest { drop(oldest.key) }
  }

  private func departed(from path: IdentifierPath) -> ObjectID? {
    departures.first { $0.value.path == path }?.key
  }

  @discardableResult
  private mutating func drop(_ departure: ObjectID) -> State? {
    departures[departure] = nil
    telling.again(departure)
    return states.removeValue(forKey: departure)
  }

  /// The state that was kept at a path, as one of the object that takes the path.
  private mutating func takeKept(at path: IdentifierPath, _ objects: inout SessionObjects) -> State? {
    guard let id = departed(from: path), departures[id]?.keepsState == true, var state = drop(id) else { return nil }
    state.isStored = false
    state.call.revision = objects.nextRevision()
    return state
  }

  /// What an object has left at a path is not kept: it is to be removed. `nil` if none has left it.
  @discardableResult
  private mutating func remove(at path: IdentifierPath) -> ObjectID? {
    guard let id = departed(from: path) else { return nil }
    departures[id]?.keepsState = false
    states[id] = nil
    telling.again(id)
    return id
  }

  /// It is no longer the session's, or a broker has a newer state.
  mutating func forget(_ target: ObjectID?) {
    states[target] = nil
    if let target { telling.again(target) }
  }

  /// Moves objects with all that is below them. What a broker has saved where they were is left behind.
  private mutating func place(
    _ places: [(object: RestorableObject, path: IdentifierPath?)],
    takeOver: Bool = false,
    _ objects: inout SessionObjects
  ) throws(ErrorObject) {
    var moves: [(object: RestorableObject, path: IdentifierPath?)] = []
    for (object, path) in places where path != object.path {
      guard let path, let former = object.path else {
        moves.append((object, path))
        continue
      }
      guard !path.isBelow(former) else {
        throw .restoration(.parentCycle, "\(former) cannot be below itself", hint: "Give another parent.")
      }
      for each in objects.all {
        guard let own = each.path, own == former || own.isBelow(former) else { continue }
        moves.append((each, path + own.components.dropFirst(former.components.count)))
      }
    }
    let (moved, taken) = (Set(moves.map(\.object)), Set(moves.compactMap(\.path)))
    let others = objects.all.filter { !moved.contains($0) }.compactMap(\.path)
    let kept = takeOver ? [] : departures.filter { states[$0.key] != nil }.map(\.value.path)
    if let path = (others + kept).first(where: { taken.contains($0) }) {
      throw .restoration(.duplicatePath, "\(path) is another object", hint: "Unregister it first.", path: path)
    }
    for (object, _) in moves.reversed() { leave(object, objects) }
    for (object, path) in moves {
      if let path { remove(at: path) }
      objects.moved(object.id, to: path)
      objects.beganAlone(object.id)
      states[object.id]?.isStored = false
      // At that path the broker may have newer ones of another object (R15).
      states[object.id]?.call.revision = objects.nextRevision()
      telling.again(object.id)
    }
  }

  private mutating func move(
    _ call: SetRestorationParent,
    _ objects: inout SessionObjects
  ) throws(ErrorObject) -> SetRestorationParent.Reply {
    guard let object = find(call.object, objects), let own = objects[object.id]?.registration else {
      throw Self.unknown("\(call.object)")
    }
    let path = try path(below: call.restorationParent, own.restorationIdentifier, own.position, objects)
    guard !(call.restorationParent.flatMap { find($0, objects) }.map { objects.isBelow($0.id, object.id) } ?? false)
    else { throw .restoration(.parentCycle, "\(object) cannot be below itself", hint: "Give another parent.") }
    try place([(object, path)], takeOver: call.takeOver, &objects)
    return SetRestorationParent.Reply().with { $0.path = path }
  }

  private mutating func rename(
    _ call: SetRestorationIdentifier,
    _ objects: inout SessionObjects
  ) throws(ErrorObject) -> ObjectPlacement {
    guard let object = find(call.object, objects), let own = objects[object.id] else {
      throw Self.unknown("\(call.object)")
    }
    let parent = own.parent.flatMap { objects[$0] }.map { ObjectReference.handle($0.object.handle) }
    let above = parent ?? own.registration.restorationParent
    let path = try path(below: above, call.restorationIdentifier, call.position, objects)
    try place([(object, path)], takeOver: call.takeOver, &objects)
    return ObjectPlacement().with { ($0.path, $0.included) = (path, path != nil) }
  }

  private mutating func order(
    _ call: SetChildren,
    _ objects: inout SessionObjects
  ) throws(ErrorObject) -> SetChildren.Reply {
    var places: [(object: RestorableObject, path: IdentifierPath?)] = []
    var paths: [IdentifierPath?] = []
    for (position, child) in call.children.enumerated() {
      let object = find(child, objects)
      var identifier = object.flatMap { objects[$0.id] }?.registration.restorationIdentifier
      if object == nil, case .path(let path) = child, let last = path.components.last {
        identifier = RestorationIdentifier.split(last)?.identifier
      }
      let path = try path(below: call.object, identifier, Int64(position), objects)
      paths.append(path)
      if let object { places.append((object, path)) }
    }
    try place(places, &objects)
    return SetChildren.Reply().with { $0.paths = paths }
  }

  // MARK: States

  private mutating func encode(
    _ call: EncodeRestorableState,
    _ objects: inout SessionObjects
  ) throws -> EncodeOutcome {
    let object = find(call.object, objects)
    guard object != nil || call.object == .path([]) else { throw Self.unknown("\(call.object)") }
    if let key = call.state.reservedKey { throw ErrorObject.reserved(key) }
    let limits = Limits()
    for (name, max, value) in [
      ("stateBytesMax", limits.stateBytesMax, call.state.text.count),
      ("stateDepthMax", limits.stateDepthMax, call.state.depth),
    ] where value > max {
      throw ErrorObject.limitExceeded(name, max: max, value: value, path: object?.path)
    }
    let targets = call.state.references.map { ObjectReference($0.target).flatMap { find($0, objects) }?.id }
    states[object?.id] = State(call: call, targets: targets)
    telling.again(encoding: object?.id)
    // A broker that does not resume the session is to take it for no early one (R19).
    if let object { objects.beganAlone(object.id) }
    return .unsaved(sequence: 0)
  }

  /// The broker was given a newer state, and may not store it: what is in memory is not to follow it, and in another
  /// session its number would not tell (R15).
  ///
  /// - Parameter parameters: of `encodeRestorableState`.
  mutating func renew(_ parameters: JSONText, _ objects: inout SessionObjects) {
    guard let call = try? EncodeRestorableState(Self.read(parameters)), states[find(call.object, objects)?.id] != nil
    else { return }
    _ = try? encode(call, &objects)
  }

  private func decode(
    _ call: DecodeRestorableState,
    _ objects: SessionObjects
  ) throws(ErrorObject) -> DecodeRestorableState.Reply? {
    let object = find(call.object, objects)
    guard object != nil || call.object == .path([]), let state = states[object?.id] else { return nil }
    return DecodeRestorableState.Reply().with {
      $0.status = .available
      $0.state = state.text { writer, id in
        let target = objects[id]?.object
        writer.member("$restorable", target?.path)
        if let target { writer.member("object", target.handle) }
      }
      $0.elements = state.call.elements.map { $0.with { $0.resolved = false } }.text
    }
  }
}

extension IdentifierPath {
  fileprivate static func + (path: IdentifierPath, components: some Sequence<String>) -> IdentifierPath {
    IdentifierPath(path.components + components)
  }

  func isBelow(_ other: IdentifierPath) -> Bool {
    components.count > other.components.count
      && IdentifierPath(Array(components.prefix(other.components.count))) == other
  }
}
