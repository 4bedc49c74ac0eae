// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// Answers the broker by the delegate, objects, restoration classes and data sources.
extension SessionDriver {
  struct DataSource {
    let view: RestorableReference
    weak var source: (any ModelAssociating)?
  }

  func answer(_ request: Request) async -> Outcome {
    guard case .named(let parameters) = request.parameters else {
      return .error(.invalidParams(hint: "Give the parameters by name."))
    }
    do {
      switch ServedMethod(rawValue: request.method) {
      case .shouldSaveApplicationState:
        return try await answer(parameters) { (call: ShouldSaveApplicationState) in
          let saved = try await saved(call.application)
          return await delegate?.shouldSaveApplicationState(saved) ?? true
        }
      case .shouldRestoreApplicationState:
        return try await answer(parameters) { (call: ShouldRestoreApplicationState) in
          let saved = try await saved(call.application)
          return await delegate?.shouldRestoreApplicationState(saved) ?? true
        }
      case .willEncodeRestorableState:
        return try await answer(parameters) { (_: WillEncodeRestorableState) in
          let state = try await delegate?.willEncodeRestorableState()
          let encoded = try state.map { try EncodedState($0, within: limits) }
          if let state { renew(.encoding(state, as: .path([])), objects.nextRevision()) }
          return WillEncodeRestorableState.Answer(state: encoded)
        }
      case .didDecodeRestorableState:
        return try await answer(parameters) { (call: DidDecodeRestorableState) in
          await delegate?.didDecodeRestorableState(try await saved(call.application))
          return Acknowledgement()
        }
      case .encodeRestorableStateWithCoder: return try await answer(parameters, by: encode)
      case .decodeRestorableStateWithCoder: return try await answer(parameters, by: decode)
      case .objectWithRestorationIdentifierPath: return try await answer(parameters, by: makeObject)
      case .viewControllerWithRestorationIdentifierPath: return try await answer(parameters, by: makeViewController)
      case .modelIdentifierForElementAtIndexPath:
        return try await answer(parameters) { (call: ModelIdentifierForElementAtIndexPath) in
          try await dataSource(of: call.view)
            .modelIdentifierForElement(at: call.indexPath, role: call.role, in: call.view)
        }
      case .indexPathForElementWithModelIdentifier:
        return try await answer(parameters) { (call: IndexPathForElementWithModelIdentifier) in
          try await dataSource(of: call.view)
            .indexPathForElement(withModelIdentifier: call.identifier, role: call.role, in: call.view)
        }
      case .applicationFinishedRestoringState, .applicationStateSaved, .registrationReplaced, .pathChanged,
        .headReplaced, .stateWanted, .encodeFailed, .archiveLost, .progress, .event, nil:
        return .error(.methodNotFound(request.method, hint: "Call what the client lists in serves."))
      }
    } catch {
      return .error(ErrorObject(thrown: error))
    }
  }

  private func answer<Call: RestorationCall>(
    _ parameters: JSONSlice,
    by answer: (Call) async throws -> Call.Answer
  ) async throws -> Outcome {
    guard let call = try? Call(wire: parameters) else {
      throw ErrorObject.invalidParams(hint: "Give the parameters in the form of Protocol/calls.md.")
    }
    return .result(try await answer(call).text)
  }

  // MARK: Objects

  private func encode(_ call: EncodeRestorableStateWithCoder) async throws -> EncodeRestorableStateWithCoder.Answer {
    await unregister(call.objects.compactMap { objects.object(handle: $0.object) }.filter { objects.isReleased($0.id) })
    var batch = EncodedBatch(limits: limits)
    for entry in call.objects {
      if let bound = objects.object(handle: entry.object).flatMap({ bound[$0.id] }) {
        // Without a round the broker has no state of it, with or without writes.
        if call.round == 0 { bound.properties.mark() }
        await flush(bound.object)
        batch.keep(entry.object)
      } else if let object = objects.record(handle: entry.object), object.isPushed,
        call.round > 0 || pushWanted(object.object)
      {
        batch.keep(entry.object)
      } else if batch.isFull {
        batch.putOff(entry.object)
      } else if let object = objects.object(handle: entry.object), let restoring = object.restoring {
        do {
          let state = try await restoring.encodeRestorableState()
          // Later pushes are newer (R15).
          let revision = objects.nextRevision()
          batch.add(entry.object, state, revision: revision)
          renew(.encoding(state.state, as: object.reference, state.elements), revision)
        } catch {
          batch.fail(entry.object, error)
        }
      } else {
        batch.fail(entry.object, UnservedObject(path: entry.path))
      }
    }
    return EncodeRestorableStateWithCoder.Answer().with { $0.states = batch.states }
  }

  private func decode(_ call: DecodeRestorableStateWithCoder) async throws -> Acknowledgement {
    var failure: (any Error)?
    for entry in call.objects {
      guard let object = objects.object(handle: entry.object), let restoring = object.restoring else { continue }
      do {
        guard let state = try await state(of: entry, object) else { continue }
        objects.decoded(object.id)
        await restoring.decodeRestorableState(state)
      } catch {
        // A failed fetch does not affect other states, unless the call was cancelled.
        if Task.isCancelled { throw error }
        failure = failure ?? error
      }
    }
    if let failure { throw failure }
    return Acknowledgement()
  }

  /// The delivered state, or otherwise a fetched one.
  private func state(
    of entry: DecodeRestorableStateWithCoder.Object,
    _ object: RestorableObject
  ) async throws -> ObjectState? {
    guard let content = entry.content else { return try await fetch(object.reference) }
    guard let elements = RestorableElement.read(content.elements) else {
      throw ErrorObject.invalidParams(hint: "Give elements in the form of Protocol/README.md.")
    }
    return ObjectState(
      RestorableState(content.state, live),
      elements: elements,
      origin: content.coder.flatMap(ReservedKeys.init(coder:))
    )
  }

  /// The application's own state, fetched if it was too large to be delivered.
  private func saved(_ wire: ApplicationState) async throws -> SavedApplicationState {
    guard wire.isDeferred, let fetched = try await fetch(.path([])) else {
      let origin = wire.coder.flatMap(ReservedKeys.init(coder:))
      return SavedApplicationState(state: wire.state.map { RestorableState($0, live) }, origin: origin)
    }
    return SavedApplicationState(state: fetched.state, origin: fetched.origin)
  }

  /// Fetches a state that was too large to be delivered.
  private func fetch(_ reference: RestorableReference) async throws -> ObjectState? {
    let call = SessionCall(DecodeRestorableState.self, of: [reference]) { wire, _ in
      DecodeRestorableState().with { $0.object = wire[0] }
    }
    let result = try await perform(call).answer.get()
    return DecodeRestorableState.Reply(result).flatMap { DecodedState($0, live) }.flatMap(ObjectState.init)
  }

  func tellFinished(_ ids: [ObjectPlan.ObjectID]) async {
    for id in ids { await objects[id]?.object.restoring?.applicationFinishedRestoringState() }
  }

  // MARK: Factories

  private func makeObject(_ call: ObjectWithRestorationIdentifierPath) async throws -> LocatedObject {
    guard let factory = factories[call.restorationClass] else {
      throw UnservedObject(path: call.saved.identifierPath)
    }
    return try await locate(call.saved, restorationClass: call.restorationClass, by: factory.make)
  }

  private func makeViewController(_ call: ViewControllerWithRestorationIdentifierPath) async throws -> LocatedObject {
    guard let delegate else { return .refused }
    return try await locate(call.saved, restorationClass: nil) { try await delegate.viewController(for: $0) }
  }

  private func locate(
    _ saved: SavedObject,
    restorationClass: String?,
    by factory: RestorationRequest.Factory
  ) async throws -> LocatedObject {
    guard let session else { throw RestorationSessionError.ended(nil) }
    var state = saved.state.map { RestorableState($0, live) }
    var origin = saved.coder.flatMap(ReservedKeys.init(coder:))
    if saved.isDeferred, let fetched = try await fetch(.path(saved.identifierPath)) {
      state = fetched.state
      origin = fetched.origin
    }
    let request = RestorationRequest(
      saved,
      restorationClass: restorationClass,
      state: state,
      origin: origin,
      session: session
    )
    do {
      guard let object = try await factory(request) else { return .refused }
      guard owns(object) else {
        throw object.lossError ?? RestorationSessionError(.notRegistered, "\(object) is an object of another session")
      }
      return .object(object.handle)
    } catch let instead as RestorationRequest.Instead {
      return instead.located
    }
  }

  // MARK: Data sources

  func add(_ source: any ModelAssociating, for view: RestorableReference) {
    dataSources.removeAll { $0.view == view || $0.source == nil }
    dataSources.append(DataSource(view: view, source: source))
  }

  private func dataSource(of view: IdentifierPath) throws -> any ModelAssociating {
    let found = dataSources.first { source in
      switch source.view {
      case .object(let object): object.path == view
      case .path(let path): path == view
      }
    }
    guard let source = found?.source else { throw UnservedObject(path: view) }
    return source
  }

  // MARK: Another connection

  /// Repeats registrations to a restarted broker, which may know the session without them.
  ///
  /// - Parameter isResumed: if false, the objects are registered again first, and `replay` follows.
  func serveAgain(isResumed: Bool) {
    for (name, factory) in factories.sorted(by: { $0.key < $1.key }) {
      let call = RegisterRestorationClass(restorationClass: name, isShared: factory.isShared)
      ask(.restorationClass(name), RegisterRestorationClass.method, parameters: BrokerConnection.parameters(of: call))
    }
    if isResumed { registerDataSources() }
  }

  /// Repeats the rest to a broker that has lost the session, after its objects.
  func replay() {
    registerDataSources()
    for object in objects.all where objects[object.id].map({ $0.isFresh && !$0.isPushed }) ?? false {
      let call = InvalidateRestorableState(object: .handle(object.handle))
      ask(.unawaited, InvalidateRestorableState.method, parameters: BrokerConnection.parameters(of: call))
    }
    if restoring.hasCompleted { ask(.unawaited, CompleteStateRestoration.method, parameters: nil) }
    for _ in 0..<restoring.extensions { ask(.unawaited, ExtendStateRestoration.method, parameters: nil) }
  }

  private func registerDataSources() {
    dataSources.removeAll { $0.source == nil }
    for source in dataSources {
      if case .object(let object) = source.view, !machine.isRegistered(object.id) { continue }
      guard let view = objects.wire(source.view) else { continue }
      let parameters = BrokerConnection.parameters(of: RegisterDataSource(view: view))
      ask(.dataSource(source.view), RegisterDataSource.method, parameters: parameters)
    }
  }

  func lost(restorationClass name: String, _ refusal: RestorationError) {
    guard factories.removeValue(forKey: name) != nil else { return }
    events.notify(.restorationClassLost(name, because: refusal))
  }

  func lost(dataSourceOf view: RestorableReference, _ refusal: RestorationError) {
    guard dataSources.contains(where: { $0.view == view }) else { return }
    dataSources.removeAll { $0.view == view }
    events.notify(.dataSourceLost(view, because: refusal))
  }
}

/// No object or class of this process answers for the object.
private struct UnservedObject: Error, CustomStringConvertible {
  let path: IdentifierPath?

  var description: String { "nothing in this process answers for \(path.map { $0.description } ?? "the object") now" }
}
