// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Work on the archive in pieces: checking it, and copying it.
extension Application {
  func verify(_ request: VerifyArchive, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    let head = Verification.Point(generation: nil, sequence: sequence)
    let points = generations.all.reversed().map { sealed in
      Verification.Point(generation: sealed.record.generation, sequence: sealed.sequence)
    }
    let call = LongCall(caller, by: session, token: request.progressToken, at: turn.now)
    let verification = Verification(call, [head] + points)
    jobs.begin(.verification(verification), .check(nil), for: caller, in: &turn)
  }

  /// Copies the archive, which has changed since the last copy of a day ago or longer (R32).
  func backupTimerFired() {
    guard case .open = phase, runs.backUp(in: turn) else { return }
    turn.ask(.backUp(id, replacingFormer: runs.isFormerDue(in: turn)))
    writeRun()
  }

  func backUp(_ request: BackupArchive, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    let call = LongCall(caller, by: session, token: request.progressToken, at: turn.now)
    jobs.begin(.backup(call, to: request.to), .backUp(to: request.to), for: caller, in: &turn)
  }

  /// Begins the calls for which there is room now. If the archive is being reopened, they wait for that.
  func beginWaiting() {
    // Another call follows when the archive is open, or the long turn is over.
    if case .opening = phase { return }
    if turn.isLong { return }
    while let waiting = jobs.nextWaiting() {
      guard sessions.isConnected(waiting.caller.client) else { continue }
      do throws(ErrorObject) {
        try waiting.begin(self)
      } catch {
        turn.refuse(waiting.caller, error)
      }
    }
  }

  /// A step of an operation has ended.
  func jobFinished(_ job: StoreJob, _ result: Result<StoreJob.Outcome, ArchiveCopyError>) {
    // If the client has left, the rest is not needed.
    defer { beginWaiting() }
    guard let operation = jobs.finishStep(of: job, in: &turn), sessions.isConnected(job.caller.client) else { return }
    switch result {
    case .success(let outcome): goOn(with: consume operation, outcome, job)
    case .failure(.archive(let error)): turn.refuse(job.caller, .storeError(error))
    case .failure(.target(let message)):
      let error = ErrorObject.invalidParameter(
        "/to",
        "the file cannot be made: \(message)",
        hint: "Name a file that does not exist yet, in a directory that the broker may write to."
      )
      turn.refuse(job.caller, error)
    }
  }

  /// It is consumed: what it has gathered would be copied if it changed while another holds it.
  private func goOn(with operation: consuming Operation, _ outcome: StoreJob.Outcome, _ job: StoreJob) {
    switch (consume operation, outcome) {
    case (.verification(var verification), _): goOn(with: &verification, outcome, job)
    case (.planning(var planning), _): goOn(with: &planning, outcome, job)
    case (.page(var reading), .nodes(let nodes)): goOn(with: &reading, nodes, job)
    case (.rollback(var rollback, let nodes), _): goOn(with: &rollback, reading: nodes, outcome, job)
    case (.comparison(var comparison, let place), _): goOn(with: &comparison, from: place, outcome, job)
    case (.backup(var call, let path), .copied(let bytes)):
      tell(call.progress(bytes, of: bytes, isLast: true, at: turn.now), of: call)
      let reply = BackupArchive.Reply().with {
        ($0.to, $0.bytes, $0.milliseconds) = (path, bytes, call.milliseconds(at: turn.now))
      }
      turn.ask(.respond(job.caller, .result(reply)))
    case (.page, _), (.backup, _):
      turn.refuse(job.caller, .internalError(hint: "Call again; the broker's log says more."))
    }
  }

  private func goOn(with verification: inout Verification, _ outcome: StoreJob.Outcome, _ job: StoreJob) {
    var step: StoreJob.Step?
    switch outcome {
    case .checked(let piece):
      // What was written since the check began may refer to objects that are as new.
      verification.take(piece, lastNode: tree.last)
      step = piece.next.map { .check($0) }
    case .nodes(let nodes): verification.take(nodes, origins: origins)
    case .states, .copied: break
    }
    var after: SequenceNumber = 0
    if step == nil {
      if verification.prepare(head: sequence, kept: generations.all) { after = sequence }
      step = verification.nextPoint.map { .nodes(after: $0.after, at: $0.at) }
    }
    if step == nil { verification.finish() }
    let (done, total) = verification.progress
    let progress = verification.call.progress(done, of: total, isLast: step == nil, at: turn.now)
    tell(progress, of: verification.call)
    if let step { return jobs.goOn(with: .verification(verification), step, job, after: after, in: &turn) }
    let reply = verification.reply(milliseconds: verification.call.milliseconds(at: turn.now))
    turn.ask(.respond(job.caller, .result(reply)))
  }
}
