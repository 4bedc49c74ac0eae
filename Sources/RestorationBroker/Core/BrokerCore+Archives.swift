// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
internal import RestorationArchive
internal import RestorationWire

extension BrokerCore {
  mutating func rollBack(_ call: MethodTable.Call<RollBack>) throws(ErrorObject) {
    if !call.request.force, let others = call.application.unverifiedSessions {
      return call.application.probe(others, for: call.message, call.client)
    }
    let (request, session, caller) = (call.request, call.session, call.caller)
    try call.inTurn(isRollback: true) { application throws(ErrorObject) in
      try application.rollBack(request, by: session, for: caller)
    }
  }

  /// Removes an application. Its sessions end, and their clients continue without one.
  mutating func forget(_ call: MethodTable.Call<ForgetApplication>) throws(ErrorObject) {
    let (application, request) = (call.application, call.request)
    if !request.force {
      if let others = application.unverifiedSessions {
        return application.probe(others, for: call.message, call.client)
      }
      try application.requireNobodyLives(.needsForce, hint: "End it first, or use force: true; then its session ends.")
    }
    try application.requireForgettable()
    application.note(.archiveReopened)
    application.saving.reset(in: &application.turn)
    for session in application.sessions.inOrder { application.end(session, .expired) }
    for client in clients.values where client.bound?.application == application.id {
      client.bound = nil
      context.emit(.clientChanged(client.id))
    }
    application.announceDiscard(.discarded, generations: true)
    close(application, ArchiveRemoval(caller: call.caller, withDamaged: request.damaged))
  }

  // MARK: Reports

  /// Answers a report's question; `nil` if the application is open no more.
  package mutating func ask<Value>(
    _ id: ApplicationID,
    _ question: (Application) throws(ErrorObject) -> Value,
    at now: Moment
  ) -> Result<Value, ErrorObject>? {
    context.now = now
    guard let application = applications[id]?.settled else { return nil }
    return Result { () throws(ErrorObject) in try question(application) }
  }

  /// The report has ended. A long turn that it began may still run.
  package mutating func reportEnded(_ id: ReportID, at now: Moment) {
    context.now = now
    guard let application = applications[id.application] else { return }
    application.jobs.end(id.number)
    application.beginWaiting()
  }

  // MARK: Importing

  /// Reads a document or a part of one. The complete document is checked before its archive is opened, so that a
  /// refused document creates none.
  mutating func importArchive(_ message: IncomingMessage, _ client: Client) throws(ErrorObject) {
    do throws(ErrorObject) {
      guard try goOn(importing: message, client) else { return }
    } catch {
      dropUpload(of: client)
      throw error
    }
    dropUpload(of: client)
  }

  /// Does a piece of the import, and returns whether the document was imported. The message is handled again until all
  /// pieces are done.
  private mutating func goOn(importing message: IncomingMessage, _ client: Client) throws(ErrorObject) -> Bool {
    guard let target = try namedApplication(message, client) else {
      throw client.loss.map { ErrorObject.fenced($0.loss) } ?? Self.noApplication()
    }
    let request = try ImportArchive(message.parameters)
    if client.upload?.isUnderWay != true { try begin(request, into: target, client) }
    let roomLeft = 2 * context.limits.archiveBytesMax - clients.values.reduce(0) { $0 + ($1.upload?.charge ?? 0) }
    // 0 if the archive is not open.
    let last = applicationIDs[target].flatMap { applications[$0]?.settled.tree.last } ?? 0
    let plan: ImportPlan
    switch try client.upload?.goOn(request, context.limits, roomLeft: roomLeft, above: last) {
    case .planned(let whole): plan = whole
    case .paused:
      try pause(message, client)
      return false
    case .read, nil:
      endPart(request, of: message, client)
      return false
    }
    guard let (application, session) = try scope(of: message, client) else { return false }
    if let others = application.unverifiedSessions {
      application.probe(others, for: message, client)
      return false
    }
    var call = LongCall(message.caller, by: session, token: request.progressToken, at: context.now)
    let count = plan.objects.count
    let progress = call.progress(count, of: count, isLast: true, at: context.now)
    try application.importArchive(plan, request, progress, of: call)
    if request.dryRun { closeUnwritten(of: client) }
    return true
  }

  /// Schedules the next piece of the import. The client's later messages wait.
  private mutating func pause(_ message: IncomingMessage, _ client: Client) throws(ErrorObject) {
    guard !context.isEnding else { throw .shuttingDown() }
    client.isImporting = true
    client.queue.insert(message, at: 0)
    context.emit(.setTimer(.upload(client.id), milliseconds: ArchiveUpload.pauseMilliseconds))
  }

  mutating func goOnImporting(_ client: Client) {
    client.isImporting = false
    resume(client)
  }

  mutating func uploadTimerFired(of client: Client) {
    if client.isImporting { return goOnImporting(client) }
    // An upload is not idle while its complete document waits for the archive.
    if client.upload?.isUnderWay == false { dropUpload(of: client) }
  }

  /// Begins a part; the first one begins an upload.
  private mutating func begin(
    _ request: ImportArchive,
    into application: ApplicationName,
    _ client: Client
  ) throws(ErrorObject) {
    if request.upload == nil {
      dropUpload(of: client)
      client.uploadCounter += 1
      client.upload = ArchiveUpload(token: "\(client.uploadCounter)", application: application)
    } else if client.upload?.token != request.upload || client.upload?.application != application {
      throw .invalidParameter(
        "/upload",
        "unknown upload for this connection and application",
        hint: "Begin again with the first part; the next ones must follow within a minute."
      )
    }
  }

  /// Answers a part that others follow.
  private mutating func endPart(_ request: ImportArchive, of message: IncomingMessage, _ client: Client) {
    guard let upload = client.upload else { return }
    context.emit(.setTimer(.upload(client.id), milliseconds: ArchiveUpload.idleMilliseconds))
    tellProgress(of: upload, token: request.progressToken, for: message.caller, client)
    let reply = ImportArchive.Reply().with {
      $0.upload = upload.token
      $0.objects = upload.objects.count
      $0.states = upload.states
      $0.bytes = upload.charge
    }
    context.emit(.respond(message.caller, .result(reply)))
  }

  /// Reports to the session of the connection only. The archive may not be open yet, so a detached session cannot be
  /// checked; it would also block the last part.
  private func tellProgress(of upload: ArchiveUpload, token: ProgressToken?, for caller: Caller, _ client: Client) {
    let (application, session) = boundSession(client) ?? (nil, nil)
    var call = LongCall(caller, by: session, token: token, at: context.now)
    guard let progress = call.progress(upload.objects.count, of: nil, isLast: true, at: context.now) else { return }
    if let application {
      application.tell(progress, of: call)
    } else {
      context.emit(.tell(caller.client, method: ArchiveProgress.method.rawValue, parameters: progress.text))
    }
  }

  mutating func dropUpload(of client: Client) {
    guard client.upload != nil else { return }
    client.upload = nil
    context.emit(.cancelTimer(.upload(client.id)))
  }
}
