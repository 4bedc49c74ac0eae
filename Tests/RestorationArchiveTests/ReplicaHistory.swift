// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import RestorationArchive
internal import SeededRandom

/// A random history of three hosts that share one archive: writes, shipping in pieces, crashes at any step, takeovers,
/// releases, lost answers, and either damaged files or servers that take over and lack the last transactions. Both in
/// one history lose what only the damaged file and the former server had.
struct ReplicaHistory {
  /// What the hosts do wrong, for the test of this test.
  enum Fault: CaseIterable {
    /// Epochs are compared without their timeline.
    case epochWithoutTimeline
    /// A copy under an earlier lease counts as only behind, wherever it ends.
    case noReign
    /// The replica takes what is written under a former lease.
    case noFence
    /// A lease is noted as held before the copy has caught up.
    case heldTooEarly
    /// A copy of a removed archive counts as one of what is there now.
    case historyIgnored
    /// A copy that was catching up when its host crashed counts as one that was in use.
    case catchingUpNotNoted
  }

  /// Of each change its number: what it would hold.
  private(set) var acknowledged: Set<UInt64> = []
  /// What somebody was told that it is not where it was.
  private(set) var told: Set<UInt64> = []
  /// What happened, for a failure.
  private(set) var trail: [String] = []

  private var random: SeededGenerator
  private let fault: Fault?
  private let replica: MemoryReplica
  private var hosts: [ReplicaHost]
  private var last: UInt64 = 0
  /// Of every three histories one has damage, and one servers that take over.
  private let kind: Kind

  private enum Kind { case plain, damage, failover }

  init(seed: UInt64, fault: Fault? = nil) {
    random = SeededGenerator(seed: seed)
    self.fault = fault
    let kind: Kind = seed % 3 == 0 ? .plain : seed % 3 == 1 ? .damage : .failover
    self.kind = kind
    let replica = MemoryReplica(pageMax: 2, planted: fault == .noFence ? .noFence : nil)
    let promise: ShippingQueue.Promise = seed % 5 == 0 ? .replica : .disk
    self.replica = replica
    hosts = ["A", "B", "C"].map { ReplicaHost($0, replica, promise, fault, hasFaults: kind != .plain) }
  }

  /// Why the history is wrong; `nil` if nothing was lost without being told, and nothing was shipped that does not
  /// continue the replica.
  mutating func play() async -> String? {
    for _ in 0..<(5 + random.below(56)) {
      await step()
      if let wrong = hosts.lazy.compactMap(\.wrong).first { return wrong }
    }
    await finish()
    if let wrong = hosts.lazy.compactMap(\.wrong).first { return wrong }
    let contents = replica.numbers
    if Set(contents).count != contents.count { return "twice at the replica: \(contents)" }
    for host in hosts { acknowledged.formUnion(host.acknowledged) }
    let removed = hosts.reduce(into: Set<UInt64>()) { $0.formUnion($1.removed) }
    if kind != .failover, !removed.isDisjoint(with: contents) { return "removed and back: \(contents)" }
    for host in hosts { told.formUnion(host.told) }
    told.formUnion(removed)
    let missing = acknowledged.subtracting(contents).subtracting(told)
    return missing.isEmpty ? nil : "lost and not told: \(missing.sorted())"
  }

  private mutating func step() async {
    let milliseconds = Int64(random.below(20) == 0 ? random.below(20_000) : random.below(200))
    replica.advance(by: milliseconds)
    for host in hosts { host.now += milliseconds }
    let host = hosts[random.below(hosts.count)]
    // Some faults show only if a host crashes while it opens the archive.
    host.crashAfter = random.below(fault == nil ? 5 : 2) == 0 ? random.below(8) : nil
    switch random.below(100) {
    case ..<24: write(host)
    case ..<33: await host.work(1 + random.below(3))
    case ..<45: await host.work(50)
    case ..<65: await host.open(isForced: random.below(3) == 0)
    case ..<70: await host.renew()
    case ..<82: await host.close()
    case ..<85: host.crash()
    case ..<88: replica.loseAnswer(to: host.name)
    case ..<91: random.below(3) == 0 ? replica.cut(host.name) : replica.mend(host.name)
    case ..<92: await host.remove()
    case _ where kind == .damage: damage(host)
    case _ where kind == .failover:
      let lost = random.below(7)
      replica.promote(losing: lost)
      host.note("a server takes over that lacks \(lost) transactions: \(replica.numbers)")
    default: await host.open(isForced: true)
    }
    trail += host.takeNotes()
  }

  private mutating func write(_ host: ReplicaHost) {
    let count = 1 + random.below(2)
    if host.write((1...UInt64(count)).map { last + $0 }) { last += UInt64(count) }
  }

  /// A file loses its end and is repaired; what only it had is told.
  private func damage(_ host: ReplicaHost) {
    host.crash()
    let gone = host.log.suffix(2)
    let others = hosts.filter { $0 !== host }.flatMap(\.log)
    host.damage(telling: Set(gone).subtracting(replica.numbers).subtracting(others))
  }

  /// Everybody comes back in turn and ships what it has.
  private mutating func finish() async {
    for host in hosts {
      replica.mend(host.name)
      host.crashAfter = nil
      host.crash()
    }
    for host in hosts + hosts {
      // An answer may still be lost once.
      for _ in 0..<2 where host.holding.lease == nil { await host.open(isForced: true) }
      await host.work(200)
      host.crash()
      trail += host.takeNotes()
    }
  }
}

extension MemoryReplica {
  /// The changes that it has, in order.
  var numbers: [UInt64] {
    let (parts, batches) = contents(of: ReplicaHost.application)
    return parts.flatMap(ReplicaHost.numbers)
      + batches.flatMap { $0.transactions.flatMap { ReplicaHost.numbers($0.changes) } }
  }
}
