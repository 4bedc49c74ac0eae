// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Logging
internal import NIOCore
internal import RestorationArchive
internal import RestorationTransport
internal import RestorationWire

extension BrokerService {
  /// One exhaustive switch, however long: an effect that it forgets does not compile.
  func perform(_ effect: Effect) {
    switch effect {
    case .respond(let caller, let answer): send(answer, to: caller)
    case .respondAfter(let id, let sequence, let caller, let answer):
      respond(answer, to: caller, after: sequence, in: id)
    case .write(let id, let change): write(change, to: id)
    case .readState(let id, let row, let caller): readState(id, row, caller)
    case .read(let id, let request, let after): read(id, request, after: after)
    case .scan(let id, let request): scan(id, request)
    case .carryOut(let id, let job, let after): carryOut(id, job, after: after)
    case .tellLoss(let subscriber): tellLoss(subscriber)
    case .hold(let client): if handsConnectionsOver { connections[client]?.countUnsettled(1) }
    case .release(let client): release(client)
    case .clientChanged(let client):
      if handsConnectionsOver { connections[client]?.setContext(core.record(of: client)) }
    case .tell(let client, let method, let parameters):
      connections[client]?.notify(method: method, parameters: parameters)
    case .open(let id, let name, let creating): open(id, name, creating: creating)
    case .close(let id): close(id)
    case .list(let purpose): list(purpose)
    case .backUp(let id): backUp(id)
    case .reportStatistics(let caller): send(.result(statistics), to: caller)
    case .call(let id, let number, let client, let method, let parameters):
      call(client, PendingCall(application: id, number: number), method, parameters)
    case .endCall(let client, let number, let id): endCall(client, PendingCall(application: id, number: number))
    case .notify(let id, let recipient, let method, let parameters):
      notices.append((id, .notification(recipient, method: method, parameters: parameters)))
    case .announce(let id, let announcement): notices.append((id, .announcement(announcement)))
    case .setWaiting(let client, let isWaiting): setWaiting(client, isWaiting)
    case .disconnect(let client): connections[client]?.close(afterOutput: true)
    case .log(let level, let text, let application): log(level, text, application)
    case .endSubscription(let subscriber): endSubscription(subscriber)
    case .park(let caller): park(caller)
    case .unpark(let caller):
      if let call = caller.call { connections[caller.client]?.unpark(call) } else { release(caller.client) }
    case .watch(let client, let application, let session):
      watch(connections[client]?.peer.process, SessionKey(application: application, session: session))
    case .watchProcess(let process, let application, let session):
      watch(ProcessHandle.open(process.identity), SessionKey(application: application, session: session))
    case .checkUnit(let application, let session, let unit):
      checkUnit(unit, SessionKey(application: application, session: session))
    case .startUnit(let application, let unit): startUnit(unit, for: application)
    case .unwatch(let application, let session):
      processes.removeValue(forKey: SessionKey(application: application, session: session))?.token.cancel()
    case .probe(let application, let sessions, let call): probe(sessions, of: application, call)
    case .setTimer(let name, let milliseconds): setTimer(name, milliseconds)
    case .cancelTimer(let name): timers.removeValue(forKey: name)?.cancel()
    }
  }

  // MARK: Answers

  /// Sends what clients are told when it has come true on disk; called when an event's changes are all written.
  func sendNotices() {
    for (id, notice) in notices {
      if let archive = archives[id], archive.queue.durable < archive.queue.tail {
        archive.queue.await(notice)
        noteIfTooMuchWaits(archive)
      } else if notice.followsSuccess {
        send(notice, of: id)
      }
    }
    notices.removeAll(keepingCapacity: true)
  }

  func send(_ notice: WriteQueue.Notice, of id: ApplicationID) {
    switch notice {
    case .notification(.client(let client), let method, let parameters):
      connections[client]?.notify(method: method, parameters: parameters)
    case .notification(.poller(let session), let method, let parameters):
      core.notified(id, session, method: method, parameters: parameters, at: clock.now)
    case .announcement(let announcement): tell(announcement)
    }
  }

  func send(_ answer: Answer, to caller: Caller) {
    guard let call = caller.call else {
      if case .error(let error) = answer { logFailure(of: caller.client, error, method: notification?.method) }
      return
    }
    guard let connection = connections[caller.client] else { return }
    switch answer {
    case .result(let result): connection.respond(to: call) { result.writeJSON(to: &$0) }
    case .error(let error): connection.respond(to: call, with: .error(error))
    }
  }

  /// Nobody is told but the log: a notification has no answer.
  func logFailure(of client: ClientID, _ error: ErrorObject, method: String?) {
    let kind = error.data?["kind"]?.string ?? "error \(error.code)"
    logger.warning("a notification failed: \(kind)", metadata: metadata(of: client, method: method))
  }

  private func metadata(of client: ClientID, method: String?) -> Logger.Metadata {
    var metadata: Logger.Metadata = [:]
    // Anything else is a client's text and does not get into the log.
    if let method, MethodTable.rows[method] != nil { metadata["method"] = "\(method)" }
    if let (application, session) = core.session(of: client) {
      metadata["application"] = "\(application)"
      metadata["session"] = "\(session)"
    }
    return metadata
  }

  private func respond(_ answer: Answer, to caller: Caller, after sequence: SequenceNumber, in id: ApplicationID) {
    // Nobody waits for what becomes of a notification.
    guard caller.call != nil, let archive = archives[id], archive.queue.durable < sequence else {
      send(answer, to: caller)
      return
    }
    archive.queue.await(WriteQueue.Waiting(after: sequence, caller: caller, answer: answer))
  }

  private func park(_ caller: Caller) {
    guard let connection = connections[caller.client] else { return }
    guard let call = caller.call else {
      if handsConnectionsOver { connection.countUnsettled(1) }
      return
    }
    do throws(ErrorObject) {
      try connection.park(call)
    } catch {
      // Too many wait already: this one stays in the count of calls in flight, which pauses reading.
      logger.notice("a client has too many waiting calls", metadata: ["pid": "\(connection.peer.pid)"])
    }
  }

  // MARK: Processes and time

  private func setTimer(_ name: TimerName, _ milliseconds: Int64) {
    timers.removeValue(forKey: name)?.cancel()
    timers[name] = eventLoop.scheduleTask(in: .milliseconds(milliseconds)) {
      self.assumeIsolated { service in
        service.timers[name] = nil
        service.handle { $0.timerFired(name, at: $1) }
      }
    }
  }

  // MARK: Reports

  private var statistics: ReportStatistics.Reply {
    let counters = core.counters
    return ReportStatistics.Reply().with {
      $0.broker = BrokerVersion().with {
        $0.name = "restorationd"
        $0.version = settings.version
      }
      $0.pid = clock.processID
      $0.uptimeMilliseconds = clock.now.monotonic - clock.start.monotonic
      $0.counters = [
        "connections": counters.connections, "requests": counters.requests, "errors": counters.errors,
        "encodes": counters.encodes, "decodes": counters.decodes, "registrations": counters.registrations,
        "transactions": transactions, "events": outlet.sent, "eventsLost": outlet.lost,
      ]
      $0.gauges = [
        "connections": Int64(connections.count), "openArchives": Int64(archives.count),
        "sessions": Int64(core.sessionCount), "objects": Int64(core.objectCount),
        "cachedBytes": Int64(cache.bytes), "timers": Int64(timers.count),
        "subscriptions": Int64(core.subscriptionCount),
      ]
    }
  }

  private func log(_ level: LogLevel, _ text: String, _ application: ApplicationName?) {
    var metadata = notification.map { self.metadata(of: $0.sender, method: $0.method) } ?? [:]
    if let application { metadata["application"] = "\(application)" }
    switch level {
    case .info: logger.info("\(text)", metadata: metadata)
    case .warning: logger.warning("\(text)", metadata: metadata)
    case .error: logger.error("\(text)", metadata: metadata)
    }
  }
}
