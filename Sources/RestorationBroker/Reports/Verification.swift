// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Checks an archive: first all rows, then the trees of the head and each generation.
struct Verification: Report {
  /// Kept generations, the newest first.
  let generations: [Int64]

  func run(_ archive: isolated ArchiveSnapshots) async throws(ErrorObject) -> (any JSONWritable & Sendable)? {
    var findings = VerificationFindings()
    // The head comes first.
    let contents: [Int64?] = [nil] + generations.map { Optional($0) }
    var rows = 0
    var position: VerificationPosition?
    repeat {
      let piece = try await archive.check(from: position)
      // States that were written since the check began may refer to objects that are as new.
      let lastNode = try await archive.ask { $0.tree.last }
      findings.take(piece, lastNode: lastNode)
      (position, rows) = (piece.next, piece.total)
      try await archive.tell(piece.done, of: rows + contents.count)
    } while position != nil
    for (done, generation) in contents.enumerated() {
      guard let sequence = try await archive.ask({ $0.sequence(of: generation) }) else { continue }
      try await archive.hold(sequence)
      findings.take(try await check(archive, at: sequence), of: generation)
      try await archive.tell(rows + done, of: rows + contents.count)
    }
    findings.finish()
    try await archive.tell(rows + contents.count, of: rows + contents.count, isLast: true)
    return findings.reply(milliseconds: try await archive.milliseconds())
  }

  private func check(
    _ archive: isolated ArchiveSnapshots,
    at sequence: SequenceNumber
  ) async throws(ErrorObject) -> TreeCheck {
    var check = TreeCheck()
    var next: NodeID? = 0
    while let last = next {
      let piece = try await archive.nodes(after: last, at: sequence)
      let contexts = Set(piece.nodes.compactMap { $0.state?.context })
      check.take(piece.nodes, missing: try await archive.ask { $0.missing(contexts) })
      next = piece.next
    }
    check.finish()
    return check
  }
}

/// The findings of `verifyArchive`.
struct VerificationFindings {
  /// A problem whose object's path is not known yet.
  private struct Finding {
    var kind: ArchiveProblem.Kind
    var node: NodeID?
    var shown: VerificationPiece.Shown
    var message: String
  }

  /// Problems beyond these are only counted.
  private static let problemsMax = 256

  private var findings: [Finding] = []
  private var problems: [ArchiveProblem] = []
  private var omitted: Int64 = 0
  private var objects = 0
  private var states = 0
  private var bytes = 0

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

  /// - Parameter generation: that which has the tree; `nil` for the head.
  mutating func take(_ check: TreeCheck, of generation: Int64?) {
    if generation == nil { objects = check.objects }
    name(in: generation, by: check)
    for fault in check.faults {
      let path = fault.node.flatMap { check.tree.path(of: $0) }
      add(ArchiveProblem(fault.kind, path: path, generation: generation, fault.message))
    }
  }

  /// Everything was checked: problems of objects that no tree shows have no path.
  mutating func finish() {
    for finding in findings { add(ArchiveProblem(finding.kind, finding.message)) }
    findings = []
  }

  /// Names the findings that these contents show by their paths there.
  private mutating func name(in generation: Int64?, by check: TreeCheck) {
    var others: [Finding] = []
    for finding in findings {
      let isShown = generation.map { finding.shown.generations.contains($0) } ?? finding.shown.isCurrent
      guard isShown, let node = finding.node else {
        others.append(finding)
        continue
      }
      let path = check.tree.path(of: node)
      let message = path == nil ? "\(finding.message) (object \(node) of the archive)" : finding.message
      add(ArchiveProblem(finding.kind, path: path, generation: generation, message))
    }
    findings = others
  }
}
