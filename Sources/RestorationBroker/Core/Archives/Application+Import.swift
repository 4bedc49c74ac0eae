// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Replaces the head by a document (`Protocol/export-format.md`).
extension Application {
  /// Writes the document in one transaction, unless it is a dry run; the former head becomes the newest generation. The
  /// plan's node ids must follow all present ones.
  func importArchive(
    _ plan: ImportPlan,
    _ request: ImportArchive,
    _ progress: ArchiveProgress?,
    of call: LongCall
  ) throws(ErrorObject) {
    try turn.requireKept()
    // Live sessions would continue to write the states that the import has replaced.
    try requireNobodyLives(.alreadyServed, hint: "End it first; an import replaces everything it writes.")
    let hasState = tree.nodes.values.contains { $0.hasState }
    if hasState, !request.force {
      throw .restoration(
        .needsForce,
        "\(name) has saved state, which the import would replace",
        hint: "Use force: true; the present state stays as the newest generation."
      )
    }
    try requireRoom(for: plan.headBytes - budget.head - origins.usedBytes)
    let reply = ImportArchive.Reply().with {
      ($0.objects, $0.states, $0.bytes) = (plan.objects.count, plan.states, plan.stateBytes)
    }
    if request.dryRun {
      tell(progress, of: call)
      return turn.answer(call.caller, reply)
    }
    // From here on only the disk can fail.
    try takeLong(for: call.caller) { long in
      let former = await self.replaceHead(by: plan, long)
      self.tell(progress, of: call)
      self.announce {
        ArchiveImported().with {
          $0.objects = reply.objects
          $0.bytes = reply.bytes
        }
      }
      self.turn.answer(call.caller, reply.with { $0.generation = former })
    }
  }

  /// - Returns: the generation that keeps the former head; `nil` if that had no state.
  private func replaceHead(by plan: ImportPlan, _ long: LongTurn) async -> Int64? {
    let former = generations.sealHead("import", of: tree, in: &turn)
    clearHead()
    tree.become(plan.tree)
    await long.did(plan.objects.count)
    for object in plan.objects {
      write(object)
      // Each object is a node, a claim, and one or two states.
      await long.did(4)
    }
    countHead()
    runs.noteUse(in: turn)
    beginAnew()
    await long.did(plan.objects.count)
    return former
  }

  /// Throws if sessions are live; the error names them.
  func requireNobodyLives(_ code: ErrorCode, hint: String) throws(ErrorObject) {
    let living = sessions.values.filter { !$0.isDiscarded }.sorted { $0.id < $1.id }
    guard !living.isEmpty else { return }
    throw .restoration(
      code,
      "\(name) is in use by \(living.prefix(4).map(\.words).joined(separator: ", "))"
        + (living.count > 4 ? " and \(living.count - 4) more" : ""),
      hint: hint,
      details: ["owners": .array(living.prefix(16).map(\.ownerJSON))]
    )
  }

  /// Throws if the archive must not be removed: a read in progress would get no answer.
  func requireForgettable() throws(ErrorObject) {
    guard jobs.isWorking else { return }
    let busy = "the archive of \(name) is being read"
    throw .restoration(.storeFailed, busy, hint: "Try again when that is done.", details: ["indeterminate": false])
  }

  private func write(_ object: ImportPlan.Object) {
    guard let node = tree.nodes[object.record.node] else { return }
    write(.node(object.record))
    // It is unclaimed: from now on it is an orphan (R13).
    if object.record.component != nil { writeRelease(of: node, at: turn.now.wall) }
    if let before = object.beforeClaim { node.versions.write(write(before, isEarly: false, of: node)) }
    if let state = object.state { node.versions.write(write(state, isEarly: object.isEarly, of: node)) }
  }

  private func write(_ state: ImportPlan.State, isEarly: Bool, of node: Node) -> StateSummary {
    let record = StateRecord(
      node: node.id,
      context: origins.number(of: state.writer, in: &turn),
      isEarly: isEarly,
      written: state.written,
      text: state.text,
      references: state.references,
      elements: state.elements
    )
    return StateSummary(record, at: write(.state(record)))
  }

  /// How earlier runs ended does not matter for the new state (R20).
  func beginAnew() {
    runs.forgetOutcomes()
    writeRun()
  }
}
