// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Reads a generation that is to become the head (R16). The core names the texts that it lacks, and answers.
struct RollbackReading: Report {
  let sequence: SequenceNumber

  var sequences: [SequenceNumber] { [sequence] }

  func run(_ archive: isolated ArchiveSnapshots) async throws(ErrorObject) -> (any JSONWritable & Sendable)? {
    var next: NodeID? = 0
    while let last = next {
      let piece = try await archive.nodes(after: last, at: sequence)
      try await archive.ask { application throws(ErrorObject) in
        try application.goOnRollingBack(with: piece.nodes, isLast: piece.next == nil)
      }
      next = piece.next
    }
    while true {
      let rows = try await archive.ask { application throws(ErrorObject) in try application.nextOfRollback() }
      if rows.isEmpty { return nil }
      let states = try await archive.states(in: rows)
      try await archive.ask { application throws(ErrorObject) in
        try application.goOnRollingBack(with: states, of: rows)
      }
    }
  }
}
