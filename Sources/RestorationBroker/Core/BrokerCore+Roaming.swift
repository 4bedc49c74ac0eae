// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive
internal import RestorationWire

/// Archives that follow their user: each is used on one host at a time (R36).
extension BrokerCore {
  /// Time for clients to save when another host waits for their archive.
  private static let leavingMilliseconds: Int64 = 3_000

  /// Another host waits for the archive. It is released after a save round.
  package mutating func wanted(_ id: ApplicationID, by host: String, at now: Moment) {
    context.now = now
    guard let application = applications[id]?.settled, case .open = application.phase else { return }
    let milliseconds = min(Self.leavingMilliseconds, Int64(context.limits.stopRoundMilliseconds))
    application.saveBeforeLeaving(to: host, milliseconds: milliseconds)
  }

  /// After the save round or its timeout, ends the sessions as a logout does; then the store hands the archive over
  /// (R30).
  mutating func leave(_ id: ApplicationID) {
    guard let application = applications[id]?.settled, let host = application.saving.leavesTo else { return }
    // The ends of the sessions cannot be written while the archive is opening.
    if case .opening = application.phase { return context.emit(.setTimer(.leave(id), milliseconds: 100)) }
    end(application, .logout, for: ArchiveLoss(host: host, since: context.now.wall))
  }

  /// Another host has the archive, so writes here no longer count.
  package mutating func lost(_ id: ApplicationID, _ loss: ArchiveLoss, at now: Moment) {
    context.now = now
    if let application = applications[id]?.settled { lose(application, loss) }
  }

  mutating func lose(_ application: Application, _ loss: ArchiveLoss) {
    // From here on changes are dropped.
    application.turn.phase = .unreadable("another host has it")
    end(application, .expired, for: loss)
  }

  private mutating func end(_ application: Application, _ ending: SessionEnding, for loss: ArchiveLoss) {
    application.endSessions(ending, for: loss)
    for client in clients.values {
      let isBound = client.bound?.application == application.id
      guard isBound || client.detached[application.id] != nil else { continue }
      client.loss = (application.name, loss)
      if isBound { client.bound = nil }
    }
    let waiting = waiting(for: application.id)
    close(application)
    for client in waiting { refuse(client, with: client.loss == nil ? .ownedElsewhere(loss) : .fenced(loss)) }
  }
}

extension Application {
  fileprivate func endSessions(_ ending: SessionEnding, for loss: ArchiveLoss) {
    let error = ErrorObject.fenced(loss)
    for session in sessions.inOrder { tell(session, ArchiveLost(loss)) }
    endWaiting(for: error)
    note(.archiveReopened)
    jobs.cancelAll(for: error, isClosed: true, in: &turn)
    saving.reset(in: &turn)
    for session in sessions.inOrder { end(session, ending) }
    announce(.settled) { ArchiveLost(loss) }
  }
}

extension IncomingMessage {
  /// Why the message opens an archive. A session may have ended here without its client's knowledge; resuming it
  /// must not take the archive from another host, and neither must a dry run.
  var purpose: ArchivePurpose {
    guard MethodTable.rows[method]?.makesArchive == true else { return .reading }
    if takesOver { return .taking }
    if method == ImportArchive.method, (try? ImportArchive(parameters))?.dryRun == true { return .resuming }
    let beginning = method == Initialize.method ? try? Initialize(parameters) : nil
    let token = beginning?.session ?? (try? CallScope(parameters))?.session
    return token == nil ? .writing : .resuming
  }

  /// Whether it takes the application from another host.
  var takesOver: Bool {
    if method == Initialize.method { return (try? Initialize(parameters))?.takeOver == true }
    return method == DescribeApplication.method && (try? DescribeApplication(parameters))?.takeOver == true
  }

  /// Throws if the call would change a copy that was set aside, other than to remove it.
  func requireReading(of copy: ApplicationName) throws(ErrorObject) {
    guard MethodTable.rows[method]?.takesSetAside != true else { return }
    throw .restoration(
      .forbidden,
      "\(copy) was set aside: it can only be read, and forgotten",
      hint: "restorationctl store conflicts restore \(copy) makes it the present state of its application."
    )
  }
}

extension Client {
  /// Why the client waits for an archive.
  var purpose: ArchivePurpose { pendingAdoption == nil ? queue.first?.purpose ?? .reading : .reading }

  /// Whether it waits to take the archive from another host.
  var takesOver: Bool { pendingAdoption == nil && queue.first?.takesOver == true }
}

extension CoreContext {
  /// Refuses a call of a client whose session ended because another host has the archive. A goodbye is answered: there
  /// is nothing left to end.
  ///
  /// - Returns: whether the call was answered.
  func isOver(
    _ message: IncomingMessage,
    _ client: Client,
    _ loss: (application: ApplicationName, loss: ArchiveLoss)
  ) throws(ErrorObject) -> Bool {
    guard message.method == Goodbye.method else { throw .fenced(loss.loss) }
    client.loss = nil
    emit(.respond(message.caller, .result(EmptyResult())))
    return true
  }
}

extension ArchiveLoss {
  var time: Timestamp? { since.map { Timestamp(milliseconds: $0) } }

  /// `nil` if the error has another cause than a loss to another host.
  init?(_ error: ArchiveError) {
    switch error.kind {
    case .elsewhere(let host, let since): self.init(host: host, since: since)
    case .lost(let host): self.init(host: host)
    case .definite, .refused, .indeterminate, .fenced, .unreadable, .changed, .absent, .limit, .full, .unconfirmed:
      return nil
    }
  }
}

extension ArchiveLost {
  fileprivate init(_ loss: ArchiveLoss) {
    self.init()
    (host, since, unshipped) = (loss.host, loss.time, loss.unshipped)
  }
}

extension ArchiveError {
  /// Whether an opening for another purpose may succeed.
  var dependsOnPurpose: Bool { kind == .absent || kind == .definite || ArchiveLoss(self) != nil }
}
