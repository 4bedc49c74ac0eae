// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Says to the replica, for all archives of a broker at once, that the broker is alive: as often as the term of its
/// leases asks for while it has any, and when the replica calls for attention. One question is under way at a time.
final class LeaseRenewals: Sendable {
  private struct Rounds {
    /// Refers to this object itself.
    weak var context: ReplicationContext?
    var archives: @Sendable () -> [ReplicatedArchive] = { [] }
    var isUnderWay = false
    /// It was asked for while one was under way.
    var isDue = false
    var isScheduled = false
  }

  private let state = Mutex(Rounds())

  func begin(_ context: ReplicationContext, of archives: @escaping @Sendable () -> [ReplicatedArchive]) {
    state.withLock { ($0.context, $0.archives) = (context, archives) }
  }

  /// There is a lease.
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
    // A lease that is granted meanwhile may be missing in the answer.
    let leases = archives.compactMap { archive in archive.held.map { (archive, $0) } }
    guard !leases.isEmpty || archives.contains(where: \.isAsking) else { return }
    do throws(ReplicaError) {
      let renewal = try await context.replica.renew()
      for (archive, lease) in leases { await archive.renewed(lease, renewal, asked: asked) }
      await giveBackUnknown(renewal, context)
    } catch {
      for (archive, lease) in leases { await archive.ended(error.kind, lease) }
    }
    if archives.contains(where: { $0.held != nil }) { schedule() }
  }

  /// Gives back leases that were granted without our hearing of it. One that was asked for just now may be heard of
  /// yet.
  private func giveBackUnknown(_ renewal: ReplicaRenewal, _ context: ReplicationContext) async {
    let archives = Dictionary(state.withLock { $0.archives }().map { ($0.application, $0) }) { $1 }
    for lease in renewal.held {
      if let archive = archives[lease.application], archive.isAsking || archive.held == lease { continue }
      try? await context.replica.release(lease, .left(isFlushed: false, summary: []))
    }
  }
}
