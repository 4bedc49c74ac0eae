// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// What the broker knows of an application's sessions besides its archive, kept while the archive is closed.
///
/// It is bounded by the limits of one application, by the number of applications, and by time: detached sessions
/// expire.
struct RestingSessions {
  /// What their application was while its archive was open.
  let application: ApplicationID
  /// When one of them was last used.
  let lastUsed: Int64
  private(set) var sessions: [SessionID: Session]
  private(set) var claims: [ObjectHandle: Node.Claim]
  /// What is kept of states off the disk, and what of it was stored and is not known to be durable (R4).
  private(set) var kept: [NodeID: KeptRecords]
  let leaving: [KeptStates.Leaving]
  /// What sessions are still to be asked for.
  private(set) var pulled: [ObjectHandle]
  /// What the restoration still waits for (R19).
  private(set) var trials: DecodeTrials

  /// Whether all of them end as soon as the archive is opened.
  func areOver(at now: Moment) -> Bool { !isRecent(at: now) && sessions.values.allSatisfy(\.facts.isDetached) }

  /// Whether a session is expected back that its application alone would not wait for.
  func isAwaited(at now: Moment) -> Bool { isRecent(at: now) && sessions.values.contains { $0.facts.isDetached } }

  /// Whether a detached session would still live.
  func isRecent(at now: Moment) -> Bool { now.monotonic - lastUsed < Application.detachedMilliseconds }

  /// Keeps only when they were last used. A restoration that is not complete by then never is: with what cut it short
  /// forgotten, the end of these sessions would complete it.
  mutating func forget() {
    sessions = [:]
    claims = [:]
    kept = [:]
    pulled = []
    trials = DecodeTrials()
  }
}

extension Application {
  var restingSessions: RestingSessions {
    RestingSessions(
      application: id,
      lastUsed: sessions.values.map(\.lastUsed).max() ?? turn.now.monotonic,
      sessions: sessions.byNumber,
      claims: tree.claimed.compactMapValues(\.claim),
      kept: keptRecords,
      leaving: keeping.leaving,
      pulled: saving.pulled.compactMap { tree.nodes[$0]?.claim?.handle },
      trials: trials
    )
  }
}
