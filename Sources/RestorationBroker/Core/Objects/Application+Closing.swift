// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Closes objects, and reopens them from the shelf (R13).
extension Application {
  /// Drops closed objects, and puts the saved ones on the shelf.
  ///
  /// - Parameters:
  ///   - path: the former path of the first one, if it has moved.
  ///   - areRetired: whether they were retired as orphans instead of closed.
  func close(_ nodes: [Node], formerlyAt path: IdentifierPath? = nil, areRetired: Bool = false) {
    shelve(nodes, formerlyAt: path, areRetired)
    for node in nodes where tree.nodes[node.id] === node { drop(node) }
  }

  private func shelve(_ nodes: [Node], formerlyAt path: IdentifierPath?, _ areRetired: Bool) {
    let closed = Dictionary(nodes.map { ($0.id, $0) }) { first, _ in first }
    var (rows, surplus): ([StateRow], [StateRow]) = ([], [])
    for top in nodes where tree.pathParent(of: top).map({ closed[$0.id] == nil }) ?? true {
      guard var subtree = subtree(of: top, among: closed) else { continue }
      subtree.isRetired = areRetired
      if let path, top === nodes.first, let component = path.components.last {
        (subtree.path, subtree.objects[0].component) = (path, component)
      }
      rows += subtree.rows
      surplus += runs.close(subtree).flatMap(\.rows)
    }
    guard !rows.isEmpty else { return }
    write(.withhold(rows, since: turn.now.wall))
    if !surplus.isEmpty { write(.release(surplus)) }
    writeRun()
  }

  /// The saved objects at and below `top`; `nil` if they have no state, or too much. Confidential objects are never
  /// retained.
  private func subtree(of top: Node, among closed: [NodeID: Node]) -> ClosedShelf.Subtree? {
    guard let path = tree.path(of: top) else { return nil }
    var subtree = ClosedShelf.Subtree()
    (subtree.path, subtree.closed) = (path, turn.now.wall)
    var next = [top]
    while let node = next.popLast() {
      // An object that is saved only because others refer to it is not included (R7).
      let isSaved = tree.isIncluded(node) || node.hasState && !isUnsaved(node)
      guard isSaved, !node.record.isConfidential, node.record.component != nil else { continue }
      subtree.objects.append(ClosedShelf.Object(node, below: node === top ? nil : node.parent?.id))
      next += node.children.sorted(by: >).compactMap { closed[$0] }.filter { tree.pathParent(of: $0) === node }
    }
    guard !subtree.rows.isEmpty else { return nil }
    var above = tree.pathParent(of: top)
    while let node = above {
      above = tree.pathParent(of: node)
      subtree.ancestors.insert(ClosedShelf.Object(ancestor: node, below: above?.id), at: 0)
    }
    return subtree.fits ? subtree : nil
  }

  /// Forgets what was closed at the path, because an object there is confidential now (R13).
  func forgetClosed(at path: IdentifierPath) {
    takeOffShelf(runs.facts.shelf.subtrees.filter { $0.has(path) })
  }

  func takeOffShelf(_ subtrees: [ClosedShelf.Subtree]) {
    guard !subtrees.isEmpty else { return }
    for subtree in subtrees { runs.reopen(subtree) }
    write(.release(subtrees.flatMap(\.rows)))
    writeRun()
  }

  func emptyShelf() {
    let rows = runs.emptyShelf()
    if !rows.isEmpty { write(.release(rows)) }
  }

  // MARK: Opening again

  func listClosed(_: ListClosedObjects, by _: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    let reply = ListClosedObjects.Reply().with {
      $0.objects = runs.facts.shelf.subtrees.reversed().map { subtree in
        ClosedObject().with {
          $0.path = subtree.path
          $0.closed = Timestamp(milliseconds: subtree.closed)
          $0.objects = subtree.objects.count
          $0.bytes = subtree.stateBytes
        }
      }
    }
    turn.ask(.respond(caller, .result(reply)))
  }

  /// Reads the states; `finishReopening` puts the objects back.
  func reopen(_ request: ReopenObject, by _: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireKept()
    if let path = request.path, !path.isPossible { throw .invalidComponent(of: path, "/path") }
    guard let subtree = runs.facts.shelf.last(at: request.path) else {
      throw .restoration(
        .unknownObject,
        request.path.map { "\($0) was not closed lately" } ?? "nothing was closed lately",
        hint: "See listClosedObjects.",
        path: request.path
      )
    }
    try requirePlace(for: subtree)
    let rows = subtree.rows.map { StateRequest.Row(node: $0.node, sequence: $0.sequence) }
    read(rows, for: .reopening(subtree), caller, after: sequence)
  }

  private func requirePlace(
    for subtree: ClosedShelf.Subtree,
    contexts: Set<ContextID> = []
  ) throws(ErrorObject) {
    if let node = tree.node(at: subtree.path), !node.isVacant || node.hasState {
      let hint = "Unregister the object that is there, or give it another identifier."
      throw .occupied(subtree.path, by: owner(of: node), hint: hint)
    }
    let count = tree.count + subtree.ancestors.count + subtree.objects.count
    let max = turn.limits.objectsPerApplicationMax
    guard count <= max else { throw .limitExceeded("objectsPerApplicationMax", max: max, value: count) }
    let texts = (subtree.ancestors + subtree.objects).reduce(0) { $0 + $1.record(below: nil).textBytes }
    try requireRoom(for: subtree.stateBytes + texts + origins.growth(by: contexts), path: subtree.path)
  }

  func finishReopening(_ subtree: ClosedShelf.Subtree, _ readings: [StateReading?], for caller: Caller) {
    do throws(ErrorObject) {
      guard runs.facts.shelf.subtrees.contains(subtree) else { throw .unknownObject(.path(subtree.path)) }
      // The checks are repeated: the tree may have changed since the call.
      var records: [NodeID: StateRecord] = [:]
      for case .state(let record, _)? in readings { records[record.node] = record }
      try requirePlace(for: subtree, contexts: Set(records.values.map(\.context)))
      let back = tree.nodes(of: subtree)
      try tree.requireReadable(besides: records.values, turn.limits) { [tree] in tree.node($0) ?? back[$0] }
      let parent = subtree.ancestors.reduce(nil as Node?) { place($1, below: $0) }
      var places: [NodeID: Node] = [:]
      for object in subtree.objects {
        let node = place(object, below: object.parent == 0 ? parent : places[object.parent])
        places[object.node] = node
        if let record = records[object.node], node.isVacant, !node.hasState { putBack(record, at: node) }
        if node.isVacant { writeRelease(of: node, at: turn.now.wall) }
      }
      runs.reopen(subtree)
      write(.release(subtree.rows))
      writeRun()
      // The states may refer to unsaved objects, and there may be live objects below one that has got another kind.
      reach.mayGrow()
      askForUnstored()
      note(.appeared)
      let objects = subtree.objects.count
      turn.answer(caller, ReopenObject.Reply().with { ($0.path, $0.objects) = (subtree.path, objects) })
    } catch {
      turn.refuse(caller, error)
    }
  }

  /// The node of a closed object: the one at its place, else a node with its former id, so that references lead to it.
  private func place(_ object: ClosedShelf.Object, below parent: Node?) -> Node {
    var record = object.record(below: parent?.id)
    if let node = tree.node(object.component, below: parent, kind: record.kind) {
      describe(node, as: record)
      return node
    }
    if tree.node(object.node) != nil { record.node = tree.last + 1 }
    let node = tree.insert(record)
    write(node)
    return node
  }

  /// Restores the description of a node that is only a placeholder.
  private func describe(_ node: Node, as record: NodeRecord) {
    // Below an exclusion an object of another kind may have another path (R4).
    let keepsKind = node.parent.map { tree.isExcluded($0) } ?? false && node.record.kind != record.kind
    guard node.isPlaceholder, !keepsKind else { return }
    var record = record
    (record.node, record.parent) = (node.id, node.record.parent)
    record.isConfidential = record.isConfidential || node.record.isConfidential
    guard node.record != record else { return }
    node.record = record
    write(node)
  }

  private func putBack(_ record: StateRecord, at node: Node) {
    var record = record
    (record.node, record.isEarly, record.session, record.revision) = (node.id, false, 0, 0)
    replaceState(of: node, by: record)
  }
}

extension NodeTree {
  /// The nodes that will be at the places of its objects: existing ones, and previews of those to be made.
  fileprivate func nodes(of subtree: ClosedShelf.Subtree) -> [NodeID: Node] {
    func node(_ object: ClosedShelf.Object, below parent: Node?) -> Node {
      var record = object.record(below: parent?.id)
      if let node = self.node(object.component, below: parent, kind: record.kind) { return node }
      if self.node(object.node) != nil { record.node = last + 1 }
      let node = Node(record: record)
      node.parent = parent
      return node
    }
    var nodes: [NodeID: Node] = [:]
    var parent: Node?
    for ancestor in subtree.ancestors {
      parent = node(ancestor, below: parent)
      nodes[ancestor.node] = parent
    }
    for object in subtree.objects {
      nodes[object.node] = node(object, below: object.parent == 0 ? parent : nodes[object.parent])
    }
    return nodes
  }
}
