// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

extension ArchiveGateway {
  /// The row, if it is durable and cached.
  package func cached(_ row: StateRequest.Row, of id: ApplicationID) -> StateRecord? {
    guard let session = sessions[id] else { return nil }
    session.upkeep.noteRead()
    guard row.sequence <= session.queue.durable else { return nil }
    return cache.record(id, row.node, sequence: row.sequence)
  }

  /// The rows if all of them are cached.
  func cached(_ rows: [StateRequest.Row], of id: ApplicationID) -> [StateReading?]? {
    var readings: [StateReading?] = []
    for row in rows {
      guard let record = cache.record(id, row.node, sequence: row.sequence) else { return nil }
      readings.append(.state(record, sequence: row.sequence))
    }
    return readings
  }

  package func read(
    _ id: ApplicationID,
    _ request: StateRequest,
    after: SequenceNumber,
    for delegate: isolated some Delegate
  ) {
    guard let session = sessions[id] else { return }
    guard after <= session.queue.durable else {
      session.queue.await(request, after: after)
      return hurry(session.id, for: delegate)
    }
    if let readings = cached(request.rows, of: id) { return delegate.report(.read(id, request, .success(readings))) }
    session.missing.append(request)
    scheduleFlush(id, for: delegate)
  }

  /// Reads all rows that the cache lacks, by one call of the store.
  func readMissing(_ session: ArchiveSession, for delegate: isolated some Delegate) {
    guard let lease = session.lease, !session.missing.isEmpty else { return }
    let requests = session.missing
    session.missing = []
    session.callBegins()
    Task {
      let readings = await store.readings(of: requests, lease)
      for (request, result) in readings {
        if case .success(let readings) = result, case .decode = request.purpose {
          for case .state(let record, let sequence) in readings {
            cache.insert(record, sequence: sequence, of: session.id)
          }
        }
        delegate.report(.read(session.id, request, result))
        delegate.carryOut()
      }
      if case .failure(let error)? = readings.first?.result { failIfChanged(session, error, for: delegate) }
      callEnds(session, for: delegate)
    }
  }

  // MARK: Reports

  /// Keeps the contents at these sequences readable.
  package func hold(_ sequences: [SequenceNumber], of id: ApplicationID) -> SnapshotHold {
    sessions[id]?.held.hold(sequences)
    return SnapshotHold { [self] in sessions[id]?.held.release(sequences, at: now) }
  }

  /// Begins to wait until the change is durable, or never will be.
  package func wait(
    for sequence: SequenceNumber,
    in id: ApplicationID,
    for delegate: isolated some Delegate
  ) -> DurabilityWait {
    let wait = DurabilityWait(turns)
    // Before it is known whether it waits: the change may be one that was lost.
    guard let session = sessions[id], session.lease != nil, !session.hasFailed else {
      wait.end(with: ArchiveError(.definite, "the archive is being opened anew"))
      return wait
    }
    guard sequence > session.queue.durable else {
      wait.end(with: nil)
      return wait
    }
    session.queue.await(after: sequence) { wait.end(with: $0) }
    hurry(id, for: delegate)
    return wait
  }

  func callEnds(_ session: ArchiveSession, for delegate: isolated some Delegate) {
    session.callEnded()
    becomeIdle(session, for: delegate)
  }

  package func list(_ purpose: ListingPurpose, for delegate: isolated some Delegate) {
    Task {
      let listing = await store.listing(for: purpose)
      // Serves others between the answers to listings.
      await turns.next()
      delegate.report(.listed(purpose, listing))
      delegate.carryOut()
    }
  }
}

/// A wait for a change, which begins before its task is suspended. It ends once: with `nil` when the change is durable,
/// else with the reason why it never will be.
package final class DurabilityWait {
  private let turns: TurnQueue
  private var result: Result<Void, ArchiveError>?
  private var task: CheckedContinuation<Void, Never>?

  init(_ turns: TurnQueue) { self.turns = turns }

  func end(with error: ArchiveError?) {
    result = error.map { .failure($0) } ?? .success(())
    task?.resume()
  }

  nonisolated(nonsending) package func failure() async -> ArchiveError? {
    if result == nil { await turns.suspend { if result == nil { task = $0 } else { $0.resume() } } }
    if case .failure(let error)? = result { return error }
    return nil
  }
}
