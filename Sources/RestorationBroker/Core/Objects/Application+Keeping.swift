// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// States of objects that are neither included nor reached stay off the disk, and are stored by whatever changes that
/// (R4, R7, R15).
extension Application {
  /// Stores what is saved now, and keeps off the disk what no longer is. Called after whatever may change inclusion or
  /// reach, in the same event.
  func settleKept() {
    guard keeping.isStale, case .open = phase else { return }
    let unsaved = tree.unsavedNodes
    for id in keeping.nodes.subtracting(unsaved).sorted() { if let node = tree.nodes[id] { storeKept(of: node) } }
    var (isAnyReached, unread): (Bool, [StateRequest.Row]) = (false, [])
    var ancestry = Ancestry()
    for (_, node) in tree.claimed where node.kept == nil {
      if unsaved.contains(node.id) {
        unread += keep(node)
      } else if !isAnyReached {
        isAnyReached = !ancestry.isIncluded(node)
      }
    }
    keeping.update(isAnyReached: isAnyReached)
    if !unread.isEmpty { read(unread, for: .keeping, after: sequence) }
  }

  /// From now on the node's states stay in memory.
  ///
  /// - Returns: the rows whose texts are still to be read.
  func keep(_ node: Node, isLost: Bool = false) -> [StateRequest.Row] {
    let kept = KeptState(stored: node.state, isLost: isLost)
    node.kept = kept
    keptChanged(of: node, kept)
    keeping.insert(node.id)
    guard !node.isUnreadable else { return [] }
    return [node.state, node.beforeClaim].compactMap { $0 }.map { .init(node: node.id, sequence: $0.sequence) }
  }

  /// Nothing is kept of the node any longer.
  func forgetKept(of node: Node) {
    guard let kept = node.kept else { return }
    budget.keep(-kept.counted.bytes)
    origins.exchange(kept.counted.contexts, for: [], at: sequence)
    node.kept = nil
    keeping.remove(node.id)
  }

  /// The archive's head holds nothing, and nothing is kept.
  func forgetAllKept() {
    for id in keeping.nodes { if let node = tree.nodes[id] { forgetKept(of: node) } }
    keeping = KeptStates()
    keeping.becomeStale()
  }

  // MARK: Keeping

  /// The texts of what was stored before were read.
  func finishKeeping(_ readings: [StateReading?]) {
    for case .state(let record, let sequence)? in readings {
      if let node = tree.nodes[record.node] { node.kept?.takeText(record, of: node, at: sequence) }
    }
  }

  /// A generation is about to be sealed, which does not hold what is kept: no copies stay behind in the head.
  func removeStoredCopies() {
    for node in keeping.nodes.sorted().compactMap({ tree.nodes[$0] }) {
      guard let kept = node.kept, let stored = kept.removeStored(of: node) else { continue }
      budget.grow(by: -stored.bytes, at: write(.removeState(node.id)))
      keptChanged(of: node, kept)
    }
  }

  // MARK: Storing

  /// The node is saved from now on: what is kept of it is written.
  private func storeKept(of node: Node) {
    guard let kept = node.kept else { return }
    let (records, former) = (keptRecords(of: node, kept), node.state)
    for record in records.states.map(\.record) { origins.write(record.context, in: &turn) }
    forgetKept(of: node)
    for var record in records.states.map(\.record) {
      record.node = node.id
      let sequence = write(.state(record))
      if node.state?.isEarly == true, !record.isEarly {
        node.beforeClaim = StateSummary(record, at: sequence)
      } else {
        node.state = StateSummary(record, at: sequence)
      }
    }
    budget.grow(by: (node.state?.bytes ?? 0) - (kept.stored?.bytes ?? 0), at: sequence)
    origins.exchange([], for: node.contexts, at: sequence)
    if let hidden = node.beforeClaim { origins.name(hidden.context, at: sequence) }
    if let state = node.state, let former, !records.states.isEmpty {
      // It is the same state, only somewhere else.
      node.storedAgain(from: former, at: state.sequence)
      saving.storedAgain(node.id, given: kept.count, at: state.sequence)
      keeping.leave(records, of: node.id, at: state.sequence)
      if records.states.last?.record.elements != nil { nameElements(of: node) }
      if turn.hasSubscribers { announceEncoding(at: node, bytes: state.bytes, by: owner(of: node), for: nil) }
    }
    if kept.isLost { askForLost(node) }
  }

  /// A former broker may have known a newer state of an object that can be saved again.
  private func askForLost(_ node: Node) {
    guard let claim = node.claim, let owner = sessions[claim.session] else { return }
    if owner.serves(.encodeRestorableStateWithCoder) {
      saving.noteChange(in: &turn)
      saving.invalidate([node.id], in: &turn)
    } else if let path = tree.path(of: node) {
      notify(owner, StateWanted().with { ($0.object, $0.path) = (claim.handle, path) })
    }
  }

  // MARK: Another broker, or another archive

  /// What is known of kept states, by node.
  var keptRecords: [NodeID: KeptRecords] {
    keeping.nodes.reduce(into: [:]) { records, id in
      if let node = tree.nodes[id], let kept = node.kept { records[id] = keptRecords(of: node, kept) }
    }
  }

  private func keptRecords(of node: Node, _ kept: KeptState) -> KeptRecords {
    let states = kept.records(of: node).map { ($0, origins[$0.context] ?? StateOrigin()) }
    return KeptRecords(states: states, isLost: kept.isLost)
  }

  /// The archive was loaded.
  ///
  /// - Parameter former: what was known before a transaction failed.
  func loadKept(_ former: FormerSessions) {
    keeping = KeptStates()
    keeping.becomeStale()
    var known = former.kept
    for left in former.leaving where left.sequence > sequence { known[left.node] = left.records }
    guard !known.isEmpty || !tree.claimed.isEmpty else { return }
    let unsaved = tree.unsavedNodes
    var unread: [StateRequest.Row] = []
    for node in tree.nodes.values where unsaved.contains(node.id) {
      let isKnown = node.claim.map { former.claims[$0.handle] != nil } ?? false
      guard node.claim != nil || known[node.id] != nil else { continue }
      unread += keep(node, isLost: !isKnown)
      if let records = known[node.id] { resume(records, of: node) }
    }
    if !unread.isEmpty { read(unread, for: .keeping, after: sequence) }
    settleKept()
  }

  /// Takes in what was kept before.
  func resume(_ records: KeptRecords, of node: Node) {
    let claim = node.claim
    node.kept?.isLost = records.isLost
    for (record, origin) in records.states {
      var record = record
      guard !record.referencedNodes.contains(where: { $0 > tree.last }) else {
        // It was never acknowledged, and refers to what is gone with the transaction.
        node.kept?.isLost = true
        continue
      }
      record.node = node.id
      record.context = origins.number(of: origin)
      store(record, at: node)
      if let claim, claim.session == record.session {
        node.claim?.revision = max(claim.revision, record.revision)
        if record.isEarly { node.claim?.hasDecoded = false }
      }
      if record.isEarly, let claim { trials.watchEarly(since: claim.since, in: &turn) }
    }
  }

  /// A session continues over a hand-off, with what the former broker kept of its objects.
  func adopt(_ kept: [KeptObject], of session: Session) {
    for node in session.objects.values { node.kept?.isLost = false }
    for object in kept {
      guard let node = session.objects[object.object], node.kept.map({ !$0.isChanged }) ?? !node.hasState else {
        continue
      }
      let states = object.states.map { ($0.record(of: node.id, by: session.id), $0.origin) }
      resume(KeptRecords(states: states), of: node)
    }
    settleKept()
  }

  /// What the next broker is told of a session's objects.
  func keptObjects(of session: Session) -> [KeptObject] {
    guard !keeping.nodes.isEmpty else { return [] }
    return session.objects.sorted { $0.key < $1.key }.compactMap { handle, node in
      guard let kept = node.kept else { return nil }
      let states = keptRecords(of: node, kept).states
      return states.isEmpty ? nil : KeptObject(object: handle, states: states.map { KeptText($0, $1) })
    }
  }
}
