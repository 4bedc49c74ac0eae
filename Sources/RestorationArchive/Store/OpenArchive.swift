// SPDX-License-Identifier: Apache-2.0

/// One open archive of either engine: checks, decides and answers. Used from one actor only.
final class OpenArchive<Rows: ArchiveRows> {
  let application: String
  var rows: Rows
  var index: ArchiveIndex
  /// The epoch of the newest lease.
  private(set) var epoch: Int64
  private let upkeep: ArchiveUpkeep
  /// Contexts that no row named at the opening, which did not list them. It lists those of unreachable rows until they
  /// are deleted.
  private var unusedContexts: [ContextID]
  /// Why writing fails: the outcome of the last commit is unknown.
  private(set) var failure: ArchiveError?
  /// A transaction failed for another reason than space: the files must be checked before the next use.
  private(set) var isDoubtful = false

  init(_ application: String, rows: Rows, index: ArchiveIndex, epoch: Int64, upkeep: ArchiveUpkeep) {
    (self.application, self.rows, self.epoch, self.upkeep) = (application, rows, epoch, upkeep)
    self.index = index
    unusedContexts = index.totals.unnamed.sorted()
  }

  /// Hands out a new lease; the earlier ones are fenced off.
  func reopen(epoch: Int64) throws(ArchiveError) {
    try checkUsable()
    self.epoch = epoch
    unusedContexts = index.totals.unnamed.sorted()
  }

  func check(_ lease: ArchiveLease) throws(ArchiveError) {
    guard lease.epoch == epoch else {
      throw ArchiveError(.fenced, "the archive of \(application) has been reopened since")
    }
    try checkUsable()
  }

  private func checkUsable() throws(ArchiveError) { if let failure { throw failure } }

  // MARK: Reading

  func opening() throws(ArchiveError) -> ArchiveOpening {
    let hidden = Set(unusedContexts)
    return ArchiveOpening(
      lease: ArchiveLease(application: application, epoch: epoch),
      archive: rows.archive,
      sequence: index.tip.sequence,
      contentSequence: index.tip.content,
      reachableBytes: index.totals.reachableBytes,
      damage: try rows.damage(),
      nodes: try scan(after: 0, limit: .max, at: .head),
      contexts: try rows.contexts().filter { !hidden.contains($0.key) },
      buriedContexts: index.totals.buried,
      generations: index.generations,
      lastGeneration: index.tip.lastGeneration,
      lastNode: index.tip.lastNode,
      lastContext: index.tip.lastContext,
      lastSession: index.tip.lastSession,
      sessions: try rows.sessions(),
      claims: try rows.claims().filter { index.isShown($0.node) },
      run: try rows.run(),
      withheld: try rows.withheld()
    )
  }

  /// Without the archive's size at rest, which only its store knows.
  func summary() throws(ArchiveError) -> ArchiveSummary {
    try checkUsable()
    return ArchiveSummary(
      application: application,
      state: .available,
      objects: index.objects,
      generation: index.generations.last?.record.generation ?? 0,
      modified: index.tip.written,
      run: try rows.run()
    )
  }

  func read(_ nodes: [NodeID], at point: ArchivePoint) throws(ArchiveError) -> [StateReading?] {
    var readings: [StateReading?] = []
    readings.reserveCapacity(nodes.count)
    for node in nodes {
      guard let row = index.state(of: node, at: point) else {
        readings.append(nil)
        continue
      }
      var reading = try rows.state(at: row.sequence)
      // The early mark is not in the row: a row is never rewritten.
      if case .state(var record, let sequence) = reading {
        record.isEarly = row.summary.isEarly
        reading = .state(record, sequence: sequence)
      }
      readings.append(reading)
    }
    return readings
  }

  func scan(after node: NodeID, limit: Int, at point: ArchivePoint) throws(ArchiveError) -> [NodeReading] {
    let nodes = index.nodes(after: node, limit: limit, at: point)
    var readings: [NodeReading] = []
    readings.reserveCapacity(nodes.count)
    try rows.readMany { () throws(ArchiveError) in
      for node in nodes {
        guard let row = index.description(of: node, at: point) else { continue }
        let state = index.state(of: node, at: point)
        var reading = NodeReading(node: try rows.node(at: row.sequence), state: state?.summary)
        if point == .head, let settled = index.state(of: node, at: .beforeClaim), settled.sequence != state?.sequence {
          reading.beforeClaim = settled.summary
        }
        readings.append(reading)
      }
    }
    return readings
  }

  // MARK: Writing

  func apply(
    _ changes: [ArchiveChange],
    expecting: SequenceNumber,
    changeID: ChangeID,
    holding: [SequenceNumber]
  ) throws(ArchiveError) -> ArchiveReceipt {
    if index.tip.changeID == changeID { return receipt }
    guard expecting == index.tip.sequence else {
      throw ArchiveError(
        .fenced,
        "the archive of \(application) is at sequence \(index.tip.sequence), not \(expecting)"
      )
    }
    guard !changes.isEmpty else { return receipt }
    guard index.tip.sequence <= ArchiveTip.sequenceMax - SequenceNumber(changes.count) else {
      let hint = "export the application, forget it, and import it"
      throw ArchiveError(.definite, "the archive of \(application) can take no further change; \(hint)")
    }
    try index.validate(changes)
    try write { () throws(ArchiveError) in
      // First, so that the new rows go into the pages that become free.
      try purgeIfOverdue(for: changes, holding: holding)
      for change in changes {
        let effect = index.record(change)
        try rows.write(change, at: index.tip.sequence, effect)
      }
      index.tip.changeID = changeID
      try rows.write(index.tip)
    }
    return receipt
  }

  private var receipt: ArchiveReceipt {
    ArchiveReceipt(
      sequence: index.tip.sequence,
      reachableBytes: index.totals.reachableBytes,
      unnamedContexts: index.totals.unnamed.sorted()
    )
  }

  /// Runs a transaction; if it fails, the index is read again, so that it never shows rows that are not stored.
  private func write(_ body: () throws(ArchiveError) -> Void) throws(ArchiveError) {
    do throws(ArchiveError) {
      try rows.begin()
      try body()
      try rows.commit()
    } catch {
      rows.rollBack()
      if error.kind == .indeterminate {
        failure = error
        throw error
      }
      if error.kind != .full { isDoubtful = true }
      do throws(ArchiveError) {
        index = try rows.index()
      } catch let cause {
        let failure = ArchiveError(.indeterminate, "\(error.message); reading back failed too: \(cause.message)")
        self.failure = failure
        throw failure
      }
      throw error
    }
  }

  // MARK: Upkeep

  /// Makes every later write fail, after a failed sync outside of `apply`.
  func fail(_ error: ArchiveError) { failure = error }

  /// Deletes one batch of dead rows; returns whether there were any.
  func purge(holding: [SequenceNumber]) throws(ArchiveError) -> Bool {
    try purge(ArchivePurge(rowsMax: upkeep.batchRowsMax, bytesMax: upkeep.batchBytesMax), holding: holding)
  }

  /// - Parameter finish: ends the transaction, even without rows to delete; returns whether it did anything.
  func purge(
    _ purge: ArchivePurge,
    holding: [SequenceNumber],
    _ finish: () throws(ArchiveError) -> Bool = { false }
  ) throws(ArchiveError) -> Bool {
    var purge = purge
    index.purge(&purge, holding: holding)
    let unused = unusedContexts
    guard !purge.isEmpty || !unused.isEmpty else { return try finish() }
    try write { () throws(ArchiveError) in
      if !purge.isEmpty { try rows.delete(purge) }
      if !unused.isEmpty { try rows.delete(unused) }
      _ = try finish()
    }
    index.forget(unused)
    unusedContexts = []
    return true
  }

  /// If idle time did not suffice, deletes somewhat more than the commit adds, so that dead rows decrease under load.
  private func purgeIfOverdue(for changes: [ArchiveChange], holding: [SequenceNumber]) throws(ArchiveError) {
    let limit = max(upkeep.deadBytesMax, upkeep.deadPerReachable * index.totals.reachableBytes)
    guard index.totals.deadBytes > limit else { return }
    let added = changes.reduce(0) { $0 + $1.textBytes + NodeLog.State.overhead }
    var purge = ArchivePurge(rowsMax: .max, bytesMax: added + added / 4)
    index.purge(&purge, holding: holding)
    if !purge.isEmpty { try rows.delete(purge) }
  }
}
