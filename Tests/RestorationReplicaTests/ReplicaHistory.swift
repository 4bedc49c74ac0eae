// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import RestorationArchive
internal import RestorationReplica
internal import SeededRandom
internal import Synchronization

/// A random history of three hosts that share one archive: writes, shipping in pieces, crashes at any step, takeovers,
/// releases, lost answers, and either damaged files or servers that take over and lack the last transactions. Both in
/// one history lose what only the damaged file and the former server had.
struct ReplicaHistory {
  /// What the hosts do wrong, for the test of this test.
  enum Fault: CaseIterable {
    /// Leases have numbers, which come again when the replica is put back to an earlier state.
    case numberedLeases
    /// A copy under an earlier lease counts as only behind, wherever it ends.
    case noReign
    /// The replica takes what is written under a former lease.
    case noFence
    /// A copy of a removed archive counts as one of what is there now.
    case historyIgnored
    /// A lease is noted as held before the copy has caught up.
    case heldTooEarly
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
  private let loop = TestEventLoop()
  private var hosts: [ReplicaHost]
  private var last: UInt64 = 0
  /// Of every three histories one has damage, and one servers that take over.
  private let kind: Kind

  private enum Kind { case plain, damage, failover }

  init(seed: UInt64, fault: Fault? = nil) throws {
    random = SeededGenerator(seed: seed)
    self.fault = fault
    let kind: Kind = seed % 3 == 0 ? .plain : seed % 3 == 1 ? .damage : .failover
    self.kind = kind
    let planted: MemoryReplica.Fault? =
      switch fault {
      case .noFence: .noFence
      case .numberedLeases: .numberedLeases
      default: nil
      }
    let replica = MemoryReplica(pageMax: 2, planted: planted)
    let promise: ReplicaPromise = seed % 5 == 0 ? .replica : .disk
    self.replica = replica
    hosts = []
    for name in ["A", "B", "C"] {
      hosts.append(try ReplicaHost(name, replica, promise, fault, hasFaults: kind != .plain, on: loop))
    }
  }

  /// Why the history is wrong; `nil` if nothing was lost without being told, and nothing was shipped that does not
  /// continue the replica.
  mutating func play() -> String? {
    for _ in 0..<(5 + random.below(56)) {
      step()
      if let wrong { return wrong }
    }
    finish()
    if let wrong { return wrong }
    let contents = replica.numbers
    if Set(contents).count != contents.count { return "twice at the replica: \(contents)" }
    for host in hosts { acknowledged.formUnion(host.state.withLock { $0.acknowledged }) }
    let removed = hosts.reduce(into: Set<UInt64>()) { $0.formUnion($1.state.withLock { $0.removed }) }
    if kind != .failover, !removed.isDisjoint(with: contents) { return "removed and back: \(contents)" }
    for host in hosts { told.formUnion(host.setAside.union(host.state.withLock { $0.told })) }
    told.formUnion(removed)
    let missing = acknowledged.subtracting(contents).subtracting(told)
    return missing.isEmpty ? nil : "lost and not told: \(missing.sorted())"
  }

  private var wrong: String? { hosts.lazy.compactMap { $0.state.withLock { $0.wrong } }.first }

  private mutating func pass(_ milliseconds: Int64) {
    loop.pass(milliseconds, at: replica)
    for host in hosts {
      host.settle()
      trail += host.takeNotes()
    }
  }

  private mutating func step() {
    pass(Int64(random.below(20) == 0 ? random.below(20_000) : random.below(200)))
    let host = hosts[random.below(hosts.count)]
    // Some faults show only if a host crashes while it opens the archive.
    let crashAfter = random.below(fault == nil ? 5 : 2) == 0 ? random.below(12) : nil
    host.disk.state.withLock { $0.crashAfter = crashAfter }
    switch random.below(100) {
    case ..<30: write(host)
    case ..<45: pass(Int64(random.below(6_000)))
    case ..<65: host.open(isForced: random.below(3) == 0)
    case ..<82: host.close()
    case ..<85: host.crash()
    case ..<88: replica.loseAnswer(to: host.name)
    case ..<91: random.below(3) == 0 ? replica.cut(host.name) : replica.mend(host.name)
    case ..<92: host.remove()
    case _ where kind == .damage: damage(host)
    case _ where kind == .failover:
      let lost = random.below(7)
      replica.promote(losing: lost)
      host.note("a server takes over that lacks \(lost) transactions: \(replica.numbers)")
    default: host.open(isForced: true)
    }
  }

  private mutating func write(_ host: ReplicaHost) {
    let count = 1 + random.below(2)
    host.write((1...UInt64(count)).map { last + $0 })
    last += UInt64(count)
  }

  /// A file loses its end and is repaired; what only it had is told.
  private func damage(_ host: ReplicaHost) {
    let gone = host.log.suffix(2)
    let others = hosts.filter { $0 !== host }.flatMap(\.log)
    host.damage(telling: Set(gone).subtracting(replica.numbers).subtracting(others))
  }

  /// Everybody comes back in turn and ships what it has.
  private mutating func finish() {
    for host in hosts {
      replica.mend(host.name)
      host.crash()
    }
    for host in hosts + hosts {
      // An answer may still be lost once.
      for _ in 0..<2 where !host.hasLease {
        host.open(isForced: true)
        pass(6_000)
      }
      pass(2_000)
      host.close()
      pass(6_000)
    }
  }
}
