// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// Stands in for the broker from the start of a session until one comes, and knows then what it has missed.
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

    var objects: [ObjectID] { Array(Set(targets.compactMap { $0 })).sorted() }

    var bytes: Int { call.state.text.count }

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

  /// A path that an object has left, or that was forgotten.
  struct Removal {
    fileprivate let number: Int
    fileprivate let path: IdentifierPath
    /// Of the object that had the path; `nil` if it was forgotten.
    fileprivate let registration: ObjectRegistration?
    /// What stays there; `nil` if nothing does.
    fileprivate let kept: State?

    /// The messages that remove it, as its owner did: then what others have below it stays.
    func messages(_ objects: SessionObjects) -> [(method: String, parameters: JSONText)] {
      var messages: [(String, JSONText)] = []
      if var registration {
        registration.restorationParent = path.components.count > 1 ? .path(path.parent) : nil
        (registration.awaitParent, registration.takeOver, registration.fresh) = (nil, false, kept != nil)
        messages.append(Self.message(registration.wire))
      }
      if let kept {
        messages.append(Self.message(kept.encoding(as: .path(path)) { objects[$0]?.object.path.map { .path($0) } }))
      }
      messages.append(Self.message(UnregisterObject().with { ($0.object, $0.keepState) = (.path(path), kept != nil) }))
      return messages
    }

    private static func message<Method: RestorationMethod>(_ call: Method) -> (String, JSONText) {
      (Method.method, BrokerConnection.parameters(of: call))
    }
  }

  /// Why there is no broker.
  let reason: BrokerConnectionError
  /// The newest of each object, and as `nil` the application's own.
  private(set) var states: [ObjectID?: State] = [:]
  /// In the order of the program.
  private(set) var removals: [Removal] = []
  private var lastNumber = 0

  init(because reason: BrokerConnectionError) { self.reason = reason }

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
      return try register(RegisterObjectForStateRestoration(parameters), objects).text
    case UnregisterObject.method:
      try unregister(UnregisterObject(parameters), objects)
      return .emptyObject
    case SetRestorationParent.method: return try move(SetRestorationParent(parameters), &objects).text
    case SetRestorationIdentifier.method: return try rename(SetRestorationIdentifier(parameters), &objects).text
    case SetChildren.method: return try order(SetChildren(parameters), &objects).text
    case EncodeRestorableState.method: return try encode(EncodeRestorableState(parameters), objects).text
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

  // MARK: Telling

  /// A broker has stored a newer state, or it is no longer wanted.
  mutating func forget(_ target: ObjectID?) { states[target] = nil }

  /// A broker has removed it.
  mutating func removed(_ removal: Removal) { removals.removeAll { $0.number == removal.number } }

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

  private func register(
    _ call: RegisterObjectForStateRestoration,
    _ objects: SessionObjects
  ) throws(ErrorObject) -> RegisteredObject {
    if call.restorationIdentifier == nil, call.kind == .object {
      throw .restoration(.invalidIdentifier, "an object needs an identifier", hint: "Only views may have none.")
    }
    let path = try path(below: call.restorationParent, call.restorationIdentifier, call.position, objects)
    let found = path.flatMap { objects.object(at: $0) }
    let hasState = found.map { states[$0.id] != nil } ?? false
    return RegisteredObject().with {
      $0.object = found?.handle ?? Self.handle(of: objects.nextID)
      ($0.path, $0.included, $0.existing) = (path, path != nil, found != nil)
      $0.restoration = ObjectRestoration().with { $0.state = hasState ? .available : .none }
    }
  }

  private mutating func unregister(_ call: UnregisterObject, _ objects: SessionObjects) throws(ErrorObject) {
    if let object = find(call.object, objects) {
      let state = states.removeValue(forKey: object.id)
      // What is kept and was not pushed is what a former run has saved.
      if !call.keepState || state != nil { leave(object, objects, keeping: call.keepState ? state : nil) }
    } else if case .path(let path) = call.object {
      remove(path, nil, keeping: nil)
    }
  }

  private mutating func leave(_ object: RestorableObject, _ objects: SessionObjects, keeping state: State? = nil) {
    if let path = object.path { remove(path, objects[object.id]?.registration, keeping: state) }
  }

  private mutating func remove(_ path: IdentifierPath, _ registration: ObjectRegistration?, keeping state: State?) {
    lastNumber += 1
    removals.removeAll { $0.path == path }
    removals.append(Removal(number: lastNumber, path: path, registration: registration, kept: state))
  }

  /// Moves objects with all that is below them. What a broker has saved where they were is left behind.
  private mutating func place(
    _ places: [(object: RestorableObject, path: IdentifierPath?)],
    _ objects: inout SessionObjects
  ) throws(ErrorObject) {
    var moves: [(object: RestorableObject, path: IdentifierPath)] = []
    for (object, path) in places {
      guard let path, let former = object.path, path != former else { continue }
      guard !path.isBelow(former) else {
        throw .restoration(.parentCycle, "\(former) cannot be below itself", hint: "Give another parent.")
      }
      for each in objects.all {
        guard let own = each.path, own == former || own.isBelow(former) else { continue }
        moves.append((each, path + own.components.dropFirst(former.components.count)))
      }
    }
    let (moved, taken) = (Set(moves.map(\.object)), Set(moves.map(\.path)))
    for other in objects.all where !moved.contains(other) {
      guard let path = other.path, taken.contains(path) else { continue }
      throw .restoration(.duplicatePath, "\(path) is another object", hint: "Unregister it first.", path: path)
    }
    for (object, _) in moves.reversed() { leave(object, objects) }
    for (object, path) in moves { objects.moved(object.id, to: path) }
  }

  private mutating func move(
    _ call: SetRestorationParent,
    _ objects: inout SessionObjects
  ) throws(ErrorObject) -> SetRestorationParent.Reply {
    guard let object = find(call.object, objects), let own = objects[object.id]?.registration else {
      throw Self.unknown("\(call.object)")
    }
    let path = try path(below: call.restorationParent, own.restorationIdentifier, own.position, objects)
    try place([(object, path)], &objects)
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
    try place([(object, path)], &objects)
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

  private mutating func encode(_ call: EncodeRestorableState, _ objects: SessionObjects) throws -> EncodeOutcome {
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
    return .kept(sequence: 0)
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

  fileprivate var parent: IdentifierPath { IdentifierPath(components.dropLast()) }

  fileprivate func isBelow(_ other: IdentifierPath) -> Bool {
    components.count > other.components.count
      && IdentifierPath(Array(components.prefix(other.components.count))) == other
  }
}
