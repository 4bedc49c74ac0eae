// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// The last step of a rollback: a generation becomes the head, with the objects that live now (R16).
struct HeadReplacement {
  private let application: Application
  private let rollback: Rollback
  private let former: NodeTree
  private let target: RolledBackTree
  /// The nodes of the new head.
  private let order: [Node]

  static func carryOut(
    _ rollback: Rollback,
    in application: Application,
    _ long: LongTurn
  ) async throws(ErrorObject) -> RollBack.Reply {
    let (former, count) = (application.tree, application.tree.nodes.count + rollback.progress.total)
    // Its last pieces were read in this event.
    await long.did(count)
    let target = rollback.tree(beside: former, living: application.nodesToKeep())
    await long.did(count)
    let (objects, max) = (target.tree.count, application.turn.limits.objectsPerApplicationMax)
    guard objects <= max else { throw .limitExceeded("objectsPerApplicationMax", max: max, value: objects) }
    let texts = target.tree.nodes.values.textBytes - application.budget.texts
    let growth = rollback.growth(of: former) + texts + application.origins.growth(by: rollback.contexts)
    try application.requireRoom(for: growth)
    await long.did(count)
    try application.turn.limits.requireReadable(rollback.newTexts(beside: former), in: target.tree)
    await long.did(count)
    // From here on only the disk can fail.
    application.note(.headGivenUp)
    let kept = application.generations.sealHead("rollBack", of: application.tree, in: &application.turn)
    application.tree.become(target.tree)
    let replacement = HeadReplacement(application, rollback, former, target)
    await replacement.carryOut(long)
    let damaged = rollback.unreadable.compactMap { application.tree.nodes[$0] }
    return application.sealRolledBack(rollback, damaged: damaged, former: kept)
  }

  private init(_ application: Application, _ rollback: Rollback, _ former: NodeTree, _ target: RolledBackTree) {
    (self.application, self.rollback, self.former, self.target) = (application, rollback, former, target)
    order = application.tree.byAge()
  }

  private func carryOut(_ long: LongTurn) async {
    let count = former.nodes.count + order.count
    await long.did(count)
    writeNodes()
    await long.did(count)
    await writeStates(long)
    await long.did(count)
    await carryClaims(long)
    await long.did(count)
    carryDataSources()
    for node in order where node.isVacant { release(node) }
    await long.did(count)
    application.countHead()
    await long.did(count)
  }

  /// Writes the differences from the former tree: only what has changed since the generation (R16).
  private func writeNodes() {
    for node in former.byAge(where: { application.tree.nodes[$0.id] == nil }) {
      application.forgetBlame(of: node)
      if node.hasState { application.write(.removeState(node.id)) }
      application.write(.node(.removal(of: node.id, successor: application.tree.successors[node.id])))
    }
    for node in order where former.nodes[node.id]?.record != node.record { application.write(node) }
    for (gone, successor) in application.tree.successors.sorted(by: { $0.key < $1.key })
    where former.nodes[gone] == nil && former.successors[gone] != successor {
      application.write(.node(.removal(of: gone, successor: successor)))
    }
  }

  /// Gives nodes the states of the generation. None is provisional, because they were requested (R19).
  private func writeStates(_ long: LongTurn) async {
    var settled: [NodeID] = []
    for node in order {
      await long.did(1)
      let before = former.nodes[node.id]
      let restored = rollback.restored(node, beside: before)
      node.versions = before?.versions ?? Versions()
      switch restored {
      case .nothing:
        if node.hasState { application.write(.removeState(node.id)) }
        node.versions.remove()
        application.acquit(node.id)
      case .same:
        if node.versions.isProvisional { settled.append(node.id) }
        node.versions.confirm()
      case .text(var record, let original):
        record.isEarly = false
        if let claim = before?.claim {
          // So that revisions continue, even after a restart (R15).
          record.session = claim.session
          record.revision = claim.revision
        }
        node.versions.write(StateSummary(record, at: application.write(.state(record))))
        application.acquit(node.id)
        application.withholdCopy(of: original, at: node)
      }
    }
    if !settled.isEmpty { application.write(.settle(settled)) }
  }

  /// Owners keep their objects. Their pushes before a decode are provisional: they have not seen the new states (R19).
  private func carryClaims(_ long: LongTurn) async {
    let owned = former.byAge { $0.claim != nil }
    // An owner whose node exists precedes one whose path exists.
    let present = application.tree.nodes
    for node in owned.filter({ present[$0.id] != nil }) + owned.filter({ present[$0.id] == nil }) {
      await long.did(1)
      guard let claim = node.claim, let session = application.sessions[claim.session],
        let place = target.node(node.id)
      else { continue }
      if let owner = application.owner(of: place) {
        application.announceUnregistration(of: node, .replaced, stateKept: true)
        session.objects[claim.handle] = nil
        application.tell(session, that: claim.handle, isReplacedAt: place, by: owner)
        continue
      }
      application.setFresh(node, false, of: session)
      application.hold(place, claim.rolledBack(at: application.turn.now.monotonic), by: session)
      (place.claimRecord, place.isUnstored) = (node.claimRecord, node.isUnstored)
      if place.id != node.id {
        application.writeClaim(ClaimRecord(node: place.id, session: session.id, handle: claim.handle), of: place)
      }
      guard application.turn.hasSubscribers || session.serves(.pathChanged), case let from = former.path(of: node),
        application.tree.path(of: place) != from
      else { continue }
      application.announceMove(of: place, from: from)
      application.tellPath(of: place, to: session)
    }
  }

  private func carryDataSources() {
    for (view, session) in application.providers.dataSources where application.tree.nodes[view] == nil {
      application.setDataSource(of: view, to: nil)
      if let node = target.node(view), application.providers.dataSource(of: node.id) == nil {
        application.setDataSource(of: node.id, to: session)
      }
    }
  }

  /// The last claim of a vacant node stays known; a node that has returned is an orphan from now on (R13).
  private func release(_ node: Node) {
    let former = former.nodes[node.id]
    node.claimRecord = former?.claimRecord
    guard former == nil || node.isPlaceholder && node.children.isEmpty else { return }
    application.writeRelease(of: node, at: node.record.component == nil ? 0 : application.turn.now.wall)
  }
}
