// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import RestorationWire

/// A fact about an archive and its replica in the fleet's store (R36).
package enum ReplicaFact: Hashable, Sendable {
  case conflict(ArchiveConflict)
  case behind(ArchiveLag)
  case caughtUp

  static func lack(of changes: Int64) -> String {
    "the fleet's store lacks \(changes == 1 ? "1 change" : "\(changes) changes") of this host"
  }
}

extension CoreContext {
  /// - Parameter id: 0 if the application is not open.
  func tell(_ fact: ReplicaFact, of name: ApplicationName, _ id: ApplicationID) {
    switch fact {
    case .conflict(let conflict):
      emit(.log(.warning, conflict.text, of: name, .archiveConflict))
      announce(id, name, .settled) {
        ArchiveSetAside().with { ($0.host, $0.changes, $0.file) = (conflict.host, conflict.changes, conflict.file) }
      }
    case .behind(let lag):
      let text = "\(ReplicaFact.lack(of: lag.changes)): \(lag.failure.message)"
      emit(.log(.warning, text, of: name, .replicaBehind))
      announce(id, name, .settled) {
        ReplicaBehind().with {
          $0.cause = ReplicaBehind.Cause(rawValue: lag.failure.cause.rawValue) ?? .refused
          ($0.changes, $0.message) = (lag.changes, lag.failure.message)
        }
      }
    case .caughtUp:
      emit(.log(.info, "the fleet's store has everything again", of: name))
      announce(id, name, .settled) { ReplicaCaughtUp() }
    }
  }
}

extension ArchiveConflict {
  fileprivate var text: String {
    if isRemoval {
      let text = "the fleet's store says that the application was forgotten on \(host ?? "another host")"
      return "\(text); this host's copy is kept as \(file): remove it, if that is right"
    }
    let changes = changes.map { "\($0) changes" } ?? "changes"
    return "what \(host ?? "another host") wrote has replaced \(changes) of this host; its copy is kept as \(file)"
  }
}
