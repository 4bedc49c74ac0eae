// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

extension Application {
  func setParent(_ request: SetRestorationParent, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try requireWritable()
    let node = try requireOwn(request.object, session)
    var parent: Node?
    if let reference = request.restorationParent {
      guard let found = self.node(reference) else { throw Application.unknownParent(reference) }
      parent = found
    }
    let relocation = Relocation(node: node, parent: parent, component: node.record.component)
    let moved = try move(relocation, by: session, takeOver: request.takeOver)
    respond(caller, SetRestorationParent.Reply(path: tree.path(of: moved)))
  }

  func setIdentifier(_ request: SetRestorationIdentifier, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try requireWritable()
    let node = try requireOwn(request.object, session)
    if let identifier = request.restorationIdentifier {
      try Application.requireValid(identifier)
    } else if node.record.kind == .object {
      throw .restoration(
        .invalidIdentifier,
        "a plain object needs a restoration identifier",
        hint: "Only views and view controllers may be excluded by null.",
        path: tree.path(of: node)
      )
    }
    let component = request.restorationIdentifier.map {
      RestorationIdentifier.component($0, position: request.position)
    }
    let relocation = Relocation(node: node, parent: node.parent, component: component)
    let moved = try move(relocation, by: session, takeOver: request.takeOver)
    respond(caller, SetRestorationIdentifier.Reply(path: tree.path(of: moved), included: tree.isIncluded(moved)))
  }

  func setChildren(_ request: SetChildren, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try requireWritable()
    let parent = try requireOwn(request.object, session)
    var relocations: [Relocation] = []
    var seen: Set<NodeID> = []
    for (position, reference) in request.children.enumerated() {
      let child = try requireNode(reference)
      guard child.parent === parent, seen.insert(child.id).inserted else {
        throw .invalidParameter(
          "/children/\(position)",
          "this is not a child of the object, or it is named twice",
          hint: "Name each object once whose restoration parent is the object."
        )
      }
      guard let identifier = child.record.component.flatMap({ RestorationIdentifier.split($0)?.identifier }) else {
        throw .invalidParameter(
          "/children/\(position)",
          "the child's identifier is null",
          hint: "Only children with an identifier have a position."
        )
      }
      let component = RestorationIdentifier.component(identifier, position: Int64(position))
      if component != child.record.component {
        relocations.append(Relocation(node: child, parent: parent, component: component))
      }
    }
    try relocateAndTell(relocations, by: session, takeOver: false)
    let paths = request.children.map { reference in node(reference).flatMap { tree.path(of: $0) } }
    respond(caller, SetChildren.Reply(paths: paths))
  }

  /// Moves one node; the answer is the node at its new place, which may be the one that was vacant there (R6).
  private func move(_ relocation: Relocation, by session: Session?, takeOver: Bool) throws(ErrorObject) -> Node {
    let node = relocation.node
    guard node.parent !== relocation.parent || node.record.component != relocation.component else { return node }
    if let component = relocation.component,
      let other = tree.node(component, below: relocation.parent, kind: node.record.kind), other !== node,
      takeOver
    {
      if let owner = owner(of: other), let session { replace(other, owner, by: session) }
      // The displaced text must stay in a generation.
      if other.hasState, node.hasState, (other.state?.sequence ?? 0) > (generations.last?.sequence ?? 0) {
        seal(kind: "displaced")
      }
    }
    let handle = node.claim?.handle
    try relocateAndTell([relocation], by: session, takeOver: takeOver)
    admitWaiting()
    return handle.flatMap { nodesByHandle[$0] } ?? node
  }

  private func relocateAndTell(_ relocations: [Relocation], by session: Session?, takeOver: Bool) throws(ErrorObject) {
    guard !relocations.isEmpty else { return }
    let asked = Set(relocations.compactMap { $0.node.claim?.handle })
    let moved = try relocate(relocations, takesOver: takeOver)
    for node in moved {
      guard let claim = node.claim, let owner = owner(of: node), let client = owner.client,
        owner.serves(.pathChanged), !(owner === session && asked.contains(claim.handle))
      else { continue }
      let notification = PathChanged(object: claim.handle, path: tree.path(of: node))
      context.emit(.notify(client, method: PathChanged.method.rawValue, parameters: notification.parameters))
    }
  }

  /// Moves nodes and writes what changed: a row for each node that was moved itself, none for its descendants.
  ///
  /// - Returns: the nodes whose path changed.
  func relocate(_ relocations: [Relocation], takesOver: Bool) throws(ErrorObject) -> [Node] {
    let outcome: RelocationOutcome
    do {
      outcome = try tree.relocate(relocations, takesOver: takesOver, pathBytesMax: context.limits.pathBytesMax)
    } catch {
      throw explain(error, relocations)
    }
    for (gone, into) in outcome.merged {
      absorb(gone, into: into)
    }
    for node in outcome.changed where tree.nodes[node.id] === node {
      write(node)
    }
    return outcome.moved.compactMap { tree.node($0.id) }
  }

  /// A node that gave way to another at the same path: its claim goes over, its state is displaced.
  private func absorb(_ gone: Node, into: Node) {
    if let claim = gone.claim, let session = sessions[claim.session] {
      gone.claim = nil
      hold(into, claim, by: session)
      if let deadline = session.windows.removeValue(forKey: gone.id) { session.windows[into.id] = deadline }
      let record = ClaimRecord(node: into.id, session: session.id, handle: claim.handle)
      into.claimRecord = record
      write(.claim(record))
    }
    if gone.hasState {
      headBytes -= gone.state?.bytes ?? 0
      gone.state = nil
      write(.removeState(gone.id))
    }
    gone.record.isRemoved = true
    gone.record.successor = into.id
    write(gone)
  }

  private func explain(_ failure: RelocationFailure, _ relocations: [Relocation]) -> ErrorObject {
    let path = relocations.first.flatMap { tree.path(of: $0.node) }
    switch failure {
    case .cycle:
      return .restoration(
        .parentCycle,
        "the new parent is the object itself or below it",
        hint: "Choose a parent outside the object's own subtree.",
        path: path
      )
    case .occupied(let number):
      let other = tree.node(number)
      let owner = other.flatMap { self.owner(of: $0) }
      let occupied = other.flatMap { tree.path(of: $0) }
      return .restoration(
        .duplicatePath,
        "\(occupied.map(\.description) ?? "the path") is taken\(owner.map { " by \(Application.describe($0))" } ?? "")",
        hint: "Choose another identifier or parent, or say takeOver to displace what is there.",
        path: occupied,
        details: ["owners": .array(owner.map { [Application.ownerJSON($0)] } ?? [])]
      )
    case .pathTooLong(let bytes):
      return .limitExceeded("pathBytesMax", max: context.limits.pathBytesMax, value: bytes, path: path)
    }
  }
}
