// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// What is read from archives, and pieces of work about what is in them.
extension ArchiveGateway {
  /// The row if it is durable and at hand.
  package func cached(_ row: StateRequest.Row, of id: ApplicationID) -> StateRecord? {
    guard let session = sessions[id] else { return nil }
    session.upkeep.noteRead()
    guard row.sequence <= session.queue.durable else { return nil }
    return cache.record(id, row.node, sequence: row.sequence)
  }

  package func read(
    _ id: ApplicationID,
    _ request: StateRequest,
    after: SequenceNumber,
    for delegate: isolated some Delegate
  ) {
    guard let session = sessions[id] else { return }
    if case .export(let page) = request.purpose { session.held.hold(page.holds, at: now) }
    guard after <= session.queue.durable else {
      session.queue.await(request, after: after)
      return hurry(session.id, for: delegate)
    }
    var readings: [StateReading?] = []
    for row in request.rows {
      guard let record = cache.record(id, row.node, sequence: row.sequence) else {
        session.missing.append(request)
        return scheduleFlush(id, for: delegate)
      }
      readings.append(.state(record, sequence: row.sequence))
    }
    delegate.report(.read(id, request, .success(readings)))
  }

  /// Brings everything the cache had not in one call of the store.
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

  /// Does a piece of work; others are answered, and write, between two of them.
  package func carryOut(
    _ id: ApplicationID,
    _ job: StoreJob,
    after: SequenceNumber,
    for delegate: isolated some Delegate
  ) {
    guard let session = sessions[id] else { return }
    // Already while it waits: what is written meanwhile must not take away what it is about.
    session.held.hold(job.holds, at: now)
    // Before it is known whether it waits: the change may be one that was lost.
    guard let lease = session.lease else {
      let error = ArchiveError(.definite, "the archive of \(session.name) is being opened anew")
      return delegate.report(.carriedOut(id, job, .failure(.archive(error))))
    }
    guard after <= session.queue.durable else {
      session.queue.await(job, after: after)
      return hurry(session.id, for: delegate)
    }
    session.callBegins()
    Task {
      let result = await store.outcome(of: job, lease)
      await turns.next()
      delegate.report(.carriedOut(id, job, result))
      delegate.carryOut()
      if case .failure(.archive(let error)) = result { failIfChanged(session, error, for: delegate) }
      callEnds(session, for: delegate)
    }
  }

  private func callEnds(_ session: ArchiveSession, for delegate: isolated some Delegate) {
    session.callEnded()
    becomeIdle(session, for: delegate)
  }

  package func list(_ purpose: ListingPurpose, for delegate: isolated some Delegate) {
    Task {
      let listing = await store.listing(for: purpose)
      // Others are served between the answers to listings.
      await turns.next()
      delegate.report(.listed(purpose, listing))
      delegate.carryOut()
    }
  }
}
