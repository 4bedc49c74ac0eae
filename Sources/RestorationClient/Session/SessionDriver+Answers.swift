// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire
internal import Synchronization

extension SessionDriver: BrokerLinkObserver {
  nonisolated func answered(_ ticket: BrokerLink.Ticket, _ answer: Response.Outcome, by link: BrokerLink) {
    assumeIsolated { driver in
      guard driver.link === link, let question = driver.pending.takeQuestion(of: ticket) else { return }
      driver.machine.heard(at: driver.now)
      driver.take(answer, to: question)
    }
  }

  nonisolated func notified(_ notification: BrokerNotification, by link: BrokerLink) {
    assumeIsolated { $0.take(notification) }
  }

  nonisolated func ended(_ link: BrokerLink) { assumeIsolated { $0.lost(link) } }

  func lost(_ link: BrokerLink) {
    guard self.link === link else { return }
    self.link = nil
    pending.forgetQuestions()
    dropCalls()
    act(machine.lost(at: now))
    looked()
  }

  private func take(_ answer: Response.Outcome, to question: Question) {
    switch question {
    case .initialize: initialized(answer)
    case .register(let id): registeredAgain(id, answer)
    case .call(let ticket): completed(ticket, answer)
    case .abandonedCall(let call):
      if case .result(let result) = answer { _ = follow(call.effect, result) }
    case .restorationClass(let name):
      if case .error(let slice) = answer { lost(restorationClass: name, RestorationError(answer: slice)) }
    case .dataSource(let view):
      if case .error(let slice) = answer { lost(dataSourceOf: view, RestorationError(answer: slice)) }
    case .unawaited: break
    }
  }

  // MARK: Resuming

  /// Refusals that may be over soon.
  static let transient: Set<ErrorCode> = passing.union([.limitExceeded])
  /// Those that are due to the broker itself.
  private static let passing: Set<ErrorCode> = [
    .storeFailed, .shuttingDown, .timedOut, .archiveUnreadable, .internalError,
  ]

  /// Whether a broker refuses something because of its own condition: then it is sent again.
  static func isPassing(_ error: RestorationError) -> Bool { passing.contains(error.code) }

  private func initialized(_ answer: Response.Outcome) {
    switch answer {
    case .error(let slice):
      let error = RestorationError(answer: slice)
      if machine.isAlone { tellOnce(error) }
      if machine.isAlone || Self.transient.contains(error.code) { return act(machine.postponed()) }
      refusal = error
      act(machine.refused())
    case .result(let slice):
      guard let reply = Initialize.Reply(slice) else { return act(machine.postponed()) }
      let opened = SessionInfo(reply, resuming: info.withLock { $0.session })
      info.withLock { $0 = opened }
      limits = reply.limits
      // An instance is chosen only once.
      (options.application, options.instance, options.takeOver) = (opened.application.description, nil, false)
      let wasAlone = machine.isAlone
      if !opened.wasResumed { live.forgetHandles() }
      serveAgain(isResumed: opened.wasResumed)
      act(machine.initialized(isResumed: opened.wasResumed, at: now))
      guard wasAlone else { return }
      pushDue()
      looked()
    }
  }

  private func registeredAgain(_ id: ObjectPlan.ObjectID, _ answer: Response.Outcome) {
    switch answer {
    case .result(let slice):
      guard let reply = RegisterObjectForStateRestoration.Reply(slice) else {
        // A broker that has discarded the session's objects answers so over each connection.
        guard slice.saysDiscarded else {
          link?.cut()
          return
        }
        return discarded(id)
      }
      objects.registered(id, as: reply)
      decodeAgain(id, reply)
      act(machine.settled(id, isRegistered: true))
    case .error(let slice):
      let refusal = RestorationError(answer: slice)
      if refusal.code == .shuttingDown || Self.asksForAnotherConnection(refusal) {
        link?.cut()
      } else if objects[id]?.isFresh == true, Self.isPassing(refusal) {
        // Its data is only in memory.
        tellOnce(refusal)
        registerLater(id)
      } else {
        refused(id, refusal)
      }
    }
  }

  func refused(_ id: ObjectPlan.ObjectID, _ refusal: RestorationError) {
    guard let object = objects[id]?.object else { return }
    if objects[id]?.isFresh == true { tellLost(object, refusal) }
    forget(object, refusal)
    events.notify(.registrationLost(object, because: refusal))
  }

  func discarded(_ id: ObjectPlan.ObjectID) {
    guard let object = objects[id]?.object else { return }
    forget(object, because: .discarded(RegisterObjectForStateRestoration.method))
  }

  /// Decodes the object again in the new session: otherwise the broker takes its pushes for early ones, and hides them
  /// from the next decode (R19).
  private func decodeAgain(_ id: ObjectPlan.ObjectID, _ reply: RegisterObjectForStateRestoration.Reply) {
    guard let record = objects[id], record.wasDecoded, !record.isFresh, reply.restoration.state == .available else {
      return
    }
    let call = DecodeRestorableState().with { $0.object = .handle(reply.object) }
    ask(.unawaited, DecodeRestorableState.method, parameters: BrokerConnection.parameters(of: call))
  }

  private func forget(_ object: RestorableObject, _ refusal: RestorationError?) {
    forget(object, because: .notRegistered(object.path, refusal))
  }

  private func forget(_ object: RestorableObject, because error: RestorationSessionError) {
    objects.remove(object.id, error)
    memory.forget(.object(object))
    unbind(object.id)
    act(machine.removed(object.id))
  }

  // MARK: Calls

  /// Whether the outcome is unknown and the call may be repeated over the next connection (R15).
  private static func asksForAnotherConnection(_ error: RestorationError) -> Bool {
    error.code == .storeFailed && error.indeterminate && !error.isUnconfirmed
  }

  func completed(_ ticket: Ticket, _ answer: Response.Outcome) {
    var isFinal = true
    var object: RestorableObject?
    switch answer {
    case .result(let result):
      if let (call, revision) = pending[ticket] {
        object = follow(call.effect, result)
        if call.method == DecodeRestorableState.method, let decoded = call.objects.first {
          objects.decoded(decoded.id)
          if result["status"]?.string() == DecodingStatus.quarantined.rawValue { tellWithheld(decoded) }
        }
        // A state with a number is one of the program's.
        if call.isNumbered, !machine.isAlone { encoded(call, revision, result) }
      }
    case .error(let slice):
      let error = RestorationError(answer: slice)
      if error.code == .shuttingDown, let actions = machine.shuttingDown(ticket) { return act(actions) }
      isFinal = !Self.asksForAnotherConnection(error)
      if isFarewell(ticket), isFinal { return act(machine.giveUp()) }
      if let call = pending[ticket]?.call, take(error, to: call, ticket) { return }
    }
    if object != nil { returns.begin() }
    pending.answered(ticket, Completion(answer: answer, object: object))
    act(machine.answered(ticket, isFinal: isFinal))
    if case .error(let slice) = answer, case let error = RestorationError(answer: slice), error.code == .fenced {
      fenced(error)
    }
  }

  /// Handles an error; true if the call continues.
  private func take(_ error: RestorationError, to call: SessionCall, _ ticket: Ticket) -> Bool {
    guard error.code == .unknownObject || error.code == .replaced else { return false }
    if case .unregisters(let object, _) = call.effect {
      // The object is gone, perhaps since the first time that this was sent.
      forget(object, nil)
    } else if call.isOfOneObject, error.code == .replaced {
      for object in call.objects { forget(object, error) }
    } else if call.isOfOneObject, let actions = machine.unknownObject(ticket) {
      act(actions)
      return true
    }
    return false
  }

  private func follow(_ effect: SessionCall.Effect, _ result: JSONSlice) -> RestorableObject? {
    switch effect {
    case .none: break
    case .registers(let registration, let parent, let restoring):
      guard let reply = RegisterObjectForStateRestoration.Reply(result) else { return nil }
      let object = objects.registered(
        registration,
        below: parent?.id,
        restoring: restoring,
        as: reply,
        session: ObjectIdentifier(self)
      )
      machine.registered(object.id, below: parent?.id)
      if reply.restoration.state == .quarantined { tellWithheld(object) }
      if machine.isAlone, !reply.existing {
        objects.beganAlone(object.id)
        memory.give(to: object)
      }
      if restoring != nil { watchForReleases() }
      return object
    case .unregisters(let object, _):
      forget(object, nil)
      dataSources.removeAll { $0.view == .object(object) }
    case .moves(let object, let parent):
      guard let reply = SetRestorationParent.Reply(result) else { return nil }
      objects.moved(object.id, below: parent, to: reply.path)
      if case .object(let parent)? = parent {
        machine.moved(object.id, below: parent.id)
      } else {
        machine.moved(object.id, below: nil)
      }
    case .renames(let object, let identifier, let position):
      guard let reply = SetRestorationIdentifier.Reply(result) else { return nil }
      objects.renamed(object.id, to: identifier, position: position, reply)
    case .orders(let children):
      guard let paths = SetChildren.Reply(result)?.paths else { return nil }
      for (child, path) in zip(children, paths) {
        if case .object(let object) = child { objects.moved(object.id, to: path) }
      }
    case .registersClass(let name, let factory, let isShared): factories[name] = (factory, isShared)
    case .registersDataSource(let source, let view): add(source, for: view)
    case .extendsRestoration: restoring.extensions += 1
    case .completesRestoration:
      restoring.extensions = max(0, restoring.extensions - 1)
      if restoring.extensions == 0 { restoring.hasCompleted = true }
    }
    return nil
  }

  private func fenced(_ error: RestorationError) {
    refusal = refusal ?? error
    act(machine.fenced())
  }

  // MARK: Notifications

  private func take(_ notification: BrokerNotification) {
    switch notification {
    case .pathChanged(let facts):
      guard let object = objects.object(handle: facts.object) else { return }
      objects.moved(object.id, to: facts.path)
      if options.notifications.contains(.pathChanged) { events.notify(.pathChanged(object, path: facts.path)) }
    case .registrationReplaced(let facts):
      guard let object = objects.object(handle: facts.object) else { return }
      forget(object, nil)
      if options.notifications.contains(.registrationReplaced) {
        events.notify(.registrationReplaced(object, path: facts.path, by: facts.by))
      }
    case .applicationFinishedRestoringState(let facts):
      finishedRestoring(facts.objects)
    case .applicationStateSaved(let facts):
      events.notify(.applicationStateSaved(generation: facts.generation))
    case .headReplaced(let facts):
      objects.forgetDecoding()
      if options.notifications.contains(.headReplaced) { events.notify(.headReplaced(generation: facts.generation)) }
    case .stateWanted(let facts):
      guard let object = objects.object(handle: facts.object) else { return }
      if let bound = bound[object.id] {
        bound.properties.mark()
      } else if !pushWanted(object), options.notifications.contains(.stateWanted) {
        events.notify(.stateWanted(object))
      }
    case .encodeFailed(let facts): tellRefused(facts)
    case .archiveLost(let facts):
      if options.notifications.contains(.archiveLost) {
        events.notify(.archiveLost(host: facts.host, since: facts.since, unshipped: facts.unshipped))
      }
      let message = "\(facts.host ?? "another host") has the application now"
      fenced(RestorationError(.restoration(.fenced, message, hint: "Continue there, or start another session.")))
    case .missed: break
    }
  }
}
