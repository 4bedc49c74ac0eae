// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
internal import RestorationArchive
internal import RestorationWire

extension Application {
  /// Returns a state: to its owner the newest that hides none, to other callers the newest (R15, R19).
  func decode(_ request: DecodeRestorableState, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    if case .handle(let handle) = request.object, let session, session.replaced.contains(handle) {
      throw .replaced()
    }
    if case .path(let path) = request.object, path.components.isEmpty {
      return decodeOwnState(by: session, for: caller)
    }
    let object = try requireNode(request.object)
    let isOwner = owns(session, object)
    let (node, summary) = visibleState(of: object, isOwner: isOwner)
    if hasSuspects, isOwner, let session, caller.call != nil, !mayHandOut(node, to: session) {
      return try trials.wait(request, by: session.id, for: caller, in: &turn)
    }
    if isOwner, let session {
      object.claim?.hasDecoded = true
      noteFetched(object.id, by: session.id)
    }
    guard let summary else { return turn.ask(.respond(caller, .result(DecodeRestorableState.Reply()))) }
    if isOwner, let since = node.withheldSince(summary) {
      return withhold(summary, of: node, since: since, from: session, for: caller)
    }
    if isOwner, !classMatches(object, summary) {
      let reply = DecodeRestorableState.Reply(.classMismatch, at: node.number(of: summary), coder(of: summary))
      return turn.answer(caller, after: summary.sequence, reply)
    }
    if isOwner, let session {
      openWindow(of: node, for: session)
      restoring.noteFetched(node, for: object.id)
      // What a restoration is handing out, it tells of itself in the end (R21).
      if !restoring.isHanding(node.id, to: session.id) { trials.fetched(node.id, by: session.id) }
    }
    // A notification counts as a decode, but nothing is read for it.
    guard caller.call != nil else { return }
    if let record = node.kept?.text(of: summary, at: node) {
      return finishDecode(.state(record, sequence: 0), of: node.id, byOwnerOf: object.id, for: caller)
    }
    let row = StateRequest.Row(node: node.id, sequence: summary.sequence, bytes: summary.bytes)
    if isOwner, node !== object || object.record.kind == .view || mayResolveElements(of: object) {
      let request = StateRequest(caller: caller, purpose: .decodeOwned(object.id), rows: [row])
      jobs.read(.read(id, request, after: summary.sequence), in: &turn)
    } else {
      jobs.read(.readState(id, row, caller), in: &turn)
    }
  }

  /// The state that a decode returns, and an encode expects, and whose it is (R15, R19): a restoration may have another
  /// object's for the owner (R24).
  func visibleState(of object: Node, isOwner: Bool) -> (node: Node, state: StateSummary?) {
    guard isOwner else { return (object, object.shared) }
    let node = restoring.deferredState(for: object.id).flatMap { tree.node($0) } ?? object
    return (node, node.stateBeforeClaim)
  }

  /// The application's own state, for a delegate to which it could not be sent, and for other callers (R31).
  private func decodeOwnState(by session: Session?, for caller: Caller) {
    session?.hasOwnState = true
    guard caller.call != nil else { return }
    guard let row = ownState(forDelegate: session?.facts.isDelegate == true) else {
      let summary = tree.applicationNode.flatMap { visibleState(of: $0, isOwner: owns(session, $0)).state }
      let reply = DecodeRestorableState.Reply(summary == nil ? .none : .quarantined, at: summary?.sequence ?? 0)
      return turn.ask(.respond(caller, .result(reply)))
    }
    jobs.read(.readState(id, row, caller), in: &turn)
  }

  /// The state of an object was read for its owner; it may be another object's, and its elements may need to be located
  /// (R24, R28).
  func finishDecode(_ reading: StateReading?, of node: NodeID, byOwnerOf number: NodeID, for caller: Caller) {
    guard case .state(let record, var sequence) = reading, let object = tree.node(number) else {
      return finishDecode(reading, node: node, for: caller)
    }
    // An encode of the object would not replace it.
    if node != number { sequence = 0 }
    let purpose = ElementResolver.Purpose.decode(caller, record, at: sequence)
    let elements = Application.elements(of: record)
    if resolve(elements, of: object, for: purpose, awaiting: ElementResolver.milliseconds) {
      turn.ask(.park(caller))
    } else {
      finishDecode(.state(record, sequence: sequence), node: node, for: caller)
    }
  }

  /// The state is quarantined: its owner gets none, and is not waited for (R35).
  private func withhold(
    _ summary: StateSummary,
    of node: Node,
    since: Int64,
    from session: Session?,
    for caller: Caller
  ) {
    node.note(.quarantined(since: Timestamp(milliseconds: since)), isFirst: true)
    if let session { closeWindow(of: node.id, for: session.id) }
    let reply = DecodeRestorableState.Reply(.quarantined, at: node.number(of: summary), coder(of: summary))
    turn.answer(caller, after: summary.sequence, reply)
  }

  /// The state of a decode was read from the archive.
  func finishDecode(_ reading: StateReading?, node: NodeID, for caller: Caller) {
    let reply: any JSONWritable & Sendable
    switch reading {
    case .state(let record, let sequence): reply = decoded(record, at: sequence)
    case .unreadable(let sequence):
      if let node = tree.node(node), node.state?.sequence == sequence { node.isUnreadable = true }
      reply = DecodeRestorableState.Reply(.unreadable, at: sequence)
    case nil: reply = DecodeRestorableState.Reply()
    }
    turn.ask(.respond(caller, .result(reply)))
  }

  /// - Parameter elements: located in the current data; `nil` for those of the record.
  func decoded(_ record: StateRecord, at sequence: SequenceNumber = 0, elements: JSONText? = nil) -> DecodedState {
    let node = tree.node(record.node)
    return DecodedState(
      state: tree.splice(record),
      elements: elements ?? record.elements.map { JSONText(validated: Array($0.utf8)) },
      coder: origins.coder(of: record.context),
      written: record.written,
      sequence: node?.kept == nil ? sequence : 0,
      isConfidential: node?.record.isConfidential ?? true
    )
  }

  func coder(of summary: StateSummary) -> JSONText? {
    origins.coder(of: summary.context).map { coder in
      var writer = JSONWriter()
      coder.write(summary.written, to: &writer)
      return JSONText(validated: writer.bytes)
    }
  }

  /// The length of the coder's text.
  func coderBytes(of summary: StateSummary) -> Int { origins.coder(of: summary.context)?.bytes ?? 4 }
}

/// The answer to a decode: `DecodeRestorableState.Reply`, with the coder written directly into the output.
package struct DecodedState: JSONWritable, Sendable {
  let state: JSONText
  fileprivate let elements: JSONText?
  fileprivate let coder: CoderTemplate?
  fileprivate let written: Int64
  fileprivate let sequence: SequenceNumber
  fileprivate let isConfidential: Bool

  /// The coder; `nil` if there is none.
  var coderText: JSONText? {
    coder.map { coder in
      var writer = JSONWriter()
      coder.write(written, to: &writer)
      return JSONText(validated: writer.bytes)
    }
  }

  /// Writes the members of `DecodeRestorableState.Reply`, without a text of the coder in between.
  package func writeJSON(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("status", DecodingStatus.available)
    writer.member("state", state)
    writer.key("coder")
    if let coder { coder.write(written, to: &writer) } else { writer.null() }
    writer.member("elements", elements ?? .emptyArray)
    writer.member("sequence", sequence)
    if isConfidential { writer.member("confidential", true) }
    writer.endObject()
  }
}

extension DecodeRestorableState.Reply {
  /// There is a state, and it is not handed out.
  fileprivate init(_ status: DecodingStatus, at sequence: SequenceNumber, _ coder: JSONText? = nil) {
    self.init()
    (self.status, self.sequence, self.coder) = (status, sequence, coder)
  }
}
