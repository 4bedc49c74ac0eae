// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Logging
internal import NIOCore
internal import RestorationTransport
internal import RestorationWire
internal import Synchronization

private let log = Logger(label: "restoration")

/// A session that begins without a broker, and how it tells the first one that comes; `SessionMemory` decides what.
///
/// The session is alone until that one has been told everything: meanwhile memory keeps answering, and the link keeps
/// the broker's calls. A state that the broker refuses in passing holds nothing up, and follows later.
extension SessionDriver {
  /// How long a start waits for a broker that is being started again, at most.
  private static let gapMilliseconds: Int64 = 1_000
  /// Before a state is pushed again, at least.
  private static let pauseMilliseconds: Int64 = 50
  private static let ownState = DecodeRestorableState().with { $0.object = .path([]) }

  /// Opens a session by `open`; waits for a broker if one was there. Returns it, or why no broker answered.
  static func open(
    by route: any BrokerRoute,
    within timeout: Duration?,
    _ open: () async throws -> SessionDriver
  ) async throws -> Result<SessionDriver, BrokerConnectionError> {
    let end = now(on: route.eventLoop) + min(timeout.map(milliseconds) ?? .max, gapMilliseconds)
    var delay = ReconnectDelay()
    while true {
      let reason: BrokerConnectionError
      do {
        return .success(try await open())
      } catch let error as BrokerConnectionError where error.isNotRunning || error.code == .lost {
        reason = error
      } catch let error as RestorationError where error.code == .shuttingDown {
        reason = BrokerConnectionError(.lost, path: route.path)
      }
      let wait = delay.next(hasWork: true)
      guard wasThere(reason), now(on: route.eventLoop) + wait <= end else { return .failure(reason) }
      await pause(wait, on: route.eventLoop)
    }
  }

  /// A socket that refuses is left of a broker that was killed. One that ends in order leaves its directory.
  private static func wasThere(_ error: BrokerConnectionError) -> Bool {
    guard error.code == .noBroker, let path = error.socketPath else { return true }
    let directory = path.split(separator: "/", omittingEmptySubsequences: false).dropLast()
    return directory.last == "restorationd" && Host.isDirectory(directory.joined(separator: "/"))
  }

  private static func pause(_ milliseconds: Int64, on eventLoop: any EventLoop) async {
    try? await eventLoop.scheduleTask(in: .milliseconds(milliseconds)) {}.futureResult.get()
  }

  /// There is no broker: from now on the session works in memory, and looks for one.
  func beginAlone() {
    guard let memory = beginning.memory else { return }
    log.warning("what \(options.application) saves is only in memory until a broker comes: \(memory.reason)")
    act(machine.connectFailed())
  }

  /// An answer to a call from what no broker has learnt yet; `nil` if a broker is to answer.
  func remembered(_ call: SessionCall, _ parameters: JSONText?) throws -> JSONText? {
    if call.needsBroker {
      if machine.isAlone, let error = beginning.memory?.needsBroker(call.method) { throw error }
      return nil
    }
    if machine.isAlone { return try beginning.memory?.answer(call.method, parameters, &objects) }
    return call.method == DecodeRestorableState.method ? try beginning.memory?.answerDecoding(parameters, objects) : nil
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

  /// Tells a broker everything; then the session is alone no longer.
  func tell(_ link: BrokerLink) async {
    do {
      try await open(link)
      var delay = ReconnectDelay()
      while self.link === link {
        let messages = beginning.memory?.messages(objects) ?? []
        if !messages.isEmpty {
          try await say(messages, over: link)
        } else if beginning.memory?.isTold ?? true {
          return arrive(over: link)
        } else {
          looked()
          await Self.pause(max(Self.pauseMilliseconds, delay.next(hasWork: false)), on: eventLoop)
          beginning.memory?.tellAgain()
        }
      }
    } catch {
      guard self.link === link else { return }
      if let error = error as? RestorationError { stillKept(error) }
      link.cut()
      lost(link)
    }
  }

  private func open(_ link: BrokerLink) async throws {
    let token = info.withLock { $0.session }
    let call = try options.forSession(serving: served, resuming: token.isEmpty ? nil : token)
    let result = try await link.call(Initialize.method, BrokerConnection.parameters(of: call)).get()
    guard self.link === link else { return }
    guard let reply = Initialize.Reply(result) else {
      throw BrokerConnectionError.unexpectedAnswer(to: Initialize.method, path: route.path)
    }
    let isResumed = opened(reply).wasResumed
    (options.application, options.instance) = (reply.application.description, nil)
    beginning.memory?.beginTelling(isResumed: isResumed, &objects)
  }

  /// Says messages together, and takes the answers.
  private func say(_ messages: [SessionMemory.Message], over link: BrokerLink) async throws {
    let answers = messages.map { message in Task.immediate { try await say(message, over: link) } }
    for (message, answer) in zip(messages, answers) {
      // Memory may change until it is there.
      let answer = try await answer.value
      switch beginning.memory?.answered(message, answer, &objects) {
      case nil: break
      case .ending: link.cut()
      case .kept(let error): stillKept(error)
      case .dropped(let name, let error):
        log.error("\(name) could not be saved from memory: \(error)")
        if case .encode(let id?) = message.item { beginning.unsaved.insert(id) }
      case .lost(let id, let error):
        log.error("\(objects[id]?.object.description ?? "an object") could not be saved from memory: \(error)")
        refused(id, error)
      case .discarded(let id): discarded(id)
      }
    }
  }

  private func say(
    _ message: SessionMemory.Message,
    over link: BrokerLink
  ) async throws -> Result<JSONSlice, RestorationError> {
    if message.item == .encode(nil), options.isDelegate {
      // It is early for a delegate that has not decoded it (R19).
      _ = try await link.call(DecodeRestorableState.method, BrokerConnection.parameters(of: Self.ownState))
    }
    do {
      try FrameCheck(method: message.method, parameters: message.parameters).run(limits)
    } catch {
      return .failure(error)
    }
    let answer = try await link.call(message.method, message.parameters)
    return Result { () throws(RestorationError) in try answer.get() }
  }

  private func arrive(over link: BrokerLink) {
    let names = beginning.memory?.telling.names ?? [:]
    for (id, name) in names { objects.registered(id, as: name) }
    // It may have ended meanwhile.
    guard link.assumeIsolated({ $0.observe(by: self) }) else { return lost(link) }
    log.info("a broker has come on \(route.path); what was in memory is saved there")
    beginning.memory?.settle()
    let missing = objects.all.filter { names[$0.id] == nil }.map(\.id)
    act(machine.initialized(isResumed: true, without: missing, at: now))
    serveAgain(isResumed: true)
    for object in objects.all where objects[object.id]?.isPushed == false && names[object.id] != nil {
      let call = InvalidateRestorableState().with { $0.object = .handle(object.handle) }
      ask(.unawaited, InvalidateRestorableState.method, parameters: BrokerConnection.parameters(of: call))
    }
    sayRestoring()
    for target in beginning.memory?.targets ?? [] { Task.immediate { await pushLater(target) } }
    for id in beginning.unsaved { bound[id]?.properties.mark() }
    endMemory()
    looked()
  }

  private func endMemory() { if beginning.memory?.states.isEmpty == true { beginning.memory = nil } }

  // MARK: What follows later

  private func pushLater(_ target: ObjectPlan.ObjectID?) async {
    var delay = ReconnectDelay()
    while beginning.memory?.states[target] != nil, !machine.hasEnded {
      // A push that waited for a connection could be older by then than what a call of the program has left.
      if link != nil { await push(target) }
      if beginning.memory?.states[target] == nil { break }
      await Self.pause(max(Self.pauseMilliseconds, delay.next(hasWork: false)), on: eventLoop)
    }
    endMemory()
  }

  private func push(_ target: ObjectPlan.ObjectID?) async {
    guard let state = beginning.memory?.states[target] else { return }
    let object = target.flatMap { objects[$0]?.object.reference } ?? .path([])
    let others = state.objects.compactMap { objects[$0]?.object }
    var call = SessionCall(
      EncodeRestorableState.self,
      of: [object] + others.map(\.reference),
      bytes: state.bytes
    ) { wire, _ in
      let names = Dictionary(uniqueKeysWithValues: zip(others.map(\.id), wire.dropFirst()))
      return state.encoding(as: wire[0]) { names[$0] }
    }
    // A round may be given a newer one meanwhile, and in another session this one would count as newer (R15).
    call.isOfOneConnection = true
    func isNewest() -> Bool { beginning.memory?.states[target]?.revision == state.revision }
    do {
      _ = try await perform(call).answer.get()
      if isNewest() { saved(target) }
    } catch is RestorationSessionError {
      // The session has ended, or an object is gone: the state with it, or a reference. Or the connection is lost.
    } catch let error as RestorationError where Self.isPassing(error) || error.code == .invalidReference {
      stillKept(error)
    } catch {
      guard isNewest() else { return }
      log.error("\(object.path.map { "\($0)" } ?? "a state") could not be saved from memory: \(error)")
      beginning.memory?.forget(target)
      if let target { bound[target]?.properties.mark() }
    }
  }

  /// Returns when no state is left that is to follow, or the session has ended.
  func toldAll() async {
    while beginning.memory != nil, !machine.isAlone, !machine.hasEnded {
      await Self.pause(Self.pauseMilliseconds, on: eventLoop)
    }
  }

  /// A broker has stored the state of an object, or the application's own: nothing older is to be told.
  func saved(_ target: ObjectPlan.ObjectID?) {
    if let target { objects.saved(target) }
    beginning.memory?.forget(target)
  }

  /// A broker was given a state that it may not store, in a round or by a call without an answer.
  func renew(_ call: SessionCall, revision: Int64? = nil) {
    guard beginning.memory != nil else { return }
    let revision = revision ?? objects.nextRevision()
    if let parameters = try? call.parameters(objects, revision) { beginning.memory?.renew(parameters, &objects) }
  }

  // MARK: Refusals

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
