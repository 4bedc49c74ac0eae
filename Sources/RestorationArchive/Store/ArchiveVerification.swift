// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

package enum VerificationPosition: Hashable, Sendable {
  /// With the rows of the first node after this one.
  case rows(after: NodeID)
  /// With the structure that holds the rows; the last piece.
  case structure
}

package struct VerificationPiece: Hashable, Sendable {
  /// A reachable state row, as it was read.
  package struct Row: Hashable, Sendable {
    package var node: NodeID
    package var reading: StateReading
    /// Why it is unreadable; `nil` if it is readable.
    package var fault: String?
    package var shown: Shown
  }

  /// A fault that is not about one state.
  package struct Fault: Hashable, Sendable {
    /// The node whose description it is; `nil` if it is about the whole file.
    package var node: NodeID?
    package var message: String
    package var shown: Shown
  }

  package struct Shown: Hashable, Sendable {
    /// The head shows it, or an owner that decodes is given it (R19).
    package var isCurrent: Bool
    /// The kept generations that show it, ascending.
    package var generations: [Int64]
  }

  package var rows: [Row] = []
  package var faults: [Fault] = []
  /// `nil` when everything has been checked.
  package var next: VerificationPosition?
  /// Nodes whose rows have been checked so far, and the number of all nodes.
  package var done = 0
  package var total = 0
}

extension OpenArchive {
  /// A piece ends at this many rows or bytes of text.
  private static var rowsPerPiece: Int { 256 }
  private static var bytesPerPiece: Int { 1 << 20 }

  /// Checks the next piece: every row of some nodes that a reader can reach, or the structure that holds the rows.
  func verify(from position: VerificationPosition?) throws(ArchiveError) -> VerificationPiece {
    switch position ?? .rows(after: 0) {
    case .rows(let node):
      // Cached rows say nothing about the disk.
      if position == nil { try rows.forgetCached() }
      return verifyRows(after: node)
    case .structure:
      var piece = VerificationPiece()
      (piece.done, piece.total) = (index.nodeCount, index.nodeCount)
      piece.faults = try rows.structureFaults().map { message in
        VerificationPiece.Fault(message: message, shown: VerificationPiece.Shown(isCurrent: true, generations: []))
      }
      return piece
    }
  }

  private func verifyRows(after node: NodeID) -> VerificationPiece {
    var piece = VerificationPiece()
    var last = node
    var count = 0
    var bytes = 0
    var isComplete = true
    for log in index.logs(after: node, limit: Self.rowsPerPiece) {
      guard count < Self.rowsPerPiece, bytes < Self.bytesPerPiece else {
        isComplete = false
        break
      }
      verifyDescriptions(of: log, &piece)
      let settled = log.state(at: .beforeClaim, under: index.horizon)?.sequence
      let states = log.states.reachable(under: index.horizon, index.generations) { $0.sequence == settled }
      for (row, shown) in states {
        piece.rows.append(verifiedRow(row, of: log.node, shown))
        count += 1
        bytes += Int(row.bytes)
      }
      count += 1
      last = log.node
    }
    piece.total = index.nodeCount
    piece.done = index.nodeCount(upTo: last)
    piece.next = isComplete && piece.done == piece.total ? .structure : .rows(after: last)
    return piece
  }

  private func verifiedRow(
    _ row: NodeLog.State,
    of node: NodeID,
    _ shown: VerificationPiece.Shown
  ) -> VerificationPiece.Row {
    var reading = StateReading.unreadable(sequence: row.sequence)
    var fault: String?
    do throws(ArchiveError) {
      reading = try rows.state(at: row.sequence)
      switch reading {
      case .unreadable:
        fault = "the stored state is damaged: its row is gone, or its checksum is wrong"
      case .state(let record, _):
        // The row is intact but stored in the place of another one.
        guard record.node == node, record.bytes == Int(row.bytes) else {
          reading = .unreadable(sequence: row.sequence)
          fault = "the stored state belongs to another object"
          break
        }
      }
    } catch {
      fault = "the stored state cannot be read: \(error.message)"
    }
    return VerificationPiece.Row(node: node, reading: reading, fault: fault, shown: shown)
  }

  private func verifyDescriptions(of log: NodeLog, _ piece: inout VerificationPiece) {
    for (row, shown) in log.descriptions.reachable(under: index.horizon, index.generations) {
      var message: String?
      do throws(ArchiveError) {
        let record = try rows.node(at: row.sequence)
        if record.node != log.node || record.textBytes != Int(row.bytes) {
          message = "the stored description differs from the one written"
        }
      } catch {
        message = "the stored description cannot be read: \(error.message)"
      }
      if let message { piece.faults.append(VerificationPiece.Fault(node: log.node, message: message, shown: shown)) }
    }
  }
}

extension Deque where Element: LogRow {
  /// Reachable rows, with their readers.
  ///
  /// - Parameter isGiven: whether a reader is given the row although the head does not show it.
  fileprivate func reachable(
    under horizon: Horizon,
    _ generations: [SealedGeneration],
    orGiven isGiven: (Element) -> Bool = { _ in false }
  ) -> [(row: Element, shown: VerificationPiece.Shown)] {
    indices.compactMap { index in
      let row = self[index]
      guard !row.isDead, !row.isTombstone else { return nil }
      let numbers = generations.filter { isShown(index, at: [$0.sequence], under: horizon) }
      let isCurrent = end(of: index, under: horizon) == .max || isGiven(row)
      return (row, VerificationPiece.Shown(isCurrent: isCurrent, generations: numbers.map(\.record.generation)))
    }
  }
}
