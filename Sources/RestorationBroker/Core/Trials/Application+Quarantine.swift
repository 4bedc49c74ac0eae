// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
package import RestorationWire

/// Withholds states from their owners (R31, R35).
extension Application {
  /// The state of the archive as owners see it (R20).
  var availability: RestorationState {
    var availability = RestorationState.none
    for node in tree.nodes.values where node.hasState {
      guard node.isQuarantined else { return .available }
      availability = .quarantined
    }
    return availability
  }

  /// Number of objects with a state that their owners do not get (R35).
  var withheldCount: Int { runs.withholding.count { tree.nodes[$0]?.isQuarantined ?? false } }

  /// The application's own state, confirmed for the delegate and newest for others (R19), unless it is withheld (R31).
  func ownState(forDelegate isForDelegate: Bool) -> StateRequest.Row? {
    guard let node = tree.applicationNode, let state = node.state(forOwner: isForDelegate),
      !node.versions.isWithheld(state)
    else { return nil }
    return StateRequest.Row(node: node.id, sequence: state.sequence, bytes: state.bytes)
  }

  // MARK: Withholding

  /// Withholds the object's state from its owners until there is a newer one.
  func quarantine(_ node: Node) {
    withhold(rowsToWithhold(of: node))
    announce {
      StateQuarantined().with {
        $0.object = node.claim?.handle
        $0.path = tree.path(of: node)
      }
    }
    let text = "a state is withheld: restoring it crashed processes; see restorationctl quarantine list"
    turn.ask(.log(.warning, text, of: name, .stateWithheld))
  }

  /// Withholds all states, because it is unknown which of them crash processes.
  func quarantineAll() {
    let nodes = tree.nodes.values.filter { $0.hasState }.sorted { $0.id < $1.id }
    withhold(nodes.flatMap { rowsToWithhold(of: $0) })
    runs.quarantine(in: turn)
    announce { ArchiveQuarantined().with { $0.objects = nodes.count } }
    let text = "all states are withheld, because restoring them crashed processes repeatedly"
    turn.ask(.log(.warning, text, of: name, .allStatesWithheld))
  }

  /// The rows that an owner could be given: the confirmed one and the provisional one.
  private func rowsToWithhold(of node: Node) -> [WithheldRow] {
    node.versions.all.reversed().filter { !node.versions.isWithheld($0) }.map { state in
      let row = StateRow(node: node.id, sequence: state.sequence)
      return WithheldRow(row: row, since: turn.now.wall, bytes: state.bytes)
    }
  }

  /// A newer state replaces one that its owner could not take in. The replaced text is retained as withheld (R29, R35).
  func setAside(_ node: Node) {
    node.versions.forgetFailure()
    guard let state = node.ownerState, !node.versions.isWithheld(state) else { return }
    withhold(state, of: node)
    let text = "a state that its process could not read was replaced, and is kept; see restorationctl quarantine list"
    turn.ask(.log(.warning, text, of: name, .stateWithheld))
  }

  /// The newest state is a copy of this row. If that is withheld, the copy crashes processes as well (R35).
  func withholdCopy(of original: SequenceNumber, at node: Node) {
    guard let copy = node.state, let since = node.versions.withheldSince(original) else { return }
    withhold(copy, of: node, since: since)
  }

  /// - Parameter since: in milliseconds since 1970; nil for now.
  func withhold(_ state: StateSummary, of node: Node, since: Int64? = nil) {
    let row = StateRow(node: node.id, sequence: state.sequence)
    withhold([WithheldRow(row: row, since: since ?? turn.now.wall, bytes: state.bytes)])
  }

  /// - Parameter rows: withheld since the same time.
  private func withhold(_ rows: [WithheldRow]) {
    guard let since = rows.first?.since else { return }
    write(.withhold(rows.map(\.row), since: since))
    runs.withhold(rows.map(\.row.node))
    let surplus = rows.compactMap { tree.nodes[$0.row.node]?.versions.withhold($0) }
    if !surplus.isEmpty { write(.release(surplus)) }
  }

  // MARK: Ending it

  /// Announces that a new state has replaced the withheld one, whose text is retained (R35).
  func liftQuarantine(of node: Node) {
    guard node.isQuarantined else { return }
    announce {
      QuarantineEnded().with {
        $0.cause = .encoded
        $0.path = tree.path(of: node)
        $0.objects = 1
      }
    }
  }

  func releaseQuarantine(_ request: ReleaseQuarantine, by _: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireKept()
    let nodes: [Node]
    if let path = request.path {
      let node = try requireNode(.path(path), at: "/path")
      if !node.isQuarantined, let row = node.versions.withheld.last?.row {
        let rows = [StateRequest.Row(node: row.node, sequence: row.sequence)]
        return read(rows, for: .reinstating(row), caller, after: sequence)
      }
      nodes = [node]
      _ = runs.blame.acquit(node.id)
    } else {
      nodes = tree.nodes.values.filter(\.versions.hasWithheld).sorted { $0.id < $1.id }
      runs.forgetBlame()
    }
    let released = nodes.filter(\.isQuarantined)
    release(released.flatMap { $0.versions.withheld(areReplaced: false) })
    writeRun()
    if !released.isEmpty {
      announce {
        QuarantineEnded().with {
          $0.cause = .released
          $0.path = request.path
          $0.objects = released.count
        }
      }
    }
    turn.answer(caller, ReleaseQuarantine.Reply().with { $0.released = released.count })
    note(.trialsEnded)
  }

  func release(_ rows: [StateRow]) {
    guard !rows.isEmpty else { return }
    write(.release(rows))
    for row in rows { tree.nodes[row.node]?.versions.release(row) }
  }

  /// The object is gone: releases its withheld texts, and drops the suspicion against it.
  func forgetBlame(of node: Node) {
    if node.versions.hasWithheld { write(.release(node.versions.releaseAll())) }
    acquit(node.id)
  }

  /// The same for all objects.
  func forgetBlame() {
    let rows = tree.nodes.values.flatMap { $0.versions.releaseAll() }.sorted { $0.sequence < $1.sequence }
    if !rows.isEmpty { write(.release(rows)) }
    runs.forgetBlame()
  }

  /// Loads the withheld rows of the archive, and releases those of removed nodes.
  func loadWithheld(_ rows: [WithheldRow]) {
    var stray: [StateRow] = []
    let shelved = Set(runs.facts.shelf.rows)
    for withheld in rows where !shelved.contains(withheld.row) {
      guard let node = tree.nodes[withheld.row.node] else {
        stray.append(withheld.row)
        continue
      }
      if let surplus = node.versions.withhold(withheld) { stray.append(surplus) }
      runs.withhold([node.id])
    }
    if !stray.isEmpty { write(.release(stray)) }
    runs.blame.keep { tree.nodes[$0] != nil }
  }

  // MARK: Listing

  func listQuarantine(_ request: ListQuarantine, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    var after = try Application.node(after: request.cursor)
    let bytesMax = Application.pageBytes(for: session?.facts.messageBytesMax)
    let suspects = runs.blame.suspects
    let nodes = tree.nodes.values.filter { node in
      node.id > after && node.record.kind != .application && (node.versions.hasWithheld || suspects[node.id] != nil)
    }
    .sorted { $0.id < $1.id }
    let isInForce = runs.facts.quarantined != 0 && tree.nodes.values.contains { $0.isQuarantined }
    var reply = ListQuarantine.Reply().with {
      $0.archive = isInForce ? Timestamp(milliseconds: runs.facts.quarantined) : nil
      $0.strikes = runs.blame.strikes
    }
    var rows: [StateRequest.Row] = []
    var bytes = 0
    for node in nodes {
      let object = quarantined(node, reveals: request.reveal)
      let texts = object.redacted ? 0 : node.versions.withheld.reduce(0) { $0 + $1.bytes + 400 }
      let size = (object.path?.bytes ?? 0) + 400 + texts
      if bytes + size > bytesMax, !reply.objects.isEmpty {
        reply.cursor = String(after)
        break
      }
      bytes += size
      after = node.id
      reply.objects.append(object)
      if !object.redacted {
        rows += node.versions.withheld.map {
          StateRequest.Row(node: node.id, sequence: $0.row.sequence, bytes: $0.bytes)
        }
      }
    }
    read(rows, for: .quarantine(QuarantinePage(reply: reply)), caller, after: sequence)
  }

  private func quarantined(_ node: Node, reveals: Bool) -> QuarantinedObject {
    let withheld = node.versions.withheld
    let isSuspect = isSuspect(node)
    return QuarantinedObject().with {
      $0.object = node.claim?.handle
      $0.path = tree.path(of: node)
      $0.standing = node.isQuarantined ? .quarantined : isSuspect ? .suspect : .lifted
      $0.strikes = runs.blame.suspects[node.id] ?? 0
      $0.confidential = node.record.isConfidential
      $0.redacted = node.record.isConfidential && !reveals && !withheld.isEmpty
      $0.states = withheld.map { row in
        QuarantinedState().with {
          $0.sequence = row.row.sequence
          $0.quarantined = Timestamp(milliseconds: row.since)
        }
      }
    }
  }

  func finishPage(_ readings: [StateReading?], _ page: QuarantinePage, for caller: Caller) {
    var reply = page.reply
    var remaining = readings[...]
    for index in reply.objects.indices where !reply.objects[index].redacted {
      for place in reply.objects[index].states.indices {
        switch remaining.popFirst() ?? nil {
        case .state(let record, _):
          reply.objects[index].states[place].stateText = tree.splice(record)
          reply.objects[index].states[place].elementsText = record.elements.map { JSONText(validated: Array($0.utf8)) }
          reply.objects[index].states[place].coderText = coder(of: StateSummary(record, at: 0))
        case .unreadable: reply.objects[index].states[place].unreadable = true
        // It was released meanwhile.
        case nil: break
        }
      }
    }
    turn.ask(.respond(caller, .result(reply)))
  }
}

/// One page of `listQuarantine`, without the texts.
package struct QuarantinePage: Sendable {
  package var reply: ListQuarantine.Reply
}
