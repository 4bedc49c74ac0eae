// SPDX-License-Identifier: Apache-2.0

/// Counts the bytes that a peer has not taken: those collected until the end of the tick, and those in the channel.
/// Pure: what is collected and written in, what may be added and read out. How much waits in the channel is costly to
/// ask, so it is asked for only if the answer can matter.
///
/// Invariants:
/// 1. Each byte counts in one of three sums: unsolicited output (notifications and calls), offers, and answers, which
///    are what is left.
/// 2. Answers are never refused; beyond `replyBytesPause` the peer is not read until half of that is left.
/// 3. One unsolicited byte beyond `outQueueBytesMax` ends the connection.
/// 4. An offer beyond `offeredBytesMax` is refused unless no other waits. After refusals it is told once when half of
///    the limit is free again.
/// 5. A write counts whole until its last byte is taken, but where a limit is decided, the exact number does.
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
  /// The conversation may hold answers of incomplete batches.
  private var gathersAnswers = false
  package private(set) var hasRefusedOffer = false

  package init(limits: TransportLimits) {
    replyBytesPause = limits.replyBytesPause
    outQueueBytesMax = limits.outQueueBytesMax
    offeredBytesMax = limits.offeredBytesMax
  }

  /// Whether the kernel has taken everything that was written.
  package var allIsTaken: Bool { writesInChannel == 0 }

  package var unsolicited: Int { unsolicitedInTick + unsolicitedInChannel }

  package func offered(inChannel: @autoclosure () -> Int) -> Int {
    offeredInTick + (offeredInChannel > 0 ? min(offeredInChannel, inChannel()) : 0)
  }

  /// Answers in bytes, including those of batches that are not complete.
  package func replies(collected: Int, gathered: Int, inChannel: @autoclosure () -> Int) -> Int {
    let waiting = writesInChannel > 0 ? max(0, inChannel() - unsolicitedInChannel - offeredInChannel) : 0
    return collected - unsolicitedInTick - offeredInTick + gathered + waiting
  }

  /// An answer was given to its batch.
  package mutating func gatherAnswer() { gathersAnswers = true }

  /// Counts a notification or call that was collected.
  package mutating func addUnsolicited(_ count: Int) { unsolicitedInTick += count }

  /// Whether the peer takes too little of what it has not asked for.
  package func overflows(inChannel: @autoclosure () -> Int) -> Bool {
    unsolicited > outQueueBytesMax && unsolicitedInTick + min(unsolicitedInChannel, inChannel()) > outQueueBytesMax
  }

  /// Counts a notification that was collected and may be left out.
  ///
  /// - Returns: false if it is to be left out.
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

  /// Whether to tell now that there is room for offers again.
  package mutating func tellsOfRoom(inChannel: @autoclosure () -> Int) -> Bool {
    guard hasRefusedOffer, offered(inChannel: inChannel()) <= offeredBytesMax / 2 else { return false }
    hasRefusedOffer = false
    return true
  }

  /// Whether it can matter if the account `isFull`. Asked after each message.
  package func mayBeFull(collected: Int) -> Bool {
    writesInChannel > 0 || gathersAnswers || collected > replyBytesPause
  }

  /// Whether so many answers wait that the peer is not to be read.
  package mutating func isFull(collected: Int, gathered: Int, inChannel: @autoclosure () -> Int) -> Bool {
    if gathersAnswers { gathersAnswers = gathered > 0 }
    return replies(collected: collected, gathered: gathered, inChannel: inChannel()) > replyBytesPause
  }

  /// Whether a peer that was not read because of its answers is to be read again.
  package func hasRoom(collected: Int, gathered: Int, inChannel: @autoclosure () -> Int) -> Bool {
    replies(collected: collected, gathered: gathered, inChannel: inChannel()) <= replyBytesPause / 2
  }

  /// All that was collected is written, and so many bytes of it wait in the channel.
  ///
  /// - Returns: what is to be given to `taken` when the kernel has them; nil if it has all.
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
