// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import Synchronization

extension ReplicatedArchive {
  func close(_ closing: ArchiveLease) async {
    await begin()
    defer { end() }
    guard closing == lease else { return await base.close(closing) }
    await leave()
  }

  /// Sends the rest within the closing time, closes the copy, and releases the lease if the replica has everything.
  /// Otherwise this broker or the next one sends the rest later.
  func leave(waiting: Bool = true) async {
    takeCommitted()
    wantedBy = nil
    perform(holding.closed())
    if waiting, holding.lease != nil, queue.lag > 0 || holding.isClaiming {
      await drain(until: context.closingDeadline)
    }
    await closeCopy()
    await giveBack()
  }

  private func drain(until deadline: Int64) async {
    let latch = context.latch(openingAt: deadline)
    drained = latch
    _ = await latch.wait()
    drained = nil
  }

  /// Called when the rest of a closed archive has been sent.
  func leaveLate() async {
    await begin()
    defer { end() }
    if lease == nil { await giveBack() }
  }

  /// The same, until the deadline.
  func leaveLate(by deadline: Int64) async {
    let latch = context.latch(openingAt: deadline)
    start {
      await $0.leaveLate()
      latch.open()
    }
    _ = await latch.wait()
  }

  /// Sends what a former broker of this host has left, then releases the lease. Runs in the background.
  ///
  /// Returns false if the replica does not answer.
  func sendLeft() async -> Bool {
    await begin()
    defer { end() }
    guard lease == nil, holding.lease == nil,
      ReplicaNote(kept: try? await base.note(of: application)).standing?.phase == .held
    else { return true }
    queue.endFlush()
    guard holding.opened(at: now) else { return true }
    publish()
    do throws(ArchiveError) {
      try await take(for: .reading)
    } catch {
      return ![.away, .unknown].contains(journal.failure?.cause)
    }
    await leave(waiting: false)
    return true
  }

  private func giveBack() async {
    takeCommitted()
    guard queue.lag == 0 || holding.isClaiming else { return }
    for case .release(let lease) in holding.flushed() {
      publish()
      // The process is about to end, and the replica may be silent.
      guard now < context.stopping.withLock({ $0 }) ?? .max else { continue }
      let summary = await base.summary(of: application)?.text ?? []
      do throws(ReplicaError) {
        try await context.replica.release(lease, .left(upto: queue.stored, summary: summary))
        note.standing?.phase = .released
        // Without it the next broker claims the archive.
        if note.standing != nil { try? await base.keep(note.text, of: application) }
      } catch {
        switch error.kind {
        // The replica was put back. If it does not even know the lease, the shipment finds out.
        case .gap where queue.stored > 0, .voided where queue.stored > 0:
          perform(queue.wentBack(to: 0, at: now))
          return perform(holding.releaseRefused())
        // The lease expires, and this host's next broker may claim it.
        case .elsewhere, .fenced, .voided, .away, .unknown, .gap, .uncovered, .tooNew, .key, .quota, .refused: break
        }
      }
    }
    holding.released()
    settle()
  }

  // MARK: Removing

  /// `remove` with its error as a value, as `opening`.
  func removal(damaged: Bool) async -> Result<Void, ArchiveError> {
    do throws(ArchiveError) {
      return .success(try await remove(damaged: damaged))
    } catch {
      return .failure(error)
    }
  }

  /// Removes the archive, which must be closed, for all hosts.
  private func remove(damaged: Bool) async throws(ArchiveError) {
    await begin()
    defer { end() }
    guard lease == nil else { throw ArchiveError(.definite, "the archive of \(application) is open") }
    note = ReplicaNote(kept: try await base.note(of: application))
    try await removeThere()
    try await removeHere(damaged: damaged)
    if damaged { try await base.removeSetAside(application) }
  }

  private func removeHere(damaged: Bool) async throws(ArchiveError) {
    try await base.remove(application, damaged: damaged)
    try await base.keep(nil, of: application)
    note = ReplicaNote()
  }

  private func removeThere() async throws(ArchiveError) {
    do throws(ReplicaError) {
      var end = ReplicaEnd.removed
      if holding.opened(at: now) {
        publish()
        let grant = try await acquire(wants: false)
        _ = holding.granted(grant.lease)
        _ = holding.caughtUp()
        // No other host has any of it.
        if grant.tip.sequence == 0 { end = .left(upto: 0, summary: []) }
      }
      _ = holding.closed()
      for case .release(let lease) in holding.flushed() { try await context.replica.release(lease, end) }
      holding.released()
      settle()
    } catch {
      perform(holding.refused(error.kind, at: now))
      holding.released()
      settle()
      throw failure(error)
    }
  }
}
