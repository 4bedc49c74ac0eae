// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// Archives that follow their user from host to host (R36).
extension ArchiveGateway {
  /// Forces the opening in progress, or the next one, to take the archive from another host.
  package func takeOver(_ name: ApplicationName) { (store as? any ArchiveRoaming)?.takeOver(name.description) }

  var isShipping: Bool { (store as? any ArchiveRoaming)?.isShipping ?? false }

  func answer(_ request: ReplicaRequest, to caller: Caller, for delegate: isolated some Delegate) {
    guard let store = store as? any ArchiveReplicating else {
      return delegate.send(request.answerWithoutReplica, to: caller)
    }
    Task {
      let answer = await store.answer(request)
      delegate.send(answer, to: caller)
    }
  }

  package func take(_ event: ArchiveRoamingEvent, for delegate: isolated some Delegate) {
    switch event {
    case .wanted(let lease, let host):
      guard let session = session(of: lease) else { return }
      // Reported again once the archive is open, whatever its lease is then.
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

  /// Handles the events that came while the archive was being opened.
  func takeEarlyEvents(of session: ArchiveSession, for delegate: isolated some Delegate) {
    if let host = session.wantedBy.take() { delegate.report(.wanted(session.id, host: host)) }
    if let (lease, loss) = session.loss.take(), session.lease == lease { delegate.report(.lost(session.id, loss)) }
  }

  /// The session that is open or being opened under a lease; `nil` if it is being closed.
  private func session(of lease: ArchiveLease) -> ArchiveSession? {
    sessions.values.first { $0.name.description == lease.application && !$0.isClosing }
  }
}
