// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import Synchronization

extension ReplicatedArchive {
  /// The pause before a failed copy is repeated: a full disk does not become empty at once.
  private static let copyPause: Int64 = 30_000

  func send(_ batch: ReplicaBatch, _ era: Int) async {
    guard era == self.era, let lease = holding.lease else { return }
    let begin = now
    do throws(ReplicaError) {
      try await context.replica.append(batch, lease)
      context.figures.withLock { $0.appends += 1 }
      context.settings.meter?.appended(in: now - begin)
      if era == self.era { perform(queue.appended(at: now)) }
    } catch {
      let isCurrent = era == self.era
      failed(error.kind, lease, era)
      if isCurrent { report(ReplicaFailure(error)) }
    }
  }

  func sendCopy(_ era: Int) async {
    guard era == self.era, let lease = holding.lease else { return }
    let opened = self.lease
    do throws(ClaimFailure) {
      let tip = try await sendParts(lease)
      context.figures.withLock { $0.snapshots += 1 }
      if era == self.era { perform(queue.copied(upTo: tip.sequence, at: now)) }
    } catch {
      switch error {
      case .replica(let kind):
        if era == self.era { report(ReplicaFailure(error)) }
        failed(kind.kind, lease, era)
      // Opened again meanwhile, which ends the copy: another one follows.
      case .archive where opened != self.lease: failed(.away, lease, era)
      case .archive:
        if era == self.era { report(ReplicaFailure(error)) }
        await wait(until: now + Self.copyPause)
        failed(.refused, lease, era)
      }
    }
  }

  private func failed(_ kind: ReplicaError.Kind, _ lease: ReplicaLease, _ era: Int) {
    if era == self.era { perform(queue.failed(kind, at: now)) }
    ended(kind, lease)
  }

  /// Returns the end of the copy.
  private func sendParts(_ lease: ReplicaLease) async throws(ClaimFailure) -> ReplicaTip {
    // If the archive was closed before everything was sent, the copy is opened for this.
    let isOpen = self.lease != nil
    copies += 1
    let number = copies
    let opened: ArchiveLease
    do throws(ArchiveError) {
      if let lease = self.lease {
        opened = lease
      } else {
        opened = try await base.open(application, for: .reading).lease
      }
    } catch {
      throw .archive(error)
    }
    let result: Result<ReplicaTip, ClaimFailure>
    do throws(ClaimFailure) {
      let copy = try await local { () async throws(ArchiveError) in
        try await base.beginCopy(opened, sharing: context.shared)
      }
      let partBytes = context.settings.partBytes
      let attempt = Int64.random(in: 1...1 << 53)
      let starts = Array(stride(from: 0, to: copy.bytes, by: partBytes))
      for (index, start) in starts.enumerated() {
        let range = start..<min(start + partBytes, copy.bytes)
        let bytes = try await local { () async throws(ArchiveError) in try await base.copy(of: application, range) }
        let part = SnapshotPart(
          attempt: attempt,
          tip: copy.tip,
          reader: context.reader,
          number: index,
          count: starts.count,
          bytes: bytes
        )
        try await remote { () async throws(ReplicaError) in try await context.replica.snapshot(part, lease) }
        gate.withLock { $0.progress?.time = now }
      }
      result = .success(copy.tip)
    } catch {
      result = .failure(error)
    }
    // After a fail-over another copy may have begun in the same file.
    if number == copies { await base.endCopy(of: application) }
    if !isOpen, self.lease == nil { await base.close(opened) }
    return try result.get()
  }

  /// Call when the archive is not being written and no other maintenance is due.
  func compact() async {
    guard let bytes = await base.summary(of: application)?.bytes, lease != nil else { return }
    perform(queue.compact(archiveBytes: bytes, at: now))
  }

  func hurry() {
    takeCommitted()
    perform(queue.flush(at: now))
  }
}

enum ClaimFailure: Error {
  case replica(ReplicaError)
  case archive(ArchiveError)
}

extension ReplicatedArchive {
  func local<Value: Sendable>(
    _ body: () async throws(ArchiveError) -> Value
  ) async throws(ClaimFailure) -> Value {
    do throws(ArchiveError) {
      return try await body()
    } catch {
      throw .archive(error)
    }
  }

  func remote<Value: Sendable>(
    _ body: () async throws(ReplicaError) -> Value
  ) async throws(ClaimFailure) -> Value {
    do throws(ReplicaError) {
      return try await body()
    } catch {
      throw .replica(error)
    }
  }
}
