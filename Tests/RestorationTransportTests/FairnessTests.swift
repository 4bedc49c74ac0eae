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
    private let begin: Int
    private let time: Duration
    private let flood = Atomic<Int>(0)
    /// How much of the flood was received before the neighbour's request.
    let before = Atomic<Int>(-1)
    let neighbour = Mutex<RawPeer?>(nil)

    /// - Parameter begin: how much of the flood comes before the neighbour's request is sent.
    init(begin: Int, time: Duration) { (self.begin, self.time) = (begin, time) }

    func answer(_ request: Request) -> Outcome {
      guard request.method == "flood" else {
        before.store(flood.load(ordering: .relaxed), ordering: .relaxed)
        return .result(.null)
      }
      let count = flood.wrappingAdd(1, ordering: .relaxed).newValue
      if count == begin {
        try? neighbour.withLock { try $0?.send(FairnessTests.text("quiet", id: 1)) }
      }
      let end = ContinuousClock.now + time
      while ContinuousClock.now < end {}
      return .result(.null)
    }
  }

  /// By then reads are large: all that a test sends has come.
  private static let begin = 2_000

  @Test func aPeerThatSendsLittleIsReadBeforeAllOfAFloodIsTaken() async throws {
    let slow = Slow(begin: Self.begin, time: .microseconds(100))
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

  /// The time is looked at after each message: a few that take long are much.
  @Test func aPeerThatSendsLittleIsReadBetweenMessagesThatTakeLong() async throws {
    let slow = Slow(begin: 8, time: .milliseconds(10))
    try await ListenerFixture.run(answer: { slow.answer($0) }) { fixture in
      let flooding = try (1...16).map { _ in try fixture.connect() }
      let quiet = try fixture.connect()
      // By then all connections are accepted: that takes several looks as well.
      try quiet.send(Self.text("quiet", id: 0))
      _ = try await RawPeer.inBackground { try quiet.readLine() }
      slow.neighbour.withLock { $0 = quiet }
      for peer in flooding { try peer.send((1...4).map { Self.text("flood", id: $0) }.joined()) }
      #expect(try await RawPeer.inBackground { try quiet.readLine() }?.contains("result") == true)
      let between = slow.before.load(ordering: .relaxed) - 8
      #expect(between >= 0 && between < 6, "\(between) messages of the flood came first")
      for peer in flooding { #expect(try await RawPeer.inBackground { try peer.readLines(4) }.count == 4) }
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
