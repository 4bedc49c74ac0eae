// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

/// What the archive holds, in bytes, held against its limit.
///
/// Invariant: `reachable` is what the archive has counted, and all growth whose sequence it has not counted yet.
package struct ArchiveBudget {
  /// Bytes of all rows that can still be read, as far as known.
  private var reachable: Int
  private var growth: [(sequence: SequenceNumber, bytes: Int)] = []
  /// Bytes of states at the head.
  package private(set) var head = 0

  package init(reachable: Int = 0) { self.reachable = reachable }

  /// Passes if so many bytes more are within the limit.
  package func requireRoom(
    for bytes: Int,
    path: @autoclosure () -> IdentifierPath? = nil,
    in turn: borrowing Turn
  ) throws(ErrorObject) {
    let (value, max) = (reachable + bytes, turn.limits.archiveBytesMax)
    guard value <= max else { throw .limitExceeded("archiveBytesMax", max: max, value: value, path: path()) }
  }

  /// What was written up to a change makes so many bytes more reachable.
  package mutating func grow(by bytes: Int, at sequence: SequenceNumber) {
    growth.append((sequence, bytes))
    reachable += bytes
  }

  package mutating func growHead(by bytes: Int) { head += bytes }

  package mutating func emptyHead() { head = 0 }

  /// The archive has counted what it holds up to a change; what was written since comes on top.
  package mutating func settle(_ receipt: ArchiveReceipt) {
    growth.removeAll { $0.sequence <= receipt.sequence }
    reachable = receipt.reachableBytes + growth.reduce(0) { $0 + $1.bytes }
  }
}
