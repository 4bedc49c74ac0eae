// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive
internal import RestorationWire

/// Whole archives: checking, copying, exporting and importing.
extension BrokerCore {
  mutating func rollBack(_ call: MethodTable.Call<RollBack>) throws(ErrorObject) {
    if !call.request.force, let others = call.application.unverifiedSessions {
      return probe(others, of: call.application, for: call.message, call.client)
    }
    let (request, session, caller) = (call.request, call.session, call.caller)
    try call.inTurn(isRollback: true) { application throws(ErrorObject) in
      try application.rollBack(request, by: session, for: caller)
    }
  }

  /// Removes an application; its sessions end, and their clients have none.
  mutating func forget(_ call: MethodTable.Call<ForgetApplication>) throws(ErrorObject) {
    let (application, request) = (call.application, call.request)
    if !request.force {
      if let others = application.unverifiedSessions {
        return probe(others, of: application, for: call.message, call.client)
      }
      try application.requireNobodyLives(.needsForce, hint: "End it first, or use force: true; then its session ends.")
    }
    let isWanted = clients.values.contains { $0.waitsFor == application.id }
    try application.requireForgettable(by: call.caller, isWanted: isWanted)
    application.note(.archiveLost)
    application.saving.reset(in: &application.turn)
    for session in application.sessions.inOrder { application.end(session, .expired) }
    for client in clients.values where client.bound?.application == application.id {
      client.bound = nil
      context.emit(.clientChanged(client.id))
    }
    application.announceDiscard(.discarded, generations: true)
    close(application, ArchiveRemoval(caller: call.caller, withDamaged: request.damaged))
  }

  /// The store has finished a job.
  package mutating func jobFinished(
    _ id: ApplicationID,
    _ job: StoreJob,
    _ result: Result<StoreJob.Outcome, ArchiveCopyError>,
    at now: Moment
  ) {
    context.now = now
    guard let application = applications[id] else { return }
    application.jobFinished(job, result)
  }

  // MARK: Importing

  /// Reads a document or a part. With the last part, the document is checked before its archive is opened, so that a
  /// refused document creates none.
  mutating func importArchive(_ message: IncomingMessage, _ client: Client) throws(ErrorObject) {
    do throws(ErrorObject) {
      // The last part is handled again when its archive is open.
      if client.upload?.plan == nil, try !takePart(of: message, client) { return }
      guard let upload = client.upload, let plan = upload.plan else { return }
      guard let (application, session) = try scope(of: message, client) else { return }
      if let others = application.unverifiedSessions { return probe(others, of: application, for: message, client) }
      let request = try ImportArchive(message.parameters)
      var call = LongCall(message.caller, by: session, token: request.progressToken, at: context.now)
      let count = plan.objects.count
      let progress = call.progress(count, of: count, isLast: true, at: context.now)
      try application.importArchive(plan, force: request.force, progress: progress, of: call)
    } catch {
      dropUpload(of: client)
      throw error
    }
    dropUpload(of: client)
  }

  /// - Returns: whether it was the last part, and the upload has its plan.
  private mutating func takePart(of message: IncomingMessage, _ client: Client) throws(ErrorObject) -> Bool {
    guard let target = try namedApplication(message, client) else { throw Self.noApplication() }
    let request = try ImportArchive(message.parameters)
    var upload = try self.upload(for: request, into: target, client)
    let roomLeft = 2 * context.limits.archiveBytesMax - clients.values.reduce(0) { $0 + ($1.upload?.charge ?? 0) }
    if let document = request.document {
      try upload.take(document, at: "/document", context.limits, roomLeft: roomLeft)
    } else if let part = request.part {
      try upload.take(part, at: "/part", context.limits, roomLeft: roomLeft)
    }
    if upload.isIncomplete, !request.force {
      throw .restoration(
        .needsForce,
        "states are missing in the document: it was exported without confidential ones, or some could not be read",
        hint: "Export it with reveal: true, or use force: true to import the rest."
      )
    }
    guard request.more else {
      upload.plan = try ImportPlan(upload)
      let bytes = upload.plan?.headBytes(after: 0) ?? 0
      guard bytes <= context.limits.archiveBytesMax else {
        throw .limitExceeded("archiveBytesMax", max: context.limits.archiveBytesMax, value: bytes)
      }
      client.upload = upload
      return true
    }
    client.upload = upload
    context.emit(.setTimer(.upload(client.id), milliseconds: ArchiveUpload.idleMilliseconds))
    tellProgress(of: upload, token: request.progressToken, for: message.caller, client)
    let reply = ImportArchive.Reply().with {
      $0.upload = upload.token
      $0.objects = upload.objects.count
      $0.states = upload.states
      $0.bytes = upload.charge
    }
    context.emit(.respond(message.caller, .result(reply)))
    return false
  }

  /// The archive need not be open yet, so a detached session cannot be checked. It would also block the last part.
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

  /// The upload of a part; a first part begins one.
  private mutating func upload(
    for request: ImportArchive,
    into application: ApplicationName,
    _ client: Client
  ) throws(ErrorObject) -> ArchiveUpload {
    guard let token = request.upload else {
      dropUpload(of: client)
      counters.uploads += 1
      return ArchiveUpload(token: "\(counters.uploads)", application: application)
    }
    guard let upload = client.upload, upload.token == token, upload.application == application else {
      throw .invalidParameter(
        "/upload",
        "unknown upload for this connection and application",
        hint: "Begin again with the first part; the next ones must follow within a minute."
      )
    }
    return upload
  }

  mutating func dropUpload(of client: Client) {
    guard client.upload != nil else { return }
    client.upload = nil
    context.emit(.cancelTimer(.upload(client.id)))
  }
}
