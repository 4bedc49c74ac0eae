// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// One broker's access to its user's archives in a database.
package final class PostgresReplica: ArchiveReplica {
  private let store: PostgresStore
  private let owner: String
  private let host: String
  private let term: LeaseTerm
  private let attention: @Sendable () -> Void
  /// The broker's row, the same at every server.
  private let holder: String

  init(
    _ store: PostgresStore,
    owner: String,
    host: String,
    term: LeaseTerm,
    attention: @escaping @Sendable () -> Void
  ) {
    (self.store, self.owner, self.host) = (store, owner, host)
    (self.term, self.attention) = (term, attention)
    holder = "\(UInt64.random(in: 0 ... .max))-\(UInt64.random(in: 0 ... .max))"
  }

  deinit { store.unwatch(holder) }

  // MARK: Leases

  /// How often an archive may change hands between looking and taking.
  private static let attempts = 4

  nonisolated(nonsending) package func acquire(
    _ application: String,
    as claim: ReplicaClaim
  ) async throws(ReplicaError) -> ReplicaGrant {
    for _ in 0..<Self.attempts {
      let seen = try await look(application)
      var renewals: Int64?
      if let archive = seen.archive {
        switch store.judge(archive, claim, from: holder) {
        case .granted: break
        case .lapsed(let count): renewals = count
        case .refused(let other):
          if claim.wants, archive.holder != nil, !seen.isWanted { try await want(archive) }
          throw ReplicaError(.elsewhere(other), "\(other.host) has \(application); end it there")
        }
      } else if !store.mayBegin(claim, age: seen.age) {
        let text = "another server has taken over, which may have lost \(application)"
        throw ReplicaError(.voided, "\(text); a host that has it comes first: ask again in half a minute")
      }
      if let grant = try await take(application, claim, seen.archive, renewals) { return grant }
    }
    throw ReplicaError(.away, "\(application) changes hands too often; ask again later")
  }

  private struct Look {
    /// `nil` if the archive does not exist or was never leased.
    var archive: LeaseJudge.Archive?
    var isWanted = false
    /// Without an archive: how long ago the server granted the first lease of its timeline; `nil` if it granted none.
    var age: Int64?
  }

  private nonisolated(nonsending) func look(_ application: String) async throws(ReplicaError) -> Look {
    let row = try await run(.look, .text(application), .truth(store.isAloneEnough))
    guard let timeline = row.integer(1) else { throw Self.mismatch }
    guard row.truth(0) else { throw Self.uncovered }
    store.note(timeline: timeline)
    guard let number = row.integer(2), let epoch = row.integer(4), epoch > 0 else {
      return Look(age: row.integer(12))
    }
    let holder = row.text(5).map { id in
      LeaseJudge.Archive.Holder(
        id: id,
        // Not trusted: another broker set it.
        term: LeaseTerm(milliseconds: min(max(0, row.integer(11) ?? 0), LeaseJudge.termMax)),
        renewals: row.integer(10) ?? 0,
        silence: row.integer(12) ?? 0
      )
    }
    let archive = LeaseJudge.Archive(
      number: number,
      history: row.text(3) ?? "",
      epoch: ReplicaEpoch(rawValue: epoch),
      holder: holder,
      last: ReplicaHolder(host: row.text(6) ?? "", since: row.integer(7) ?? 0)
    )
    return Look(archive: archive, isWanted: row.text(8) != nil)
  }

  private nonisolated(nonsending) func want(_ archive: LeaseJudge.Archive) async throws(ReplicaError) {
    _ = try await run(.want, .integer(archive.number), .integer(archive.epoch.rawValue), .text(host))
  }

  /// `nil` if the facts have changed.
  private nonisolated(nonsending) func take(
    _ application: String,
    _ claim: ReplicaClaim,
    _ seen: LeaseJudge.Archive?,
    _ renewals: Int64?
  ) async throws(ReplicaError) -> ReplicaGrant? {
    let row = try await run(
      .take,
      .text(application),
      .text(holder),
      .text(host),
      .integer(term.milliseconds),
      .text(claim.standing?.history),
      .integer(Int64(claim.reader)),
      .integer(claim.standing?.epoch.rawValue),
      .integer(seen?.epoch.rawValue ?? 0),
      .text(seen?.holder?.id),
      .integer(renewals),
      .truth(store.isAloneEnough)
    )
    switch row.text(0) {
    case "taken":
      store.watch(holder, attention)
      return grant(application, row)
    case "changed": return nil
    case "tooNew":
      let reader = Int(row.integer(13) ?? 0)
      throw ReplicaError(.tooNew(reader), "\(application) needs a reader of version \(reader); install a newer broker")
    case "quota":
      let text = "\(owner) has \(PostgresStore.archivesMax) archives at the database, with those that were removed"
      throw ReplicaError(
        .quota(max: PostgresStore.archivesMax, value: PostgresStore.archivesMax + 1),
        "\(text), and may have no more; have the administrator erase them"
      )
    default: throw error(row)
    }
  }

  private func grant(_ application: String, _ row: PostgresRow) -> ReplicaGrant {
    let epoch = ReplicaEpoch(rawValue: row.integer(2) ?? 0)
    return ReplicaGrant(
      lease: ReplicaLease(application: application, archive: row.integer(1) ?? 0, epoch: epoch),
      history: row.text(3) ?? "",
      base: row.integer(4) ?? 0,
      tip: ReplicaTip(sequence: row.integer(5) ?? 0, change: row.change(6)),
      tipEpoch: ReplicaEpoch(rawValue: row.integer(7) ?? 0),
      reign: row.integer(8).map { ReplicaTip(sequence: $0, change: row.change(9)) },
      wasFlushed: row.truth(10),
      former: row.text(11).map { ReplicaHolder(host: $0, since: row.integer(12) ?? 0) }
    )
  }

  nonisolated(nonsending) package func renew() async throws(ReplicaError) -> ReplicaRenewal {
    let rows = try await rows(.renew, .text(holder), .truth(store.isAloneEnough))
    guard rows[0].text(0) == "renewed" else { throw error(rows[0]) }
    var renewal = ReplicaRenewal()
    for row in rows.dropFirst() {
      guard let archive = row.integer(1), let application = row.text(2), let epoch = row.integer(3) else { continue }
      let lease = ReplicaLease(application: application, archive: archive, epoch: ReplicaEpoch(rawValue: epoch))
      renewal.held.insert(lease)
      renewal.wanted[lease] = row.text(4)
    }
    return renewal
  }

  nonisolated(nonsending) package func release(
    _ lease: ReplicaLease,
    _ end: ReplicaEnd
  ) async throws(ReplicaError) {
    var (isRemoved, isFlushed, summary) = (true, true, [UInt8]())
    if case .left(let flushed, let text) = end { (isRemoved, isFlushed, summary) = (false, flushed, text) }
    let row = try await run(
      .release,
      .integer(lease.archive),
      .integer(lease.epoch.rawValue),
      .truth(isRemoved),
      .truth(isFlushed),
      .bytes(summary)
    )
    guard row.text(0) == "released" else { throw error(row, host: row.text(1)) }
  }

  nonisolated(nonsending) package func list(
    after application: String?
  ) async throws(ReplicaError) -> ReplicaListing {
    let rows = try await rows(.list, .text(application), .integer(Int64(ReplicaListing.pageMax) + 1))
    let archives = rows.prefix(ReplicaListing.pageMax).map { row in
      ReplicaSummary(
        application: row.text(0) ?? "",
        holder: row.text(1).map { ReplicaHolder(host: $0, since: row.integer(2) ?? 0) },
        wasFlushed: row.truth(3),
        sequence: row.integer(4) ?? 0,
        summary: row.bytes(5) ?? []
      )
    }
    return ReplicaListing(archives: archives, hasMore: rows.count > archives.count)
  }
}

// MARK: Contents

extension PostgresReplica {
  /// The first byte of a batch; its transactions follow.
  private static let bodyVersion: UInt8 = 1

  nonisolated(nonsending) package func append(
    _ batch: ReplicaBatch,
    _ lease: ReplicaLease
  ) async throws(ReplicaError) {
    let body = [Self.bodyVersion] + batch.encoded
    try await store.reserve(body.count, for: owner)
    let row = try await run(
      .append,
      .integer(lease.archive),
      .integer(lease.epoch.rawValue),
      .integer(batch.after),
      .integer(batch.upto),
      .change(batch.change),
      // Sealed bodies name their key themselves.
      .bytes([]),
      .bytes(body),
      .truth(store.isAloneEnough)
    )
    guard row.text(0) == "stored" else { throw error(row, tip: row.integer(1), host: row.text(2)) }
  }

  nonisolated(nonsending) package func snapshot(
    _ part: SnapshotPart,
    _ lease: ReplicaLease
  ) async throws(ReplicaError) {
    guard part.number >= 0, part.number < part.count else {
      throw ReplicaError(.refused, "a snapshot of \(part.count) parts has no part \(part.number); number them from 0")
    }
    let (bytes, isTooMuch) = part.bytes.count.multipliedReportingOverflow(by: part.count)
    try await store.allow(part.bytes.count, ofSnapshot: isTooMuch ? .max : bytes, isFirst: part.number == 0, for: owner)
    // The first part replaces an earlier attempt, the last one replaces the covered batches.
    defer { if part.number == 0 || part.number == part.count - 1 { store.forgetUsage(of: owner) } }
    let row = try await run(
      .snapshot,
      .integer(lease.archive),
      .integer(lease.epoch.rawValue),
      .integer(part.attempt),
      .integer(part.tip.sequence),
      .change(part.tip.change),
      .integer(Int64(part.reader)),
      .integer(Int64(part.number)),
      .integer(Int64(part.count)),
      .bytes(part.bytes),
      .truth(store.isAloneEnough)
    )
    guard row.text(0) == "stored" else { throw error(row, tip: row.integer(1), host: row.text(2)) }
  }

  nonisolated(nonsending) package func load(
    _ lease: ReplicaLease,
    from position: ReplicaPosition
  ) async throws(ReplicaError) -> ReplicaPage {
    let (isSnapshot, from): (Bool, Int64) =
      switch position {
      case .snapshot(let part): (true, Int64(part))
      case .batches(let after): (false, after)
      }
    let rows = try await rows(
      .load,
      .integer(lease.archive),
      .integer(lease.epoch.rawValue),
      .truth(isSnapshot),
      .integer(from),
      .integer(store.pageBytes)
    )
    let first = rows[0]
    guard first.text(0) == "loaded" else { throw error(first, tip: first.integer(2), host: first.text(1)) }
    return isSnapshot ? parts(first, rows.dropFirst()) : try batches(first, rows.dropFirst())
  }

  private func parts(_ first: PostgresRow, _ rows: ArraySlice<PostgresRow>) -> ReplicaPage {
    let base = ReplicaTip(sequence: first.integer(2) ?? 0, change: first.change(3))
    let count = Int(first.integer(5) ?? 0)
    let parts = rows.map { row in
      SnapshotPart(
        attempt: first.integer(10) ?? 0,
        tip: base,
        reader: Int(first.integer(4) ?? 0),
        number: Int(row.integer(7) ?? 0),
        count: count,
        bytes: row.bytes(9) ?? []
      )
    }
    if let last = parts.last, last.number + 1 < count {
      return ReplicaPage(parts: parts, next: .snapshot(part: last.number + 1))
    }
    let hasMore = first.integer(6) ?? 0 > base.sequence
    return ReplicaPage(parts: parts, next: hasMore ? .batches(after: base.sequence) : nil)
  }

  private func batches(
    _ first: PostgresRow,
    _ rows: ArraySlice<PostgresRow>
  ) throws(ReplicaError) -> ReplicaPage {
    var page = ReplicaPage()
    for row in rows {
      let (after, body) = (row.integer(7) ?? 0, row.bytes(9) ?? [])
      guard body.first == Self.bodyVersion, let batch = ReplicaBatch(body.dropFirst(), after: after) else {
        throw ReplicaError(.refused, "what is stored behind sequence \(after) is not a batch; store a snapshot anew")
      }
      page.batches.append(batch)
    }
    if let end = page.batches.last?.upto, let tip = first.integer(6), end < tip { page.next = .batches(after: end) }
    return page
  }

  // MARK: Calls

  /// At least one row, unless the function returns a list.
  private nonisolated(nonsending) func rows(
    _ function: PostgresFunction,
    _ values: PostgresValue...
  ) async throws(ReplicaError) -> [PostgresRow] { try await rows(function, values) }

  private nonisolated(nonsending) func run(
    _ function: PostgresFunction,
    _ values: PostgresValue...
  ) async throws(ReplicaError) -> PostgresRow { try await rows(function, values)[0] }

  private nonisolated(nonsending) func rows(
    _ function: PostgresFunction,
    _ values: [PostgresValue]
  ) async throws(ReplicaError) -> [PostgresRow] {
    let call = PostgresCall(function, [.text(owner)] + values)
    do throws(PostgresFailure) {
      let rows: [PostgresRow]
      do throws(PostgresFailure) {
        rows = try await store.server.run(call, for: owner)
      } catch .refused(state: "23505", _) {
        // Another call ran at the same time; now its effect is visible.
        rows = try await store.server.run(call, for: owner)
      }
      if !rows.isEmpty || function == .list { return rows }
    } catch { throw ReplicaError(error) }
    throw Self.mismatch
  }

  private static var mismatch: ReplicaError {
    ReplicaError(.refused, "the database has other functions; \(PostgresFailure.schemaRemedy)")
  }

  private static var uncovered: ReplicaError {
    let remedy = "set synchronous_standby_names at the server, and for the gateway's role client_min_messages = warning"
    return ReplicaError(.uncovered, "no other server has what is stored; \(remedy)")
  }

  /// Why a function has done nothing, by its outcome.
  private func error(_ row: PostgresRow, tip: Int64? = nil, host: String? = nil) -> ReplicaError {
    switch row.text(0) {
    case "fenced":
      let holder = host.map { "\($0) has it" } ?? "the lease was given back, or the archive was removed"
      return ReplicaError(.fenced(host: host), "the lease is not the newest: \(holder); open it again")
    case "voided": return ReplicaError(.voided, "another server has taken over; acquire the lease again")
    case "uncovered": return Self.uncovered
    case "gap":
      let end = tip ?? 0
      return ReplicaError(.gap(end), "this does not continue the contents at sequence \(end)")
    default: return Self.mismatch
    }
  }
}
