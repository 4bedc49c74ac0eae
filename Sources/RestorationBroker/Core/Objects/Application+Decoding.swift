// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
internal import RestorationArchive
internal import RestorationWire

extension Application {
  /// Returns a state: the last confirmed one to its owner, the newest to other callers (R15, R19).
  func decode(_ request: DecodeRestorableState, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    if case .handle(let handle) = request.object, let session, session.replaced.contains(handle) {
      throw .replaced()
    }
    if case .path(let path) = request.object, path.components.isEmpty {
      return decodeOwnState(by: session, for: caller)
    }
    let node = try requireNode(request.object)
    let isOwner = owns(session, node)
    let summary = node.state(forOwner: isOwner)
    if hasSuspects, isOwner, let session, caller.call != nil, !mayHandOut(node, to: session) {
      return try trials.wait(request, by: session.id, for: caller, in: &turn)
    }
    // First: until the older state is stored again it is due.
    if isOwner, node.versions.isProvisional, let summary, classMatches(node, summary) { node.versions.supersede() }
    let isFirstTime = node.claim?.hasDecoded == false
    if isOwner, let session { noteFetched(node, by: session.id) }
    guard let summary else { return turn.ask(.respond(caller, .result(DecodeRestorableState.Reply()))) }
    if isOwner, let since = node.versions.withheldSince(summary.sequence) {
      return withhold(summary, of: node, since: since, from: session, for: caller)
    }
    if isOwner, !classMatches(node, summary) {
      let reply = DecodeRestorableState.Reply(.classMismatch, at: summary.sequence, coder(of: summary))
      return turn.answer(caller, after: summary.sequence, reply)
    }
    if isOwner, let session {
      openWindow(of: node, for: session)
      if isFirstTime { node.note(.decoded(session.owner), isFirst: !isRestoring) }
      // If a delivery is under way, the owner is told when it ends (R21).
      if !deliveries.isDelivering(node.id, to: session.id) { trials.fetched(node.id, by: session.id) }
    }
    // A decode without an answer counts as one, but reads nothing.
    guard caller.call != nil else {
      if isOwner { dropProvisional([node]) }
      return
    }
    let row = StateRequest.Row(node: node.id, sequence: summary.sequence, bytes: summary.bytes)
    if isOwner, node.versions.isProvisional || node.record.kind == .view || mayResolveElements(of: node) {
      let request = StateRequest(caller: caller, purpose: .decode(node: node.id, isResolving: true), rows: [row])
      jobs.read(.read(id, request, after: summary.sequence), in: &turn)
    } else {
      jobs.read(.readState(id, row, caller), in: &turn)
    }
  }

  /// Returns the application's own state, to a delegate that could not be sent it and to other callers (R31).
  private func decodeOwnState(by session: Session?, for caller: Caller) {
    session?.hasOwnState = true
    if session?.facts.isDelegate == true, let node = tree.applicationNode { dropProvisional([node]) }
    guard caller.call != nil else { return }
    guard let row = ownState(forDelegate: session?.facts.isDelegate == true) else {
      let summary = tree.applicationNode.flatMap { $0.state(forOwner: owns(session, $0)) }
      let reply = DecodeRestorableState.Reply(summary == nil ? .none : .quarantined, at: summary?.sequence ?? 0)
      return turn.ask(.respond(caller, .result(reply)))
    }
    jobs.read(.readState(id, row, caller), in: &turn)
  }

  /// Answers that the state is quarantined. Its owner gets none, and is not waited for (R35).
  private func withhold(
    _ summary: StateSummary,
    of node: Node,
    since: Int64,
    from session: Session?,
    for caller: Caller
  ) {
    node.note(.quarantined(since: Timestamp(milliseconds: since)), isFirst: true)
    if let session { closeWindow(of: node.id, for: session.id) }
    let reply = DecodeRestorableState.Reply(.quarantined, at: summary.sequence, coder(of: summary))
    turn.answer(caller, after: summary.sequence, reply)
  }

  /// Answers a decode whose state was read. If `isResolving`, its elements are resolved to current index paths first
  /// (R28).
  ///
  /// - Parameter now: the sequence of the state, if it was stored again.
  func finishDecode(
    _ reading: StateReading?,
    now: SequenceNumber? = nil,
    node: NodeID,
    isResolving: Bool = false,
    for caller: Caller
  ) {
    if isResolving, case .state(let record, let read) = reading, let view = tree.node(node) {
      let sequence = now ?? read
      let purpose = ElementResolver.Purpose.decode(caller, record, at: sequence)
      let elements = Application.elements(of: record)
      if resolve(elements, of: view, for: purpose, awaiting: ElementResolver.milliseconds) {
        return turn.ask(.park(caller))
      }
      return turn.ask(.respond(caller, .result(decoded(record, at: sequence))))
    }
    let reply: any JSONWritable & Sendable
    switch reading {
    case .state(let record, let sequence): reply = decoded(record, at: sequence)
    case .unreadable(let sequence):
      tree.node(node)?.versions.noteUnreadable(sequence)
      reply = DecodeRestorableState.Reply(.unreadable, at: sequence)
    case nil: reply = DecodeRestorableState.Reply()
    }
    turn.ask(.respond(caller, .result(reply)))
  }

  /// - Parameter elements: with current index paths; `nil` for those of the record.
  func decoded(_ record: StateRecord, at sequence: SequenceNumber = 0, elements: JSONText? = nil) -> DecodedState {
    let node = tree.node(record.node)
    return DecodedState(
      state: tree.splice(record),
      elements: elements ?? record.elements.map { JSONText(validated: Array($0.utf8)) },
      coder: origins.coder(of: record.context),
      written: record.written,
      sequence: sequence,
      isConfidential: node?.record.isConfidential ?? true,
      isWithheld: node?.versions.withheldSince(sequence) != nil
    )
  }

  func coder(of summary: StateSummary) -> JSONText? {
    origins.coder(of: summary.context).map { coder in
      var writer = JSONWriter()
      coder.write(summary.written, to: &writer)
      return JSONText(validated: writer.bytes)
    }
  }

  func coderBytes(of summary: StateSummary) -> Int { origins.coder(of: summary.context)?.bytes ?? 4 }
}

/// The answer to a decode: a `DecodeRestorableState.Reply` that writes the coder directly into the output.
package struct DecodedState: JSONWritable, Sendable {
  let state: JSONText
  fileprivate let elements: JSONText?
  fileprivate let coder: CoderTemplate?
  fileprivate let written: Int64
  fileprivate let sequence: SequenceNumber
  fileprivate let isConfidential: Bool
  fileprivate let isWithheld: Bool

  var coderText: JSONText? {
    coder.map { coder in
      var writer = JSONWriter()
      coder.write(written, to: &writer)
      return JSONText(validated: writer.bytes)
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("status", DecodingStatus.available)
    writer.member("state", state)
    writer.key("coder")
    if let coder { coder.write(written, to: &writer) } else { writer.null() }
    writer.member("elements", elements ?? .emptyArray)
    writer.member("sequence", sequence)
    if isConfidential { writer.member("confidential", true) }
    if isWithheld { writer.member("withheld", true) }
    writer.endObject()
  }
}

extension DecodeRestorableState.Reply {
  /// A state exists, but is not returned.
  fileprivate init(_ status: DecodingStatus, at sequence: SequenceNumber, _ coder: JSONText? = nil) {
    self.init()
    (self.status, self.sequence, self.coder) = (status, sequence, coder)
  }
}
