// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import TestSupport

/// A session with a delegate, objects, classes and data sources, at a broker under the test's control.
struct ServingScene {
  let session: RestorationSession
  let broker: FakeBroker
  let script: SessionScript
  let model: ServingModel
  let delegate: ServingDelegate

  /// Makes calls on the newest connection from now on.
  func follow() async throws { await model.follow(try await broker.events.opened()) }

  /// Calls the session as a broker does.
  func call(_ method: String, _ parameters: String) async throws {
    let text = JSONText(validated: Array(parameters.utf8))
    try await model.connection?.onLoop { _ = $0.call(method: method, parameters: text) }
  }

  func notify(_ method: String, _ parameters: String) async throws {
    let text = JSONText(validated: Array(parameters.utf8))
    try await model.connection?.onLoop { $0.notify(method: method, parameters: text) }
  }

  func register(_ name: String) async throws -> RestorableObject {
    try await session.register(ObjectRegistration(name), restoring: await model.object(name))
  }

  func registerClass(_ name: String, shared: Bool = false) async throws {
    try await session.registerRestorationClass(name, shared: shared) { [model] request in
      let name = request.path.description
      await model.note("create \(name) \(request.state?.jsonText ?? "-")")
      try await model.check()
      if name == "Later" { throw RestorationRequest.Instead.awaited }
      if name == "Theirs" { throw RestorationRequest.Instead.pass }
      if name == "Never" { throw RestorationRequest.Instead.forget }
      return name == "No" ? nil : try await request.register(await model.object(name))
    }
  }

  func registerDataSource(_ view: IdentifierPath) async throws {
    try await session.registerDataSource(model, for: .path(view))
  }
}

/// The objects of the scene, and their log.
actor ServingModel: ModelAssociating {
  private(set) var connection: Connection?
  private(set) var log: [String] = []
  private(set) var elements: [RestorableElement] = []
  private var objects: [String: ServingObject] = [:]
  private var states: [String: ObjectState?] = [:]
  private var failure: String?
  private var isBlocked = false
  private var blocked: [CheckedContinuation<Void, Never>] = []
  private var waiter: (count: Int, continuation: CheckedContinuation<Void, Never>)?

  func follow(_ connection: Connection) { self.connection = connection }

  func note(_ event: String) {
    log.append(event)
    guard let waiter, log.count >= waiter.count else { return }
    self.waiter = nil
    waiter.continuation.resume()
  }

  /// Waits until `count` events have happened.
  func reached(_ count: Int) async { if log.count < count { await withCheckedContinuation { waiter = (count, $0) } } }

  func object(_ name: String) -> ServingObject {
    let object = ServingObject(name, self)
    objects[name] = object
    return object
  }

  func drop(_ name: String) { objects[name] = nil }

  func set(_ name: String, _ state: ObjectState?) { states[name] = .some(state) }

  /// Calls fail with this message.
  func fail(_ failure: String) { self.failure = failure }

  func check() throws { if let failure { throw TestFailure(failure) } }

  /// Blocks answers to encode calls.
  func block() { isBlocked = true }

  func unblock() {
    isBlocked = false
    for continuation in blocked { continuation.resume() }
    blocked = []
  }

  func encode(_ name: String) async throws -> ObjectState {
    note("encode \(name)")
    try check()
    if isBlocked { await withCheckedContinuation { blocked.append($0) } }
    switch states[name] {
    case .some(nil): throw TestFailure("nothing to encode")
    case .some(let state?): return state
    case nil: return ObjectState(try RestorableState(jsonText: #"{"name":"\#(name)"}"#))
    }
  }

  func decoded(_ name: String, _ saved: ObjectState) {
    elements += saved.elements
    note("decode \(name) \(saved.state.jsonText)")
  }

  func modelIdentifierForElement(
    at indexPath: [Int],
    role: RestorableElement.Role,
    in view: IdentifierPath
  ) async -> String? {
    indexPath.map(String.init).joined(separator: ".")
  }

  func indexPathForElement(
    withModelIdentifier identifier: String,
    role: RestorableElement.Role,
    in view: IdentifierPath
  ) async -> [Int]? {
    identifier == "gone" ? nil : identifier.split(separator: ".").compactMap { Int($0) }
  }
}

final class ServingObject: StateRestoring {
  private let name: String
  private let model: ServingModel

  init(_ name: String, _ model: ServingModel) {
    self.name = name
    self.model = model
  }

  func encodeRestorableState() async throws -> ObjectState { try await model.encode(name) }
  func decodeRestorableState(_ saved: ObjectState) async { await model.decoded(name, saved) }
  func applicationFinishedRestoringState() async { await model.note("finished \(name)") }
}

final class ServingDelegate: RestorationDelegate {
  private let model: ServingModel

  init(_ model: ServingModel) { self.model = model }

  func shouldSaveApplicationState(_ saved: SavedApplicationState) async -> Bool {
    await model.note("shouldSave \(saved.state?.jsonText ?? "-")")
    return true
  }

  func shouldRestoreApplicationState(_ saved: SavedApplicationState) async -> Bool {
    await model.note("shouldRestore \(saved.state?.jsonText ?? "-")")
    return false
  }

  func willEncodeRestorableState() async throws -> RestorableState? {
    await model.note("willEncode")
    return try RestorableState(jsonText: #"{"own": true}"#)
  }

  func didDecodeRestorableState(_ saved: SavedApplicationState) async {
    await model.note("didDecode \(saved.state?.jsonText ?? "-")")
  }

  func viewController(for request: RestorationRequest) async throws -> RestorableObject? {
    await model.note("create \(request.path.description) \(request.state?.jsonText ?? "-")")
    return nil
  }
}
