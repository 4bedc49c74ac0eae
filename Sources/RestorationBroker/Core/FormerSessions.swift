// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// What the broker knows of an application's sessions besides its archive, while that is opened anew after a failure.
struct FormerSessions {
  let sessions: [SessionID: Session]
  let claims: [ObjectHandle: Node.Claim]
  /// What sessions are still to be asked for.
  let pulled: [ObjectHandle]
  /// What the restoration still waits for (R19).
  let trials: DecodeTrials
}

extension Application {
  var formerSessions: FormerSessions {
    FormerSessions(
      sessions: sessions.byNumber,
      claims: tree.claimed.compactMapValues(\.claim),
      pulled: saving.pulled.compactMap { tree.nodes[$0]?.claim?.handle },
      trials: trials
    )
  }
}
