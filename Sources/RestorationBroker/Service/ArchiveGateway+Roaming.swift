// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// Archives that follow their user from host to host (R36).
extension ArchiveGateway {
  /// Counts for the opening that is under way or follows.
  package func takeOver(_ name: ApplicationName) { (store as? any ArchiveRoaming)?.takeOver(name.description) }

  /// Something is being sent to where archives follow their user, and nobody waits for it.
  var isShipping: Bool { (store as? any ArchiveRoaming)?.isShipping ?? false }

  func answer(_ request: ReplicaRequest, to caller: Caller, for delegate: isolated some Delegate) {
    guard let store = store as? ReplicatedStore else { return delegate.send(request.answerWithoutReplica, to: caller) }
    Task {
      let answer = await store.answer(request)
      delegate.send(answer, to: caller)
    }
  }

  package func take(_ event: ArchiveRoamingEvent, for delegate: isolated some Delegate) {
    switch event {
    case .wanted(let lease, let host):
      guard let session = session(of: lease) else { return }
      // Told again once it is open, whatever its lease is then.
      if session.lease == nil { return session.wantedBy = host }
      delegate.report(.wanted(session.id, host: host))
    case .lost(let lease, let loss):
      guard let session = session(of: lease) else { return }
      if session.lease == nil { return session.loss = (lease, loss) }
      guard session.lease == lease else { return }
      delegate.report(.lost(session.id, loss))
    case .conflict(let application, let conflict): report(.conflict(conflict), of: application, to: delegate)
    case .behind(let application, let lag): report(.behind(lag), of: application, to: delegate)
    case .caughtUp(let application): report(.caughtUp, of: application, to: delegate)
    }
    delegate.carryOut()
  }

  private func report(_ fact: ReplicaFact, of application: String, to delegate: isolated some Delegate) {
    if let name = ApplicationName(application) { delegate.report(.replica(name, fact)) }
  }

  /// The archive is open: what was told meanwhile holds now.
  func takeEarlyEvents(of session: ArchiveSession, for delegate: isolated some Delegate) {
    if let host = session.wantedBy.take() { delegate.report(.wanted(session.id, host: host)) }
    if let (lease, loss) = session.loss.take(), session.lease == lease { delegate.report(.lost(session.id, loss)) }
  }

  /// The one that is open or being opened under a lease, unless it is being closed.
  private func session(of lease: ArchiveLease) -> ArchiveSession? {
    sessions.values.first { $0.name.description == lease.application && !$0.isClosing }
  }
}
