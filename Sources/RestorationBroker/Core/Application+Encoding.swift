// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

extension Application {
  /// Stores a state; the answer waits until it is durable (R10, R14, R15, R19).
  func encode(_ request: EncodeRestorableState, by session: Session?, for caller: Caller) throws(ErrorObject) {
    if let session, session.isDiscarded {
      context.emit(.respond(caller, .result(EncodeRestorableState.Reply.discarded)))
      return
    }
    try requireWritable()
    try check(request)
    let existing = try target(of: request, session)
    if let existing, let revision = request.revision, let claim = existing.claim, revision <= claim.revision {
      // Acknowledged means on disk, also for the push that this one repeats.
      respond(caller, EncodeRestorableState.Reply.superseded)
      return
    }
    let resolved = try resolveReferences(of: request)
    let text = request.elements.isEmpty ? nil : elementsText(request.elements)
    let added = resolved.text.count + (resolved.table?.utf8.count ?? 0) + (text?.utf8.count ?? 0)
    try checkArchiveLimit(added, replacing: existing, path: existing.map { tree.path(of: $0) } ?? request.path)
    let node: Node
    if let existing { node = existing } else { node = try makePath(of: request) }
    let isOwner = session != nil && node.claim?.session == session?.id
    var isEarly = false
    if isOwner, let session, let claim = node.claim { isEarly = self.isEarly(node, claim, session) }
    let record = StateRecord(
      node: node.id,
      context: contextID(of: node, isOwner || node.isVacant ? session : nil, isOwner: isOwner),
      session: isOwner ? session?.id ?? 0 : 0,
      revision: request.revision ?? (isOwner ? node.claim?.revision : nil) ?? 0,
      isEarly: isEarly,
      written: context.now.wall,
      text: resolved.text,
      references: resolved.table,
      elements: text
    )
    store(record, at: node)
    if isOwner, let session {
      if let revision = request.revision { node.claim?.revision = revision }
      if isEarly, let claim = node.claim { watchEarlyMark(since: claim.since) }
      closeWindow(of: node.id, for: session)
    }
    if context.hasSubscribers { announceEncoding(at: node, bytes: record.bytes, by: session, for: caller) }
    let sequence = sequenceOfState(node)
    respond(caller, after: sequence, EncodeRestorableState.Reply.stored(sequence: sequence))
  }

  private func sequenceOfState(_ node: Node) -> SequenceNumber {
    node.state?.sequence ?? sequence
  }

  private func check(_ request: EncodeRestorableState) throws(ErrorObject) {
    let path = request.path ?? node(request.object).flatMap { tree.path(of: $0) }
    try request.state.checkKeys(path: path)
    let bytes =
      request.state.text.bytes.count
      + (request.elements.isEmpty ? 0 : elementsText(request.elements).utf8.count)
    try request.state.checkSize(bytes: bytes, depth: request.state.depth, path: path, context.limits)
  }

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
    guard path.bytes <= context.limits.pathBytesMax else {
      throw .limitExceeded("pathBytesMax", max: context.limits.pathBytesMax, value: path.bytes, path: path)
    }
    for component in path.components where RestorationIdentifier.split(component) == nil {
      throw Application.invalidComponent(of: path, "/object")
    }
    let missing = path.components.count - knownPrefix(of: path)
    guard tree.count + missing <= context.limits.objectsPerApplicationMax else {
      throw .limitExceeded(
        "objectsPerApplicationMax",
        max: context.limits.objectsPerApplicationMax,
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

  private func contextID(of node: Node, _ session: Session?, isOwner: Bool) -> ContextID {
    guard session == nil else { return contextID(of: writer(of: node, session, isOwner: isOwner)) }
    // Nothing of the writer is known, so that it is the same one every time.
    if let known = sessionlessContext { return known }
    let id = contextID(of: writer(of: node, nil, isOwner: false))
    sessionlessContext = id
    return id
  }

  /// What is recorded of the writer: class and storyboard belong to the owner of the object alone.
  private func writer(of node: Node, _ session: Session?, isOwner: Bool) -> WriterContext {
    let storyboard = isOwner ? node.record.storyboard ?? session?.facts.storyboard : nil
    return WriterContext(
      classes: isOwner ? node.claim?.classes ?? [] : [],
      role: session?.facts.role,
      bundleVersion: session?.facts.bundleVersion,
      userInterfaceIdiom: session?.facts.userInterfaceIdiom ?? -1,
      systemVersion: context.settings.systemVersion,
      storyboard: node.record.kind == .viewController ? storyboard : nil
    )
  }

  private func checkArchiveLimit(_ added: Int, replacing node: Node?, path: IdentifierPath?) throws(ErrorObject) {
    let max = context.limits.archiveBytesMax
    let value = reachableBytes + added - freed(byWritingTo: node, early: false)
    guard value <= max else {
      throw .limitExceeded("archiveBytesMax", max: max, value: value, path: path)
    }
  }

  /// Bytes nobody can reach any more once the node has a newer state.
  func freed(byWritingTo node: Node?, early: Bool) -> Int {
    guard let node, !early else { return 0 }
    let sealed = generations.last?.sequence ?? 0
    var bytes = 0
    if let state = node.state, state.sequence > sealed { bytes += state.bytes }
    if let state = node.beforeClaim, state.sequence > sealed { bytes += state.bytes }
    return bytes
  }

  private func store(_ record: StateRecord, at node: Node) {
    let grown = record.bytes - freed(byWritingTo: node, early: record.isEarly)
    headBytes += record.bytes - (node.state?.bytes ?? 0)
    let sequence = write(.state(record))
    reachableBytes += grown
    growth.append((sequence, grown))
    if record.isEarly {
      if let old = node.state, !old.isEarly { node.beforeClaim = old }
    } else {
      node.beforeClaim = nil
    }
    node.isUnreadable = false
    node.state = StateSummary(record, at: sequence)
  }

  /// The archive has counted what it holds up to a change; what was written since comes on top.
  func settleReachableBytes(_ receipt: ArchiveReceipt) {
    growth.removeAll { $0.sequence <= receipt.sequence }
    reachableBytes = receipt.reachableBytes + growth.reduce(0) { $0 + $1.bytes }
  }

  private func elementsText(_ elements: [Element]) -> String {
    var stored = elements
    for index in stored.indices {
      // Nobody has asked a data source, so the raw index path is what comes back.
      stored[index].resolved = false
    }
    return stored.text.string
  }

  // MARK: References

  /// The text as stored: references name archive ids, so that no move ever rewrites it (R6, R14).
  private func resolveReferences(
    of request: EncodeRestorableState
  ) throws(ErrorObject) -> (text: ArraySlice<UInt8>, table: String?) {
    let text = request.state.text.bytes
    guard !request.state.references.isEmpty else { return (text, nil) }
    let references = try request.state.references.map { reference throws(ErrorObject) in
      if reference.target.isNull { return (range: reference.objectRange, target: nil as NodeID?) }
      guard let target = ObjectReference(reference.target), let node = node(target), node.record.component != nil else {
        throw .restoration(
          .invalidReference,
          "\(reference.target) leads to no object of the application",
          hint: "Register the target first, or write {\"$literal\": …} if this is no reference.",
          details: ["pointer": "/state", "reference": .text(reference.target.compactText)]
        )
      }
      return (range: reference.objectRange, target: node.id)
    }
    return ArchiveReferences.store(references, in: text)
  }

  /// The text as given out: references name today's paths, and the handle where the target is live (R27).
  func splice(_ record: StateRecord) -> JSONText {
    record.spliced { writeReference(to: tree.node($0), &$1) }
  }

  private func writeReference(to node: Node?, _ writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("$restorable")
    if let path = node.flatMap({ tree.path(of: $0) }) { path.write(to: &writer) } else { writer.null() }
    writer.key("object")
    if let handle = node?.claim?.handle { writer.integer(handle) } else { writer.null() }
    writer.endObject()
  }
}

extension Application {
  static func invalidComponent(of path: IdentifierPath, _ pointer: String) -> ErrorObject {
    .restoration(
      .invalidIdentifier,
      "a component of the path is no restoration identifier",
      hint: "Use 1 to 255 bytes of UTF-8 without '/' and control characters, and '#' only before a position.",
      path: path,
      details: ["pointer": .string(pointer)]
    )
  }
}

extension EncodedState {
  /// Passes unless it writes what only the broker does (R10).
  func checkKeys(path: IdentifierPath?) throws(ErrorObject) {
    guard let key = reservedKey else { return }
    throw .restoration(
      .reservedKey,
      "the key \(key) is reserved for the broker",
      hint: "Use another name: UIApplicationStateRestoration… and UIStateRestoration… are read only.",
      path: path,
      details: ["pointer": .string("/state/\(JSONPointer.escaped(key))")]
    )
  }

  /// Passes within the limits of a state; `bytes` and `depth` are what counts of it.
  func checkSize(bytes: Int, depth: Int, path: IdentifierPath?, _ limits: Limits) throws(ErrorObject) {
    guard bytes <= limits.stateBytesMax else {
      throw .limitExceeded("stateBytesMax", max: limits.stateBytesMax, value: bytes, path: path)
    }
    guard depth <= limits.stateDepthMax else {
      throw .limitExceeded("stateDepthMax", max: limits.stateDepthMax, value: depth, path: path)
    }
    let count = references.count
    guard count <= limits.referencesPerStateMax else {
      throw .limitExceeded("referencesPerStateMax", max: limits.referencesPerStateMax, value: count, path: path)
    }
  }
}

extension EncodeRestorableState {
  /// The path the call names, if it names one.
  fileprivate var path: IdentifierPath? {
    if case .path(let path) = object { path } else { nil }
  }
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
  var referencedNodes: [NodeID] {
    guard let references else { return [] }
    let numbers = StateSummary.numbers(inTable: references)
    return stride(from: 2, to: numbers.count, by: 3).map { numbers[$0] }
  }
}
