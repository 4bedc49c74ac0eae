// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import NIOCore
internal import RestorationArchive
internal import RestorationWire

/// Work on archives that comes in pieces: others are answered, and write, in between.
extension BrokerService {
  /// A view of the archive is kept for so long after it was last used.
  private static let heldMilliseconds: Int64 = 60_000

  func carryOut(_ id: ApplicationID, _ job: StoreJob, after: SequenceNumber = 0) {
    guard let archive = archives[id] else { return }
    // Already while it waits: what is written meanwhile must not take away what it is about.
    hold(job.holds, in: archive)
    if after > archive.queue.durable {
      archive.queue.await(job, after: after)
      return
    }
    guard let lease = archive.lease else {
      let error = ArchiveError(.definite, "the archive of \(archive.name) is being opened anew")
      return core.jobFinished(id, job, .failure(.archive(error)), at: clock.now)
    }
    archive.readsUnderWay += 1
    Task {
      let result = await outcome(of: job, lease)
      handle { $0.jobFinished(id, job, result, at: $1) }
      archive.readsUnderWay -= 1
      becomeIdle(archive)
    }
  }

  private func outcome(of job: StoreJob, _ lease: ArchiveLease) async -> Result<StoreJob.Outcome, ArchiveCopyError> {
    do throws(ArchiveCopyError) {
      if case .backUp(let path?) = job.step {
        guard let store = store as? any ArchiveCopying else {
          return .failure(.archive(ArchiveError(.definite, "this store keeps no files to copy")))
        }
        return .success(.copied(bytes: try await store.copy(lease, to: path)))
      }
    } catch {
      return .failure(error)
    }
    do throws(ArchiveError) {
      switch job.step {
      case .nodes(let node, let sequence):
        let max = StoreJob.nodesMax
        return .success(.nodes(try await store.scan(after: node, limit: max, at: .sequence(sequence), lease: lease)))
      case .states(let nodes, let sequence):
        return .success(.states(try await store.read(nodes, at: .sequence(sequence), lease: lease)))
      case .check(let position): return .success(.checked(try await store.verify(lease, from: position)))
      case .backUp: return .success(.copied(bytes: try await store.backUp(lease)))
      }
    } catch {
      return .failure(.archive(error))
    }
  }

  /// Keeps what is shown at these sequences for a while.
  func hold(_ sequences: [SequenceNumber], in archive: OpenArchive) {
    let now = clock.now.monotonic
    archive.held.removeAll { $0.until <= now || sequences.contains($0.sequence) }
    archive.held += sequences.map { ($0, now + Self.heldMilliseconds) }
  }
}
