// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import NIOCore
internal import RestorationArchive

/// Maintenance of archives in idle time.
extension ArchiveGateway {
  /// Some time after the last write, tidies the archive in bounded pieces until nothing is left. Then no timer runs,
  /// and an idle broker makes no system call.
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

  /// Copies the archive as the last good one, unless the disk is rather full (R32).
  package func backUp(_ id: ApplicationID, replacingFormer: Bool, for delegate: isolated some Delegate) {
    guard let session = sessions[id], let lease = session.lease else { return }
    Task {
      _ = delegate  // the caller's isolation: this runs on its executor
      do throws(ArchiveError) {
        _ = try await store.backUp(lease, replacingFormer: replacingFormer, leavingRoom: true)
      } catch {
        let text = "no backup copy was made: \(error.message)"
        logger.report(.backupFailed, .warning, text, ["application": "\(session.name)"])
      }
    }
  }
}
