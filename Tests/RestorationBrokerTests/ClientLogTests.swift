// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import Testing

/// Entries of the log that clients cause: so many a minute of each, and how many were left out.
@Suite struct ClientLogTests {
  private static func fail(_ peer: Peer, times: Int) {
    for _ in 0..<times { peer.notify("unregisterObject", #"{"application":"a","object":["x"]}"#) }
  }

  private static func count(_ broker: MemoryBroker) -> Int {
    broker.logged.count { $0.contains("notification failed: ") }
  }

  @Test func aProcessCausesTwentyEntriesAMinuteAndTheRestIsCounted() throws {
    let broker = MemoryBroker()
    let (flooding, other) = (broker.connect(pid: 7), broker.connect(pid: 8))
    Self.fail(flooding, times: 1_000)
    broker.disconnect(flooding)
    Self.fail(broker.connect(pid: 7), times: 1_000)
    #expect(Self.count(broker) == 20)
    Self.fail(other, times: 5)
    #expect(Self.count(broker) == 25)
    broker.advance(milliseconds: 59_000)
    #expect(!broker.logged.contains { $0.hasPrefix("left out") })
    broker.advance(milliseconds: 2_000)
    #expect(
      broker.logged.filter { $0.hasPrefix("left out") } == ["left out: 1980 entries about what a client did pid=7"]
    )
    Self.fail(other, times: 21)
    #expect(Self.count(broker) == 45)
    // Nothing goes on in silence when the broker ends.
    broker.stop()
    #expect(broker.logged.last == "left out: 1 entry about what a client did pid=8")
  }
}
