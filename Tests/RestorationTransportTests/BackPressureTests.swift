// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationTransport
internal import Synchronization
internal import Testing

/// Peers that send more than they read.
@Suite struct BackPressureTests {
  private func echo(_ id: Int, bytes: Int) -> String {
    #"{"jsonrpc":"2.0","id":\#(id),"method":"echo","params":["\#(String(repeating: "x", count: bytes))"]}"#
  }

  private func wait(_ id: Int) -> String { #"{"jsonrpc":"2.0","id":\#(id),"method":"wait"}"# }

  private static let note = #"{"jsonrpc":"2.0","method":"note"}"#

  /// Sends until the other end stops reading; returns the number of bytes sent.
  private func sendUntilPaused(
    _ peer: RawPeer,
    _ text: String,
    _ connection: Connection,
    _ fixture: ListenerFixture
  ) async throws -> Int {
    let bytes = Array(text.utf8)
    var sent = 0
    while sent < bytes.count {
      let count = peer.sendWithoutWaiting(Array(bytes[sent..<min(bytes.count, sent + 65_536)]))
      sent += count
      let isPaused = try await fixture.onLoop { connection.usage.isPaused }
      if count == 0, isPaused { break }
    }
    return sent
  }

  @Test(.listener) func aPeerThatDoesNotReadItsRepliesIsNotReadAndOthersGoOn() async throws {
    let count = 10_000
    let peer = try fixture.connect()
    let connection = try #require(await fixture.delegate.events.opened())
    let requests = (1...count).map { echo($0, bytes: 1_000) + "\n" }.joined()
    let sent = try await sendUntilPaused(peer, requests, connection, fixture)

    let usage = try await fixture.onLoop { connection.usage }
    #expect(sent < requests.utf8.count && fixture.delegate.received < count)
    #expect(usage.replyBytes > 1 << 20 && usage.replyBytes < (1 << 20) + 2_000)
    // At most the bytes of one read, and of a frame before it.
    #expect(usage.inputBytes <= (1 << 16) + 2_000)
    let other = try fixture.connect()
    try other.send(#"{"jsonrpc":"2.0","id":1,"method":"get_data"}"#)
    #expect(try other.readLine() == #"{"jsonrpc":"2.0","id":1,"result":["hello",5]}"# + "\n")

    async let rest: Void = RawPeer.inBackground { try peer.send(Array(requests.utf8.dropFirst(sent))) }
    let answers = try await RawPeer.inBackground { try peer.readLines(count) }
    try await rest
    #expect(answers.count == count)
    for (index, answer) in answers.enumerated() where !answer.hasPrefix(#"{"jsonrpc":"2.0","id":\#(index + 1),"#) {
      Issue.record("answer \(index + 1) is \(answer.prefix(60))")
    }
    let left = try await fixture.onLoop { connection.usage }
    #expect(left.inputBytes + left.heldBackBytes + left.replyBytes + left.unsolicitedBytes == 0)
  }

  @Test(.listener(limits: { $0.waitingBytesPerProcessMax = 100_000 }))
  func aProcessOfWhichTooMuchWaitsIsNotReadOnAnyConnection() async throws {
    let events = fixture.delegate.events
    let busy = try fixture.connect()
    let owner = try #require(await events.opened())
    let quiet = try fixture.connect()
    let other = try #require(await events.opened())
    let text = String(repeating: "x", count: 60_000)
    try busy.send((1...2).map { #"{"jsonrpc":"2.0","id":\#($0),"method":"wait","params":["\#(text)"]}"# }.joined())
    let (call, _) = try #require(await events.request())
    _ = await events.request()
    try quiet.send(#"{"jsonrpc":"2.0","id":3,"method":"get_data"}"#)
    while try await !fixture.onLoop({ other.usage.isPaused }) {}
    #expect(fixture.delegate.received == 2)
    try await fixture.onLoop { owner.respond(to: call, with: .result(.null)) }
    #expect(try quiet.readLine() == #"{"jsonrpc":"2.0","id":3,"result":["hello",5]}"# + "\n")
    #expect(try busy.readLine() == #"{"jsonrpc":"2.0","id":1,"result":null}"# + "\n")
    #expect(try await !fixture.onLoop { owner.usage.isPaused })
  }

  /// Each comes to its end, one after the other, and together they hold little.
  @Test(.listener(limits: { $0.waitingBytesPerProcessMax = 100_000 }))
  func framesOfAProcessThatAreNotCompleteCountAndAllComeToTheirEnd() async throws {
    let text = String(repeating: "x", count: 400_000)
    let peers = try (0..<6).map { _ in try fixture.connect() }
    var connections: [Connection] = []
    for _ in peers { connections.append(try #require(await fixture.delegate.events.opened())) }
    let opened = connections
    let held = Mutex(0)
    let halves = [#"{"jsonrpc":"2.0","id":1,"method":"get_data","params":["\#(text)"#, #"\#(text)"]}"#]
    async let sending: Void = withThrowingTaskGroup(of: Void.self) { group in
      for peer in peers {
        group.addTask { try await RawPeer.inBackground { for half in halves { try peer.send(half) } } }
      }
      try await group.waitForAll()
    }
    for peer in peers {
      let answer = try await RawPeer.inBackground { try peer.readLine() }
      #expect(answer == #"{"jsonrpc":"2.0","id":1,"result":["hello",5]}"# + "\n")
      let now = try await fixture.onLoop { opened.reduce(0) { $0 + $1.usage.inputBytes } }
      held.withLock { $0 = max($0, now) }
    }
    try await sending
    // One frame, what was counted before, and a read of each connection.
    #expect(held.withLock { $0 } < 800_000 + 100_000 + 6 * 65_536)
  }

  @Test(.listener(limits: { $0.waitingBytesPerProcessMax = 100_000 }))
  func aConnectionThatLeavesInTheMiddleOfItsFrameLetsTheNextOneFinish() async throws {
    let events = fixture.delegate.events
    let text = String(repeating: "x", count: 300_000)
    let begin = #"{"jsonrpc":"2.0","id":1,"method":"get_data","params":["\#(text)"#
    var first: RawPeer? = try fixture.connect()
    let leaving = try #require(await events.opened())
    let second = try fixture.connect()
    let waiting = try #require(await events.opened())
    try first?.send(begin)
    while try await fixture.onLoop({ leaving.usage.inputBytes < 300_000 }) {}
    async let sending: Void = RawPeer.inBackground { try second.send(begin + #""]}"#) }
    while try await fixture.onLoop({ !waiting.usage.isPaused }) {}
    first = nil
    try await sending
    #expect(try await RawPeer.inBackground { try second.readLine() }?.contains("result") == true)
  }

  @Test(.listener(limits: { $0.waitingBytesPerProcessMax = 100_000 }))
  func whatCameWhileTooMuchOfAProcessWaitedIsTakenAlsoAfterItsPeerHasLeft() async throws {
    let events = fixture.delegate.events
    let busy = try fixture.connect()
    let text = String(repeating: "x", count: 120_000)
    try busy.send(#"{"jsonrpc":"2.0","id":1,"method":"wait","params":["\#(text)"]}"#)
    _ = try #require(await events.request())
    do {
      let leaving = try fixture.connect()
      try leaving.send(String(repeating: Self.note, count: 3))
    }
    #expect(await events.closed() != nil)
    #expect(fixture.delegate.received == 4)
    withExtendedLifetime(busy) {}
  }

  @Test func notificationsBehindARequestThatWaitsAreTakenAlsoAfterTheirPeerHasLeft() async throws {
    let opened = Opened()
    let pause: TestDelegate.Answer = { _ in
      opened.connection.withLock { $0 }?.setInputPaused(true)
      return nil
    }
    try await ListenerFixture.run(answer: pause) { fixture in
      let events = fixture.delegate.events
      do {
        let peer = try fixture.connect()
        let connection = try #require(await events.opened())
        opened.connection.withLock { $0 = connection }
        try peer.send("[\(wait(1)),\(wait(2)),\(Self.note)]")
        // A request that has not begun when its peer leaves is dropped.
        _ = await events.request()
      }
      #expect(await events.closed() != nil)
      #expect(fixture.delegate.received == 2)
    }
  }

  private final class Opened: Sendable {
    let connection = Mutex<Connection?>(nil)
  }

  /// It holds more than a sixteenth of what it may, and nothing else happens to it.
  @Test(.listener) func aPeerIsReadAgainWhenAllTogetherHoldLittle() async throws {
    let events = fixture.delegate.events
    let (large, small) = (try fixture.connect(), try fixture.connect())
    let (first, second) = (try #require(await events.opened()), try #require(await events.opened()))
    try large.send(wait(1))
    let (most, _) = try #require(await events.request())
    try await fixture.onLoop { first.expect(100 << 20, from: most) }
    try small.send(wait(1))
    let (some, _) = try #require(await events.request())
    try await fixture.onLoop { second.expect(100 << 10, from: some) }
    try small.send(wait(2))
    while try await fixture.onLoop({ second.usage.inputBytes }) == 0 {}
    #expect(fixture.delegate.received == 2)
    try await fixture.onLoop { first.respond(to: most, with: .result(.null)) }
    #expect(await events.request()?.1.id.description == "2")
  }

  @Test(.listener(limits: { $0.replyBytesPause = 4_096 })) func aPeersOwnSocketBufferIsAllItCanFillAfterAHalfClose()
    async throws
  {
    let peer = try fixture.connect()
    let connection = try #require(await fixture.delegate.events.opened())
    let requests = (1...4_000).map { echo($0, bytes: 1_000) }.joined()
    _ = try await sendUntilPaused(peer, requests, connection, fixture)
    peer.endOutput()
    _ = try await fixture.onLoop {}
    let usage = try await fixture.onLoop { connection.usage }
    #expect(usage.inputBytes < 1 << 20)
    let answers = try peer.readToEnd().split(separator: "\n")
    // The last request may have been cut by the half-close.
    #expect(answers.filter { !$0.contains("-32700") }.count == fixture.delegate.received)
    #expect(await fixture.delegate.events.closed() == .peerClosed)
  }

  @Test(.listener) func requestsBeyondThoseInFlightWaitAndAnswersToOurCallsDoNot() async throws {
    let peer = try fixture.connect()
    let connection = try #require(await fixture.delegate.events.opened())
    try peer.send((1...200).map(wait).joined())
    var calls: [Conversation.Call] = []
    for _ in 1...128 { calls.append(try #require(await fixture.delegate.events.request()).0) }

    let callID = try #require(try await fixture.onLoop { connection.call(method: "ask", parameters: nil) })
    _ = try peer.readLine()
    try peer.send(#"{"jsonrpc":"2.0","id":\#(callID),"result":7}"#)
    guard case .response(callID, .result)? = await fixture.delegate.events.received() else {
      Issue.record("the answer was held back")
      return
    }
    #expect(fixture.delegate.received == 129)
    #expect(try await fixture.onLoop { connection.usage.heldBackBytes } > 0)

    let first = calls[0]
    try await fixture.onLoop { connection.respond(to: first, with: .result(.null)) }
    calls.append(try #require(await fixture.delegate.events.request()).0)
    #expect(fixture.delegate.received == 130)

    let second = calls[1]
    try await fixture.onLoop { try connection.park(second) }
    let (last, request) = try #require(await fixture.delegate.events.request())
    #expect(request.id.description == "130")
    calls.append(last)
    #expect(fixture.delegate.received == 131)
  }

  @Test(.listener) func manyRequestsBeyondThoseInFlightStayWithThePeer() async throws {
    let peer = try fixture.connect()
    let connection = try #require(await fixture.delegate.events.opened())
    let filler = String(repeating: "x", count: 1_000)
    let requests = (1...5_000).map { #"{"jsonrpc":"2.0","id":\#($0),"method":"wait","params":["\#(filler)"]}"# }
      .joined()
    let sent = try await sendUntilPaused(peer, requests, connection, fixture)
    #expect(sent < requests.utf8.count)
    let usage = try await fixture.onLoop { connection.usage }
    #expect(usage.heldBackBytes > 256 << 10 && usage.heldBackBytes + usage.inputBytes < 1 << 20)
    #expect(fixture.delegate.received == 128)
  }

  @Test(.listener) func aFloodOfNotificationsToAPeerThatDoesNotReadCutsIt() async throws {
    let stopped = try fixture.connect()
    let connection = try #require(await fixture.delegate.events.opened())
    let text = JSONText(.string(String(repeating: "x", count: 10_000)))
    var rounds = 0
    while try await fixture.onLoop({ connection.isOpen }) {
      rounds += 1
      try await fixture.onLoop {
        for _ in 1...20 { connection.notify(method: "event", parameters: text) }
        let unsolicited = connection.usage.unsolicitedBytes
        if connection.isOpen, unsolicited > 8 << 20 { Issue.record("\(unsolicited) bytes are queued") }
      }
    }
    #expect(await fixture.delegate.events.closed() == .outputOverflow)
    #expect(rounds * 20 * 10_000 > 8 << 20)
    let other = try fixture.connect()
    try other.send(#"{"jsonrpc":"2.0","id":1,"method":"get_data"}"#)
    #expect(try other.readLine() != nil)
    _ = try stopped.readToEnd()
  }

  @Test func repliesAreNeverCutHoweverManyThereAre() async throws {
    let answer = JSONText(.string(String(repeating: "x", count: 200_000)))
    let limits: @Sendable (inout TransportLimits) -> Void = {
      $0.outQueueBytesMax = 1_000
      $0.conversation.batchReplyBytesMax = .max
    }
    try await ListenerFixture.run(limits: limits, answer: { _ in .result(answer) }) { fixture in
      let peer = try fixture.connect()
      let connection = try #require(await fixture.delegate.events.opened())
      // As a batch they are all asked for before the first of them is sent.
      try peer.send("[" + (1...100).map(wait).joined(separator: ",") + "]")
      while fixture.delegate.received < 100 { _ = try await fixture.onLoop {} }
      try await fixture.onLoop {
        connection.notify(method: "event", parameters: nil)
        #expect(connection.isOpen)
        #expect(connection.usage.replyBytes > 10 << 20)
      }
      #expect(try peer.readLine().map(\.utf8.count) ?? 0 > 100 * 200_000)
      #expect(try peer.readLine()?.contains("event") == true)
    }
  }

  @Test(.listener) func notificationsThatAreNotReadDoNotKeepRequestsFromBeingRead() async throws {
    let peer = try fixture.connect()
    let connection = try #require(await fixture.delegate.events.opened())
    let text = JSONText(.string(String(repeating: "x", count: 4 << 20)))
    try await fixture.onLoop { connection.notify(method: "event", parameters: text) }
    try peer.send(wait(1))
    #expect(await fixture.delegate.events.request() != nil)
  }

  @Test(.listener) func aReceiverMayPauseThePeer() async throws {
    let peer = try fixture.connect()
    let connection = try #require(await fixture.delegate.events.opened())
    try await fixture.onLoop { connection.setInputPaused(true) }
    let requests = (1...2_000).map { echo($0, bytes: 1_000) }.joined()
    #expect(try await sendUntilPaused(peer, requests, connection, fixture) < requests.utf8.count)
    #expect(fixture.delegate.received == 0)
    try await fixture.onLoop { connection.setInputPaused(false) }
    #expect(try peer.readLine()?.hasPrefix(#"{"jsonrpc":"2.0","id":1,"#) == true)
  }
}
