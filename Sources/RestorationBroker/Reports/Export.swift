// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// The first page of an export: puts the contents of the head or a generation in order.
struct Export: Report {
  /// How many objects are put in order at once.
  private static let pieceObjects = 2_048
  /// Rows before provisional ones that upkeep must retain.
  private static let hiddenMax = 64

  private let plan: ExportPlan
  /// The nodes of the head as they are; `nil` for a generation.
  private let head: [NodeReading]?
  private let bytesMax: Int

  init(_ plan: ExportPlan, of head: [NodeReading]?, bytesMax: Int) {
    var plan = plan
    let hidden = head?.compactMap { $0.state?.isEarly == true ? $0.beforeClaim?.sequence : nil } ?? []
    plan.sequences += Set(hidden).sorted().suffix(Self.hiddenMax)
    (self.plan, self.head, self.bytesMax) = (plan, head, bytesMax)
  }

  var sequences: [SequenceNumber] { plan.sequences }
  var isCancellable: Bool { head.map { $0.count > Self.pieceObjects } ?? true }

  func run(_ archive: isolated ArchiveSnapshots) async throws(ErrorObject) -> (any JSONWritable & Sendable)? {
    var plan = self.plan
    try await fill(&plan, archive)
    let export = try await archive.ask { [plan] in $0.jobs.add(plan, in: &$0.turn) }
    do throws(ErrorObject) {
      return try await ExportPage(plan: plan, export: export, place: 0, bytesMax: bytesMax).run(archive)
    } catch {
      // Its cursor was given to no client.
      try await archive.ask { $0.jobs.end(export: export, in: &$0.turn) }
      throw error
    }
  }

  private func fill(_ plan: inout ExportPlan, _ archive: isolated ArchiveSnapshots) async throws(ErrorObject) {
    var tree = NodeTree()
    if let head { tree.load(head) } else { tree = try await archive.tree(at: plan.sequence) }
    let count = tree.count
    try await archive.did(count)
    tree.indexAll()
    plan.successors = tree.successors
    try await archive.did(count)
    var order = tree.namedNodes(omitting: plan.omitted ?? [])[...]
    try await archive.did(count)
    var (places, ancestry) = ([NodeID: Int](), Ancestry())
    while !order.isEmpty {
      let piece = order.prefix(Self.pieceObjects)
      plan.add(piece, &places, &ancestry)
      order = order.dropFirst(piece.count)
      try await archive.did(piece.count)
    }
  }
}

/// One page of an export. It is quick, and cannot be cancelled.
struct ExportPage: Report {
  /// The most objects of one page.
  private static let objectsMax = 4_096

  let plan: ExportPlan
  let export: Int
  /// Of its first object.
  let place: Int
  let bytesMax: Int

  var sequences: [SequenceNumber] { plan.sequences }
  var isCancellable: Bool { false }

  func run(_ archive: isolated ArchiveSnapshots) async throws(ErrorObject) -> (any JSONWritable & Sendable)? {
    let (entries, rows) = choose()
    let readings = try await archive.answeredStates(in: rows)
    let contexts = Set(readings.compactMap { if case .state(let record, _) = $0 { record.context } else { nil } })
    let origins = try await archive.ask { $0.origins(of: contexts) }
    let objects: [JSONText]
    do throws(ErrorObject) {
      objects = try documentObjects(entries, readings, origins)
    } catch {
      try await archive.ask { [export] in $0.jobs.end(export: export, in: &$0.turn) }
      throw error
    }
    let next = place + objects.count
    let isLast = next == plan.entries.count
    if isLast { try await archive.ask { [export] in $0.jobs.end(export: export, in: &$0.turn) } }
    try await archive.tell(next, of: plan.entries.count, isLast: true)
    let part = ArchiveDocument().with { ($0.redacted, $0.objects) = (plan.isRedacted, objects) }
    return ExportArchive.Reply().with {
      $0.part = part.text
      $0.cursor = isLast ? nil : "\(export).\(next)"
    }
  }

  /// The entries that may fit, and the rows with their texts.
  private func choose() -> (entries: ArraySlice<ExportPlan.Entry>, rows: [StateRequest.Row]) {
    var rows: [StateRequest.Row] = []
    var (bytes, end) = (0, place)
    while end < plan.entries.count, end - place < Self.objectsMax {
      let entry = plan.entries[end]
      let states = entry.isRedacted ? [] : [entry.state, entry.beforeClaim].compactMap { $0 }
      // The least size of the text; the exact size is known when it is written.
      bytes += states.reduce(48) { $0 + $1.bytes }
      if bytes > bytesMax, end > place { break }
      rows += states.map { StateRequest.Row(node: entry.record.node, sequence: $0.sequence, bytes: $0.bytes) }
      end += 1
    }
    return (plan.entries[place..<end], rows)
  }

  // MARK: Writing

  /// The objects that fit, as they stand in the document.
  private func documentObjects(
    _ entries: ArraySlice<ExportPlan.Entry>,
    _ readings: [StateReading?],
    _ origins: [ContextID: StateOrigin]
  ) throws(ErrorObject) -> [JSONText] {
    var remaining = readings[...]
    var objects: [JSONText] = []
    var bytes = 0
    for entry in entries {
      let object = try documentObject(entry, &remaining, origins)
      let text = object.text
      bytes += text.count + 1 + (object.path?.pageBytes ?? 0)
      if bytes > bytesMax, !objects.isEmpty { break }
      objects.append(text)
    }
    return objects
  }

  private func documentObject(
    _ entry: ExportPlan.Entry,
    _ readings: inout ArraySlice<StateReading?>,
    _ origins: [ContextID: StateOrigin]
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
    object.state = try documentState(readings.popFirst() ?? nil, summary, origins)
    let before = try entry.beforeClaim.map { summary throws(ErrorObject) in
      try documentState(readings.popFirst() ?? nil, summary, origins)
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
    _ origins: [ContextID: StateOrigin]
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
  fileprivate func document(written: Int64) -> DocumentState.Writer {
    DocumentState.Writer().with {
      ($0.classes, $0.process, $0.bundleVersion) = (classes, role, bundleVersion)
      ($0.userInterfaceIdiom, $0.systemVersion, $0.storyboard) = (userInterfaceIdiom, systemVersion, storyboard)
      $0.written = Timestamp(milliseconds: written)
    }
  }
}
