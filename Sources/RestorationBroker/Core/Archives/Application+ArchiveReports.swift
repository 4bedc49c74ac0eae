// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// The application's part of reports on its archive: the facts that only it knows.
extension Application {
  func readArchive(_ request: ReadArchive, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    let bytesMax = Application.pageBytes(for: session?.facts.messageBytesMax)
    var page = try ArchivePage(request, upTo: sequence, bytesMax: bytesMax)
    if let number = page.generation {
      let sealed = try generation(number)
      (page.sequence, page.omitted) = (sealed.sequence, Set(sealed.record.omitted))
    }
    jobs.begin(page, for: longCall(caller, by: session), in: &turn)
  }

  func verify(_ request: VerifyArchive, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    let verification = Verification(generations: generations.all.reversed().map(\.record.generation))
    jobs.begin(verification, for: longCall(caller, by: session, request.progressToken), in: &turn)
  }

  func diffGenerations(_ request: DiffGenerations, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    let place = try DiffPlace(of: request, in: self)
    let from = try generation(request.from, "/from")
    let to = try request.to.map { number throws(ErrorObject) in try generation(number, "/to") }
    let comparison = Comparison(
      from: (from.sequence, from.record.omitted),
      to: (to?.sequence ?? place.sequence, to?.record.omitted ?? []),
      place: place,
      reveals: request.reveal,
      bytesMax: Application.pageBytes(for: session?.facts.messageBytesMax)
    )
    jobs.begin(comparison, for: longCall(caller, by: session, request.progressToken), in: &turn)
  }

  /// Exports the saved state as a document (`Protocol/export-format.md`).
  func export(_ request: ExportArchive, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    let bytesMax = Application.pageBytes(for: session?.facts.messageBytesMax)
    let call = longCall(caller, by: session, request.progressToken)
    if let cursor = request.cursor {
      let page = try exportPage(at: cursor, of: caller.client, bytesMax: bytesMax)
      jobs.use(export: page.export, in: turn)
      jobs.begin(page, for: call, after: page.plan.sequence, in: &turn)
      return
    }
    let sealed = try request.generation.map { number throws(ErrorObject) in try generation(number) }
    let plan = ExportPlan(
      at: sealed?.sequence ?? sequence,
      omitting: sealed.map { Set($0.record.omitted) },
      reveals: request.reveal,
      for: caller.client
    )
    jobs.begin(Export(plan, of: sealed == nil ? tree.readings : nil, bytesMax: bytesMax), for: call, in: &turn)
  }

  func backUp(_ request: BackupArchive, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    jobs.begin(Backup(path: request.to), for: longCall(caller, by: session, request.progressToken), in: &turn)
  }

  /// The archive has changed, and its last copy is at least a day old (R32).
  func backupTimerFired() {
    guard case .open = phase, turn.readOnly == nil, runs.backUp(in: turn) else { return }
    turn.ask(.backUp(id, replacingFormer: runs.isFormerDue(in: turn)))
    writeRun()
  }

  /// Begins the calls for which there is room now. If the archive is being reopened, they wait for that.
  func beginWaiting() {
    // Another call follows when the archive is open, or the long turn is over.
    if case .opening = phase { return }
    if turn.isLong { return }
    while let waiting = jobs.nextWaiting() {
      guard sessions.isConnected(waiting.caller.client) else { continue }
      do throws(ErrorObject) {
        try waiting.begin(self)
      } catch {
        turn.refuse(waiting.caller, error)
      }
    }
  }

  private func longCall(_ caller: Caller, by session: Session?, _ token: ProgressToken? = nil) -> LongCall {
    LongCall(caller, by: session, token: token, at: turn.now)
  }

  /// Throws if the generation is not retained.
  func generation(_ number: Int64, _ pointer: String = "/generation") throws(ErrorObject) -> SealedGeneration {
    if let sealed = generations[number] { return sealed }
    throw .invalidParameter(
      pointer,
      "unknown generation \(number)",
      hint: "listGenerations lists the kept generations."
    )
  }

  private func exportPage(
    at cursor: String,
    of client: ClientID,
    bytesMax: Int
  ) throws(ErrorObject) -> ExportPage {
    let numbers = cursor.split(separator: ".", omittingEmptySubsequences: false).map { Int($0) }
    guard numbers.count == 2, let export = numbers[0], let place = numbers[1], let plan = jobs.export(export),
      plan.client == client, plan.entries.indices.contains(place)
    else { throw .staleCursor() }
    return ExportPage(plan: plan, export: export, place: place, bytesMax: bytesMax)
  }

  // MARK: What reports ask

  /// The sequence of a generation, or of the head without one; `nil` if the generation is not retained.
  func sequence(of generation: Int64?) -> SequenceNumber? {
    guard let generation else { return sequence }
    return generations[generation]?.sequence
  }

  func missing(_ contexts: Set<ContextID>) -> Set<ContextID> { contexts.filter { origins[$0] == nil } }

  func origins(of contexts: Set<ContextID>) -> [ContextID: StateOrigin] {
    contexts.reduce(into: [:]) { $0[$1] = origins[$1] }
  }

  func shows(_ page: ArchivePage) -> Bool { page.generation == nil && turn.contentSequence <= page.sequence }

  /// The objects of a page, without the texts of their states.
  func archivedObjects(_ found: ArchivePage.Found, on page: ArchivePage) -> [ArchivedObject] {
    found.objects.map { reading, path in archivedObject(reading, at: path, on: page) }
  }

  private func archivedObject(_ reading: NodeReading, at path: IdentifierPath, on page: ArchivePage) -> ArchivedObject {
    let today = tree.nodes[reading.node.node]
    let isRedacted = reading.node.isConfidential && !page.reveals && reading.state != nil
    // A generation shows the past; only a state that is handed out now can be withheld.
    let isWithheld = page.generation == nil && reading.state.flatMap { today?.versions.isWithheld($0) } ?? false
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

  /// Adds the states' texts to a page's objects. `targets`: paths of references in a generation, `nil` for today's.
  func add(
    _ readings: [StateReading?],
    to objects: [ArchivedObject],
    _ targets: [NodeID: IdentifierPath]?
  ) -> [ArchivedObject] {
    var (objects, remaining) = (objects, readings[...])
    for index in objects.indices where objects[index].status != .none {
      switch remaining.popFirst() ?? nil {
      case .state(let record, _):
        guard !objects[index].redacted else { continue }
        objects[index].stateText = targets.map { record.spliced(to: $0) } ?? tree.splice(record)
        objects[index].elementsText = record.elements.map { JSONText(validated: Array($0.utf8)) }
      case .unreadable: objects[index].status = .unreadable
      case nil: objects[index].status = .none
      }
    }
    return objects
  }
}

extension NodeTree {
  /// All nodes with their states, and the successors of gone ones.
  fileprivate var readings: [NodeReading] {
    nodes.values.map { NodeReading(node: $0.record, state: $0.state, beforeClaim: $0.versions.hidden) }
      + successors.map { NodeReading(node: .removal(of: $0.key, successor: $0.value), state: nil) }
  }
}
