// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

/// The bytes of the archive against its limit: one share for the head, and an equal one for everything else.
package struct ArchiveBudget {
  package private(set) var states = 0
  package private(set) var texts = 0
  /// Growth of the head by changes that are not in a receipt yet.
  private var growth: [(sequence: SequenceNumber, bytes: Int)] = []
  /// Bytes over the limit besides the head.
  package private(set) var excess = 0
  /// Number of the change by which something was given up last.
  private var givenUp: SequenceNumber = 0
  /// The excess for which nothing could be given up, and the generations of that moment, by sequence.
  private var exhausted: (excess: Int, generations: [SequenceNumber])?
  /// Number of the last change in a receipt.
  package private(set) var counted: SequenceNumber = 0

  /// - Parameter counted: the last change of the opened archive.
  package init(counted: SequenceNumber = 0) { self.counted = counted }

  package var held: Int { growth.count }

  /// Bytes of the head without the origins of its states.
  package var head: Int { states + texts }

  /// Throws if the head may not grow by this many bytes. Above a lowered limit it may still shrink.
  package func requireRoom(
    for bytes: Int,
    origins: Int = 0,
    path: @autoclosure () -> IdentifierPath? = nil,
    in turn: borrowing Turn
  ) throws(ErrorObject) {
    let (value, max) = (head + origins + bytes, turn.limits.archiveBytesMax)
    guard bytes > 0, value > max else { return }
    throw .limitExceeded("archiveBytesMax", max: max, value: value, path: path())
  }

  package mutating func grow(by bytes: Int, at sequence: SequenceNumber) {
    states += bytes
    if bytes != 0 { growth.append((sequence, bytes)) }
  }

  package mutating func growTexts(by bytes: Int, at sequence: SequenceNumber) {
    texts += bytes
    if bytes != 0 { growth.append((sequence, bytes)) }
  }

  /// Counts all nodes of the head anew.
  package mutating func count(_ nodes: some Sequence<Node>, at sequence: SequenceNumber) {
    let before = head
    (states, texts) = (0, 0)
    for node in nodes {
      node.countedText = node.record.textBytes
      texts += node.countedText
      states += node.state?.bytes ?? 0
    }
    if sequence > counted { growth.append((sequence, head - before)) }
  }

  // MARK: Besides the head

  /// Takes the counts of a receipt.
  ///
  /// - Parameter origins: bytes of the origins of the head's states.
  package mutating func settle(_ receipt: ArchiveReceipt, origins: Int, max: Int) {
    growth.removeAll { $0.sequence <= receipt.sequence }
    let head = growth.reduce(head + origins) { $0 - $1.bytes }
    counted = receipt.sequence
    // The receipt still includes what was given up.
    excess = receipt.sequence < givenUp ? 0 : Swift.max(0, receipt.reachableBytes - head - max)
    if excess == 0 { exhausted = nil }
  }

  /// Whether a pass over all nodes may find something to give up. New candidates would have enlarged the excess, or
  /// removed a generation that held them.
  package func mayFindMore(beside generations: [SealedGeneration]) -> Bool {
    guard let exhausted else { return true }
    return excess > exhausted.excess || exhausted.generations != generations.map(\.sequence)
  }

  /// Something was given up if there are changes after `last`.
  package mutating func giveUp(
    at sequence: SequenceNumber,
    after last: SequenceNumber,
    beside generations: [SealedGeneration]
  ) {
    exhausted = sequence > last ? nil : (excess, generations.map(\.sequence))
    if sequence > last { givenUp = sequence }
  }
}
