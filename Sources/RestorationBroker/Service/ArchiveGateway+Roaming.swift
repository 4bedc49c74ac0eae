// SPDX-License-Identifier: Apache-2.0

internal import Logging
package import RestorationArchive
package import RestorationWire

/// Archives that follow their user from host to host (R36).
extension ArchiveGateway {
  /// Counts for the opening that is under way or follows.
  package func takeOver(_ name: ApplicationName) { (store as? any ArchiveRoaming)?.takeOver(name.description) }

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
    case .conflict(let application, let conflict): log(conflict, of: application)
    }
    delegate.carryOut()
  }

  /// This host's copy had something that another host has not got.
  private func log(_ conflict: ArchiveConflict, of application: String) {
    let changes = conflict.changes.map { "\($0) changes" } ?? "changes"
    let writer = conflict.host ?? "another host"
    let text = "what \(writer) wrote has replaced \(changes) of this host; its copy is kept as \(conflict.file)"
    logger.warning("\(text)", metadata: ["application": "\(application)"])
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
