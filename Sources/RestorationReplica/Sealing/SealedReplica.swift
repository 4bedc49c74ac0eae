// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import Synchronization

/// A replica that learns nothing of the archives' contents: all data is sealed before it is sent, and opened when it
/// comes back (`Protocol/replica-format.md`).
///
/// Loaded data is what was stored at that place of that archive. Otherwise the call fails: as `key` if the data was
/// sealed with an unknown key, else as `refused`.
package final class SealedReplica: ArchiveReplica {
  /// An archive whose lease this host has.
  private struct Holding {
    let lease: ReplicaLease
    let archive: SealedPlace.Archive
    var stored: (attempt: Int64, id: [UInt8])?
    /// The end of the contents, and the end before the last batch, which may have to be repeated.
    private var ends: [ReplicaTip]
    var read = Reading()

    init(_ grant: ReplicaGrant) {
      lease = grant.lease
      archive = SealedPlace.Archive(application: grant.lease.application, history: grant.history)
      ends = [grant.tip]
    }

    /// Returns the change before the batch; `nil` if there is none or it is unknown.
    mutating func append(_ batch: ReplicaBatch) -> ChangeID? {
      ends = ends.filter { $0.sequence == batch.after }.suffix(1)
      defer { ends.append(ReplicaTip(sequence: batch.upto, change: batch.change)) }
      return ends.first?.change
    }

    /// The snapshot's end becomes the end of the contents, unless they end behind it.
    mutating func replace(_ tip: ReplicaTip) { ends = ends.suffix(1) + [tip] }
  }

  private struct Reading {
    var snapshot: [UInt8]?
    var tip: ReplicaTip?
  }

  /// The length of a snapshot's ID. Each part's text begins with the ID, so that parts of two snapshots cannot be
  /// combined, even if these end at the same change.
  private static let snapshotIDBytes = 16

  private let base: any ArchiveReplica
  private let keys: ReplicaKeys
  private let report: @Sendable (ReplicaError) -> Void
  private let held = Mutex<[String: Holding]>([:])
  /// Archives of other hosts whose summary could be opened here.
  private let readable = Mutex<Set<String>>([])

  /// - Parameters:
  ///   - base: receives the sealed data.
  ///   - report: called for each summary that `list` returns empty because it cannot be opened.
  package init(
    around base: any ArchiveReplica,
    keys: ReplicaKeys,
    report: @escaping @Sendable (ReplicaError) -> Void = { _ in }
  ) { (self.base, self.keys, self.report) = (base, keys, report) }

  // MARK: Leases

  nonisolated(nonsending) package func acquire(
    _ application: String,
    as claim: ReplicaClaim
  ) async throws(ReplicaError) -> ReplicaGrant {
    let grant = try await acquired(application, claim)
    // Calls of one archive run one after the other: the last grant is the newest lease.
    held.withLock { $0[application] = Holding(grant) }
    return grant
  }

  /// Drives no other host away from an archive that could not be read here.
  private nonisolated(nonsending) func acquired(
    _ application: String,
    _ claim: ReplicaClaim
  ) async throws(ReplicaError) -> ReplicaGrant {
    var quiet = claim
    (quiet.wants, quiet.isForced) = (false, false)
    do throws(ReplicaError) {
      return try await base.acquire(application, as: quiet)
    } catch {
      guard case .elsewhere = error.kind, claim.wants || claim.isForced else { throw error }
    }
    if readable.withLock({ !$0.contains(application) }) {
      let summary = try await base.summary(of: application)?.summary ?? []
      if !summary.isEmpty {
        _ = try await rereading { () throws(ReplicaError) in try open(summary, as: .summary(of: application)) }
        _ = readable.withLock { $0.insert(application) }
      }
    }
    return try await base.acquire(application, as: claim)
  }

  nonisolated(nonsending) package func renew() async throws(ReplicaError) -> ReplicaRenewal { try await base.renew() }

  nonisolated(nonsending) package func release(
    _ lease: ReplicaLease,
    _ end: ReplicaEnd
  ) async throws(ReplicaError) {
    switch end {
    case .left(let upto, let summary):
      // An empty summary keeps the former one.
      let summary = summary.isEmpty ? [] : keys.current.seal(summary, as: .summary(of: lease.application))
      try await base.release(lease, .left(upto: upto, summary: summary))
    case .removed: try await base.release(lease, end)
    }
    held.withLock { held in
      if held[lease.application]?.lease == lease { held[lease.application] = nil }
    }
  }

  /// For an archive that this lease belongs to.
  private func withHolding<Result>(
    _ lease: ReplicaLease,
    _ body: (inout Holding) -> Result
  ) throws(ReplicaError) -> Result {
    try held.withLock { held throws(ReplicaError) in
      guard var holding = held[lease.application], holding.lease == lease else {
        throw ReplicaError(.fenced(host: nil), "the lease of \(lease.application) has ended; open the archive again")
      }
      defer { held[lease.application] = holding }
      return body(&holding)
    }
  }

  // MARK: Storing

  nonisolated(nonsending) package func append(
    _ batch: ReplicaBatch,
    _ lease: ReplicaLease
  ) async throws(ReplicaError) {
    let (archive, preceding) = try withHolding(lease) { ($0.archive, $0.append(batch)) }
    var sealed = batch
    sealed.body = keys.current.seal(SealedBatch(batch.body, behind: preceding).text, as: .batch(batch, of: archive))
    try await base.append(sealed, lease)
  }

  nonisolated(nonsending) package func snapshot(
    _ part: SnapshotPart,
    _ lease: ReplicaLease
  ) async throws(ReplicaError) {
    let key = keys.current
    let (archive, id) = try withHolding(lease) { holding in
      if part.number == 0, holding.stored?.attempt != part.attempt {
        holding.stored = (part.attempt, key.randomBytes(Self.snapshotIDBytes))
        holding.replace(part.tip)
      }
      // Late parts of a former attempt do not count.
      return (holding.archive, holding.stored.flatMap { $0.attempt == part.attempt ? $0.id : nil } ?? [])
    }
    var sealed = part
    sealed.bytes = key.seal(id + part.bytes, as: .part(part, of: archive))
    try await base.snapshot(sealed, lease)
  }

  // MARK: Reading

  nonisolated(nonsending) package func load(
    _ lease: ReplicaLease,
    from position: ReplicaPosition
  ) async throws(ReplicaError) -> ReplicaPage {
    let page = try await base.load(lease, from: position)
    if let fault = PageOrder.fault(in: page, from: position) {
      throw refusal("the contents of \(lease.application) are not in order: \(fault)")
    }
    return try await rereading { () throws(ReplicaError) in try open(page, lease) }
  }

  /// Tries again with the keys that have been added since.
  private nonisolated(nonsending) func rereading<Opened>(
    _ open: () throws(ReplicaError) -> Opened
  ) async throws(ReplicaError) -> Opened {
    do throws(ReplicaError) {
      return try open()
    } catch {
      guard case .key = error.kind else { throw error }
      do throws(ReplicaKeyError) {
        try await keys.reread()
      } catch let reason {
        throw ReplicaError(error.kind, "\(error.message) (\(reason))")
      }
      return try open()
    }
  }

  private func open(_ page: ReplicaPage, _ lease: ReplicaLease) throws(ReplicaError) -> ReplicaPage {
    let holding = try withHolding(lease) { $0 }
    var read = holding.read
    var opened = ReplicaPage(next: page.next)
    for part in page.parts { opened.parts.append(try open(part, holding.archive, &read)) }
    for batch in page.batches { opened.batches.append(try open(batch, holding.archive, &read)) }
    try withHolding(lease) { $0.read = read }
    return opened
  }

  private func open(
    _ part: SnapshotPart,
    _ archive: SealedPlace.Archive,
    _ read: inout Reading
  ) throws(ReplicaError) -> SnapshotPart {
    let place = SealedPlace.part(part, of: archive)
    let text = try open(part.bytes, as: place)
    let id = Array(text.prefix(Self.snapshotIDBytes))
    if part.number == 0 || read.snapshot == nil { read.snapshot = id }
    guard read.snapshot == id, id.count == Self.snapshotIDBytes else {
      throw refusal("\(place) belongs to another snapshot than the part before it")
    }
    read.tip = part.tip
    var opened = part
    opened.bytes = Array(text.dropFirst(Self.snapshotIDBytes))
    return opened
  }

  private func open(
    _ batch: ReplicaBatch,
    _ archive: SealedPlace.Archive,
    _ read: inout Reading
  ) throws(ReplicaError) -> ReplicaBatch {
    let place = SealedPlace.batch(batch, of: archive)
    guard let text = SealedBatch(try open(batch.body, as: place)) else {
      throw refusal("\(place) does not say what it follows")
    }
    if let tip = read.tip, tip.sequence == batch.after, let preceding = text.preceding, preceding != tip.change {
      throw refusal("\(place) follows another change than the one before it")
    }
    read.tip = ReplicaTip(sequence: batch.upto, change: batch.change)
    var opened = batch
    opened.body = text.body
    return opened
  }

  private func open(_ bytes: [UInt8], as place: SealedPlace) throws(ReplicaError) -> [UInt8] {
    guard let sealed = SealedBytes(bytes) else {
      guard let version = bytes.first, version >= 0x80, version != SealedBytes.version else {
        throw refusal("\(place) is not sealed, or cut off")
      }
      throw ReplicaError(
        .refused,
        "\(place) is sealed in version \(version & 0x7f); install a restorationd that knows it"
      )
    }
    guard let key = keys[sealed.keyID] else {
      throw ReplicaError(
        .key(sealed.keyID.description),
        "\(place) is sealed with the key \(sealed.keyID), which is not here; copy it from a host that has it"
      )
    }
    guard let text = key.open(sealed, as: place) else {
      throw refusal("\(place) was not stored there as it is: it was changed, or belongs to another place")
    }
    return text
  }

  private func refusal(_ fault: String) -> ReplicaError {
    ReplicaError(
      .refused,
      "\(fault); nothing was taken from it. Have the replica set back to a backup, or use a host that has the archive"
    )
  }

  /// A summary that cannot be opened becomes empty: the archive exists, and reading it will tell why.
  nonisolated(nonsending) package func list(
    after application: String?
  ) async throws(ReplicaError) -> ReplicaListing {
    var listing = try await base.list(after: application)
    listing.archives = listing.archives.map { entry in
      guard !entry.summary.isEmpty else { return entry }
      var opened = entry
      do throws(ReplicaError) {
        opened.summary = try open(entry.summary, as: .summary(of: entry.application))
      } catch {
        report(error)
        opened.summary = []
      }
      return opened
    }
    return listing
  }
}
