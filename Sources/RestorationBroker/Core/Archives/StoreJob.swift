// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// One bounded piece of work for the store that is neither a change nor the reading of states.
package struct StoreJob: Sendable {
  package enum Step: Sendable {
    /// Some nodes, as of a sequence that is kept meanwhile.
    case nodes(after: NodeID, at: SequenceNumber)
    /// The states of these nodes, as of a sequence that is kept meanwhile.
    case states([NodeID], at: SequenceNumber)
    /// Check a piece of what is stored.
    case check(VerificationPosition?)
    /// Copy the archive: to a file, or as its own backup copy.
    case backUp(to: String?)

    /// What it reads at.
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

  /// Nodes of one piece at most.
  package static let nodesMax = 1_024

  /// Who waits for the end of what this is part of.
  package var caller: Caller
  /// The operation it is part of.
  package var operation: Int
  package var step: Step
  /// Sequences that are kept readable for a while, for this step and those that follow.
  package var holds: [SequenceNumber]

  package init(caller: Caller, operation: Int, step: Step, holds: [SequenceNumber] = []) {
    (self.caller, self.operation, self.step) = (caller, operation, step)
    self.holds = holds + (step.sequence.map { [$0] } ?? [])
  }
}

/// What an application does in several pieces, so that others are answered in between.
package enum Operation {
  case verification(Verification)
  case planning(ExportPlanning)
  case backup(LongCall, to: String?)
  /// The nodes whose states are being read.
  case rollback(Rollback, reading: [NodeID])
  case comparison(Comparison, ComparisonPlace)

  /// Who waits for it, where it can be given up between two pieces; a copy is made in one.
  var cancellableFor: Caller? {
    switch self {
    case .verification(let verification): verification.call.caller
    case .planning(let planning): planning.call.caller
    case .rollback(let rollback, _): rollback.call.caller
    case .comparison(let comparison, _): comparison.call.caller
    case .backup: nil
    }
  }

  /// Sequences that it goes on to read at, besides that of its next step.
  var holds: [SequenceNumber] { if case .comparison(let comparison, _) = self { comparison.holds } else { [] } }
}
