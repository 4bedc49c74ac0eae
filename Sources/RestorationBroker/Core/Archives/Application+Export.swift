// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Exporting the saved state as a document (`Protocol/export-format.md`).
extension Application {
  func export(_ request: ExportArchive, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    let bytes = Application.pageBytes(for: session?.facts.messageBytesMax)
    let call = LongCall(caller, by: session, token: request.progressToken, at: turn.now)
    if let cursor = request.cursor {
      let (export, place) = try self.export(at: cursor, of: caller.client)
      readPage(of: export, from: place, bytesMax: bytes, for: call)
      return
    }
    let sealed = try request.generation.map { number throws(ErrorObject) in try generation(number) }
    let plan = ExportPlan(
      at: sealed?.sequence ?? sequence,
      omitting: sealed.map { Set($0.record.omitted) },
      reveals: request.reveal,
      for: caller.client
    )
    var planning = ExportPlanning(plan, bytesMax: bytes, call)
    if let step = sealed.map({ .nodes(after: 0, at: $0.sequence) }) ?? planning.begin(with: tree, at: sequence) {
      jobs.begin(.planning(planning), step, for: caller, in: &turn)
    } else {
      readFirstPage(after: planning)
    }
  }

  /// A kept generation; throws if it is not kept.
  func generation(_ number: Int64, _ pointer: String = "/generation") throws(ErrorObject) -> SealedGeneration {
    if let sealed = generations[number] { return sealed }
    throw .invalidParameter(
      pointer,
      "unknown generation \(number)",
      hint: "listGenerations lists the kept generations."
    )
  }

  private func export(at cursor: String, of client: ClientID) throws(ErrorObject) -> (export: Int, place: Int) {
    let numbers = cursor.split(separator: ".", omittingEmptySubsequences: false).map { Int($0) }
    guard numbers.count == 2, let export = numbers[0], let place = numbers[1], let plan = jobs.export(export),
      plan.client == client, plan.entries.indices.contains(place)
    else { throw .staleCursor() }
    return (export, place)
  }

  // MARK: Planning

  /// Nodes of a generation were read, or others have had their turn.
  func goOn(with planning: inout ExportPlanning, _ outcome: StoreJob.Outcome, _ job: StoreJob) {
    if let step = planning.goOn(outcome, tree, at: sequence) {
      return jobs.goOn(with: .planning(planning), step, job, after: planning.plan.sequence, in: &turn)
    }
    readFirstPage(after: planning)
  }

  private func readFirstPage(after planning: ExportPlanning) {
    readPage(of: jobs.add(planning.plan, in: &turn), from: 0, bytesMax: planning.bytesMax, for: planning.call)
  }

  // MARK: Pages

  /// Asks for the texts that fit into the page that begins at `place`.
  private func readPage(of export: Int, from place: Int, bytesMax: Int, for call: LongCall) {
    guard let plan = jobs.use(export: export, in: turn) else { return }
    var rows: [StateRequest.Row] = []
    var bytes = 0
    var end = place
    while end < plan.entries.count, end - place < ExportPage.objectsMax {
      let entry = plan.entries[end]
      // The least size of the text; the exact size is known when it is written.
      bytes += 48 + (entry.isRedacted ? 0 : (entry.state?.bytes ?? 0) + (entry.beforeClaim?.bytes ?? 0))
      if bytes > bytesMax, end > place { break }
      if !entry.isRedacted {
        for state in [entry.state, entry.beforeClaim].compactMap({ $0 }) {
          rows.append(StateRequest.Row(node: entry.record.node, sequence: state.sequence, bytes: state.bytes))
        }
      }
      end += 1
    }
    let page = ExportPage(export: export, range: place..<end, bytesMax: bytesMax, call: call, holds: plan.holds)
    read(rows, for: .export(page), call.caller, after: plan.sequence)
  }

  /// The texts of a page were read.
  func finishPage(_ readings: [StateReading?], _ page: ExportPage, for caller: Caller) {
    do throws(ErrorObject) {
      turn.ask(.respond(caller, .result(try makePage(readings, page))))
    } catch {
      jobs.end(export: page.export, in: &turn)
      turn.refuse(caller, error)
    }
  }

  private func makePage(_ readings: [StateReading?], _ page: ExportPage) throws(ErrorObject) -> ExportArchive.Reply {
    guard let plan = jobs.export(page.export) else { throw .staleCursor() }
    var remaining = readings[...]
    var objects: [JSONText] = []
    var bytes = 0
    for place in page.range {
      let object = try documentObject(plan.entries[place], of: plan, &remaining)
      let text = object.text
      bytes += text.count + 1 + (object.path?.pageBytes ?? 0)
      if bytes > page.bytesMax, !objects.isEmpty { break }
      objects.append(text)
    }
    let next = page.range.lowerBound + objects.count
    let isLast = next == plan.entries.count
    if isLast { jobs.end(export: page.export, in: &turn) }
    let part = ArchiveDocument().with { ($0.redacted, $0.objects) = (plan.isRedacted, objects) }
    var call = page.call
    tell(call.progress(next, of: plan.entries.count, isLast: true, at: turn.now), of: call)
    return ExportArchive.Reply().with {
      $0.part = part.text
      $0.cursor = isLast ? nil : "\(page.export).\(next)"
    }
  }

  private func documentObject(
    _ entry: ExportPlan.Entry,
    of plan: ExportPlan,
    _ readings: inout ArraySlice<StateReading?>
  ) throws(ErrorObject) -> DocumentObject {
    let record = entry.record
    var object = DocumentObject()
    (object.path, object.parent, object.kind) = (plan.paths[record.node], entry.parent, record.kind.wire)
    object.isApplication = record.kind == .application
    object.classes = record.classes.map { StateOrigin.classes(inText: $0) } ?? []
    object.restorationClass = record.restorationClass
    object.storyboard = record.storyboard
    object.keep = record.keepsForever ? .forever : nil
    object.confidential = record.isConfidential
    guard let summary = entry.state else { return object }
    if entry.isRedacted {
      object.missing = .redacted
      return object
    }
    object.state = try documentState(readings.popFirst() ?? nil, summary, of: plan)
    let before = try entry.beforeClaim.map { summary throws(ErrorObject) in
      try documentState(readings.popFirst() ?? nil, summary, of: plan)
    }
    if object.state == nil {
      object.missing = .unreadable
    } else if entry.isEarly {
      object.isEarly = true
      object.beforeClaim = before ?? nil
    }
    return object
  }

  /// `nil` if the state is unreadable.
  private func documentState(
    _ reading: StateReading?,
    _ summary: StateSummary,
    of plan: ExportPlan
  ) throws(ErrorObject) -> DocumentState? {
    switch reading {
    case .state(let record, let sequence) where sequence == summary.sequence:
      let writer = origins[record.context] ?? StateOrigin()
      let text = record.spliced { target, writer in
        ArchiveReferences.write(plan.path(ofTarget: target), to: &writer)
      }
      return DocumentState().with {
        $0.state = EncodedState(unchecked: text)
        $0.elements = record.elements.map { DocumentState.Elements(stored: JSONText(validated: Array($0.utf8))) }
        $0.writer = writer.document(written: record.written)
      }
    case .unreadable(let sequence) where sequence == summary.sequence: return nil
    case .state, .unreadable, nil: throw .staleCursor()
    }
  }
}

extension StateOrigin {
  func document(written: Int64) -> DocumentState.Writer {
    DocumentState.Writer().with {
      ($0.classes, $0.process, $0.bundleVersion) = (classes, role, bundleVersion)
      ($0.userInterfaceIdiom, $0.systemVersion, $0.storyboard) = (userInterfaceIdiom, systemVersion, storyboard)
      $0.written = Timestamp(milliseconds: written)
    }
  }

  init(_ writer: DocumentState.Writer) {
    self.init()
    (classes, role, bundleVersion) = (writer.classes, writer.process, writer.bundleVersion)
    (userInterfaceIdiom, systemVersion, storyboard) =
      (writer.userInterfaceIdiom, writer.systemVersion, writer.storyboard)
  }
}
