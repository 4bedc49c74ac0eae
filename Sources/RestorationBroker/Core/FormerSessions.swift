// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// Facts about sessions that the archive does not have. They outlive a reopening after a failure.
struct FormerSessions {
  let sessions: [SessionID: Session]
  let claims: [ObjectHandle: Node.Claim]
  /// Objects whose states are still to be pulled.
  let pulled: [ObjectHandle]
  /// Confirmations and extensions that the end of the restoration waits for (R19).
  let trials: DecodeTrials
}

extension Application {
  var formerSessions: FormerSessions {
    FormerSessions(
      sessions: sessions.byNumber,
      claims: tree.claimed.compactMapValues(\.claim),
      pulled: saving.pulls.nodes.compactMap { tree.nodes[$0]?.claim?.handle },
      trials: trials
    )
  }
}
