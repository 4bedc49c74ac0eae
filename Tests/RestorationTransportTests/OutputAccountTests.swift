// SPDX-License-Identifier: Apache-2.0

internal import RestorationTransport
internal import Testing

/// The counts of what a peer has not taken, without a peer.
@Suite struct OutputAccountTests {
  /// An account, what was collected for it and what waits in its channel.
  private struct Peer {
    var account: OutputAccount
    var collected = 0
    var inChannel = 0

    init(_ change: (inout TransportLimits) -> Void) {
      var limits = TransportLimits()
      change(&limits)
      account = OutputAccount(limits: limits)
    }

    mutating func reply(_ count: Int) { collected += count }

    mutating func notify(_ count: Int) -> Bool {
      collected += count
      account.addUnsolicited(count)
      return !account.overflows(inChannel: inChannel)
    }

    mutating func offer(_ count: Int) -> Bool {
      guard account.addOffer(count, inChannel: inChannel) else { return false }
      collected += count
      return true
    }

    /// Writes all, of which so many bytes stay in the channel.
    mutating func write(leaving rest: Int) -> OutputAccount.Write? {
      defer { (collected, inChannel) = (0, inChannel + rest) }
      return account.wrote(leaving: rest)
    }

    var replies: Int { account.replies(collected: collected, unfinished: 0, inChannel: inChannel) }

    mutating func isFull(unfinished: Int = 0) -> Bool {
      account.mayBeFull(collected: collected)
        && account.isFull(collected: collected, unfinished: unfinished, inChannel: inChannel)
    }

    var hasRoom: Bool { account.hasRoom(collected: collected, unfinished: 0, inChannel: inChannel) }
  }

  @Test func whatIsNeitherUnsolicitedNorOfferedIsAnswers() throws {
    var peer = Peer { _ in }
    peer.reply(100)
    #expect(peer.notify(20) && peer.offer(3))
    #expect(peer.replies == 100 && peer.account.unsolicited == 20 && peer.account.offered(inChannel: 0) == 3)
    let written = peer.write(leaving: 123)
    let write = try #require(written)
    #expect(peer.replies == 100 && peer.account.unsolicited == 20 && peer.account.offered(inChannel: 123) == 3)
    #expect(!peer.account.allIsTaken)
    peer.inChannel = 0
    peer.account.taken(write)
    #expect(peer.account.allIsTaken && peer.replies == 0 && peer.account.unsolicited == 0)
    #expect(peer.account.offered(inChannel: 0) == 0)
  }

  @Test func whatTheKernelTakesAtOnceIsNotCounted() {
    var peer = Peer { _ in }
    peer.reply(100)
    #expect(peer.notify(20) && peer.offer(3))
    #expect(peer.write(leaving: 0) == nil)
    #expect(peer.account.allIsTaken && peer.replies == 0 && peer.account.unsolicited == 0)
    #expect(peer.account.offered(inChannel: 0) == 0)
  }

  @Test func answersArePausedForAtOneByteTooManyAndResumedForAtHalf() {
    var peer = Peer { $0.replyBytesPause = 1_000 }
    peer.reply(1_000)
    #expect(peer.isFull() == false)
    peer.reply(1)
    #expect(peer.isFull() == true)
    _ = peer.write(leaving: 1_001)
    #expect(peer.isFull() && !peer.hasRoom)
    peer.inChannel = 501
    #expect(!peer.isFull() && !peer.hasRoom)
    peer.inChannel = 500
    #expect(peer.hasRoom)
  }

  @Test func notificationsAndOffersDoNotPauseInput() {
    var peer = Peer { $0.replyBytesPause = 10 }
    #expect(peer.notify(1_000) && peer.offer(1_000))
    #expect(peer.isFull() == false)
    _ = peer.write(leaving: 2_000)
    #expect(!peer.isFull() && peer.hasRoom)
  }

  @Test func answersOfUnfinishedBatchesCountAsSoonAsOneWasGathered() {
    var peer = Peer { $0.replyBytesPause = 1_000 }
    #expect(peer.isFull(unfinished: 1_001) == false, "it is not asked for, as no answer was gathered")
    peer.account.noteUnfinished()
    #expect(peer.isFull(unfinished: 1_001) && !peer.isFull(unfinished: 0))
    #expect(peer.isFull(unfinished: 1_001) == false, "the batch has left")
  }

  @Test func gatheredAnswersDoNotKeepTheRestOfTheirBatchFromBeginning() {
    var peer = Peer { $0.replyBytesPause = 1_000 }
    peer.reply(400)
    func canBegin(expecting expected: Int) -> Bool {
      peer.account.hasRoomToBegin(collected: peer.collected, expected: expected, inChannel: peer.inChannel)
    }
    #expect(canBegin(expecting: 600) && !canBegin(expecting: 601))
    peer.account.noteUnfinished()
    #expect(peer.isFull(unfinished: 601) && canBegin(expecting: 0))
  }

  @Test func whereConnectionsAreCrowdedEachMayHaveLittle() {
    var peer = Peer { $0.replyBytesPause = 1_600 }
    peer.account.noteUnfinished()
    #expect(peer.isFull(unfinished: 1_600) == false)
    peer.account.isCrowded = true
    #expect(!peer.isFull(unfinished: 100) && peer.isFull(unfinished: 101))
  }

  @Test func memoryIsGivenBackOnceAfterAPeak() {
    var load = ReplyLoad()
    #expect(!load.change(by: 48 << 20) && !load.isHigh)
    #expect(!load.change(by: 17 << 20) && load.isHigh)
    #expect(load.change(by: -(32 << 20)) == false)
    #expect(load.change(by: -1) == true)
    load.trimmed()
    #expect(load.change(by: -(32 << 20)) == false)
    #expect(load.change(by: -load.bytes) == true)
    load.trimmed()
    #expect(load.change(by: 0) == false)
  }

  @Test func oneUnsolicitedByteTooManyEndsTheConnection() {
    var peer = Peer { $0.outQueueBytesMax = 100 }
    peer.reply(1_000)
    #expect(peer.offer(1_000) == true, "neither answers nor offers count")
    #expect(peer.notify(99) && peer.notify(1))
    #expect(peer.notify(1) == false)
  }

  @Test func ofAWriteTheExactRestCountsAgainstTheLimit() {
    var peer = Peer { $0.outQueueBytesMax = 100 }
    #expect(peer.notify(80) == true)
    _ = peer.write(leaving: 80)
    peer.inChannel = 50
    #expect(peer.account.unsolicited == 80, "it counts whole where nothing depends on it")
    #expect(peer.notify(50) && !peer.notify(1))
  }

  @Test func anOfferBeyondTheLimitIsRefusedAndOneIsAlwaysTaken() {
    var peer = Peer { $0.offeredBytesMax = 100 }
    #expect(peer.offer(1_000) == true)
    #expect(peer.offer(1) == false)
    _ = peer.write(leaving: 0)
    #expect(peer.offer(60) && peer.offer(40) && !peer.offer(1))
    #expect(peer.account.offered(inChannel: 0) == 100)
  }

  @Test func roomForOffersIsToldOnceAfterRefusalsWhenHalfIsFree() throws {
    var peer = Peer { $0.offeredBytesMax = 100 }
    #expect(peer.offer(100) == true)
    let written = peer.write(leaving: 100)
    let write = try #require(written)
    #expect(peer.account.tellsOfRoom(inChannel: 0) == false, "none was refused")
    #expect(!peer.offer(1) && !peer.offer(1))
    #expect(peer.account.tellsOfRoom(inChannel: 51) == false)
    #expect(peer.account.tellsOfRoom(inChannel: 50) == true)
    #expect(peer.account.tellsOfRoom(inChannel: 0) == false)
    peer.account.taken(write)
    #expect(peer.account.tellsOfRoom(inChannel: 0) == false)
  }

  @Test func howMuchWaitsIsNotAskedForWhileNothingCanDependOnIt() {
    var account = OutputAccount(limits: TransportLimits())
    var asked = 0
    func ask() -> Int {
      asked += 1
      return 0
    }
    account.addUnsolicited(1_000)
    #expect(!account.overflows(inChannel: ask()) && account.addOffer(1_000, inChannel: ask()))
    #expect(!account.mayBeFull(collected: 2_000) && account.tellsOfRoom(inChannel: ask()) == false)
    #expect(account.replies(collected: 2_000, unfinished: 0, inChannel: ask()) == 0)
    #expect(asked == 0)
  }
}
