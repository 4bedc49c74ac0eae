// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
package import RestorationReplica
internal import Synchronization

/// A replica whose servers, network and clock a test owns. It has one database; `promote` has a server take over that
/// lacks the last transactions.
package final class MemoryReplica: Sendable {
  /// Faults of a replica that a test must find.
  package enum Fault: Hashable, Sendable {
    /// What is written under a former lease counts.
    case noFence
    /// Leases have numbers, which come again when the database is put back to an earlier state.
    case numberedLeases
  }

  /// A server's promise that a broker is alive.
  fileprivate struct Broker {
    let host: String
    let term: LeaseTerm
    /// Tells it that another host waits.
    let attention: @Sendable () -> Void
    /// Another one after each renewal.
    var renewal: Int64
  }

  /// What a server has on its disk.
  fileprivate struct Database {
    var rows: [String: Row] = [:]
    var brokers: [Int64: Broker] = [:]
    /// Counts again after it was put back.
    var lastArchive: Int64 = 0
  }

  /// What a host has seen of the broker that holds an archive.
  fileprivate struct Observation {
    let holder: Int64
    let renewal: Int64
    let since: Int64
  }

  fileprivate struct Observed: Hashable {
    let application: String
    let host: String
  }

  fileprivate struct State {
    var database = Database()
    /// Former contents of the database, the newest last.
    var former: [Database] = [Database()]
    var now: Int64 = 0
    /// Of brokers, renewals, leases and histories, which are random elsewhere.
    var lastNumber: Int64 = 0
    var isCovered = true
    /// How many transactions there have been, and how many of them another server has.
    var written = 0
    var covered = 0
    var isFollowed = true
    /// Up to which transaction another server has to have everything before the last call may be answered.
    var due = 0
    /// Hosts that cannot reach the replica, and hosts whose next answer is lost.
    var cut: Set<String> = []
    var deaf: Set<String> = []
    var observations: [Observed: Observation] = [:]
  }

  fileprivate static let formerMax = 16
  fileprivate let state: Mutex<State>
  fileprivate let fault: Fault?
  /// How many parts or batches a page has.
  fileprivate let pageMax: Int

  package init(pageMax: Int = 4, planted fault: Fault? = nil) {
    (self.pageMax, self.fault) = (pageMax, fault)
    state = Mutex(State())
  }

  /// The way to the replica of a broker that has just been started.
  ///
  /// - Parameter attention: Is called when another host has begun to wait for one of its leases.
  package func link(
    from host: String,
    term: LeaseTerm = LeaseTerm(milliseconds: 15_000),
    attention: @escaping @Sendable () -> Void = {}
  ) -> MemoryReplicaLink { MemoryReplicaLink(self, host, term, attention) }

  // MARK: What happens to it

  package func advance(by milliseconds: Int64) { state.withLock { $0.now += milliseconds } }

  /// Cuts a host off, in both directions.
  package func cut(_ host: String) { state.withLock { _ = $0.cut.insert(host) } }
  package func mend(_ host: String) { state.withLock { _ = $0.cut.remove(host) } }

  /// The host's next call is carried out, but it is not told so.
  package func loseAnswer(to host: String) { state.withLock { _ = $0.deaf.insert(host) } }

  /// Whether what is stored is on another server too.
  package func setCovered(_ isCovered: Bool) { state.withLock { $0.isCovered = isCovered } }

  /// Whether another server gets what is stored from now on, and what it does not have yet.
  package func setFollowed(_ isFollowed: Bool) {
    state.withLock { state in
      state.isFollowed = isFollowed
      if isFollowed { state.covered = state.written }
    }
  }

  /// How many transactions there have been, how many of them another server has, and how many it has to have before the
  /// last call may be answered: for a test that lets answers wait.
  package var cover: (written: Int, covered: Int, due: Int) {
    state.withLock { ($0.written, $0.covered, $0.due) }
  }

  /// Another server takes over, which lacks the last transactions; or the database is put back to an earlier state.
  package func promote(losing transactions: Int = 0) {
    state.withLock { state in
      state.database = state.former[max(0, state.former.count - 1 - transactions)]
      state.former = [state.database]
      state.covered = state.written
    }
  }

  /// The server knows no broker any more, as it does not know those of a gateway that was started again.
  package func forgetBrokers() { state.withLock { $0.database.brokers = [:] } }

  /// What an archive holds, for whoever checks: the parts of its snapshot and the batches behind it.
  package func contents(of application: String) -> (parts: [[UInt8]], batches: [ReplicaBatch]) {
    state.withLock { state in
      guard let row = state.database.rows[application] else { return ([], []) }
      return (row.parts, row.batches)
    }
  }
}

extension MemoryReplica.State {
  /// A transaction is committed.
  fileprivate mutating func commit() {
    written += 1
    if isFollowed { covered = written }
    former.append(database)
    if former.count > MemoryReplica.formerMax { former.removeFirst() }
  }

  fileprivate mutating func number() -> Int64 {
    lastNumber += 1
    return lastNumber
  }

  /// Why the claim does not get the lease now; `nil` if it does.
  fileprivate mutating func obstacle(
    _ row: MemoryReplica.Row,
    _ application: String,
    to claim: ReplicaClaim,
    from host: String,
    as broker: Int64
  ) -> ReplicaHolder? {
    guard !claim.isForced, let lease = row.lease, let id = row.holder, id != broker, let known = database.brokers[id]
    else { return nil }
    if claim.standing?.proves(theEndOf: lease) == true { return nil }
    let key = MemoryReplica.Observed(application: application, host: host)
    if let seen = observations[key], seen.holder == id, seen.renewal == known.renewal {
      if now - seen.since >= known.term.milliseconds + 1_000 { return nil }
    } else {
      observations[key] = MemoryReplica.Observation(holder: id, renewal: known.renewal, since: now)
    }
    return row.last
  }
}

/// One broker's way to a `MemoryReplica`.
package struct MemoryReplicaLink: ArchiveReplica {
  private let replica: MemoryReplica
  private let host: String
  private let term: LeaseTerm
  private let attention: @Sendable () -> Void
  /// Its row at the server.
  private let broker = Box()

  private final class Box: Sendable { let id = Mutex<Int64?>(nil) }

  fileprivate init(
    _ replica: MemoryReplica,
    _ host: String,
    _ term: LeaseTerm,
    _ attention: @escaping @Sendable () -> Void
  ) {
    (self.replica, self.host, self.term, self.attention) = (replica, host, term, attention)
  }

  /// Carries out a call, unless the host is cut off; what fails changes nothing.
  private func call<Value: Sendable>(
    _ body: (inout MemoryReplica.State) throws(ReplicaError) -> Value
  ) throws(ReplicaError) -> Value {
    try replica.state.withLock { state throws(ReplicaError) in
      guard !state.cut.contains(host) else { throw ReplicaError(.away, "\(host) is cut off; mend it") }
      let value = try body(&state)
      // Also one that has only found what an earlier one has stored.
      state.due = state.written
      guard state.deaf.remove(host) == nil else { throw ReplicaError(.unknown, "the answer was lost; ask again") }
      return value
    }
  }

  /// The archive, if this is its newest lease.
  private func newest(_ lease: ReplicaLease, _ state: MemoryReplica.State) throws(ReplicaError) -> MemoryReplica.Row {
    let known = state.database.rows[lease.application].flatMap { $0.archive == lease.archive ? $0 : nil }
    if let known, !known.isRemoved, known.lease == lease.id || replica.fault == .noFence { return known }
    guard let known, known.reigns.contains(where: { $0.lease == lease.id }) else {
      throw ReplicaError(.voided, "the lease is unknown; acquire it again")
    }
    throw ReplicaError(.fenced(host: known.holder == nil ? nil : known.last.host), "the lease is not the newest")
  }

  private func mustBeCovered(_ state: MemoryReplica.State) throws(ReplicaError) {
    guard state.isCovered else { throw ReplicaError(.uncovered, "no other server has it; configure one") }
  }

  nonisolated(nonsending) package func acquire(
    _ application: String,
    as claim: ReplicaClaim
  ) async throws(ReplicaError) -> ReplicaGrant {
    var isWaiting: (@Sendable () -> Void)?
    // Outside of the lock: it may ask at once.
    defer { isWaiting?() }
    return try call { state throws(ReplicaError) in
      try mustBeCovered(state)
      let id = attach(&state)
      var row = state.database.rows[application] ?? newRow(claim, &state)
      guard row.reader <= claim.reader else {
        throw ReplicaError(.tooNew(row.reader), "\(application) needs a reader of version \(row.reader)")
      }
      if let holder = state.obstacle(row, application, to: claim, from: host, as: id) {
        if claim.wants, row.holder != nil, row.wanted == nil {
          state.database.rows[application]?.wanted = host
          state.commit()
          isWaiting = row.holder.flatMap { state.database.brokers[$0]?.attention }
        }
        throw ReplicaError(.elsewhere(holder), "\(holder.host) has \(application); end it there")
      }
      row.endReign()
      let former = row.holder == nil ? nil : row.last
      if row.isRemoved { (row.isRemoved, row.history) = (false, newHistory(&state)) }
      let number = replica.fault == .numberedLeases ? Int64(row.reigns.count) : state.number()
      let lease = LeaseID(ChangeID(high: 0, low: UInt64(number)))
      row.lease = lease
      row.last = ReplicaHolder(host: host, since: state.now)
      (row.holder, row.wanted, row.draft) = (id, nil, nil)
      state.database.rows[application] = row
      state.commit()
      return ReplicaGrant(
        lease: ReplicaLease(application: application, archive: row.archive, id: lease),
        history: row.history,
        base: row.base.sequence,
        tip: row.tip,
        reigns: row.reigns(for: claim.standing),
        former: former
      )
    }
  }

  /// The broker's row, which a server that took over may not have.
  private func attach(_ state: inout MemoryReplica.State) -> Int64 {
    broker.id.withLock { id in
      let number = id ?? state.number()
      id = number
      guard state.database.brokers[number] == nil else { return number }
      let row = MemoryReplica.Broker(host: host, term: term, attention: attention, renewal: state.number())
      state.database.brokers[number] = row
      state.commit()
      return number
    }
  }

  /// A server that took over may have lost the row, but not what the host has.
  private func newRow(_ claim: ReplicaClaim, _ state: inout MemoryReplica.State) -> MemoryReplica.Row {
    let history = claim.standing?.history ?? newHistory(&state)
    state.database.lastArchive += 1
    return MemoryReplica.Row(archive: state.database.lastArchive, history: history)
  }

  private func newHistory(_ state: inout MemoryReplica.State) -> String {
    "history \(state.number())"
  }

  nonisolated(nonsending) package func renew() async throws(ReplicaError) -> ReplicaRenewal {
    try call { state throws(ReplicaError) in
      try mustBeCovered(state)
      guard let id = broker.id.withLock({ $0 }), state.database.brokers[id] != nil else {
        throw ReplicaError(.voided, "the broker is unknown; acquire the leases again")
      }
      let number = state.number()
      state.database.brokers[id]?.renewal = number
      state.commit()
      var renewal = ReplicaRenewal()
      for (application, row) in state.database.rows where row.holder == id {
        guard let id = row.lease else { continue }
        let lease = ReplicaLease(application: application, archive: row.archive, id: id)
        renewal.held[lease] = row.tip.sequence
        renewal.wanted[lease] = row.wanted
      }
      return renewal
    }
  }

  nonisolated(nonsending) package func append(
    _ batch: ReplicaBatch,
    _ lease: ReplicaLease
  ) async throws(ReplicaError) {
    try call { state throws(ReplicaError) in
      var row = try newest(lease, state)
      try mustBeCovered(state)
      guard row.tip.sequence == batch.after else {
        let isStored = row.batches.contains { $0.after == batch.after && $0.change == batch.change }
        guard isStored else { throw gap(row.tip.sequence, batch.after) }
        return
      }
      row.batches.append(batch)
      state.database.rows[lease.application] = row
      state.commit()
    }
  }

  private func gap(_ end: SequenceNumber, _ place: SequenceNumber) -> ReplicaError {
    ReplicaError(.gap(end), "sequence \(place) does not continue the contents at \(end)")
  }

  nonisolated(nonsending) package func load(
    _ lease: ReplicaLease,
    from position: ReplicaPosition
  ) async throws(ReplicaError) -> ReplicaPage {
    try call { state throws(ReplicaError) in
      let row = try newest(lease, state)
      switch position {
      case .snapshot(let first):
        let numbers = row.parts.indices.dropFirst(first).prefix(replica.pageMax)
        let parts = numbers.map { number in
          SnapshotPart(
            attempt: row.attempt,
            tip: row.base,
            reader: row.reader,
            number: number,
            count: row.parts.count,
            bytes: row.parts[number]
          )
        }
        let end = first + parts.count
        let behind = row.batches.isEmpty ? nil : ReplicaPosition.batches(after: row.base.sequence)
        return ReplicaPage(parts: parts, next: end < row.parts.count ? .snapshot(part: end) : behind)
      case .batches(let after):
        guard after >= row.base.sequence else { throw gap(row.base.sequence, after) }
        let rest = row.batches.lazy.filter { $0.upto > after }
        let batches = Array(rest.prefix(replica.pageMax))
        let next = batches.last.flatMap { $0.upto < row.tip.sequence ? ReplicaPosition.batches(after: $0.upto) : nil }
        return ReplicaPage(batches: batches, next: next)
      }
    }
  }

  nonisolated(nonsending) package func snapshot(
    _ part: SnapshotPart,
    _ lease: ReplicaLease
  ) async throws(ReplicaError) {
    try call { state throws(ReplicaError) in
      var row = try newest(lease, state)
      try mustBeCovered(state)
      // A part that comes once more.
      guard part.tip != row.base || row.parts.isEmpty else { return }
      guard
        part.tip.sequence >= row.tip.sequence
          || row.batches.contains(where: { $0.upto == part.tip.sequence })
      else { throw gap(row.tip.sequence, part.tip.sequence) }
      if part.number == 0, row.draft?.attempt != part.attempt { row.draft = (part.attempt, [:]) }
      // One of a former attempt that was late.
      guard row.draft?.attempt == part.attempt else { throw gap(row.tip.sequence, part.tip.sequence) }
      row.draft?.parts[part.number] = part.bytes
      let parts = (0..<max(1, part.count)).compactMap { row.draft?.parts[$0] }
      if parts.count == part.count {
        row.replaceBase(part.tip, reader: part.reader, parts: parts)
        row.attempt = part.attempt
      } else if part.number == part.count - 1 {
        throw gap(row.tip.sequence, part.tip.sequence)
      }
      state.database.rows[lease.application] = row
      state.commit()
    }
  }

  nonisolated(nonsending) package func release(
    _ lease: ReplicaLease,
    _ end: ReplicaEnd
  ) async throws(ReplicaError) {
    try call { state throws(ReplicaError) in
      var row = try newest(lease, state)
      switch end {
      case .left(let upto, let summary):
        let end = row.tip.sequence
        guard upto == nil || upto == end else { throw ReplicaError(.gap(end), "the contents end at \(end)") }
        (row.holder, row.wanted) = (nil, nil)
        if !summary.isEmpty { row.summary = summary }
      case .removed: row.remove()
      }
      state.database.rows[lease.application] = row
      state.commit()
    }
  }

  nonisolated(nonsending) package func list(
    after application: String?
  ) async throws(ReplicaError) -> ReplicaListing {
    try call { state throws(ReplicaError) in
      let rows = state.database.rows.filter { !$0.value.isRemoved && $0.key > application ?? "" }
      let page = rows.sorted { $0.key < $1.key }.prefix(ReplicaListing.pageMax).map { application, row in
        ReplicaSummary(
          application: application,
          holder: row.holder == nil ? nil : row.last,
          sequence: row.tip.sequence,
          summary: row.summary
        )
      }
      return ReplicaListing(archives: page, hasMore: rows.count > page.count)
    }
  }
}
