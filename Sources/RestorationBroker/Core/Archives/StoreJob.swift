// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// A bounded piece of work for the store besides changes and reads of states.
package struct StoreJob: Sendable {
  package enum Step: Sendable {
    /// Nodes at a sequence that is kept meanwhile.
    case nodes(after: NodeID, at: SequenceNumber)
    /// States of these nodes at a sequence that is kept meanwhile.
    case states([NodeID], at: SequenceNumber)
    /// Check a piece of the archive.
    case check(VerificationPosition?)
    /// Copy the archive: to a file, or as its own backup copy.
    case backUp(to: String?)

    /// Reads the nodes that follow these; `nil` if they were the last.
    static func nodes(following readings: [NodeReading], at sequence: SequenceNumber) -> Step? {
      guard readings.count == StoreJob.nodesMax, let last = readings.last else { return nil }
      return .nodes(after: last.node.node, at: sequence)
    }

    /// Reads nothing, so that others have their turn.
    static func pause(at sequence: SequenceNumber) -> Step { .states([], at: sequence) }

    /// The sequence that it reads.
    var sequence: SequenceNumber? {
      switch self {
      case .nodes(_, let sequence), .states(_, let sequence): sequence
      case .check, .backUp: nil
      }
    }
  }

  package enum Outcome: Sendable {
    case nodes([NodeReading])
    case states([StateReading?])
    case checked(VerificationPiece)
    case copied(bytes: Int)
  }

  /// The most nodes of one piece.
  package static let nodesMax = 1_024

  /// The caller of the whole operation.
  package var caller: Caller
  /// Its operation.
  package var operation: Int
  package var step: Step
  /// Sequences that stay readable for this step and the following ones.
  package var holds: [SequenceNumber]

  package init(caller: Caller, operation: Int, step: Step, holds: [SequenceNumber] = []) {
    (self.caller, self.operation, self.step) = (caller, operation, step)
    self.holds = holds + (step.sequence.map { [$0] } ?? [])
  }
}

/// Operations in several pieces, so that other calls are answered in between.
package enum Operation {
  case verification(Verification)
  case planning(ExportPlanning)
  case page(PageReading)
  case backup(LongCall, to: String?)
  /// The nodes whose states are being read.
  case rollback(Rollback, reading: [NodeID])
  case comparison(Comparison, ComparisonPlace)

  var caller: Caller {
    switch self {
    case .verification(let verification): verification.call.caller
    case .planning(let planning): planning.call.caller
    case .page(let reading): reading.caller
    case .backup(let call, _): call.caller
    case .rollback(let rollback, _): rollback.call.caller
    case .comparison(let comparison, _): comparison.call.caller
    }
  }

  /// The caller, if the operation can be cancelled between two pieces; a copy is one piece, and a page is quick.
  var cancellableFor: Caller? {
    switch self {
    case .verification, .planning, .rollback, .comparison: caller
    case .backup, .page: nil
    }
  }

  /// Whether it may hold the texts of a whole generation.
  var isRollback: Bool { if case .rollback = self { true } else { false } }

  /// Sequences that later steps read, besides that of its next step.
  var holds: [SequenceNumber] {
    switch self {
    case .comparison(let comparison, _): comparison.holds
    case .planning(let planning): planning.plan.holds
    case .verification, .page, .backup, .rollback: []
    }
  }
}
