// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationTransport
internal import Testing

/// Notifications that may be left out when the peer does not read.
@Suite struct OfferTests {
  /// What is offered carries this, so that a thousand fill the connection.
  private static let filler = String(repeating: "x", count: 1_000)
  private static let frame = #"{"jsonrpc":"2.0","method":"event","params":[10001,"\#(filler)"]}"#.utf8.count + 1

  /// Offers numbers from `first` on until one is refused; returns that number.
  private func fill(_ connection: Connection, from first: Int, _ fixture: ListenerFixture) async throws -> Int {
    var number = first
    while true {
      // Each on its own tick, so that the kernel takes all it can.
      let next = number
      guard try await fixture.onLoop({ connection.offer(method: "event", parameters: Self.text(next)) }) else {
        return number
      }
      number += 1
    }
  }

  private static func text(_ number: Int) -> JSONText { JSONText([.integer(Int64(number)), .string(filler)]) }

  @Test(.listener) func aPeerThatDoesNotReadIsOfferedSoMuchAndNoMore() async throws {
    let peer = try fixture.connect()
    let connection = try #require(await fixture.delegate.events.opened())
    let refused = try await fill(connection, from: 10_001, fixture)
    let usage = try await fixture.onLoop { connection.usage }
    #expect(usage.offeredBytes <= 1 << 20 && usage.offeredBytes > (1 << 20) - 2 * Self.frame)
    #expect(usage.replyBytes == 0 && usage.unsolicitedBytes == 0)
    // It is neither cut nor kept from asking.
    try peer.send(#"{"jsonrpc":"2.0","id":1,"method":"wait"}"#)
    let (call, _) = try #require(await fixture.delegate.events.request())
    try await fixture.onLoop { connection.respond(to: call, with: .result(.null)) }
    let lines = try await RawPeer.inBackground { try peer.readLines(refused - 10_001 + 1) }
    #expect(lines.last == #"{"jsonrpc":"2.0","id":1,"result":null}"# + "\n")
    for (index, line) in lines.dropLast().enumerated() where !line.contains("[\(10_001 + index),") {
      Issue.record("offer \(index) is \(line)")
    }
    _ = try #require(await fixture.delegate.events.room())
    let left = try await fixture.onLoop { connection.usage }
    #expect(left.offeredBytes == 0)
  }

  @Test(.listener) func roomIsToldOnceWhenHalfOfItIsTaken() async throws {
    let peer = try fixture.connect()
    let connection = try #require(await fixture.delegate.events.opened())
    var number = 10_001
    for _ in 1...3 {
      let refused = try await fill(connection, from: number, fixture)
      _ = try await fixture.onLoop { connection.offer(method: "event", parameters: Self.text(refused)) }
      let count = refused - number
      let lines = try await RawPeer.inBackground { try peer.readLines(count) }
      #expect(lines.count == count)
      _ = try #require(await fixture.delegate.events.room())
      number = refused
    }
    // No more is reported: the next event is that of the closed connection.
    peer.endOutput()
    _ = try peer.readToEnd()
    if case .room? = await fixture.delegate.events.next() { Issue.record("room was told twice") }
  }

  @Test(.listener) func onAClosedConnectionNothingIsRefused() async throws {
    var peer: RawPeer? = try fixture.connect()
    let connection = try #require(await fixture.delegate.events.opened())
    withExtendedLifetime(peer) {}
    peer = nil
    _ = await fixture.delegate.events.closed()
    try await fixture.onLoop { #expect(connection.offer(method: "event", parameters: nil)) }
  }
}
