// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// A report that is under way. Its archive is busy until it ends.
final class ReportUnderWay {
  let session: ArchiveSession
  var hold: SnapshotHold
  var task: Task<Void, Never>?

  init(in session: ArchiveSession, _ hold: consuming SnapshotHold) {
    self.session = session
    self.hold = hold
  }
}

/// Reports run as tasks beside the core.
extension BrokerService {
  func begin(_ report: any Report, _ id: ReportID, for call: LongCall, after sequence: SequenceNumber) {
    guard let session = archives.sessions[id.application] else {
      send(.error(.shuttingDown()), to: call.caller)
      return handle { $0.reportEnded(id, at: $1) }
    }
    let underWay = ReportUnderWay(in: session, archives.hold(report.sequences, of: id.application))
    reports[id] = underWay
    session.callBegins()
    let archive = ArchiveSnapshots(for: call, id, in: archives.store, of: self)
    underWay.task = Task {
      let answer = await archive.answer(to: report, after: sequence)
      end(id, answer, to: call.caller)
    }
  }

  private func end(_ id: ReportID, _ answer: Answer?, to caller: Caller) {
    guard let underWay = reports.removeValue(forKey: id) else { return }
    if let answer { send(answer, to: caller) }
    handle { $0.reportEnded(id, at: $1) }
    archives.callEnds(underWay.session, for: self)
  }

  // MARK: What reports ask for

  /// Asks the core; throws if the application is open no more.
  func ask<Value: Sendable>(
    _ id: ApplicationID,
    _ question: @Sendable (Application) throws(ErrorObject) -> Value
  ) throws(ErrorObject) -> Value {
    var answer: Result<Value, ErrorObject>?
    handle { core, now in answer = core.ask(id, question, at: now) }
    guard let answer else { throw .storeFailed("the archive was closed meanwhile", indeterminate: false) }
    return try answer.get()
  }

  /// The lease under which the report began; throws if there is another one by now.
  func lease(for id: ReportID) throws(ErrorObject) -> ArchiveLease {
    guard let session = reports[id]?.session, archives.sessions[session.id] === session, !session.hasFailed,
      let lease = session.lease
    else { throw .storeFailed("the archive was reopened meanwhile", indeterminate: false) }
    return lease
  }

  /// Returns when the change is durable; throws if it never will be.
  func awaitDurable(_ sequence: SequenceNumber, for id: ReportID) async throws(ErrorObject) {
    _ = try lease(for: id)
    if let error = await archives.wait(for: sequence, in: id.application, for: self).failure() {
      throw .storeError(error)
    }
  }

  func hold(_ sequences: [SequenceNumber], for id: ReportID) {
    guard let underWay = reports[id] else { return }
    underWay.hold = archives.hold(sequences, of: id.application)
  }

  func cached(_ rows: [StateRequest.Row], of id: ApplicationID) -> [StateReading?]? { archives.cached(rows, of: id) }

  /// Lets others have their turn; throws if no caller waits for the report, or the archive was reopened.
  func endPiece(of id: ReportID, for client: ClientID, _ error: ArchiveError? = nil) async throws(ErrorObject) {
    await archives.turns.next()
    if let error, let session = reports[id]?.session { archives.failIfChanged(session, error, for: self) }
    guard !Task.isCancelled, !core.isDone(with: client) else {
      throw .requestCancelled(hint: "No client waits for the answer.")
    }
    if error == nil { _ = try lease(for: id) }
  }
}
