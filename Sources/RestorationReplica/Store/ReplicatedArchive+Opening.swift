// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import Synchronization

extension ReplicatedArchive {
  /// `open` with its error as a value, because of a trap of Swift 6.3 (`Sources/ARCHITECTURE.md`).
  func opening(for purpose: ArchivePurpose) async -> Result<ArchiveOpening, ArchiveError> {
    do throws(ArchiveError) {
      return .success(try await open(for: purpose))
    } catch {
      return .failure(error)
    }
  }

  /// Opens the copy once it has the replica's contents. To write, the caller makes another host leave the archive; to
  /// read, it is refused if another host has the archive.
  private func open(for purpose: ArchivePurpose) async throws(ArchiveError) -> ArchiveOpening {
    await begin()
    defer { end() }
    defer { gate.withLock { $0.isForced = false } }
    queue.endFlush()
    // A transaction has failed: the archive's user must hear of the loss, and must not regain the archive by itself.
    if lease != nil, case .lost(let host) = holding.permission(at: now) {
      await leave()
      throw lost(to: host)
    }
    if lease == nil, let kept = holding.lease { await confirm(kept) }
    do throws(ArchiveError) {
      var opening = try await hold(for: purpose)
      if opening.damage == nil, let damage { opening.damage = "\(damage); it is now what the fleet's store has" }
      damage = nil
      tellWanted()
      return opening
    } catch {
      // No caller has opened it, so no caller closes it.
      await leave()
      throw error
    }
  }

  /// Checks whether this host still has a lease that was retained to send the rest. If another host has taken it by
  /// force, the caller must get the replica's contents. The archive is closed, so no session needs a void lease to
  /// continue: it counts as lost, too.
  private func confirm(_ kept: ReplicaLease) async {
    let asked = now
    do throws(ReplicaError) {
      let stored = queue.stored
      let renewal = try await context.replica.renew()
      guard renewal.held[kept] != nil else { return perform(holding.fenced(kept, by: nil)) }
      await renewed(kept, renewal, asked: asked, stored: stored)
    } catch {
      if error.kind == .voided { perform(holding.fenced(kept, by: nil)) } else { ended(error.kind, kept) }
    }
  }

  /// Acquires the lease unless this host has it, and opens the copy.
  func hold(for purpose: ArchivePurpose) async throws(ArchiveError) -> ArchiveOpening {
    defer { prepared = nil }
    if !holding.opened(at: now) {
      publish()
      let opening = try await openCopy(for: purpose)
      guard let noted = note.standing?.archive, noted != opening.archive else { return opening }
      // It was repaired since it was closed: it is not what the queue and the lease continue.
      damage = opening.damage ?? damage
      await closeCopy()
      perform(holding.diverged())
      renewQueue()
      _ = holding.opened(at: now)
    }
    publish()
    try await take(for: purpose)
    if let prepared { return prepared }
    return try await openCopy(for: purpose)
  }

  /// Acquires the lease; repeats the request while that can help.
  func take(for purpose: ArchivePurpose) async throws(ArchiveError) {
    wantedBy = nil
    let request = LeaseRequest(at: now, wants: purpose.wants)
    do throws(ArchiveError) {
      try await prepare(creating: purpose.creates)
      while true {
        do throws(ClaimFailure) {
          return try await claim(isOpen: false, wants: purpose.wants)
        } catch {
          journal.refused(ReplicaFailure(error))
          switch error {
          case .archive(let error): throw error
          case .replica(let error):
            switch request.refused(error.kind, at: now) {
            case .giveUp: throw failure(error)
            case .ask(let time):
              await wait(until: time)
              _ = holding.opened(at: now)
              publish()
            }
          }
        }
      }
    } catch {
      perform(holding.refused(.refused, at: now))
      await closeCopy()
      throw error
    }
  }

  /// Opens the copy, if there is one, and reads its note.
  private func prepare(creating: Bool) async throws(ArchiveError) {
    note = ReplicaNote(kept: try await base.note(of: application))
    do throws(ArchiveError) {
      try await openCopy(for: .reading)
    } catch {
      guard error.kind == .absent else { throw error }
      if !creating { try await mustBeThere() }
    }
    if let incoming = note.incoming, incoming.archive == copy { note.standing = incoming }
    // Damage found by an opening without a caller is reported to the next caller.
    damage = prepared?.damage ?? damage
    if copy == nil, note.standing?.phase == .held {
      damage = "this host's copy of the archive of \(application) was missing"
    }
    note.incoming = nil
  }

  @discardableResult
  func openCopy(for purpose: ArchivePurpose) async throws(ArchiveError) -> ArchiveOpening {
    let opening = try await base.open(application, for: purpose)
    (lease, copy, prepared) = (opening.lease, opening.archive, opening)
    return opening
  }

  /// Callers that need the copy during this open it again afterwards.
  func closeCopy() async {
    let closing = lease
    (lease, copy, prepared) = (nil, nil, nil)
    if let closing { await base.close(closing) }
  }

  func failure(_ error: ReplicaError) -> ArchiveError {
    ArchiveError(error, of: application, at: context.settings.host)
  }

  private func mustBeThere() async throws(ArchiveError) {
    do throws(ReplicaError) {
      guard try await context.replica.summary(of: application) == nil else { return }
    } catch {
      throw failure(error)
    }
    throw ArchiveError(.absent, "there is no archive of \(application)")
  }

  // MARK: The lease

  /// The replica does not know the lease any more.
  func claimAgain() async {
    if lease != nil {
      do throws(ClaimFailure) {
        try await claim(isOpen: true, wants: false)
      } catch {
        report(ReplicaFailure(error))
      }
      return
    }
    // The archive was closed meanwhile.
    perform(holding.flushed())
    // Or it is being opened again.
    if holding.isClaiming { return perform(holding.refused(.away, at: now)) }
    // The rest is claimed again like what a former broker has left.
    if queue.lag > 0 { start { _ = await $0.sendLeft() } }
  }

  /// Acquires the lease, and brings the copy to the replica's contents.
  ///
  /// - Parameter isOpen: whether the copy is in use, and so cannot be replaced.
  private func claim(isOpen: Bool, wants: Bool) async throws(ClaimFailure) {
    let grant: ReplicaGrant
    do throws(ReplicaError) {
      grant = try await acquire(wants: wants)
    } catch {
      perform(holding.refused(error.kind, at: now))
      throw .replica(error)
    }
    guard holding.granted(grant.lease) else { throw .replica(lost(grant)) }
    publish()
    context.leases.schedule()
    let tip: ReplicaTip?
    do throws(ClaimFailure) {
      tip = try await catchUp(grant, isOpen)
    } catch {
      switch error {
      case .replica(let error): perform(holding.failed(error.kind, at: now))
      // The claim of an open archive is repeated.
      case .archive: perform(holding.failed(isOpen ? .away : .refused, at: now))
      }
      throw error
    }
    guard let tip else {
      perform(holding.diverged())
      throw .replica(lost(grant))
    }
    guard holding.lease == grant.lease else { throw .replica(lost(grant)) }
    begin(grant, at: tip, isOpen)
  }

  func acquire(wants: Bool) async throws(ReplicaError) -> ReplicaGrant {
    let isForced = gate.withLock { gate in
      gate.isAsking = true
      return gate.isForced
    }
    defer { gate.withLock { $0.isAsking = false } }
    let claim = ReplicaClaim(standing: note.standing, reader: context.reader, wants: wants, isForced: isForced)
    return try await context.replica.acquire(application, as: claim)
  }

  private func lost(_ grant: ReplicaGrant) -> ReplicaError {
    ReplicaError(.fenced(host: nil), "the lease \(grant.lease.id.text) was lost; open the archive again")
  }

  /// The least size of a typical change.
  private static let changeBytes = 128

  /// The copy has the replica's contents and the note is durable: writing may begin.
  private func begin(_ grant: ReplicaGrant, at tip: ReplicaTip, _ isOpen: Bool) {
    if isOpen { takeCommitted() } else { renewQueue() }
    perform(holding.caughtUp())
    let behind = Int(grant.tip.sequence - grant.base) * Self.changeBytes
    perform(queue.start(stored: grant.tip.sequence, tip: tip.sequence, behind: behind, at: now))
  }

  // MARK: Catching up

  /// Returns the end of the copy; `nil` if it is open and its users have seen something else.
  private func catchUp(_ grant: ReplicaGrant, _ isOpen: Bool) async throws(ClaimFailure) -> ReplicaTip? {
    var (step, conflict) = (CatchingUp.Step?.none, CarriedCopy?.none)
    try await local { () async throws(ArchiveError) in (step, conflict) = try await prepareStep(grant, isOpen) }
    switch step {
    case .keep: break
    case .apply(let after):
      guard let copy else { return nil }
      note.standing = ReplicaStanding(grant, .catchingUp, archive: copy, continuing: note.standing)
      try await local { () async throws(ArchiveError) in try await base.keep(note.text, of: application) }
      try await apply(after: after, grant)
    case .install:
      try await install(grant, settingAside: conflict)
      try await apply(after: grant.base, grant)
    case nil: return nil
    }
    return try await local { () async throws(ArchiveError) in
      if lease == nil { try await openCopy(for: .writing) }
      try await noteHeld(grant)
      // The copy may have been opened again meanwhile, and this step fails: then everything is repeated.
      guard let lease else { return ReplicaTip() }
      return try await base.tip(lease)
    }
  }

  /// Notes the lease. Returns the next step, and the copy to be set aside before it, if any.
  private func prepareStep(
    _ grant: ReplicaGrant,
    _ isOpen: Bool
  ) async throws(ArchiveError) -> (CatchingUp.Step?, conflict: CarriedCopy?) {
    var found: CarriedCopy?
    if let lease, let copy { found = CarriedCopy(archive: copy, tip: try await base.tip(lease)) }
    let plan = CatchingUp(found, note.standing, grant)
    guard plan.step == .keep || !isOpen else { return (nil, nil) }
    if note.standing != nil {
      note.standing?.begin(grant.lease.id, at: found?.tip.sequence ?? 0)
      try await base.keep(note.text, of: application)
    }
    return (plan.step, plan.isConflict ? found : nil)
  }

  /// The copy stays as it is until its replacement is complete.
  private func install(_ grant: ReplicaGrant, settingAside conflict: CarriedCopy?) async throws(ClaimFailure) {
    await closeCopy()
    let arrived: CarriedCopy
    do throws(ClaimFailure) {
      arrived = try await receive(grant)
    } catch {
      await base.dropIncoming(application)
      throw error
    }
    try await local { () async throws(ArchiveError) in
      note.incoming = ReplicaStanding(grant, .catchingUp, archive: arrived.archive)
      try await base.keep(note.text, of: application)
      if let conflict { try await setAside(conflict, grant) }
      try await base.install(application)
      note = ReplicaNote(standing: note.incoming)
      try await openCopy(for: .reading)
    }
  }

  /// Loads the snapshot; without one the result is an empty archive.
  private func receive(_ grant: ReplicaGrant) async throws(ClaimFailure) -> CarriedCopy {
    try await local { () async throws(ArchiveError) in try await base.beginIncoming(application) }
    var reading = reading(grant, from: .snapshot(part: 0))
    while reading.isInSnapshot, let page = try await nextPage(of: &reading, grant) {
      for part in page.parts {
        try await local { () async throws(ArchiveError) in try await base.addIncoming(part.bytes, to: application) }
      }
    }
    let arrived = try await local { () async throws(ArchiveError) in try await base.endIncoming(application) }
    guard arrived.tip == reading.snapshotTip ?? ReplicaTip() else { throw misplaced(arrived.tip, grant.base) }
    return arrived
  }

  private func reading(_ grant: ReplicaGrant, from position: ReplicaPosition) -> ContentsReading {
    ContentsReading(grant, from: position, bytesMax: context.settings.contentsBytesMax)
  }

  /// Returns `nil` at the end. Between two pages it checks whether a caller still waits for the archive.
  private func nextPage(
    of reading: inout ContentsReading,
    _ grant: ReplicaGrant
  ) async throws(ClaimFailure) -> ReplicaPage? {
    guard let position = reading.position else { return nil }
    var next = reading
    let page = try await remote { () async throws(ReplicaError) in
      guard !Task.isCancelled, context.stopping.withLock({ $0 == nil }) else {
        throw ReplicaError(.away, "nobody waits any longer for what the fleet's store has; open it again")
      }
      let page = try await context.replica.load(grant.lease, from: position)
      try next.take(page)
      return page
    }
    reading = next
    return page
  }

  private func apply(after: SequenceNumber, _ grant: ReplicaGrant) async throws(ClaimFailure) {
    guard let lease else { return }
    prepared = nil
    var end = after
    guard end < grant.tip.sequence else { return try await mustEnd(at: grant.tip, lease) }
    var reading = reading(grant, from: .batches(after: end))
    while let page = try await nextPage(of: &reading, grant) {
      for batch in page.batches where batch.upto > end {
        let (begin, changes) = try changes(of: batch, behind: end)
        // All or nothing: the last transaction of a batch may replace what the first one wrote.
        try await local { () async throws(ArchiveError) in
          _ = try await base.apply(
            ArchiveBatch(changes),
            lease: lease,
            expecting: begin,
            changeID: batch.change,
            holding: []
          )
        }
        end = batch.upto
      }
    }
    try await mustEnd(at: grant.tip, lease)
  }

  private func mustEnd(at end: ReplicaTip, _ lease: ArchiveLease) async throws(ClaimFailure) {
    let tip = try await local { () async throws(ArchiveError) in try await base.tip(lease) }
    guard tip == end else { throw misplaced(tip, end.sequence) }
  }

  private func misplaced(_ tip: ReplicaTip, _ end: SequenceNumber) -> ClaimFailure {
    let text = "it ends at sequence \(tip.sequence), not as the store says at \(end); look at the fleet's store"
    return .replica(ReplicaError(.refused, text))
  }

  /// The changes of the batch's transactions that begin at `end` or behind it, and where they begin. The batch comes
  /// from outside and is not trusted.
  private func changes(
    of batch: ReplicaBatch,
    behind end: SequenceNumber
  ) throws(ClaimFailure) -> (begin: SequenceNumber, [ArchiveChange]) {
    let problem: String
    do throws(ChangeBatchError) {
      let decoded = try ChangeBatch(decoding: batch.body)
      var (begin, rest) = (decoded.after, decoded.transactions[...])
      if begin == batch.after, decoded.upto == batch.upto, rest.last?.changeID == batch.change {
        while begin < end, let former = rest.popFirst() { begin += SequenceNumber(former.changes.count) }
        return (begin, rest.flatMap(\.changes))
      }
      problem = "they are others"
    } catch {
      problem = error.description
    }
    let place = "\(batch.after &+ 1) to \(batch.upto)"
    let text = "the changes \(place) cannot be read (\(problem)); look at the fleet's store"
    throw .replica(ReplicaError(.refused, text))
  }

  private func setAside(_ found: CarriedCopy, _ grant: ReplicaGrant) async throws(ArchiveError) {
    await closeCopy()
    let file = try await base.setAside(application)
    let isKnown = found.archive == note.standing?.archive && note.standing?.history == grant.history
    let common = isKnown ? note.standing?.common(with: grant, upTo: found.tip.sequence) : nil
    // With nothing in common it is not known.
    let changes = common.flatMap { $0 > 0 ? found.tip.sequence - $0 : nil }
    var conflict = ArchiveConflict(host: grant.former?.host, changes: changes.flatMap { $0 > 0 ? $0 : nil }, file: file)
    conflict.isRemoval = grant.tip.sequence == 0
    context.tell(.conflict(application: application, conflict))
  }

  private func noteHeld(_ grant: ReplicaGrant) async throws(ArchiveError) {
    guard let copy else { return }
    let former = note.standing.flatMap { $0.history == grant.history && $0.archive == copy ? $0 : nil }
    note = ReplicaNote(standing: ReplicaStanding(grant, .held, archive: copy, continuing: former))
    try await base.keep(note.text, of: application)
  }
}

extension ArchiveError {
  /// - Parameter host: this host. If the error names it as the holder, the replica does not return the lease yet.
  init(_ error: ReplicaError, of application: String, at host: String) {
    let kind: Kind
    switch error.kind {
    case .elsewhere(let holder) where holder.host == host: kind = .definite
    case .elsewhere(let holder): kind = .elsewhere(host: holder.host, since: holder.since)
    case .fenced(let host): kind = .lost(host: host)
    case .tooNew, .key: kind = .unreadable
    case .quota, .refused: kind = .refused
    case .voided, .away, .unknown, .gap, .uncovered: kind = .definite
    }
    self.init(kind, "the archive of \(application) at the fleet's store: \(error.message)")
  }
}
