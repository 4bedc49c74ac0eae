// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Logging
internal import NIOCore
internal import RestorationTransport
internal import RestorationWire

private let log = Logger(label: "restoration")

/// A session that begins without a broker, and what it tells the first one that comes: `SessionMemory` has both.
///
/// Removals come first, over as many connections as it takes: until then the session is alone. Then everything is
/// registered as after the loss of a session, states are pushed as calls of their own, and what was said of the
/// restoration follows. What a broker does not take because of itself stays in memory and is said again.
extension SessionDriver {
  /// How long a start waits for a broker that is being started again, at most.
  private static let gapMilliseconds: Int64 = 1_000
  /// Before a state is pushed again, at least.
  private static let pauseMilliseconds: Int64 = 50

  var memory: SessionMemory? {
    get { beginning.memory }
    set { beginning.memory = newValue }
  }

  /// Connects; waits for a broker if one was there.
  static func connect(by route: any BrokerRoute, within timeout: Duration?) async throws -> BrokerLink {
    let end = now(on: route.eventLoop) + min(timeout.map(milliseconds) ?? .max, gapMilliseconds)
    var delay = ReconnectDelay()
    while true {
      do {
        return try await BrokerLink.connect(by: route, isToBeObserved: true)
      } catch let error as BrokerConnectionError where error.isNotRunning {
        let wait = delay.next(hasWork: true)
        guard wasThere(error), now(on: route.eventLoop) + wait <= end else { throw error }
        await pause(wait, on: route.eventLoop)
      }
    }
  }

  /// A socket that refuses is left of a broker that was killed. One that ends in order leaves its directory.
  private static func wasThere(_ error: BrokerConnectionError) -> Bool {
    guard error.code == .noBroker, let path = error.socketPath else { return error.code == .refused }
    let directory = path.split(separator: "/", omittingEmptySubsequences: false).dropLast()
    return directory.last == "restorationd" && Host.isDirectory(directory.joined(separator: "/"))
  }

  private static func pause(_ milliseconds: Int64, on eventLoop: any EventLoop) async {
    try? await eventLoop.scheduleTask(in: .milliseconds(milliseconds)) {}.futureResult.get()
  }

  /// There is no broker: from now on the session works in memory, and looks for one.
  func beginAlone() {
    guard let memory else { return }
    log.warning("what \(options.application) saves is only in memory until a broker comes: \(memory.reason)")
    act(machine.connectFailed())
  }

  /// An answer to a call from what no broker has learnt yet; `nil` if a broker is to answer.
  func remembered(_ call: SessionCall, _ parameters: JSONText?) throws -> JSONText? {
    guard let memory else { return nil }
    if machine.isAlone {
      guard !call.needsBroker else { throw memory.needsBroker(call.method) }
      return try self.memory?.answer(call.method, parameters, &objects)
    }
    guard call.method == DecodeRestorableState.method, !call.needsBroker else { return nil }
    return try memory.answerDecoding(parameters, objects)
  }

  // MARK: The first look and the last

  /// Looks for a broker once more, before the session ends; returns when it is known if one is there.
  func look() async {
    guard machine.isAlone, !machine.hasEnded else { return }
    await withCheckedContinuation { continuation in
      beginning.lookers.append(continuation)
      act(machine.look())
    }
  }

  func looked() {
    for looker in beginning.lookers { looker.resume() }
    beginning.lookers = []
  }

  // MARK: A broker comes

  /// Removes what was removed; then the session is alone no longer.
  func remove() {
    guard let removal = memory?.removals.first else {
      // Only in a task of the actor are the pushes calls before anything else is.
      Task { [link] in if self.link === link { arrive() } }
      return
    }
    let messages = removal.messages(objects)
    for (index, message) in messages.enumerated() {
      ask(.removal(removal, isLast: index == messages.count - 1), message.method, parameters: message.parameters)
    }
  }

  func removed(_ removal: SessionMemory.Removal, isLast: Bool, _ answer: Response.Outcome) {
    if case .error(let slice) = answer {
      let error = RestorationError(answer: slice)
      if Self.isPassing(error) {
        stillKept(error)
        // What else this broker answers says nothing of what it has refused.
        pending.forgetQuestions()
        return act(machine.postponed())
      }
      // There is nothing, or it is another's.
    }
    guard isLast else { return }
    memory?.removed(removal)
    remove()
  }

  private func arrive() {
    guard memory?.removals.isEmpty == true else { return remove() }
    log.info("a broker has come on \(route.path); what was in memory is saved there")
    live.forgetHandles()
    serveAgain(isResumed: false)
    act(machine.initialized(isResumed: false, at: now))
    // Its calls have their places before all later ones.
    beginning.telling = Task.immediate { await tell() }
    looked()
  }

  private func tell() async {
    var delay = ReconnectDelay()
    let asked = objects.all.filter { objects[$0.id]?.isPushed == false }
    await push()
    for object in asked { _ = try? await perform(.invalidating(object)) }
    for _ in 0..<restoring.extensions {
      _ = try? await perform(SessionCall(ExtendStateRestoration(), isIdempotent: false))
    }
    if restoring.hasCompleted { _ = try? await perform(SessionCall(CompleteStateRestoration(), isIdempotent: true)) }
    while let memory, !memory.states.isEmpty, !machine.hasEnded {
      await Self.pause(max(Self.pauseMilliseconds, delay.next(hasWork: false)), on: eventLoop)
      await push()
    }
    memory = nil
  }

  /// Pushes what is in memory. What is still there then is to be pushed again.
  private func push() async {
    let targets = (memory?.states.keys).map(Array.init) ?? []
    let pushes = targets.sorted { ($0 ?? .max) < ($1 ?? .max) }.map { target in
      Task.immediate { await push(target) }
    }
    for push in pushes { await push.value }
  }

  private func push(_ target: ObjectPlan.ObjectID?) async {
    guard let state = memory?.states[target] else { return }
    // The application's own state is early for a delegate that has not decoded it (R19).
    if target == nil, options.isDelegate { Task.immediate { _ = try? await perform(.decodingOwnState) } }
    let object = target.flatMap { objects[$0]?.object.reference } ?? .path([])
    let others = state.objects.compactMap { objects[$0]?.object }
    let call = SessionCall(
      EncodeRestorableState.self,
      of: [object] + others.map(\.reference),
      bytes: state.bytes
    ) { wire, _ in
      let names = Dictionary(uniqueKeysWithValues: zip(others.map(\.id), wire.dropFirst()))
      return state.encoding(as: wire[0]) { names[$0] }
    }
    do {
      _ = try await perform(call).answer.get()
      saved(target)
    } catch is RestorationSessionError {
      // The session has ended, or an object is gone: the state with it, or a reference.
    } catch let error as RestorationError
      where Self.isPassing(error) || error.code == .invalidReference || error.code == .unknownObject
    {
      stillKept(error)
    } catch {
      log.error("\(object.path.map { "\($0)" } ?? "a state") could not be saved from memory: \(error)")
      memory?.forget(target)
    }
  }

  /// A broker has stored the state of an object, or the application's own: nothing older is to be told.
  func saved(_ target: ObjectPlan.ObjectID?) {
    if let target { objects.saved(target) }
    memory?.forget(target)
  }

  // MARK: Refusals

  /// What is refused for longer than a message that is said again.
  private static let lastingLimits: Set<String> = [
    "depthMax", "frameBytesMax", "keysPerObjectMax", "objectsPerApplicationMax", "pathBytesMax",
    "referencesPerStateMax", "stateBytesMax", "stateDepthMax", "valuesPerFrameMax",
  ]

  /// Whether a broker refuses something because of itself, so that it is said again.
  static func isPassing(_ error: RestorationError) -> Bool {
    transient.contains(error.code) && !(error.limit.map { lastingLimits.contains($0.name) } ?? false)
  }

  /// Tells once for each reason that a broker has not taken everything.
  func stillKept(_ error: RestorationError) {
    guard beginning.complaints.insert("\(error)").inserted else { return }
    log.error("what \(options.application) saves stays in memory: \(error)")
  }

  /// A registration that is not refused for good is said again over the same connection.
  func registerLater(_ id: ObjectPlan.ObjectID) {
    let link = link
    eventLoop.scheduleTask(in: .milliseconds(ReconnectDelay.longestIdle)) {
      self.assumeIsolated { if $0.link === link { $0.register(id) } }
    }
  }
}

extension SessionCall {
  fileprivate static var decodingOwnState: SessionCall {
    var call = SessionCall(DecodeRestorableState().with { $0.object = .path([]) }, isIdempotent: true)
    call.needsBroker = true
    return call
  }

  static func invalidating(_ object: RestorableObject) -> SessionCall {
    SessionCall(InvalidateRestorableState.self, of: [object.reference]) { wire, _ in
      InvalidateRestorableState().with { $0.object = wire[0] }
    }
  }
}
