// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import NIOCore
internal import RestorationArchive
internal import RestorationTransport
internal import RestorationWire

/// The traffic with the archive store.
extension BrokerService {
  /// Upkeep of an archive begins after so long without a write.
  private static let quietMilliseconds: Int64 = 500
  /// Upkeep waits for readers to pause as well, but not longer than so many times that long.
  private static let deferralsMax = 1
  /// Between two pieces of upkeep the thread is left to others for so many times as long as the piece took.
  private static let restFactor: Int64 = 4
  /// An archive whose transactions fail one after the other is opened again only after so long.
  private static let reopenMilliseconds: Int64 = 1_000

  // MARK: Opening and closing

  func open(_ id: ApplicationID, _ name: ApplicationName, creating: Bool) {
    let former = archives.values.first { $0.name == name && $0.id != id }
    let archive = OpenArchive(id: id, name: name)
    let before = archives.updateValue(archive, forKey: id)
    if let before { archive.takeWaiting(from: before) }
    archive.failed = before?.failed
    let waits = before?.reopensLate ?? false
    cache.removeAll(of: id)
    Task {
      if waits { try? await eventLoop.scheduleTask(in: .milliseconds(Self.reopenMilliseconds)) {}.futureResult.get() }
      if let former { await idle(former) }
      await closings[name]?.value
      if let lease = before?.lease { await store.close(lease) }
      do throws(ArchiveError) {
        let opening = try await store.open(name.description, creating: creating)
        archive.lease = opening.lease
        archive.queue.opened(at: opening.sequence)
        if !archive.missing.isEmpty { scheduleFlush(id) }
        let ended = Self.endedSessions(opening.sessions)
        handle { $0.opened(id, .success(opening), ended: ended, at: $1) }
      } catch {
        archive.hasFailed = true
        handle { $0.opened(id, .failure(error), ended: [], at: $1) }
      }
      becomeIdle(archive)
    }
  }

  /// Sessions the archive knows as live whose processes are gone.
  private static func endedSessions(_ records: [SessionRecord]) -> Set<SessionID> {
    var ended: Set<SessionID> = []
    for record in records where record.ending == nil {
      let facts = SessionFacts(stored: record.facts)
      guard !facts.isDetached else { continue }
      if facts.process.map({ ProcessHandle.open($0.identity) == nil }) ?? true { ended.insert(record.session) }
    }
    return ended
  }

  /// Closes an archive once everything written to it is durable and answered.
  func close(_ id: ApplicationID) {
    guard let archive = archives[id] else { return }
    archive.isClosing = true
    archive.upkeep?.cancel()
    becomeIdle(archive)
  }

  private func finishClosing(_ archive: OpenArchive) {
    archives[archive.id] = nil
    cache.removeAll(of: archive.id)
    guard let lease = archive.lease else { return }
    let name = archive.name
    closings[name] = Task {
      await store.close(lease)
      closings[name] = nil
    }
  }

  /// Returns when nothing is under way with the archive.
  func idle(_ archive: OpenArchive) async {
    // Asked where it begins to wait: on the way there this task can let others go first.
    await withCheckedContinuation { waiting in
      if archive.isBusy { archive.whenIdle.append(waiting) } else { waiting.resume() }
    }
  }

  // MARK: Writing

  func commitNext(_ id: ApplicationID) {
    guard let archive = archives[id], let lease = archive.lease else { return }
    guard case .commit(let batch, let expecting) = archive.queue.next() else { return }
    archive.upkeep?.cancel()
    archive.upkeep = nil
    transactions += 1
    let held = archive.held.map(\.sequence) + archive.queue.awaitedSequences
    let (high, low) = settings.random()
    Task {
      do throws(ArchiveError) {
        let receipt = try await store.apply(
          batch,
          lease: lease,
          expecting: expecting,
          changeID: ChangeID(high: high, low: low),
          holding: held
        )
        finishCommit(id, archive, receipt)
      } catch {
        // After a failure the batches handed over behind it fail too; that has been dealt with.
        if !archive.hasFailed { failCommit(id, archive, error) }
      }
    }
  }

  private func finishCommit(_ id: ApplicationID, _ archive: OpenArchive, _ receipt: ArchiveReceipt) {
    for waiting in archive.queue.committed(receipt) { send(waiting.answer, to: waiting.caller) }
    archive.settle()
    for notice in archive.queue.readyNotices() { send(notice, of: id) }
    for request in archive.queue.readyReads() { read(id, request, after: 0) }
    for request in archive.queue.readyScans() { scan(id, request) }
    for job in archive.queue.readyJobs() { carryOut(id, job) }
    handle { $0.committed(id, receipt, at: $1) }
    resumeWriters()
    becomeIdle(archive)
    scheduleUpkeep(id, archive)
  }

  /// What was not durable before never will be; the core starts again from what is.
  private func failCommit(_ id: ApplicationID, _ archive: OpenArchive, _ error: ArchiveError) {
    logger.error("\(error.message)", metadata: ["application": "\(archive.name)"])
    let isFatal = error.kind == .indeterminate || error.kind == .fenced
    let answer = Answer.error(Application.storeFailed(error.message, indeterminate: isFatal))
    let notices = archive.queue.noticesOfFailure()
    for caller in archive.queue.failed() { send(answer, to: caller) }
    archive.settle(hasFailed: true)
    for notice in notices { send(notice, of: id) }
    archive.hasFailed = true
    if isFatal {
      // A failed sync cannot be repeated: the kernel may have dropped the pages. A new process reads what is there.
      isStopping = true
      // The answers above leave at the end of this tick; the process ends after that.
      let (end, message) = (whenFatal, error.message)
      eventLoop.execute { end?(message) }
      return
    }
    let now = clock.now.monotonic
    archive.reopensLate = archive.failed.map { now - $0 < 5 * Self.reopenMilliseconds } ?? false
    archive.failed = now
    handle { $0.commitFailed(id, at: $1) }
    resumeWriters()
    becomeIdle(archive)
  }

  func becomeIdle(_ archive: OpenArchive) {
    guard !archive.isBusy else { return }
    if archive.isClosing, archives[archive.id] === archive { finishClosing(archive) }
    let waiting = archive.whenIdle
    archive.whenIdle = []
    for continuation in waiting { continuation.resume() }
  }

  // MARK: Reading

  func readState(_ id: ApplicationID, _ row: StateRequest.Row, _ caller: Caller) {
    guard let archive = archives[id] else { return }
    archive.reads &+= 1
    if row.sequence <= archive.queue.durable, let record = cache.record(id, row.node, sequence: row.sequence),
      let reply = core.decoded(id, record)
    {
      if let call = caller.call { connections[caller.client]?.respond(to: call) { reply.writeJSON(to: &$0) } }
    } else {
      read(id, StateRequest(caller: caller, purpose: .decode(node: row.node), rows: [row]), after: row.sequence)
    }
  }

  func read(_ id: ApplicationID, _ request: StateRequest, after: SequenceNumber) {
    guard let archive = archives[id] else { return }
    if case .export(let page) = request.purpose { hold(page.holds, in: archive) }
    if after > archive.queue.durable {
      archive.queue.await(request, after: after)
      return
    }
    var readings: [StateReading?] = []
    for row in request.rows {
      guard let record = cache.record(id, row.node, sequence: row.sequence) else {
        archive.missing.append(request)
        scheduleFlush(id)
        return
      }
      readings.append(.state(record, sequence: row.sequence))
    }
    core.readingFinished(id, request, .success(readings), at: clock.now)
  }

  /// Brings everything the cache had not in one call of the store.
  func readMissing(_ id: ApplicationID) {
    guard let archive = archives[id], let lease = archive.lease, !archive.missing.isEmpty else { return }
    let requests = archive.missing
    archive.missing = []
    archive.readsUnderWay += 1
    Task {
      for request in await readings(of: requests, lease) {
        if case .success(let readings) = request.result, case .decode = request.request.purpose {
          for case .state(let record, let sequence) in readings { cache.insert(record, sequence: sequence, of: id) }
        }
        handle { $0.readingFinished(id, request.request, request.result, at: $1) }
      }
      archive.readsUnderWay -= 1
      becomeIdle(archive)
    }
  }

  private func readings(
    of requests: [StateRequest],
    _ lease: ArchiveLease
  ) async -> [(request: StateRequest, result: Result<[StateReading?], ArchiveError>)] {
    let rows = requests.flatMap(\.rows)
    let newest = rows.map(\.sequence).max() ?? 0
    var results: [(request: StateRequest, result: Result<[StateReading?], ArchiveError>)] = []
    do throws(ArchiveError) {
      var readings = try await store.read(rows.map(\.node), at: .sequence(newest), lease: lease)[...]
      for request in requests {
        var own = Array(readings.prefix(request.rows.count))
        readings = readings.dropFirst(request.rows.count)
        for (index, row) in request.rows.enumerated() where own[index]?.sequence != row.sequence {
          // Another request of the lot was younger than this one's row.
          own[index] = try await store.read([row.node], at: .sequence(row.sequence), lease: lease).first ?? nil
        }
        results.append((request, .success(own)))
      }
    } catch {
      return requests.map { ($0, .failure(error)) }
    }
    return results
  }

  func scan(_ id: ApplicationID, _ request: ScanRequest) {
    guard let archive = archives[id], let lease = archive.lease else { return }
    let sequence = request.page.sequence
    if sequence > archive.queue.durable {
      archive.queue.await(request)
      return
    }
    hold([sequence], in: archive)
    archive.readsUnderWay += 1
    Task {
      do throws(ArchiveError) {
        let nodes = try await store.scan(after: nil, limit: Int.max, at: .sequence(sequence), lease: lease)
        handle { $0.scanFinished(id, request, .success(nodes), at: $1) }
      } catch {
        handle { $0.scanFinished(id, request, .failure(error), at: $1) }
      }
      archive.readsUnderWay -= 1
      becomeIdle(archive)
    }
  }

  func list(_ purpose: ListingPurpose) {
    Task {
      do throws(ArchiveError) {
        let summaries = try await store.list()
        handle { $0.listingFinished(purpose, .success(summaries), at: $1) }
      } catch {
        handle { $0.listingFinished(purpose, .failure(error), at: $1) }
      }
    }
  }

  // MARK: Upkeep

  /// A while after the last write the archive is tidied, a bounded piece at a time, until nothing is left to do; then
  /// there is no timer, and an idle broker makes no system call.
  private func scheduleUpkeep(_ id: ApplicationID, _ archive: OpenArchive) {
    guard !isStopping, !archive.isClosing, archive.queue.isIdle, !archive.isMaintaining, archives[id] === archive else {
      return
    }
    archive.upkeepDeferrals = 0
    scheduleUpkeep(id, archive, in: Self.quietMilliseconds)
  }

  private func scheduleUpkeep(_ id: ApplicationID, _ archive: OpenArchive, in milliseconds: Int64) {
    archive.upkeep?.cancel()
    archive.readsAtUpkeep = archive.reads
    archive.upkeep = eventLoop.scheduleTask(in: .milliseconds(milliseconds)) {
      self.assumeIsolated { $0.maintain(id) }
    }
  }

  private func maintain(_ id: ApplicationID) {
    guard !isStopping, let archive = archives[id], let lease = archive.lease,
      archive.queue.isIdle, !archive.isMaintaining
    else { return }
    archive.upkeep = nil
    guard archive.reads == archive.readsAtUpkeep || archive.upkeepDeferrals >= Self.deferralsMax else {
      archive.upkeepDeferrals += 1
      scheduleUpkeep(id, archive, in: Self.quietMilliseconds)
      return
    }
    archive.isMaintaining = true
    let now = clock.now.monotonic
    archive.held.removeAll { $0.until <= now }
    let held = archive.held.map(\.sequence)
    Task {
      let isMore = (try? await store.maintain(lease, holding: held)) ?? false
      archive.isMaintaining = false
      guard isMore, !isStopping, archives[id] === archive else { return }
      let rest = max(1, (clock.now.monotonic - now) * Self.restFactor)
      scheduleUpkeep(id, archive, in: rest)
    }
  }

  func backUp(_ id: ApplicationID) {
    guard let archive = archives[id], let lease = archive.lease else { return }
    let name = archive.name
    Task {
      do throws(ArchiveError) {
        try await store.backUp(lease)
      } catch {
        logger.warning("no backup copy was made: \(error.message)", metadata: ["application": "\(name)"])
      }
    }
  }
}

extension StateReading {
  var sequence: SequenceNumber {
    switch self {
    case .state(_, let sequence), .unreadable(let sequence): sequence
    }
  }
}
