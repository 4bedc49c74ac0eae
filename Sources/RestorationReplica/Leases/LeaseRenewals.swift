// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import Synchronization

/// Renews all leases of a broker by one call: as often as their term requires while there are any, and when the replica
/// requests it. One call runs at a time.
final class LeaseRenewals: Sendable {
  private struct Rounds {
    /// Weak, because it owns this object.
    weak var context: ReplicationContext?
    var archives: @Sendable () -> [ReplicatedArchive] = { [] }
    var isUnderWay = false
    /// A renewal was requested while one was running.
    var isDue = false
    var isScheduled = false
  }

  private let state = Mutex(Rounds())

  func begin(_ context: ReplicationContext, of archives: @escaping @Sendable () -> [ReplicatedArchive]) {
    state.withLock { ($0.context, $0.archives) = (context, archives) }
  }

  /// Call after a lease was granted.
  func schedule() {
    let context = state.withLock { state in
      guard !state.isScheduled else { return nil as ReplicationContext? }
      state.isScheduled = true
      return state.context
    }
    guard let context else { return }
    context.clock.wake(context.settings.term.renewal) { [weak self] in
      self?.state.withLock { $0.isScheduled = false }
      self?.renew()
    }
  }

  func renew() {
    let context = state.withLock { state in
      state.isDue = true
      guard !state.isUnderWay else { return nil as ReplicationContext? }
      state.isUnderWay = true
      return state.context
    }
    context?.start { [weak self] in
      while self?.isNextDue == true { await self?.ask() }
    }
  }

  private var isNextDue: Bool {
    state.withLock { state in
      state.isUnderWay = state.isDue
      defer { state.isDue = false }
      return state.isDue
    }
  }

  private func ask() async {
    guard let context = state.withLock({ $0.context }) else { return }
    let archives = state.withLock { $0.archives }()
    let asked = context.now
    // The answer may lack leases that are granted meanwhile.
    var leases: [(ReplicatedArchive, ReplicaLease, stored: SequenceNumber)] = []
    for archive in archives { if let lease = archive.held { leases.append((archive, lease, await archive.stored)) } }
    guard !leases.isEmpty || archives.contains(where: \.isAsking) else { return }
    do throws(ReplicaError) {
      let renewal = try await context.replica.renew()
      for (archive, lease, stored) in leases {
        await archive.renewed(lease, renewal, asked: asked, stored: stored)
      }
      await giveBackUnknown(renewal, context)
    } catch {
      for (archive, lease, _) in leases { await archive.ended(error.kind, lease) }
    }
    if archives.contains(where: { $0.held != nil }) { schedule() }
  }

  /// Releases leases whose grant never arrived. The answer to a recent request may still come, so that lease is spared.
  private func giveBackUnknown(_ renewal: ReplicaRenewal, _ context: ReplicationContext) async {
    let archives = Dictionary(state.withLock { $0.archives }().map { ($0.application, $0) }) { $1 }
    for lease in renewal.held.keys {
      if let archive = archives[lease.application], archive.isAsking || archive.held != nil { continue }
      try? await context.replica.release(lease, .left(upto: nil, summary: []))
    }
  }
}
