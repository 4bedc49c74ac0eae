// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationTransport
internal import Synchronization
internal import Testing

/// Peers that send much at once.
@Suite struct FairnessTests {
  private static func text(_ method: String, id: Int? = nil) -> String {
    let id = id.map { #""id":\#($0),"# } ?? ""
    return #"{"jsonrpc":"2.0",\#(id)"method":"\#(method)"}"# + "\n"
  }

  /// What is received, in its order; each message takes its time.
  private final class Slow: Sendable {
    private let flood = Atomic<Int>(0)
    /// How much of the flood was received before the neighbour's request.
    let before = Atomic<Int>(-1)
    let neighbour = Mutex<RawPeer?>(nil)

    func answer(_ request: Request) -> Outcome {
      guard request.method == "flood" else {
        before.store(flood.load(ordering: .relaxed), ordering: .relaxed)
        return .result(.null)
      }
      let count = flood.wrappingAdd(1, ordering: .relaxed).newValue
      if count == FairnessTests.begin {
        try? neighbour.withLock { try $0?.send(FairnessTests.text("quiet", id: 1)) }
      }
      let end = ContinuousClock.now + .microseconds(100)
      while ContinuousClock.now < end {}
      return .result(.null)
    }
  }

  /// By then reads are large: all that a test sends has come.
  private static let begin = 2_000

  @Test func aPeerThatSendsLittleIsReadBeforeAllOfAFloodIsTaken() async throws {
    let slow = Slow()
    try await ListenerFixture.run(answer: { slow.answer($0) }) { fixture in
      let (flooding, quiet) = (try fixture.connect(), try fixture.connect())
      slow.neighbour.withLock { $0 = quiet }
      let count = 2 * Self.begin
      let flood = (1...count).map { Self.text("flood", id: $0) }.joined()
      async let sending: Void = RawPeer.inBackground { try flooding.send(flood) }
      #expect(try await RawPeer.inBackground { try quiet.readLine() }?.contains("result") == true)
      let between = slow.before.load(ordering: .relaxed) - Self.begin
      #expect(between >= 0 && between < 200, "\(between) messages of the flood came first")
      try await sending
      let answers = try await RawPeer.inBackground { try flooding.readLines(count) }
      #expect(answers == (1...count).map { #"{"jsonrpc":"2.0","id":\#($0),"result":null}"# + "\n" })
    }
  }

  @Test(.listener) func whatWaitsForItsTurnIsTakenAlsoAfterItsPeerHasLeft() async throws {
    let count = 3_000
    do {
      let peer = try fixture.connect()
      try peer.send(String(repeating: Self.text("note"), count: count))
    }
    #expect(await fixture.delegate.events.closed() == .peerClosed)
    #expect(fixture.delegate.received == count)
  }
}
