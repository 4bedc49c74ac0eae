// SPDX-License-Identifier: Apache-2.0

/// Counts the bytes that a peer has not taken: those collected until the end of the tick, and those in the channel.
/// Pure. Reading the channel's count is costly, so it is read only if it can matter.
///
/// Invariants:
/// 1. Each byte counts in one of three sums: unsolicited output (notifications and calls), offers, and answers, which
///    are the rest.
/// 2. Answers are never refused. Beyond `replyBytesPause`, or a sixteenth of it where connections are crowded, the peer
///    is not read until half of that is left. Answers that are expected, or gathered for a batch, count as well.
/// 3. One unsolicited byte beyond `outQueueBytesMax` ends the connection.
/// 4. An offer beyond `offeredBytesMax` is refused unless no other waits. After refusals, room is reported once, when
///    half of the limit is free again.
/// 5. A write counts whole until its last byte is taken, but limits are decided by the exact number.
package struct OutputAccount {
  /// A write that waits in the channel.
  package struct Write: Hashable, Sendable {
    let unsolicited: Int
    let offered: Int
  }

  private let replyBytesPause: Int
  private let outQueueBytesMax: Int
  private let offeredBytesMax: Int
  private var unsolicitedInTick = 0
  private var unsolicitedInChannel = 0
  private var offeredInTick = 0
  private var offeredInChannel = 0
  private var writesInChannel = 0
  /// Whether the conversation may hold answers that are unfinished.
  private var hasUnfinished = false
  /// Whether all connections together hold too much, so that each gets a smaller share.
  package var isCrowded = false
  package private(set) var hasRefusedOffer = false

  package init(limits: TransportLimits) {
    replyBytesPause = limits.replyBytesPause
    outQueueBytesMax = limits.outQueueBytesMax
    offeredBytesMax = limits.offeredBytesMax
  }

  package var allIsTaken: Bool { writesInChannel == 0 }

  package var unsolicited: Int { unsolicitedInTick + unsolicitedInChannel }

  package func offered(inChannel: @autoclosure () -> Int) -> Int {
    offeredInTick + (offeredInChannel > 0 ? min(offeredInChannel, inChannel()) : 0)
  }

  /// Bytes of answers, including unfinished ones.
  package func replies(collected: Int, unfinished: Int, inChannel: @autoclosure () -> Int) -> Int {
    let waiting = writesInChannel > 0 ? max(0, inChannel() - unsolicitedInChannel - offeredInChannel) : 0
    return collected - unsolicitedInTick - offeredInTick + unfinished + waiting
  }

  /// An answer is in the making, or was added to its batch.
  package mutating func noteUnfinished() { hasUnfinished = true }

  package mutating func addUnsolicited(_ count: Int) { unsolicitedInTick += count }

  /// Whether more unsolicited output waits than the limit allows.
  package func overflows(inChannel: @autoclosure () -> Int) -> Bool {
    unsolicited > outQueueBytesMax && unsolicitedInTick + min(unsolicitedInChannel, inChannel()) > outQueueBytesMax
  }

  /// Counts a collected offer.
  ///
  /// - Returns: false if the offer is refused.
  package mutating func addOffer(_ count: Int, inChannel: @autoclosure () -> Int) -> Bool {
    if offeredInTick + offeredInChannel + count > offeredBytesMax {
      let waiting = offered(inChannel: inChannel())
      if waiting > 0, waiting + count > offeredBytesMax {
        hasRefusedOffer = true
        return false
      }
    }
    offeredInTick += count
    return true
  }

  /// Whether to report now that there is room for offers again.
  package mutating func tellsOfRoom(inChannel: @autoclosure () -> Int) -> Bool {
    guard hasRefusedOffer, offered(inChannel: inChannel()) <= offeredBytesMax / 2 else { return false }
    hasRefusedOffer = false
    return true
  }

  /// Whether `isFull` can be true; cheap, because it is asked after each message.
  package func mayBeFull(collected: Int) -> Bool {
    writesInChannel > 0 || hasUnfinished || collected > replyBytesPause
  }

  /// Whether too many answers wait to read the peer.
  package mutating func isFull(collected: Int, unfinished: Int, inChannel: @autoclosure () -> Int) -> Bool {
    if hasUnfinished { hasUnfinished = unfinished > 0 }
    return replies(collected: collected, unfinished: unfinished, inChannel: inChannel()) > repliesMax
  }

  /// Whether reading from the peer can resume.
  package func hasRoom(collected: Int, unfinished: Int, inChannel: @autoclosure () -> Int) -> Bool {
    replies(collected: collected, unfinished: unfinished, inChannel: inChannel()) <= repliesMax / 2
  }

  /// Whether another request that was read already can begin. The answers gathered for batches do not count, because
  /// they may leave only after it.
  package func hasRoomToBegin(collected: Int, expected: Int, inChannel: @autoclosure () -> Int) -> Bool {
    replies(collected: collected, unfinished: expected, inChannel: inChannel()) <= repliesMax
  }

  private var repliesMax: Int { isCrowded ? replyBytesPause / 16 : replyBytesPause }

  /// Collected output was written; its last `rest` bytes wait in the channel.
  ///
  /// - Returns: what to pass to `taken` when the kernel has taken them; `nil` if nothing waits.
  package mutating func wrote(leaving rest: Int) -> Write? {
    defer { (unsolicitedInTick, offeredInTick) = (0, 0) }
    guard rest > 0 else { return nil }
    let unsolicited = min(unsolicitedInTick, rest)
    let write = Write(unsolicited: unsolicited, offered: min(offeredInTick, rest - unsolicited))
    writesInChannel += 1
    unsolicitedInChannel += write.unsolicited
    offeredInChannel += write.offered
    return write
  }

  package mutating func taken(_ write: Write) {
    writesInChannel -= 1
    unsolicitedInChannel -= write.unsolicited
    offeredInChannel -= write.offered
  }
}
