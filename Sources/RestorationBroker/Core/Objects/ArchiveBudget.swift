// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

/// The bytes of the archive, checked against its limit.
///
/// Invariant: `reachable` is the archive's count and all growth that the archive has not counted yet.
package struct ArchiveBudget {
  /// Bytes of all readable rows, as far as known.
  private var reachable: Int
  private var growth: [(sequence: SequenceNumber, bytes: Int)] = []
  /// What storing all that is kept off the disk would add.
  private var kept = 0
  /// Bytes of states at the head.
  package private(set) var head = 0

  package init(reachable: Int = 0) { self.reachable = reachable }

  /// Passes if so many bytes more are within the limit.
  package func requireRoom(
    for bytes: Int,
    path: @autoclosure () -> IdentifierPath? = nil,
    in turn: borrowing Turn
  ) throws(ErrorObject) {
    let excess = excess(of: bytes, in: turn)
    // What is over a limit that was lowered may shrink.
    guard bytes > 0, excess > 0 else { return }
    let max = turn.limits.archiveBytesMax
    throw .limitExceeded("archiveBytesMax", max: max, value: max + excess, path: path())
  }

  /// How far so many bytes more are beyond the limit; not positive if they are within it.
  func excess(of bytes: Int, in turn: borrowing Turn) -> Int { reachable + kept + bytes - turn.limits.archiveBytesMax }

  /// What was written up to a change makes so many bytes more reachable.
  package mutating func grow(by bytes: Int, at sequence: SequenceNumber) {
    growth.append((sequence, bytes))
    reachable += bytes
  }

  /// So many bytes more are kept off the disk, and count as if they were stored (R4).
  mutating func keep(_ bytes: Int) { kept += bytes }

  package mutating func growHead(by bytes: Int) { head += bytes }

  package mutating func emptyHead() { head = 0 }

  /// The archive has counted its bytes up to a change; later growth is added.
  package mutating func settle(_ receipt: ArchiveReceipt) {
    growth.removeAll { $0.sequence <= receipt.sequence }
    reachable = receipt.reachableBytes + growth.reduce(0) { $0 + $1.bytes }
  }
}
