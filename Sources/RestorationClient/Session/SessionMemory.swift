// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// The newest states that no broker has stored, and the answers to calls before the first broker. Pure: it answers as a
/// broker without an archive. It does not know parents and paths of other processes.
struct SessionMemory {
  /// An encoded state with its references: objects may move, or go, before a broker gets it.
  struct State {
    fileprivate let call: EncodeRestorableState
    /// The object of this session of each reference; `nil` for any other target.
    fileprivate let targets: [RestorableObject?]
    /// Whether to push it. Otherwise a broker has refused it as not included (R4), and may want it later.
    fileprivate(set) var isDue: Bool

    var bytes: Int { call.state.text.count }
    var revision: Int64? { call.revision }
    var objects: [RestorableObject] { Array(Set(targets.compactMap { $0 })) }

    /// The call that stores it. A reference to an object without a name has no target.
    func encoding(as object: ObjectReference, _ name: (RestorableObject) -> ObjectReference?) -> EncodeRestorableState {
      call.with {
        $0.object = object
        $0.state = EncodedState(unchecked: text { writer, object in writer.member("$restorable", name(object)) })
      }
    }

    fileprivate var decoded: DecodeRestorableState.Reply {
      DecodeRestorableState.Reply().with {
        $0.status = .available
        $0.state = text { writer, object in
          writer.member("$restorable", object.isRegistered ? object.path : nil)
          if object.isRegistered { writer.member("object", object.handle) }
        }
        $0.elements = call.elements.map { $0.with { $0.resolved = false } }.text
      }
    }

    /// The text with other references to objects of this session; `write` writes the members of one.
    private func text(_ write: (inout JSONWriter, RestorableObject) -> Void) -> JSONText {
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

  /// Why no broker was there at the start; `nil` if one was.
  let reason: BrokerConnectionError?
  /// The newest of each object, or of a path that an object has left; the empty path is for the application's own
  /// state.
  private(set) var states: [RestorableReference: State] = [:]
  private var complaints: Set<String> = []

  init(because reason: BrokerConnectionError?) { self.reason = reason }

  mutating func isNews(_ complaint: String) -> Bool { complaints.insert(complaint).inserted }

  // MARK: States

  /// The states to be pushed, objects first, in the order of their registration.
  var due: [RestorableReference] {
    func order(_ reference: RestorableReference) -> (Int, String) {
      if case .object(let object) = reference { (object.id, "") } else { (.max, reference.path?.description ?? "") }
    }
    return states.filter { $0.value.isDue }.keys.sorted { order($0) < order($1) }
  }

  /// Keeps a state, unless there is a newer one.
  ///
  /// - Parameter parameters: of `encodeRestorableState`.
  mutating func keep(
    _ parameters: JSONText?,
    as target: RestorableReference,
    isDue: Bool,
    _ objects: SessionObjects
  ) throws(ErrorObject) {
    let call = try EncodeRestorableState(Self.read(parameters))
    guard call.revision ?? 0 >= states[target]?.revision ?? 0 else { return }
    let targets = call.state.references.map { reference -> RestorableObject? in
      guard case .object(let object)? = ObjectReference(reference.target).flatMap({ Self.find($0, objects) }) else {
        return nil
      }
      return object
    }
    states[target] = State(call: call, targets: targets, isDue: isDue)
  }

  /// The broker wants a refused state.
  mutating func want(_ target: RestorableReference) { states[target]?.isDue = true }

  /// The broker does not store this state now.
  mutating func refused(_ target: RestorableReference, _ revision: Int64?) {
    if states[target]?.revision == revision { states[target]?.isDue = false }
  }

  /// A broker has this state, or a newer one: drops it and all older ones.
  mutating func stored(_ target: RestorableReference, _ revision: Int64?) {
    if states[target]?.revision ?? 0 <= revision ?? .max { states[target] = nil }
  }

  mutating func forget(_ target: RestorableReference) { states[target] = nil }

  /// Gives a new object the state at its path.
  mutating func give(to object: RestorableObject) {
    guard let path = object.path, let state = states.removeValue(forKey: .path(path)) else { return }
    states[.object(object)] = state
  }

  /// The result of decoding a state in memory; `nil` if a broker must answer.
  func decode(_ parameters: JSONText?, _ objects: SessionObjects) throws(ErrorObject) -> JSONText? {
    let call = try DecodeRestorableState(Self.read(parameters))
    guard let target = Self.find(call.object, objects), let state = states[target], state.isDue else { return nil }
    return state.decoded.text
  }

  private static func read(_ parameters: JSONText?) -> Parameters {
    parameters?.scanned.map { .named($0) } ?? .none
  }

  private static func find(_ reference: ObjectReference, _ objects: SessionObjects) -> RestorableReference? {
    switch reference {
    case .handle(let handle): objects.object(handle: handle).map { .object($0) }
    case .path(let path): objects.object(at: path).map { .object($0) } ?? .path(path)
    }
  }

  // MARK: Calls without a broker

  func needsBroker(_ method: String) -> BrokerConnectionError {
    let message = "\(method) needs a broker: \(reason?.message ?? "there is none")"
    return BrokerConnectionError(code: reason?.code ?? .lost, socketPath: reason?.socketPath, message: message)
  }

  /// The result of a call. Throws an `ErrorObject` as a broker would, and a `BrokerConnectionError` if only a broker
  /// can answer.
  mutating func answer(
    _ call: SessionCall,
    _ parameters: JSONText?,
    _ objects: inout SessionObjects
  ) throws -> JSONText {
    switch call.effect {
    case .registers(let registration, let parent, _): return try register(registration, parent, objects).text
    case .unregisters(let object, let keepsState):
      let state = states.removeValue(forKey: .object(object))
      if keepsState, let state, let path = object.path { states[.path(path)] = state }
      return .emptyObject
    case .moves(let object, let parent):
      let own = objects[object.id]?.registration
      let place = Place(object: object, identifier: own?.restorationIdentifier, position: own?.position)
      let paths = try Self.place([place], below: parent, &objects)
      return SetRestorationParent.Reply().with { $0.path = paths[0] }.text
    case .renames(let object, let identifier, let position):
      let place = Place(object: object, identifier: identifier, position: position)
      let paths = try Self.place([place], below: objects.parent(of: object), &objects)
      return ObjectPlacement().with { ($0.path, $0.included) = (paths[0], paths[0] != nil) }.text
    case .orders(let children):
      let places = children.enumerated().map { position, child in
        if case .object(let object) = child {
          let identifier = objects[object.id]?.registration.restorationIdentifier
          return Place(object: object, identifier: identifier, position: Int64(position))
        }
        let identifier = child.path?.components.last.flatMap { RestorationIdentifier.split($0)?.identifier }
        return Place(object: nil, identifier: identifier, position: Int64(position))
      }
      let paths = try Self.place(places, below: call.objects.first?.reference, &objects)
      return SetChildren.Reply().with { $0.paths = paths }.text
    case .registersClass, .registersDataSource: return .emptyObject
    case .extendsRestoration: return ExtendStateRestoration.Reply().with { $0.pending = 1 }.text
    case .completesRestoration: return CompleteStateRestoration.Reply().text
    case .none: break
    }
    switch call.method {
    case EncodeRestorableState.method:
      try Self.check(EncodeRestorableState(Self.read(parameters)).state, call.objects.first?.path)
      try keep(parameters, as: call.target, isDue: true, objects)
      return EncodeOutcome.unsaved(sequence: 0).text
    case DecodeRestorableState.method: return try decode(parameters, objects) ?? DecodeRestorableState.Reply().text
    case InvalidateRestorableState.method: return .emptyObject
    case RestoreApplicationState.method: return RestoreResult().text
    case SaveApplicationState.method: return SaveResult().with { $0.reason = "noBroker" }.text
    default: throw needsBroker(call.method)
    }
  }

  private static func check(_ state: EncodedState, _ path: IdentifierPath?) throws(ErrorObject) {
    if let key = state.reservedKey { throw .reserved(key) }
    let limits = Limits()
    for (name, max, value) in [
      ("stateBytesMax", limits.stateBytesMax, state.text.count), ("stateDepthMax", limits.stateDepthMax, state.depth),
    ] where value > max {
      throw .limitExceeded(name, max: max, value: value, path: path)
    }
  }

  private mutating func register(
    _ registration: ObjectRegistration,
    _ parent: RestorableObject?,
    _ objects: SessionObjects
  ) throws(ErrorObject) -> RegisteredObject {
    let identifier = registration.restorationIdentifier
    if identifier == nil, registration.kind == .object {
      throw .restoration(.invalidIdentifier, "an object needs an identifier", hint: "Only views may have none.")
    }
    let above = parent?.reference ?? registration.restorationParent.flatMap { Self.find($0, objects) }
    if above == nil, let missing = registration.restorationParent {
      throw .restoration(.unknownParent, "\(missing) is not registered", hint: "Give the path of the parent.")
    }
    let path = try Self.path(of: Place(identifier: identifier, position: registration.position), below: above)
    let found = path.flatMap { objects.object(at: $0) }
    if let path, registration.fresh { forget(.path(path)) }
    let state = found.map { states[.object($0)] } ?? path.flatMap { states[.path($0)] }
    return RegisteredObject().with {
      // A broker's handles count up from 1, these down from the last.
      $0.object = found?.handle ?? (1 << 53) - ObjectHandle(objects.nextID)
      ($0.path, $0.included, $0.existing) = (path, path != nil, found != nil)
      $0.restoration = ObjectRestoration().with { $0.state = state == nil ? .none : .available }
    }
  }

  // MARK: Paths

  /// An object's place below its parent; `nil` for an object of another session.
  private struct Place {
    var object: RestorableObject?
    let identifier: String?
    let position: Int64?
  }

  private static func path(
    of place: Place,
    below parent: RestorableReference?
  ) throws(ErrorObject) -> IdentifierPath? {
    guard let identifier = place.identifier else { return nil }
    let above: IdentifierPath? = if let parent { parent.path } else { [] }
    guard RestorationIdentifier.isValid(identifier), above?.isPossible != false else {
      throw .restoration(
        .invalidIdentifier,
        "\"\(identifier)\" or an identifier above it is invalid",
        hint: "Use 1 to 255 bytes without slash, number sign and control characters."
      )
    }
    return above.map { $0 + [RestorationIdentifier.component(identifier, position: place.position)] }
  }

  /// Moves objects with all objects below them, and gives their paths.
  private static func place(
    _ places: [Place],
    below parent: RestorableReference?,
    _ objects: inout SessionObjects
  ) throws(ErrorObject) -> [IdentifierPath?] {
    var paths: [IdentifierPath?] = []
    var moves: [RestorableObject: IdentifierPath?] = [:]
    for place in places {
      let path = try Self.path(of: place, below: parent)
      paths.append(path)
      guard let object = place.object, path != object.path else { continue }
      moves[object] = .some(path)
      guard let former = object.path else { continue }
      if let path, path.isBelow(former) {
        throw .restoration(.parentCycle, "\(object) cannot be below itself", hint: "Give another parent.")
      }
      for each in objects.all {
        guard let own = each.path, own.isBelow(former) else { continue }
        moves[each] = .some(path.map { $0 + own.components.dropFirst(former.components.count) })
      }
    }
    let taken = Set(moves.values.compactMap { $0 })
    let others = objects.all.filter { moves[$0] == nil }
    if let other = others.first(where: { other in other.path.map { taken.contains($0) } ?? false }) {
      throw .restoration(.duplicatePath, "\(other) is another object", hint: "Unregister it first.", path: other.path)
    }
    for (object, path) in moves { objects.moved(object.id, to: path) }
    return paths
  }
}

extension IdentifierPath {
  fileprivate static func + (path: IdentifierPath, components: some Sequence<String>) -> IdentifierPath {
    IdentifierPath(path.components + components)
  }

  fileprivate func isBelow(_ other: IdentifierPath) -> Bool {
    components.count > other.components.count
      && IdentifierPath(Array(components.prefix(other.components.count))) == other
  }
}
