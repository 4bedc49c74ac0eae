// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

extension Application {
  /// Stores a state; the answer waits until it is durable (R10, R14, R15, R19).
  func encode(_ request: EncodeRestorableState, by session: Session?, for caller: Caller) throws(ErrorObject) {
    if let session, session.isDiscarded {
      turn.ask(.respond(caller, .result(EncodeRestorableState.Reply.discarded)))
      return
    }
    try turn.requireWritable()
    let path = request.path ?? node(request.object).flatMap { tree.path(of: $0) }
    try check(request.state, request.elements, path: path)
    let existing = try target(of: request, session)
    if let existing, let revision = request.revision, let claim = existing.claim, revision <= claim.revision {
      // Acknowledged means on disk, also for the push that this one repeats.
      turn.answer(caller, EncodeRestorableState.Reply.superseded)
      return
    }
    let state = try checked(request.state, elements: request.elements, revision: request.revision)
    try checkArchiveLimit(state.bytes, replacing: existing, path: existing.map { tree.path(of: $0) } ?? request.path)
    let node: Node
    if let existing { node = existing } else { node = try makePath(of: request) }
    let record = record(of: state, at: node, by: session)
    node.note(.pushed(bytes: record.bytes), isFirst: true)
    if record.isEarly { node.note(.early) }
    put(record, at: node, by: session)
    if turn.hasSubscribers { announceEncoding(at: node, bytes: record.bytes, by: session, for: caller) }
    let sequence = sequenceOfState(node)
    turn.answer(caller, after: sequence, EncodeRestorableState.Reply.stored(sequence: sequence))
  }

  private func sequenceOfState(_ node: Node) -> SequenceNumber { node.state?.sequence ?? sequence }

  /// The node a push is for: the caller's own, or one that no live session owns; nil where the path is new.
  private func target(of request: EncodeRestorableState, _ session: Session?) throws(ErrorObject) -> Node? {
    if case .path(let path) = request.object {
      guard let node = tree.node(at: path) else { return nil }
      if node.isVacant, session?.replacedNodes.contains(node.id) != true { return node }
    }
    return try requireOwn(request.object, session)
  }

  /// A path without live owner is claimed for this call; missing ancestors become vacant nodes.
  private func makePath(of request: EncodeRestorableState) throws(ErrorObject) -> Node {
    guard case .path(let path) = request.object else { throw Application.unknownObject(request.object) }
    guard path.bytes <= turn.limits.pathBytesMax else {
      throw .limitExceeded("pathBytesMax", max: turn.limits.pathBytesMax, value: path.bytes, path: path)
    }
    for component in path.components where RestorationIdentifier.split(component) == nil {
      throw Application.invalidComponent(of: path, "/object")
    }
    let missing = path.components.count - knownPrefix(of: path)
    guard tree.count + missing <= turn.limits.objectsPerApplicationMax else {
      throw .limitExceeded(
        "objectsPerApplicationMax",
        max: turn.limits.objectsPerApplicationMax,
        value: tree.count + missing,
        path: path
      )
    }
    var parent: Node?
    for component in path.components {
      // A plain object below an exclusion would be unscoped and have another path than the one given (R4).
      let kind: NodeKind = parent.map { tree.isExcluded($0) } ?? false ? .viewController : .object
      if let node = tree.node(component, below: parent, kind: kind) {
        parent = node
      } else {
        parent = try newNode(NodeRecord(node: 0, parent: parent?.id, component: component, kind: kind))
      }
    }
    guard let node = parent else { throw Application.unknownObject(request.object) }
    admitWaiting()
    return node
  }

  private func knownPrefix(of path: IdentifierPath) -> Int {
    var count = 0
    while count < path.components.count,
      tree.node(at: IdentifierPath(Array(path.components[...count]))) != nil
    {
      count += 1
    }
    return count
  }

  // MARK: References

  /// The text as given out: references name today's paths, and the handle where the target is live (R27).
  func splice(_ record: StateRecord) -> JSONText { record.spliced { writeReference(to: tree.node($0), &$1) } }

  private func writeReference(to node: Node?, _ writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("$restorable")
    if let path = node.flatMap({ tree.path(of: $0) }) { path.writeJSON(to: &writer) } else { writer.null() }
    writer.key("object")
    if let handle = node?.claim?.handle { writer.integer(handle) } else { writer.null() }
    writer.endObject()
  }
}

extension Application {
  static func invalidComponent(of path: IdentifierPath, _ pointer: String) -> ErrorObject {
    .restoration(
      .invalidIdentifier,
      "a component of the path is an invalid restoration identifier",
      hint: "Use 1 to 255 bytes of UTF-8 without '/' and control characters, and '#' only before a position.",
      path: path,
      details: ["pointer": .string(pointer)]
    )
  }
}

extension EncodeRestorableState {
  /// The path the call names, if it names one.
  fileprivate var path: IdentifierPath? { if case .path(let path) = object { path } else { nil } }
}

extension StateRecord {
  /// The text as given out, with references as `write` has them; it is given the node that one names.
  func spliced(_ write: (NodeID, inout JSONWriter) -> Void) -> JSONText {
    guard let table = references else { return JSONText(validated: text) }
    let numbers = StateSummary.numbers(inTable: table)
    var out: [UInt8] = []
    var copied = text.startIndex
    for index in stride(from: 0, to: numbers.count - 2, by: 3) {
      let begin = text.startIndex + Int(numbers[index])
      let end = begin + Int(numbers[index + 1])
      // The table is of our own making and covered by the row's checksum; a bad one would trap below.
      guard copied <= begin, begin <= end, end <= text.endIndex else { break }
      out.append(contentsOf: text[copied..<begin])
      JSONWriter.append(to: &out) { write(numbers[index + 2], &$0) }
      copied = end
    }
    out.append(contentsOf: text[copied...])
    return JSONText(validated: out)
  }
}

extension StateSummary {
  /// The numbers of a reference table, flat: offset, length and node of each reference.
  static func numbers(inTable table: String) -> [Int64] {
    table.utf8.split { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
      .compactMap { Int64(String($0) ?? "") }
  }

  /// The nodes its references lead to.
  var referencedNodes: [NodeID] { StateSummary.targets(ofTable: references) }
}
