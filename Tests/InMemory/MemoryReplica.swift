// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import Synchronization

/// A replica whose servers, network and clock a test owns. It has one database; `promote` has a server take over that
/// lacks the last transactions.
package final class MemoryReplica: Sendable {
  /// Faults of a replica that a test must find.
  package enum Fault: Hashable, Sendable {
    /// What is written under a former lease counts.
    case noFence
  }

  /// A server's promise that a broker is alive.
  fileprivate struct Broker {
    let host: String
    let term: LeaseTerm
    /// Tells it that another host waits.
    let attention: @Sendable () -> Void
    var renewals = 0
  }

  /// What a server has on its disk.
  fileprivate struct Database {
    var timeline: UInt32 = 1
    var rows: [String: Row] = [:]
    var brokers: [BrokerID: Broker] = [:]
    var lastNumber: Int64 = 0

    mutating func number() -> Int64 {
      lastNumber += 1
      return lastNumber
    }
  }

  /// What a host has seen of the broker that holds an archive.
  fileprivate struct Observation {
    let holder: BrokerID
    let renewals: Int
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
    var promoted: Int64 = 0
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
    var histories = 0
    var observations: [Observed: Observation] = [:]
  }

  fileprivate static let formerMax = 16
  /// After a server has taken over, a holder that it does not know has this time to come back.
  fileprivate static let grace: Int64 = 30_000
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

  /// Another server takes over, on a timeline of its own; it lacks the last transactions.
  package func promote(losing transactions: Int = 0) {
    state.withLock { state in
      let timeline = state.database.timeline + 1
      state.database = state.former[max(0, state.former.count - 1 - transactions)]
      state.database.timeline = timeline
      state.former = [state.database]
      (state.promoted, state.covered) = (state.now, state.written)
    }
  }

  /// What an archive holds, for whoever checks: the parts of its snapshot and the batches behind it.
  package func contents(of application: String) -> (parts: [[UInt8]], batches: [ReplicaBatch]) {
    state.withLock { state in
      guard let row = state.database.rows[application] else { return ([], []) }
      return (row.parts, row.batches.map(\.batch))
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

  /// Whether an application may begin that is not in the database: one that has taken over may have lost it, and its
  /// holder comes first.
  fileprivate func mayBegin(_ claim: ReplicaClaim) -> Bool {
    claim.isForced || claim.standing?.isClaim == true || database.timeline == 1 || now - promoted >= MemoryReplica.grace
  }

  /// Why the claim does not get the lease now; `nil` if it does.
  fileprivate mutating func obstacle(
    _ row: MemoryReplica.Row,
    _ application: String,
    to claim: ReplicaClaim,
    from host: String,
    as broker: MemoryReplica.BrokerID
  ) -> ReplicaHolder? {
    guard !claim.isForced, row.epoch > .none, row.holder != broker else { return nil }
    // Its own former lease, or one that a server which took over has lost.
    if let standing = claim.standing, standing.isClaim, standing.history == row.history,
      standing.lease >= row.epoch
    {
      return nil
    }
    let holder = row.holder.flatMap { id in database.brokers[id].map { (id, $0) } }
    guard row.epoch.timeline == database.timeline else {
      // Void; but a holder that the server does not know comes back within this time.
      let grace = holder?.1.term.milliseconds ?? MemoryReplica.grace
      return now - promoted >= grace ? nil : row.last
    }
    guard let (id, known) = holder else { return nil }
    let key = MemoryReplica.Observed(application: application, host: host)
    if let seen = observations[key], seen.holder == id, seen.renewals == known.renewals {
      if now - seen.since >= known.term.milliseconds + 1_000 { return nil }
    } else {
      observations[key] = MemoryReplica.Observation(holder: id, renewals: known.renewals, since: now)
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
  /// Its row at the server; another one after a failover.
  private let broker = Box()

  private final class Box: Sendable { let id = Mutex<MemoryReplica.BrokerID?>(nil) }

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

  /// The archive, if this is its newest lease, of the server's timeline.
  private func newest(_ lease: ReplicaLease, _ state: MemoryReplica.State) throws(ReplicaError) -> MemoryReplica.Row {
    // Whatever the server knows of it: it may have lost a later one than its own.
    guard lease.epoch.timeline == state.database.timeline || replica.fault == .noFence else {
      throw ReplicaError(.voided, "timeline \(state.database.timeline) has begun; acquire the lease again")
    }
    guard var row = state.database.rows[lease.application], row.archive == lease.archive, !row.isRemoved else {
      throw ReplicaError(.fenced(host: nil), "there is no archive \(lease.archive); open it again")
    }
    if row.epoch != lease.epoch {
      guard replica.fault == .noFence else {
        throw ReplicaError(.fenced(host: row.holder == nil ? nil : row.last.host), "the lease is not the newest")
      }
      row.epoch = max(row.epoch, lease.epoch)
    }
    return row
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
      let known = state.database.rows[application]
      guard known != nil || state.mayBegin(claim) else {
        throw ReplicaError(.voided, "a server has taken over that may have lost \(application); ask again later")
      }
      var row = known ?? newRow(claim, &state)
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
      let (wasFlushed, former) = (row.wasFlushed, row.holder == nil ? nil : row.last)
      if row.isRemoved { (row.isRemoved, row.history) = (false, newHistory(&state)) }
      row.epoch = ReplicaEpoch(timeline: state.database.timeline, number: row.epoch.number + 1)
      row.last = ReplicaHolder(host: host, since: state.now)
      (row.holder, row.wasFlushed, row.wanted, row.draft) = (id, false, nil, nil)
      state.database.rows[application] = row
      state.commit()
      return ReplicaGrant(
        lease: ReplicaLease(application: application, archive: row.archive, epoch: row.epoch),
        history: row.history,
        base: row.base.sequence,
        tip: row.tip,
        tipEpoch: row.tipEpoch,
        reign: claim.standing.flatMap { row.reign(upTo: $0.epoch) },
        wasFlushed: wasFlushed,
        former: former
      )
    }
  }

  /// The broker's row, which a server that took over may not have.
  private func attach(_ state: inout MemoryReplica.State) -> MemoryReplica.BrokerID {
    broker.id.withLock { id in
      if let id, isKnown(id, state) { return id }
      let new = MemoryReplica.BrokerID(timeline: state.database.timeline, number: state.database.number())
      state.database.brokers[new] = MemoryReplica.Broker(host: host, term: term, attention: attention)
      state.commit()
      id = new
      return new
    }
  }

  private func isKnown(_ id: MemoryReplica.BrokerID, _ state: MemoryReplica.State) -> Bool {
    id.timeline == state.database.timeline && state.database.brokers[id] != nil
  }

  /// A server that took over may have lost the row, but not what the host has.
  private func newRow(_ claim: ReplicaClaim, _ state: inout MemoryReplica.State) -> MemoryReplica.Row {
    let history = claim.standing?.history ?? newHistory(&state)
    return MemoryReplica.Row(archive: state.database.number(), history: history)
  }

  private func newHistory(_ state: inout MemoryReplica.State) -> String {
    state.histories += 1
    return "history \(state.histories)"
  }

  nonisolated(nonsending) package func renew() async throws(ReplicaError) -> ReplicaRenewal {
    try call { state throws(ReplicaError) in
      try mustBeCovered(state)
      guard let id = broker.id.withLock({ $0 }), isKnown(id, state) else {
        throw ReplicaError(.voided, "timeline \(state.database.timeline) has begun; acquire the leases again")
      }
      state.database.brokers[id]?.renewals += 1
      state.commit()
      var renewal = ReplicaRenewal()
      for (application, row) in state.database.rows where row.holder == id {
        let lease = ReplicaLease(application: application, archive: row.archive, epoch: row.epoch)
        renewal.held.insert(lease)
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
        let isStored = row.batches.contains { $0.batch.after == batch.after && $0.batch.change == batch.change }
        guard isStored else { throw gap(row.tip.sequence, batch.after) }
        return
      }
      row.batches.append((batch, row.epoch))
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
        let rest = row.batches.lazy.map(\.batch).filter { $0.upto > after }
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
          || row.batches.contains(where: { $0.batch.upto == part.tip.sequence })
      else { throw gap(row.tip.sequence, part.tip.sequence) }
      if part.number == 0, row.draft?.attempt != part.attempt { row.draft = (part.attempt, [:]) }
      // One of a former attempt that was late.
      guard row.draft?.attempt == part.attempt else { throw gap(row.tip.sequence, part.tip.sequence) }
      row.draft?.parts[part.number] = part.bytes
      let parts = (0..<max(1, part.count)).compactMap { row.draft?.parts[$0] }
      if parts.count == part.count {
        row.replaceBase(part.tip, reader: part.reader, parts: parts, under: row.epoch)
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
      case .left(let isFlushed, let summary):
        (row.holder, row.wanted, row.wasFlushed) = (nil, nil, isFlushed)
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
          wasFlushed: row.wasFlushed,
          sequence: row.tip.sequence,
          summary: row.summary
        )
      }
      return ReplicaListing(archives: page, hasMore: rows.count > page.count)
    }
  }
}
