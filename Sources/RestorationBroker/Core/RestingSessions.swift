// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// What the broker knows of an application's sessions that is not in its archive: kept while that is closed.
///
/// It is bounded by what one application may have, by the number of applications, and by time: detached sessions are
/// over after a while.
struct RestingSessions {
  /// What their application was while its archive was open.
  let application: ApplicationID
  /// When one of them was last used.
  let lastUsed: Int64
  private(set) var sessions: [SessionID: Session]
  private(set) var claims: [ObjectHandle: Node.Claim]

  /// Whether all of them end as soon as the archive is opened.
  func areOver(at now: Moment) -> Bool {
    now.monotonic - lastUsed >= Application.detachedMilliseconds && sessions.values.allSatisfy(\.facts.isDetached)
  }

  /// Keeps only when they were last used.
  mutating func forget() {
    sessions = [:]
    claims = [:]
  }
}

extension Application {
  var restingSessions: RestingSessions {
    RestingSessions(
      application: id,
      lastUsed: sessions.values.map(\.lastUsed).max() ?? context.now.monotonic,
      sessions: sessions,
      claims: nodesByHandle.compactMapValues(\.claim)
    )
  }
}
