// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Reports for people and tools.
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

  // MARK: Reading the archive

  func readArchive(_ request: ReadArchive, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    var page = try ArchivePage(request, upTo: sequence, bytesMax: Self.pageBytes(for: session?.facts.messageBytesMax))
    if let number = page.generation { page.sequence = try generation(number).sequence }
    let omitted = page.generation.flatMap { generations[$0] }?.record.omitted ?? []
    let reading = PageReading(page, omitting: omitted, isToday: isToday(page), for: caller)
    jobs.begin(.page(reading), reading.first, for: caller, in: &turn)
  }

  /// Whether the tree shows what the page shows.
  private func isToday(_ page: ArchivePage) -> Bool { page.generation == nil && turn.contentSequence <= page.sequence }

  /// Nodes of a page were read.
  func goOn(with reading: inout PageReading, _ nodes: [NodeReading], _ job: StoreJob) {
    if let step = reading.take(nodes, isToday: isToday(reading.page)) {
      jobs.goOn(with: .page(reading), step, job, in: &turn)
    } else {
      readTexts(of: reading)
    }
  }

  /// The nodes of a page were read: finds their paths at that time, and asks for the texts that fit.
  private func readTexts(of reading: PageReading) {
    var page = reading.page
    let chosen = reading.choose(for: &page, today: tree)
    page.objects = chosen.map { archivedObject($0, at: $1, in: page) }
    let rows = chosen.compactMap { object, _ in
      object.state.map { StateRequest.Row(node: object.node.node, sequence: $0.sequence, bytes: $0.bytes) }
    }
    read(rows, for: .page(page), reading.caller, after: page.sequence)
  }

  private func archivedObject(_ reading: NodeReading, at path: IdentifierPath, in page: ArchivePage) -> ArchivedObject {
    let today = tree.nodes[reading.node.node]
    let isRedacted = reading.node.isConfidential && !page.reveals && reading.state != nil
    // A generation shows the past; only a state that is handed out now can be withheld.
    let isWithheld = page.generation == nil && reading.state.flatMap { today?.isWithheld($0) } ?? false
    return ArchivedObject().with { object in
      object.object = today?.claim?.handle
      object.path = path
      object.kind = reading.node.kind.wire
      object.classes = reading.node.classes.map { StateOrigin.classes(inText: $0) } ?? []
      object.process = reading.state.flatMap { origins[$0.context]?.role }
      object.orphaned = today.map { sessions.orphaned($0) != nil } ?? true
      object.status = reading.state == nil ? .none : isWithheld ? .quarantined : .available
      object.coderText = reading.state.flatMap { coder(of: $0) }
      object.bytes = reading.state?.bytes ?? 0
      object.modified = reading.state.map { Timestamp(milliseconds: $0.written) }
      object.confidential = reading.node.isConfidential
      object.redacted = isRedacted
    }
  }

  /// The texts of a page were read.
  func finishPage(_ readings: [StateReading?], _ page: ArchivePage, for caller: Caller) {
    var objects = page.objects
    var remaining = readings[...]
    for index in objects.indices where objects[index].status != .none {
      switch remaining.popFirst() ?? nil {
      case .state(let record, _):
        guard !objects[index].redacted else { continue }
        objects[index].stateText = page.generation == nil ? tree.splice(record) : record.spliced(to: page.targets)
        objects[index].elementsText = record.elements.map { JSONText(validated: Array($0.utf8)) }
      case .unreadable: objects[index].status = .unreadable
      case nil: objects[index].status = .none
      }
    }
    let reply = ReadArchive.Reply().with {
      $0.generation = page.generation
      $0.objects = objects
      $0.cursor = page.cursor
    }
    turn.ask(.respond(caller, .result(reply)))
  }

  // MARK: Discarding

  /// Empties the head; live objects stay registered (R20: the next run is pristine).
  func discard(_ request: DiscardApplicationState, by _: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
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
    for node in tree.nodes.values {
      node.state = nil
      node.beforeClaim = nil
    }
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
