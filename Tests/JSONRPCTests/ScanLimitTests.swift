// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Testing

/// A value equal to a limit passes and one more fails, wherever the bytes are cut.
@Suite struct ScanLimitTests {
  private static let limits = FrameLimits(frameBytesMax: 60, depthMax: 5, valuesPerFrameMax: 8, keysPerObjectMax: 3)

  /// A notification of exactly this many bytes.
  private static func notification(bytes: Int) -> String {
    let frame = #"{"jsonrpc":"2.0","method":""}"#
    return String(frame.dropLast(2)) + String(repeating: "m", count: bytes - frame.utf8.count) + "\"}"
  }

  private static let cases: [(limit: String, passes: String, fails: String)] = [
    ("frameBytesMax", notification(bytes: 60), notification(bytes: 61)),
    ("depthMax", "[[[[[]]]]]", "[[[[[[]]]]]]"),
    ("depthMax", "[{\"a\":[{\"b\":{}}]}]", "[{\"a\":[{\"b\":{\"c\":[]}}]}]"),
    ("depthMax", "[[[[[1]]]]]", "[[[[[{}]]]]]"),
    ("valuesPerFrameMax", "[1,2,3,4,5,6,7]", "[1,2,3,4,5,6,7,8]"),
    ("valuesPerFrameMax", "[{\"a\":1},\"b\",[],{},true]", "[{\"a\":1},\"b\",[],{},true,null,0]"),
    ("keysPerObjectMax", "[{\"a\":1,\"b\":2,\"c\":3},{\"d\":1}]", "[{\"a\":1,\"b\":2,\"c\":3,\"d\":4}]"),
  ]

  @Test(arguments: cases, [1, 7, Int.max])
  func limitsAreExact(example: (limit: String, passes: String, fails: String), step: Int) {
    var peer = PeerFixture(frames: Self.limits)
    let passed = peer.events(example.passes.utf8, step: step)
    #expect(passed.count == 1)
    #expect(passed.allSatisfy { if case .frame = $0 { true } else { false } }, "\(example.passes)")

    let following = #"{"jsonrpc":"2.0","method":"next"}"#
    let failed = peer.events((example.fails + following).utf8, step: step).map(\.summary)
    #expect(failed == ["fault -32008 \(example.limit)", "notification next"], "\(example.fails)")
  }

  @Test func theFaultNamesLimitMaximumAndValue() throws {
    var peer = PeerFixture(frames: Self.limits)
    guard case .fault(let error, _)? = peer.events("[[[[[[".utf8).first else {
      Issue.record("no fault")
      return
    }
    #expect(error.kind == "limitExceeded")
    #expect(error.data?["limit"] == "depthMax")
    #expect(error.data?["max"] == 5)
    #expect(error.data?["value"] == 6)
    #expect(error.hint?.isEmpty == false)
  }

  @Test func limitsAreReportedAsSoonAsSeen() {
    var peer = PeerFixture(frames: Self.limits)
    #expect(peer.events("[[[[[".utf8).isEmpty)
    #expect(peer.events("[".utf8).map(\.summary) == ["fault -32008 depthMax"])
    #expect(peer.decoder.position.isInsideFrame)
    #expect(peer.decoder.bufferedBytes == 0)
    #expect(peer.events("[[[]]]]]]]]".utf8).isEmpty)
    #expect(peer.decoder.position.isInsideFrame)
    #expect(peer.events("]".utf8).isEmpty)
    #expect(!peer.decoder.position.isInsideFrame)
  }

  @Test func theRestOfAnOversizedFrameIsNotKept() {
    var peer = PeerFixture(
      frames: FrameLimits(frameBytesMax: 100, depthMax: 5, valuesPerFrameMax: 9, keysPerObjectMax: 9)
    )
    #expect(peer.events(("[\"" + String(repeating: "a", count: 98)).utf8, step: 10).isEmpty)
    #expect(peer.decoder.bufferedBytes == 100)
    #expect(peer.events("a".utf8).map(\.summary) == ["fault -32008 frameBytesMax"])
    for _ in 0..<1_000 { #expect(peer.events(String(repeating: "{[\\\"", count: 50).utf8).isEmpty) }
    #expect(peer.decoder.bufferedBytes == 0)
    #expect(peer.events("\"]{\"jsonrpc\":\"2.0\",\"method\":\"next\"}".utf8).map(\.summary) == ["notification next"])
  }

  @Test func skippingUnderstandsStringsAndEscapes() {
    for step in [1, 2, 3, Int.max] {
      var peer = PeerFixture(frames: Self.limits)
      let text = "[[[[[[\"]]]]]]\\\"]]\\\\\",\"{\"]]]]]]" + #"{"jsonrpc":"2.0","method":"next"}"#
      #expect(peer.events(text.utf8, step: step).map(\.summary) == ["fault -32008 depthMax", "notification next"])
    }
  }

  @Test func aLimitHitInsideANameOrStringSkipsTheString() {
    for text in ["{\"" + String(repeating: "}", count: 60), "[\"" + String(repeating: "]", count: 60)] {
      for step in [1, 60, Int.max] {
        var peer = PeerFixture(frames: Self.limits)
        let close = text.hasPrefix("{") ? "\":1}" : "\"]"
        let events = peer.events((text + close + #"{"jsonrpc":"2.0","method":"next"}"#).utf8, step: step)
        #expect(events.map(\.summary) == ["fault -32008 frameBytesMax", "notification next"])
      }
    }
  }

  @Test func documentsKeepTheLimitsToo() throws {
    let limits = Self.limits
    _ = try scan("[[[[[]]]]]", limits: limits)
    _ = try scan("\"" + String(repeating: "a", count: 58) + "\"", limits: limits)
    #expect(throws: JSONError.self) { try scan("[[[[[[]]]]]]", limits: limits) }
    #expect(throws: JSONError.self) { try scan("[1,2,3,4,5,6,7,8]", limits: limits) }
    #expect(throws: JSONError.self) { try scan("{\"a\":1,\"b\":2,\"c\":3,\"d\":4}", limits: limits) }
    #expect(throws: JSONError.self) { try scan("\"" + String(repeating: "a", count: 59) + "\"", limits: limits) }
  }

  @Test func theDefaultLimitsHoldAtTheirBorders() {
    let deep = { (levels: Int) in String(repeating: "[", count: levels) + String(repeating: "]", count: levels) }
    let wide = { (values: Int) in "[" + String(repeating: "1,", count: values - 2) + "1]" }
    let named = { (names: Int) in "{" + (0..<names).map { "\"\($0)\":1" }.joined(separator: ",") + "}" }
    for (passes, fails, limit) in [
      (deep(64), deep(65), "depthMax"), (wide(65_536), wide(65_537), "valuesPerFrameMax"),
      (named(4_096), named(4_097), "keysPerObjectMax"),
    ] {
      var peer = PeerFixture()
      let passed = peer.events(passes.utf8)
      #expect(passed.count == 1 && passed[0].summary.hasPrefix("fault") == false)
      #expect(peer.events(fails.utf8).map(\.summary) == ["fault -32008 \(limit)"])
      #expect(!peer.decoder.position.isInsideFrame)
    }
  }
}
