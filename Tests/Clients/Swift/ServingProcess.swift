// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient

/// The state and the log of a process that the broker calls. `ServingCommands.swift` has its commands.
actor ServingProcess {
  struct Thing {
    let restoring: ServedObject
    var object: RestorableObject?
    var state: JSONValue = [:]
    var elements: [RestorableElement] = []
    var encode: String?
    var decode: String?
  }

  let socket: String
  var session: RestorationSession?
  /// As it was opened or last resumed.
  var token = ""
  var delegate: ServedDelegate?
  var things: [String: Thing] = [:]
  /// In the order of their registration.
  var names: [String] = []
  var sources: [RestorableReference: ServedItems] = [:]
  var applicationState: JSONValue = [:]
  private(set) var decodedApplicationState: JSONValue = .null
  private(set) var restored: JSONObject = [:]
  private(set) var finishedNames: [JSONValue] = []
  var behaviours: [String: JSONValue] = [:]
  private var held: [(isReleased: Bool, continuation: AsyncStream<Void>.Continuation)] = []
  private var log: [JSONValue] = []
  private var counts: [String: Int64] = [:]
  private var waiters: [(what: String, count: Int64, continuation: CheckedContinuation<Void, Never>)] = []
  var pending: [Int64: Task<JSONValue, any Error>] = [:]
  var follower: Task<Void, Never>?

  init(socket: String) { self.socket = socket }

  // MARK: What happens

  func note(_ what: String, _ more: JSONValue? = nil) {
    log.append(.array([.string(what)] + (more.map { [$0] } ?? [])))
    counts[what, default: 0] += 1
    let met = waiters.filter { counts[$0.what, default: 0] >= $0.count }
    waiters.removeAll { counts[$0.what, default: 0] >= $0.count }
    for waiter in met { waiter.continuation.resume() }
  }

  func takeLog() -> JSONValue {
    defer { log = [] }
    return .array(log)
  }

  func awaits(_ what: String, _ count: Int64) async -> Int64 {
    if counts[what, default: 0] < count { await withCheckedContinuation { waiters.append((what, count, $0)) } }
    return counts[what, default: 0]
  }

  /// Notes a call, and behaves as configured. Returns the configured answer; `nil` if it is to succeed.
  func answer(_ method: String, _ what: String, _ path: IdentifierPath? = nil) async -> JSONValue? {
    note(what, path.map { .string($0.description) })
    guard let behaviour = behaviours[method] else { return nil }
    switch behaviour.string {
    case "crash": Output.crash()
    case "hold": await hold(isReleased: true)
    case "never": await hold(isReleased: false)
    default: return behaviour["result"]
    }
    return nil
  }

  /// Waits until it is released, or the connection is lost.
  private func hold(isReleased: Bool) async {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
    held.append((isReleased, continuation))
    for await _ in stream {}
  }

  func release() -> Int64 {
    let released = held.filter(\.isReleased)
    held.removeAll(where: \.isReleased)
    for (_, continuation) in released { continuation.finish() }
    return Int64(released.count)
  }

  // MARK: Objects

  func encode(_ name: String) async throws -> ObjectState {
    _ = await answer("encodeRestorableStateWithCoder", "encode", [name])
    guard let thing = things[name] else { throw Fault("there is no such object") }
    if let how = thing.encode { throw Fault("it cannot be encoded: \(how)") }
    return try Self.state(of: thing)
  }

  static func state(of thing: Thing) throws -> ObjectState {
    ObjectState(try RestorableState(jsonText: TestClient.text(thing.state)), elements: thing.elements)
  }

  func decoded(_ name: String, _ saved: ObjectState) async {
    _ = await answer("decodeRestorableStateWithCoder", "decode", [name])
    if things[name]?.decode == "crash" { Output.crash() }
    let state = Self.value(saved.state.jsonText)
    restored[name] = [
      "state": state, "coder": saved.origin.map { Self.value($0.jsonText) } ?? .null,
      "elements": .array(saved.elements.map(Self.value)),
      "times": .integer((restored[name]?["times"]?.integer ?? 0) + 1),
    ]
    things[name]?.state = state
    things[name]?.elements = saved.elements
  }

  func decodedApplication(_ state: RestorableState?) {
    decodedApplicationState = state.map { Self.value($0.jsonText) } ?? .null
  }

  func finished(_ name: String) {
    finishedNames.append(.string(name))
    note("finished", .string(name))
  }

  /// Registers an object that is described as for `register`.
  func register(_ wanted: JSONValue) async throws -> RestorableObject {
    guard let session else { throw Fault("there is no session") }
    let given = wanted["name"]?.string
    let parent = wanted["parent"]
    let parentObject = parent?.string.flatMap { things[$0]?.object }
    let parentPath = parent?.array?.compactMap(\.string) ?? parent?.string?.split(separator: "/").map(String.init)
    var registration = ObjectRegistration(
      wanted["identifier"]?.string,
      restorationParent: parentObject == nil ? parentPath.map { .path(IdentifierPath($0)) } : nil,
      kind: wanted["kind"]?.string.flatMap(ObjectKind.init) ?? .object,
      classes: wanted["classes"]?.array?.compactMap(\.string) ?? [],
      restorationClass: wanted["restorationClass"]?.string,
      position: wanted["position"]?.integer
    )
    registration.awaitParent = wanted["await"]?.integer.map { .milliseconds($0) }
    registration.takeOver = wanted["takeOver"]?.bool ?? false
    registration.confidential = wanted["confidential"]?.bool ?? false
    registration.keepsForever = wanted["keep"]?.string == "forever"
    let path = (parentObject?.path?.components ?? parentPath ?? []) + [Self.component(registration)]
    let name = given ?? path.joined(separator: "/")
    // It may be called as soon as it is registered.
    things[name] = Thing(restoring: ServedObject(name, of: self))
    try change(name, wanted)
    guard let restoring = things[name]?.restoring else { throw Fault("it is gone") }
    let object = try await session.register(registration, below: parentObject, restoring: restoring)
    things[name]?.object = object
    if !names.contains(name) { names.append(name) }
    return object
  }

  private static func component(_ registration: ObjectRegistration) -> String {
    let identifier = registration.restorationIdentifier ?? ""
    return registration.position.map { "\(identifier)#\($0)" } ?? identifier
  }

  func change(_ name: String, _ told: JSONValue) throws {
    if let state = told["state"] { things[name]?.state = state }
    if let elements = told["elements"]?.array { things[name]?.elements = try elements.map(Self.element) }
    if let encode = told["encode"] { things[name]?.encode = encode.string }
    if let decode = told["decode"] { things[name]?.decode = decode.string }
  }

  /// Makes the object as it was, unless it exists.
  func make(_ request: RestorationRequest) async throws -> RestorableObject? {
    if let given = await answer("objectWithRestorationIdentifierPath", "create", request.path), given.isNull {
      return nil
    }
    if let object = things[request.path.description]?.object { return object }
    let registration = request.registration
    return try await register([
      "identifier": registration.restorationIdentifier.map { .string($0) } ?? .null,
      "parent": request.path.components.count > 1
        ? .array(request.path.components.dropLast().map { .string($0) }) : .null,
      "kind": .string(request.kind.rawValue), "classes": .array(registration.classes.map { .string($0) }),
      "restorationClass": request.restorationClass.map { .string($0) } ?? .null,
      "position": registration.position.map { .integer($0) } ?? .null,
    ])
  }

  // MARK: Values

  struct Fault: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
  }

  static func value(_ text: String) -> JSONValue { (try? JSONCodec.parse(Array(text.utf8))) ?? .null }

  static func value(_ element: RestorableElement) -> JSONValue {
    var value: JSONObject = [
      "role": .string(element.role.rawValue), "indexPath": .array(element.indexPath.map { .integer(Int64($0)) }),
    ]
    if let identifier = element.identifier { value["identifier"] = .string(identifier) }
    if let resolved = element.resolved { value["resolved"] = .bool(resolved) }
    return .object(value)
  }

  static func element(_ value: JSONValue) throws -> RestorableElement {
    guard let role = value["role"]?.string.flatMap(RestorableElement.Role.init), let path = value["indexPath"]?.array
    else { throw Fault("no element: \(value)") }
    let indices = path.compactMap { $0.integer.map { Int($0) } }
    return RestorableElement(role, at: indices, identifier: value["identifier"]?.string)
  }

  static func value(_ path: IdentifierPath?) -> JSONValue { value(path?.components) }

  static func value(_ components: [String]?) -> JSONValue { components.map { .array($0.map { .string($0) }) } ?? .null }
}
