// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
package import RestorationReplica

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
      var renewal: ChangeID?
      if let archive = seen.archive {
        switch store.judge(archive, claim, from: holder) {
        case .granted: break
        case .lapsed(let seen): renewal = seen
        case .refused(let other):
          if claim.wants, archive.holder != nil, !seen.isWanted { try await want(archive) }
          throw ReplicaError(.elsewhere(other), "\(other.host) has \(application); end it there")
        }
      }
      if let grant = try await take(application, claim, seen.archive, renewal) { return grant }
    }
    throw ReplicaError(.away, "\(application) changes hands too often; ask again later")
  }

  private struct Look {
    /// `nil` if the archive does not exist or was never leased.
    var archive: LeaseJudge.Archive?
    var isWanted = false
  }

  private nonisolated(nonsending) func look(_ application: String) async throws(ReplicaError) -> Look {
    let row = try await run(.look, .text(application), .truth(store.isAloneEnough))
    guard row.truth(0) else { throw Self.uncovered }
    guard let number = row.integer(1), let lease = row.uuid(2) else { return Look() }
    let holder = row.text(3).map { id in
      LeaseJudge.Archive.Holder(
        id: id,
        // Not trusted: another broker set it.
        term: LeaseTerm(milliseconds: min(max(0, row.integer(8) ?? 0), LeaseJudge.termMax)),
        renewal: row.uuid(7) ?? ChangeID(high: 0, low: 0),
        silence: row.integer(9) ?? 0
      )
    }
    let archive = LeaseJudge.Archive(
      number: number,
      lease: LeaseID(lease),
      holder: holder,
      last: ReplicaHolder(host: row.text(4) ?? "", since: row.integer(5) ?? 0)
    )
    return Look(archive: archive, isWanted: row.text(6) != nil)
  }

  private nonisolated(nonsending) func want(_ archive: LeaseJudge.Archive) async throws(ReplicaError) {
    _ = try await run(.want, .integer(archive.number), .uuid(archive.lease.uuid), .text(host))
  }

  /// `nil` if the facts have changed.
  private nonisolated(nonsending) func take(
    _ application: String,
    _ claim: ReplicaClaim,
    _ seen: LeaseJudge.Archive?,
    _ renewal: ChangeID?
  ) async throws(ReplicaError) -> ReplicaGrant? {
    let row = try await run(
      .take,
      .text(application),
      .text(holder),
      .text(host),
      .integer(term.milliseconds),
      .text(claim.standing?.history),
      .integer(Int64(claim.reader)),
      .text(claim.standing?.reigns.map(\.lease.text).joined(separator: ",") ?? ""),
      .uuid(seen?.lease.uuid),
      .text(seen?.holder?.id),
      .uuid(renewal),
      .truth(store.isAloneEnough)
    )
    switch row.text(0) {
    case "taken":
      store.watch(holder, attention)
      return try grant(application, row)
    case "changed": return nil
    case "tooNew":
      let reader = Int(row.integer(10) ?? 0)
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

  private func grant(_ application: String, _ row: PostgresRow) throws(ReplicaError) -> ReplicaGrant {
    let told = row.text(7) ?? ""
    guard let archive = row.integer(1), let lease = row.uuid(2),
      let reigns = told.isEmpty ? [] : [ReplicaReign](text: told)
    else { throw Self.mismatch }
    return ReplicaGrant(
      lease: ReplicaLease(application: application, archive: archive, id: LeaseID(lease)),
      history: row.text(3) ?? "",
      base: row.integer(4) ?? 0,
      tip: ReplicaTip(sequence: row.integer(5) ?? 0, change: row.uuid(6)),
      reigns: reigns,
      former: row.text(8).map { ReplicaHolder(host: $0, since: row.integer(9) ?? 0) }
    )
  }

  nonisolated(nonsending) package func renew() async throws(ReplicaError) -> ReplicaRenewal {
    let rows = try await rows(.renew, .text(holder), .truth(store.isAloneEnough))
    guard rows[0].text(0) == "renewed" else { throw error(rows[0]) }
    var renewal = ReplicaRenewal()
    for row in rows.dropFirst() {
      guard let archive = row.integer(1), let application = row.text(2), let id = row.uuid(3) else { continue }
      let lease = ReplicaLease(application: application, archive: archive, id: LeaseID(id))
      renewal.held[lease] = row.integer(5)
      renewal.wanted[lease] = row.text(4)
    }
    return renewal
  }

  nonisolated(nonsending) package func release(
    _ lease: ReplicaLease,
    _ end: ReplicaEnd
  ) async throws(ReplicaError) {
    var (isRemoved, upto, summary) = (true, SequenceNumber?.none, [UInt8]())
    if case .left(let end, let text) = end { (isRemoved, upto, summary) = (false, end, text) }
    let row = try await run(
      .release,
      .integer(lease.archive),
      .uuid(lease.id.uuid),
      .truth(isRemoved),
      .integer(upto),
      .bytes(summary)
    )
    guard row.text(0) == "released" else { throw error(row, tip: row.integer(2), host: row.text(1)) }
  }

  nonisolated(nonsending) package func list(
    after application: String?
  ) async throws(ReplicaError) -> ReplicaListing {
    let rows = try await rows(.list, .text(application), .integer(Int64(ReplicaListing.pageMax) + 1))
    let archives = rows.prefix(ReplicaListing.pageMax).map { row in
      ReplicaSummary(
        application: row.text(0) ?? "",
        holder: row.text(1).map { ReplicaHolder(host: $0, since: row.integer(2) ?? 0) },
        sequence: row.integer(3) ?? 0,
        summary: row.bytes(4) ?? []
      )
    }
    return ReplicaListing(archives: archives, hasMore: rows.count > archives.count)
  }
}

// MARK: Contents

extension PostgresReplica {
  nonisolated(nonsending) package func append(
    _ batch: ReplicaBatch,
    _ lease: ReplicaLease
  ) async throws(ReplicaError) {
    try await store.reserve(batch.body.count, for: owner)
    let row = try await run(
      .append,
      .integer(lease.archive),
      .uuid(lease.id.uuid),
      .integer(batch.after),
      .integer(batch.upto),
      .uuid(batch.change),
      // Sealed bodies name their key themselves.
      .bytes([]),
      .bytes(batch.body),
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
      .uuid(lease.id.uuid),
      .integer(part.attempt),
      .integer(part.tip.sequence),
      .uuid(part.tip.change),
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
      .uuid(lease.id.uuid),
      .truth(isSnapshot),
      .integer(from),
      .integer(store.pageBytes)
    )
    let first = rows[0]
    guard first.text(0) == "loaded" else { throw error(first, tip: first.integer(2), host: first.text(1)) }
    return isSnapshot ? parts(first, rows.dropFirst()) : try batches(first, rows.dropFirst())
  }

  private func parts(_ first: PostgresRow, _ rows: ArraySlice<PostgresRow>) -> ReplicaPage {
    let base = ReplicaTip(sequence: first.integer(2) ?? 0, change: first.uuid(3))
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
      guard let after = row.integer(7), let upto = row.integer(8), let change = row.uuid(11) else {
        throw Self.mismatch
      }
      page.batches.append(ReplicaBatch(after: after, upto: upto, change: change, body: row.bytes(9) ?? []))
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
    let remedy = """
      set synchronous_standby_names at the server, and for the gateway's role client_min_messages = warning; if one \
      server is enough, set synchronous to false in gateway.json
      """
    return ReplicaError(.uncovered, "no other server has what is stored; \(remedy)")
  }

  /// Why a function has done nothing, by its outcome.
  private func error(_ row: PostgresRow, tip: Int64? = nil, host: String? = nil) -> ReplicaError {
    switch row.text(0) {
    case "fenced":
      let holder = host.map { "\($0) has it" } ?? "the lease was given back, or the archive was removed"
      return ReplicaError(.fenced(host: host), "the lease is not the newest: \(holder); open it again")
    case "voided":
      let text = "the database does not know the lease, as after it was put back to an earlier state"
      return ReplicaError(.voided, "\(text); acquire the lease again")
    case "uncovered": return Self.uncovered
    case "gap":
      let end = tip ?? 0
      return ReplicaError(.gap(end), "this does not continue the contents at sequence \(end)")
    default: return Self.mismatch
    }
  }
}
