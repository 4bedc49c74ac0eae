// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// The findings of `verifyArchive`: first in all rows, then in the trees of the head and each generation.
package struct Verification {
  /// Contents whose tree is checked, the head first.
  package struct Point {
    /// `nil` for the head.
    var generation: Int64?
    var sequence: SequenceNumber
  }

  /// A problem whose object's path is not known yet.
  private struct Finding {
    var kind: ArchiveProblem.Kind
    var node: NodeID?
    var shown: VerificationPiece.Shown
    var message: String
  }

  /// Problems beyond these are only counted.
  private static let problemsMax = 256

  var call: LongCall
  /// Contents that must still be checked.
  private(set) var points: [Point]
  private let pointCount: Int
  private var findings: [Finding] = []
  /// Of the first of `points`, and its last node so far.
  private var check = TreeCheck()
  private var lastNode: NodeID = 0
  private var problems: [ArchiveProblem] = []
  private var omitted: Int64 = 0
  private var objects = 0
  private var states = 0
  private var bytes = 0
  private var nodes = (done: 0, total: 0)

  package init(_ call: LongCall, _ points: [Point]) {
    (self.call, self.points) = (call, points)
    pointCount = points.count
  }

  /// The progress, and its total.
  var progress: (done: Int, total: Int) { (nodes.done + pointCount - points.count, nodes.total + pointCount) }

  /// Chooses the next contents: the head is that of `sequence`, and generations that are no longer kept are skipped.
  ///
  /// - Returns: whether the contents changed.
  mutating func prepare(head sequence: SequenceNumber, kept: [SealedGeneration]) -> Bool {
    guard lastNode == 0 else { return false }
    points.removeAll { point in
      point.generation.map { number in !kept.contains { $0.record.generation == number } } ?? false
    }
    if let point = points.first, point.generation == nil { points[0].sequence = sequence }
    return true
  }

  /// The next step; `nil` if everything was checked.
  var nextPoint: (after: NodeID, at: SequenceNumber)? {
    points.first.map { (lastNode, $0.sequence) }
  }

  func reply(milliseconds: Int64) -> VerifyArchive.Reply {
    VerifyArchive.Reply().with {
      $0.sound = problems.isEmpty
      $0.objects = objects
      $0.states = states
      $0.bytes = bytes
      $0.problems = problems
      $0.omitted = omitted == 0 ? nil : omitted
      $0.milliseconds = milliseconds
    }
  }

  // MARK: Rows

  /// - Parameter lastNode: the newest node when the piece was read.
  mutating func take(_ piece: VerificationPiece, lastNode: NodeID) {
    nodes = (piece.done, piece.total)
    for fault in piece.faults {
      let kind: ArchiveProblem.Kind = fault.node == nil ? .file : .object
      note(Finding(kind: kind, node: fault.node, shown: fault.shown, message: fault.message))
    }
    for row in piece.rows {
      states += 1
      guard case .state(let record, _) = row.reading else {
        let message = row.fault ?? "the stored state is damaged"
        note(Finding(kind: .state, node: row.node, shown: row.shown, message: message))
        continue
      }
      bytes += record.bytes
      if let (kind, message) = StoredText.fault(of: record, lastNode: lastNode) {
        note(Finding(kind: kind, node: row.node, shown: row.shown, message: message))
      }
    }
  }

  private mutating func note(_ finding: Finding) {
    if finding.node == nil {
      add(ArchiveProblem(finding.kind, finding.message))
    } else if findings.count < Self.problemsMax {
      findings.append(finding)
    } else {
      omitted += 1
    }
  }

  private mutating func add(_ problem: ArchiveProblem) {
    if problems.count < Self.problemsMax { problems.append(problem) } else { omitted += 1 }
  }

  // MARK: Trees

  /// Adds nodes of the current contents; if there are fewer than requested, they are the last ones.
  mutating func take(_ more: [NodeReading], origins: StateOrigins) {
    check.take(more, origins: origins)
    lastNode = more.last?.node.node ?? lastNode
    guard more.count < StoreJob.nodesMax, let point = points.first else { return }
    points.removeFirst()
    check.finish()
    defer { (check, lastNode) = (TreeCheck(), 0) }
    if point.generation == nil { objects = check.objects }
    name(at: point, by: check)
    for fault in check.faults {
      let path = fault.node.flatMap { check.tree.path(of: $0) }
      add(ArchiveProblem(fault.kind, path: path, generation: point.generation, fault.message))
    }
  }

  /// Everything was checked: problems of objects that no tree shows have no path.
  mutating func finish() {
    for finding in findings { add(ArchiveProblem(finding.kind, finding.message)) }
    findings = []
  }

  /// Names the findings that these contents show by their paths there.
  private mutating func name(at point: Point, by check: TreeCheck) {
    var others: [Finding] = []
    for finding in findings {
      let isShown =
        point.generation.map { finding.shown.generations.contains($0) } ?? finding.shown.isCurrent
      guard isShown, let node = finding.node else {
        others.append(finding)
        continue
      }
      let path = check.tree.path(of: node)
      let message = path == nil ? "\(finding.message) (object \(node) of the archive)" : finding.message
      add(ArchiveProblem(finding.kind, path: path, generation: point.generation, message))
    }
    findings = others
  }
}

/// Checks the stored texts of a state, its references and its elements.
enum StoredText {
  /// The problem of a row's texts; `nil` if there is none.
  static func fault(of record: StateRecord, lastNode: NodeID) -> (kind: ArchiveProblem.Kind, message: String)? {
    let state: JSONSlice
    do throws(JSONError) {
      state = try JSONSlice.scan(Array(record.text), vocabulary: EncodedState.vocabulary, limits: .unframed)
    } catch {
      return (.text, "the stored state is not JSON: \(error.message), at byte \(error.position)")
    }
    guard state.kind == .object else { return (.text, "the stored state is not an object") }
    if let elements = record.elements, !areElements(elements) { return (.text, "the stored elements are malformed") }
    return faultOfReferences(record, state, lastNode: lastNode).map { (.reference, $0) }
  }

  private static func areElements(_ text: String) -> Bool {
    let slice = try? JSONSlice.scan(Array(text.utf8), vocabulary: EncodedState.vocabulary, limits: .unframed)
    return slice.map { (try? [RestorableElement](wire: $0)) != nil } ?? false
  }

  private static func faultOfReferences(_ record: StateRecord, _ state: JSONSlice, lastNode: NodeID) -> String? {
    let found = state.references.filter { !$0.target.isNull }
    let listed = record.references.map { ArchiveReferences.numbers(inTable: $0) } ?? []
    guard listed.count == 3 * found.count else {
      return "the state has \(found.count) references, its table lists \(listed.count / 3)"
    }
    for (index, reference) in found.enumerated() {
      let (offset, length, node) = (listed[3 * index], listed[3 * index + 1], listed[3 * index + 2])
      let range = reference.objectRange
      guard Int(clamping: offset) == range.lowerBound, Int(clamping: length) == range.count,
        reference.target.integer() == node
      else { return "the reference at byte \(range.lowerBound) is not the one its table lists" }
      guard (1...max(1, lastNode)).contains(node) else {
        return "the reference at byte \(range.lowerBound) leads to object \(node), which never existed"
      }
    }
    return nil
  }
}
