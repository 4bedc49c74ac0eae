// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import Synchronization

extension ReplicatedStore: ArchiveReplicating {
  package nonisolated var host: String { context.settings.host }
  package nonisolated var promise: ReplicaPromise { context.settings.promise }
  package nonisolated var keyID: String? { context.settings.keyring?.currentID() }

  nonisolated(nonsending) package func states(
    of application: String?
  ) async -> (states: [ReplicaState], failure: ReplicaFailure?) {
    await ReplicaOperator(of: self).states { other in application == nil || other == application }
  }

  nonisolated(nonsending) package func flush(
    _ application: String?,
    milliseconds: Int64
  ) async -> [String: SequenceNumber?] {
    await ReplicaOperator(of: self).flush(by: context.now + milliseconds) { application == nil || $0 == application }
  }

  nonisolated(nonsending) package func migrate(
    _ application: String,
    milliseconds: Int64
  ) async -> Result<Void, ArchiveError> {
    guard ArchiveFiles.isApplication(application) else {
      return .failure(ArchiveError(.absent, "there is no archive of \(application)"))
    }
    if let problem = await context.settings.keyring?.reread() { return .failure(ArchiveError(.definite, problem)) }
    return await archive(application).migrate(by: context.now + milliseconds)
  }
}

/// Runs on the executor of the store's archives: calls of other actors that fail resume there.
private actor ReplicaOperator {
  private let store: ReplicatedStore
  private nonisolated let executor: ReplicaExecutor

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(of store: ReplicatedStore) { (self.store, executor) = (store, store.context.executor) }

  private var base: any ArchiveCarrying { store.context.base }

  func states(
    of isMeant: @Sendable (String) -> Bool
  ) async -> (states: [ReplicaState], failure: ReplicaFailure?) {
    var states: [String: ReplicaState] = [:]
    for archive in store.all where isMeant(archive.application) {
      let state = await archive.state()
      // Of others it is known only that somebody has asked for them.
      if state != ReplicaState(of: archive.application) { states[archive.application] = state }
    }
    for application in (try? await base.noted()) ?? [] where isMeant(application) && states[application] == nil {
      var state = ReplicaState(of: application)
      if ReplicaNote(kept: try? await base.note(of: application)).standing?.phase == .held { state.changes = nil }
      states[application] = state
    }
    for (copy, since) in (try? await base.setAside()) ?? [:] {
      guard let application = ArchiveFiles.application(ofCopy: copy), isMeant(application) else { continue }
      states[application, default: ReplicaState(of: application)].conflicts[copy] = since
    }
    var failure: ReplicaFailure?
    switch await store.context.look() {
    case .success(let summaries):
      for summary in summaries where isMeant(summary.application) {
        states[summary.application, default: ReplicaState(of: summary.application)].add(summary, at: store.host)
      }
    case .failure(let error): failure = ReplicaFailure(error)
    }
    return (states.values.sorted { $0.application < $1.application }, failure)
  }

  func flush(by deadline: Int64, of isMeant: @Sendable (String) -> Bool) async -> [String: SequenceNumber?] {
    let applications = Set((try? await base.noted()) ?? []).union(store.all.map(\.application)).filter(isMeant)
    var unsent: [String: SequenceNumber?] = [:]
    for archive in applications.sorted().map(store.archive) {
      // Without the replica each archive would use up its time.
      if store.context.now < deadline { _ = await archive.sendLeft() }
      let changes = await archive.left(by: deadline)
      if changes != 0 { unsent.updateValue(changes, forKey: archive.application) }
    }
    guard store.context.now < deadline, unsent.values.contains(nil) else { return unsent }
    // Archives that another host has continued are not sent.
    guard case .success(let summaries) = await store.context.look() else { return unsent }
    let lost = Set(summaries.filter { $0.isElsewhere(store.host) }.map(\.application))
    return unsent.filter { $0.value != nil || !lost.contains($0.key) }
  }
}

extension ReplicatedArchive {
  func state() -> ReplicaState {
    var state = ReplicaState(of: application)
    if holding.lease != nil {
      (state.lease, state.stored, state.sequence) = (.held, queue.stored, queue.tail)
      (state.changes, state.bytes, state.isSnapshotDue) = (unsent, queue.bytes, queue.isSnapshotDue)
    } else if note.standing?.phase == .held {
      state.changes = nil
    }
    state.milliseconds = gate.withLock { $0.progress }.map { now - $0.since } ?? 0
    // If nothing is left to send, the cause may be gone, unless it is one that a restart of the broker ends.
    if state.changes != 0 || [.key, .tooNew].contains(journal.failure?.cause) { state.failure = journal.failure }
    return state
  }

  /// Number of changes the replica lacks at the end or at the deadline; `nil` if a former broker left an unknown
  /// number.
  func left(by deadline: Int64) async -> SequenceNumber? {
    let changes = await sent(by: deadline)
    guard lease == nil, holding.lease == nil else { return changes }
    return ReplicaNote(kept: try? await base.note(of: application)).standing?.phase == .held ? nil : changes
  }

  func migrate(by deadline: Int64) async -> Result<Void, ArchiveError> {
    let end: SequenceNumber
    switch await snapshotBegun() {
    case .success(let sequence): end = sequence
    case .failure(let error): return .failure(error)
    }
    _ = await sent(by: deadline)
    guard queue.stored < end else { return .success(()) }
    let reason = journal.failure.map { ": \($0.message)" } ?? ""
    return .failure(ArchiveError(.definite, "the snapshot of \(application) is not sent yet\(reason)"))
  }

  /// Returns the end of the snapshot that replaces all contents of the replica. The archive may be opened while the
  /// snapshot is sent.
  private func snapshotBegun() async -> Result<SequenceNumber, ArchiveError> {
    await begin()
    defer { end() }
    guard lease == nil else {
      return .failure(ArchiveError(.definite, "\(application) is in use; end it, and try again"))
    }
    let sequence: Result<SequenceNumber, ArchiveError>
    do throws(ArchiveError) {
      queue.endFlush()
      let opening = try await hold(for: .reading)
      sequence = .success(try await beginAnew(opening))
    } catch {
      sequence = .failure(error)
    }
    await leave(waiting: false)
    return sequence
  }

  /// Commits an empty change, so that the snapshot has an end of its own: the replica takes two snapshots with equal
  /// ends for one.
  private func beginAnew(_ opening: ArchiveOpening) async throws(ArchiveError) -> SequenceNumber {
    let receipt = try await base.apply(
      ArchiveBatch([.forgetContexts([])]),
      lease: opening.lease,
      expecting: opening.sequence,
      changeID: ChangeID.random(),
      holding: []
    )
    perform(queue.renew(upTo: receipt.sequence, at: now))
    return receipt.sequence
  }
}

extension ReplicaState {
  mutating func add(_ summary: ReplicaSummary, at host: String) {
    (holder, stored) = (summary.holder, lease == .held ? stored : summary.sequence)
    guard lease != .held else { return }
    lease = summary.holder.map { $0.host == host ? .held : .elsewhere } ?? .free
  }
}
