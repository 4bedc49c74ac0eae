// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// One bounded piece of work for the store that is neither a change nor the reading of states.
package struct StoreJob: Sendable {
  package enum Step: Sendable {
    /// Some nodes, as of a sequence that is kept meanwhile.
    case nodes(after: NodeID, at: SequenceNumber)
    /// Check a piece of what is stored.
    case check(VerificationPosition?)
    /// Copy the archive: to a file, or as its own backup copy.
    case backUp(to: String?)
  }

  package enum Outcome: Sendable {
    case nodes([NodeReading])
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

  package init(caller: Caller, operation: Int, step: Step) {
    self.caller = caller
    self.operation = operation
    self.step = step
  }
}

/// What an application does in several pieces, so that others are answered in between.
enum Operation {
  case verification(Verification)
  case planning(ExportPlanning)
  case backup(LongCall, to: String?)
}
