// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

/// The bytes of the archive, checked against its limit: so many for the head, and as many for what it keeps besides.
package struct ArchiveBudget {
  /// Bytes of the states at the head, and of the texts of its nodes.
  package private(set) var states = 0
  package private(set) var texts = 0
  /// Changes of the head that the archive has not counted yet.
  private var growth: [(sequence: SequenceNumber, bytes: Int)] = []
  /// By how much what is kept besides the head is over the limit.
  package private(set) var excess = 0
  /// The change by which something was given up last.
  private var givenUp: SequenceNumber = 0
  /// For this excess nothing was found to give up, beside the generations that these changes sealed.
  private var hopeless: (excess: Int, generations: [SequenceNumber])?
  /// The change that the archive has counted last.
  package private(set) var counted: SequenceNumber = 0

  /// - Parameter counted: the last change of the archive as it was opened.
  package init(counted: SequenceNumber = 0) { self.counted = counted }

  /// Zero when everything that was written is durable.
  package var held: Int { growth.count }

  /// Bytes of the head besides the origins of its states.
  package var head: Int { states + texts }

  /// Passes if the head may grow by so many bytes. What is over a limit that was lowered may shrink.
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

  /// The states at the head have so many bytes more by a change.
  package mutating func grow(by bytes: Int, at sequence: SequenceNumber) {
    states += bytes
    if bytes != 0 { growth.append((sequence, bytes)) }
  }

  /// The texts of nodes have so many bytes more by a change.
  package mutating func growTexts(by bytes: Int, at sequence: SequenceNumber) {
    texts += bytes
    if bytes != 0 { growth.append((sequence, bytes)) }
  }

  /// These are all nodes of the head.
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

  /// The archive has counted its bytes up to a change.
  ///
  /// - Parameter origins: bytes of the origins of the head's states.
  package mutating func settle(_ receipt: ArchiveReceipt, origins: Int, max: Int) {
    growth.removeAll { $0.sequence <= receipt.sequence }
    let head = growth.reduce(head + origins) { $0 - $1.bytes }
    counted = receipt.sequence
    // What was given up is still in the count.
    excess = receipt.sequence < givenUp ? 0 : Swift.max(0, receipt.reachableBytes - head - max)
    if excess == 0 { hopeless = nil }
  }

  /// Whether looking through all nodes may find something to give up. Whatever there is more of it than before has
  /// enlarged the excess, or a generation that showed it has gone.
  package func mayFindMore(beside generations: [SealedGeneration]) -> Bool {
    guard let hopeless else { return true }
    return excess > hopeless.excess || hopeless.generations != generations.map(\.sequence)
  }

  /// Something was given up if there are changes after `last`.
  package mutating func giveUp(
    at sequence: SequenceNumber,
    after last: SequenceNumber,
    beside generations: [SealedGeneration]
  ) {
    hopeless = sequence > last ? nil : (excess, generations.map(\.sequence))
    if sequence > last { givenUp = sequence }
  }
}
