// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

extension Application {
  /// The most objects in one page of `describeApplication`.
  static let objectsPerPage = 512
  /// A page ends at this many bytes of state, or earlier if the client reads less.
  static let pageBytes = 1 << 20

  static func pageBytes(for messageBytesMax: Int64?) -> Int {
    messageBytesMax.map { min(pageBytes, Int($0 / 2)) } ?? pageBytes
  }

  var overview: ApplicationOverview {
    ApplicationOverview().with {
      $0.application = name
      $0.sessions = sessions.count
      $0.objects = tree.count
      $0.generation = generations.newest?.generation
      $0.bytes = budget.head + origins.usedBytes
      $0.stateBytes = budget.states
      $0.state = availability
      $0.withheld = withheldCount
      $0.restoreAtLogin = turn.settings.loginPolicies.policy(for: name)
      $0.units = runs.facts.units.map(\.name)
      $0.damaged = runs.facts.damage
    }
  }

  func describe(_ request: DescribeApplication, by _: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    let after = try Application.node(after: request.cursor)
    let ids = tree.nodes.keys.filter { $0 > after && $0 != tree.applicationNode?.id }.sorted()
    let page = describedPage(of: ids)
    let reply = DescribeApplication.Reply().with { message in
      message.application = name
      message.archive = turn.archive
      message.generation = generations.newest?.generation
      message.sequence = sequence
      message.sessions = sessions.inOrder.map { session in
        SessionDescription().with { live in
          live.process = session.facts.role
          live.pid = session.facts.process?.pid ?? 0
          live.delegate = session.facts.isDelegate
          live.serves = session.facts.serves.sorted { $0.rawValue < $1.rawValue }
        }
      }
      message.objects = page
      message.cursor = page.count < ids.count ? page.last.map { String($0.node) } : nil
    }
    turn.answer(caller, reply)
  }

  /// The first of these objects, as many as a page has room for.
  private func describedPage(of ids: [NodeID]) -> [ObjectDescription] {
    var page: [ObjectDescription] = []
    var bytes = 0
    for node in ids.prefix(Application.objectsPerPage).lazy.compactMap({ self.tree.nodes[$0] }) {
      let object = describe(node)
      bytes += node.record.textBytes + (object.path.map { $0.bytes + $0.pageBytes } ?? 0)
      if bytes > Application.pageBytes, !page.isEmpty { break }
      page.append(object)
    }
    return page
  }

  func listPathComponents(
    _ request: ListPathComponents,
    by session: Session?,
    for caller: Caller
  ) throws(ErrorObject) {
    try turn.requireWritable()
    let bytesMax = Self.pageBytes(for: session?.facts.messageBytesMax)
    let after = try Application.node(after: request.cursor)
    guard let below = tree.nodes(directlyBelow: request.path) else {
      throw .unknownObject(request.path.map { .path($0) } ?? .blank, at: "/path")
    }
    var reply = ListPathComponents.Reply()
    var bytes = 0
    var last: NodeID?
    for node in below where node.id > after {
      guard let component = node.record.component, component.utf8.starts(with: (request.beginning ?? "").utf8) else {
        continue
      }
      let isParent = tree.goesOn(node)
      bytes += (IdentifierPath.jsonBytes(of: component) + 1) * (isParent ? 2 : 1)
      if bytes > bytesMax, let last {
        reply.cursor = String(last)
        break
      }
      last = node.id
      reply.components.append(component)
      if isParent { reply.parents.append(component) }
    }
    turn.answer(caller, reply)
  }

  private func describe(_ node: Node) -> ObjectDescription {
    let owner = owner(of: node)
    return ObjectDescription().with { object in
      object.node = node.id
      object.parent = node.parent?.id
      object.object = node.claim?.handle
      object.path = tree.path(of: node)
      object.kind = node.record.kind.wire
      object.classes = node.record.classes.map { StateOrigin.classes(inText: $0) } ?? []
      object.process = owner?.facts.role ?? node.state.flatMap { origins[$0.context]?.role }
      object.pid = owner?.facts.process?.pid
      object.included = tree.isIncluded(node)
      object.orphaned = sessions.orphaned(node) != nil
      object.bytes = node.state?.bytes ?? 0
      object.modified = node.state.map { Timestamp(milliseconds: $0.written) }
      object.revision = node.claim.flatMap { $0.revision > 0 ? $0.revision : nil }
      object.confidential = node.record.isConfidential
      object.quarantined = node.isQuarantined
    }
  }

  func listGenerations(_: ListGenerations, by _: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    let reply = ListGenerations.Reply().with {
      $0.generations = generations.all.map { sealed in
        GenerationDescription().with {
          $0.generation = sealed.record.generation
          $0.kind = sealed.record.kind
          $0.committed = Timestamp(milliseconds: sealed.record.committed)
          ($0.objects, $0.bytes, $0.pinned) = (sealed.record.objects, sealed.record.bytes, sealed.isPinned)
        }
      }
    }
    turn.answer(caller, reply)
  }

  /// The last node of the former page; 0 if there is none.
  static func node(after cursor: String?) throws(ErrorObject) -> NodeID {
    guard let cursor else { return 0 }
    guard let node = NodeID(cursor) else { throw .invalidCursor() }
    return node
  }

  // MARK: Discarding

  /// Empties the head; live objects stay registered (R20: the next run is pristine).
  func discard(_ request: DiscardApplicationState, by _: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireKept()
    if request.generations, !request.force, !sessions.isEmpty {
      throw .restoration(
        .needsForce,
        "\(sessions.count == 1 ? "a session is" : "\(sessions.count) sessions are") live, and without generations "
          + "nothing can be restored",
        hint: "Use force: true, or keep the generations."
      )
    }
    clearHead()
    let kept = nodesToKeep()
    for node in tree.nodes.values { node.versions.remove() }
    for node in tree.nodes.values where !kept.contains(node.id) { tree.forget(node) }
    for id in kept.sorted() {
      guard let node = tree.nodes[id] else { continue }
      write(node)
    }
    countHead()
    runs.forgetRoles()
    if request.generations { generations.removeAll(in: &turn) }
    writeRun()
    announceDiscard(.discarded, reason: request.reason, generations: request.generations)
    turn.answer(caller, EmptyResult())
  }

  /// Removes all generations, and makes one of the present head.
  func forgetGenerations() {
    let isPinned = generations.all.contains(where: \.isPinned)
    generations.removeAll(in: &turn)
    emptyShelf()
    writeRun()
    if generations.sealHead("forgotten", of: tree, in: &turn) != nil, isPinned { generations.pinNewest(in: &turn) }
  }

  /// Live objects and their ancestors.
  func nodesToKeep() -> Set<NodeID> {
    var kept: Set<NodeID> = []
    for node in tree.claimed.values {
      var current: Node? = node
      while let node = current, kept.insert(node.id).inserted { current = node.parent }
    }
    return kept
  }
}
