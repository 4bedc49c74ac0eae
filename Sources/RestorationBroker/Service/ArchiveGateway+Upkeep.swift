// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import NIOCore
internal import RestorationArchive

/// What is done for archives while nobody waits.
extension ArchiveGateway {
  /// A while after the last write the archive is tidied, a bounded piece at a time, until nothing is left to do; then
  /// there is no timer, and an idle broker makes no system call.
  func scheduleUpkeep(_ session: ArchiveSession, at now: Int64, for delegate: isolated some Delegate) {
    guard !session.isClosing, session.queue.isIdle, !session.upkeep.isUnderWay else { return }
    let wait = session.upkeep.written(at: now)
    if session.upkeepTimer == nil { scheduleUpkeep(session, in: wait, for: delegate) }
  }

  private func scheduleUpkeep(_ session: ArchiveSession, in milliseconds: Int64, for delegate: isolated some Delegate) {
    let id = session.id
    guard !isStopping, sessions[id] === session else { return }
    session.upkeepTimer = eventLoop.scheduleTask(in: .milliseconds(milliseconds)) {
      delegate.assumeIsolated { $0.archives.maintain(id, for: $0) }
    }
  }

  private func maintain(_ id: ApplicationID, for delegate: isolated some Delegate) {
    guard !isStopping, let session = sessions[id] else { return }
    session.upkeepTimer = nil
    guard let lease = session.lease, !session.hasFailed, session.queue.isIdle else { return }
    let begin = now
    if let wait = session.upkeep.begin(at: begin) { return scheduleUpkeep(session, in: wait, for: delegate) }
    session.held.expire(at: begin)
    let held = session.held.sequences
    Task {
      let isMore = (try? await store.maintain(lease, holding: held)) ?? false
      let rest = session.upkeep.ended(after: now - begin)
      if isMore { scheduleUpkeep(session, in: rest, for: delegate) }
    }
  }

  /// Keeps a copy of the archive as the last good one (R32).
  package func backUp(_ id: ApplicationID, replacingFormer: Bool, for delegate: isolated some Delegate) {
    guard let session = sessions[id], let lease = session.lease else { return }
    Task {
      _ = delegate  // whose executor this runs on
      do throws(ArchiveError) {
        try await store.backUp(lease, replacingFormer: replacingFormer)
      } catch {
        let text = "no backup copy was made: \(error.message)"
        logger.report(.backupFailed, .warning, text, ["application": "\(session.name)"])
      }
    }
  }
}
