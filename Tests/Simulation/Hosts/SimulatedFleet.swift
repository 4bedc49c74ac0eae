// SPDX-License-Identifier: Apache-2.0

internal import Histories
internal import InMemory
internal import NIOCore
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationReplica
internal import RestorationWire

/// Hosts that share a replica, and one clock.
///
/// Each is a `World` with a loop of its own, so that one can stand still while the clock goes on.
final class SimulatedFleet {
  let network: SimulatedNetwork
  let hosts: [World]

  init(seed: UInt64, hosts count: Int, _ promise: ReplicaPromise, _ trace: Trace) {
    let network = SimulatedNetwork(seed: seed &+ 5)
    self.network = network
    var limits = Limits()
    if seed % 3 == 0 { limits.openArchivesMax = 1 }
    hosts = ["A", "B", "C"].prefix(count).enumerated().map { number, name in
      // Chance is another one on each.
      World(seed: seed &+ UInt64(number) << 40, limits: limits, trace: trace, name: name) {
        Self.store(of: name, promise, network, around: $0, $1, $2, $3)
      }
    }
    for host in hosts { host.passTime = { [unowned self] in advance(milliseconds: $0) } }
  }

  private static let term = LeaseTerm(milliseconds: 15_000)

  private static func store(
    of host: String,
    _ promise: ReplicaPromise,
    _ network: SimulatedNetwork,
    around files: SQLiteArchiveStore,
    _ loop: TestEventLoop,
    _ thread: SimulatedExecutor,
    _ isAlive: @escaping @Sendable () -> Bool
  ) -> ReplicatedStore {
    // Little is much here: pieces and snapshots come often.
    var limits = ShippingQueue.Limits()
    (limits.batchBytesMax, limits.addedBytesMax, limits.backlogBytesMax) = (600, 1_200, 1_500)
    limits.compactionBytes = 4_000
    var settings = ReplicaSettings(host: host, term: term, promise: promise, limits: limits)
    (settings.eagerMemory, settings.partBytes) = (1_000, 16 << 10)
    // The time of the fleet: what was frozen looks at the clock before its timers fire.
    let clock = ReplicaClock(now: { network.nowMilliseconds }) { milliseconds, body in
      _ = loop.scheduleTask(deadline: network.loop.now + .milliseconds(milliseconds), body)
    }
    do throws(ArchiveError) {
      return try ReplicatedStore(around: files, settings, clock: clock, on: thread, sharing: \.shared) { attention in
        network.way(from: host, term: term, isAlive: isAlive, attention: attention)
      }
    } catch {
      preconditionFailure("no store: \(error)")
    }
  }

  // MARK: Time

  /// Does what is due now, and what that brings.
  func run() { for host in hosts where !host.isFrozen { host.run() } }

  func advance(milliseconds: Int64) {
    let end = network.loop.now + .milliseconds(milliseconds)
    repeat {
      let deadlines = hosts.map { $0.isFrozen ? nil : $0.nextDeadline } + [network.loop.nextDeadline]
      let next = max(network.loop.now, deadlines.compactMap { $0 }.min().map { min($0, end) } ?? end)
      network.advance(to: next)
      for host in hosts where !host.isFrozen { host.advance(to: next) }
    } while network.loop.now < end
  }

  func thaw(_ host: World, takesInput: Bool) {
    if host.isFrozen { host.thaw(at: network.loop.now, takesInput: takesInput) }
  }
}
