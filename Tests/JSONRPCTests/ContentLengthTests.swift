// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import SeededRandom
internal import TestSupport
internal import Testing

/// The framing of LSP: headers, an empty line, then the given number of bytes.
@Suite struct ContentLengthTests {
  private static let tick = #"{"jsonrpc":"2.0","method":"tick"}"#

  private static func framed(_ text: String, headers: String = "", end: String = "\r\n") -> String {
    "Content-Length: \(text.utf8.count)\(end)\(headers)\(end)\(text)"
  }

  @Test(arguments: [
    "", "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n", "Content-Type: application/vim-jsonrpc\r\n",
    "content-type:application/json;charset=\"UTF8\"\r\nX-Other:   anything: at all \r\n",
  ])
  func headersWeDoNotNeedArePassedOver(headers: String) {
    var peer = PeerFixture()
    #expect(peer.events(Self.framed(Self.tick, headers: headers).utf8).map(\.summary) == ["notification tick"])
    #expect(peer.decoder.framing == .contentLength)
    #expect(!peer.decoder.position.isInsideFrame)
    #expect(peer.decoder.bufferedBytes == 0)
  }

  @Test(arguments: ["Content-Length", "content-length", "CONTENT-LENGTH"], ["\r\n", "\n"])
  func namesHaveAnyCaseAndLinesEitherEnd(name: String, end: String) {
    var peer = PeerFixture()
    let text = "X: y\(end)\(name):\(Self.tick.utf8.count)\(end)\(end)\(Self.tick)"
    #expect(peer.events((text + text).utf8).map(\.summary) == ["notification tick", "notification tick"])
  }

  @Test func framesMayBeCutAtEveryByte() {
    let text = Self.framed(Self.tick, headers: "Content-Type: a/b\r\n") + Self.framed(" [\(Self.tick), 1]\n")
    let bytes = Array(text.utf8)
    let expected = ["notification tick", "[notification tick, invalid without id -32600]"]
    for cut in 1..<bytes.count {
      var peer = PeerFixture()
      let events = peer.events(bytes[..<cut]) + peer.events(bytes[cut...])
      #expect(events.map(\.summary) == expected, "cut at \(cut)")
    }
    var peer = PeerFixture()
    #expect(peer.events(bytes, step: 1).map(\.summary) == expected)
  }

  @Test func aFrameIsUnderWayFromItsFirstHeaderToItsLastByte() {
    var peer = PeerFixture()
    let bytes = Array(Self.framed(Self.tick).utf8)
    for byte in bytes.dropLast() {
      #expect(peer.events([byte]).isEmpty)
      #expect(peer.decoder.position.isInsideFrame)
    }
    #expect(peer.events([bytes[bytes.count - 1]]).count == 1)
    #expect(!peer.decoder.position.isInsideFrame)
    #expect(peer.events("\r\n\r\n".utf8).isEmpty)
    #expect(!peer.decoder.position.isInsideFrame, "empty lines between frames mean nothing")
  }

  @Test(arguments: [#"{"a":"#, "{]", "", "  ", #"{"a":1}}"#, tick + tick, "x", "\u{FEFF}" + tick, "{\"a\":\"\u{0}\"}"])
  func aFaultCostsOneFrameOnly(text: String) {
    var peer = PeerFixture()
    let events = peer.events((Self.framed(text) + Self.framed(Self.tick)).utf8)
    #expect(events.map(\.summary) == ["fault -32700", "notification tick"])
  }

  /// Input after a frame is not part of it, however the frame ends.
  @Test func aStringThatIsNotClosedEndsWithItsFrame() {
    var peer = PeerFixture()
    let next = Self.framed(#"{"jsonrpc":"2.0","method":"a\"}"}"#)
    #expect(peer.events((Self.framed(#"{"method":""#) + next).utf8).map(\.summary).first == "fault -32700")
  }

  @Test func theLimitOfBytesPassesAtItsValueAndFailsAtOneMore() {
    let limits = FrameLimits(frameBytesMax: 64, depthMax: 4, valuesPerFrameMax: 8, keysPerObjectMax: 4)
    let body = #"{"jsonrpc":"2.0","method":"tick"}"#
    for count in [64, 65] {
      for step in [1, 7, Int.max] {
        var peer = PeerFixture(frames: limits)
        let padded = body + String(repeating: " ", count: count - body.utf8.count)
        let events = peer.events((Self.framed(padded) + Self.framed(Self.tick)).utf8, step: step)
        let expected = count == 64 ? "notification tick" : "fault -32008 frameBytesMax"
        #expect(events.map(\.summary) == [expected, "notification tick"], "\(count) bytes in steps of \(step)")
      }
    }
  }

  @Test(arguments: [
    (#"{"a":[[[[]]]]}"#, "depthMax"), ("[1,2,3,4,5,6,7,8]", "valuesPerFrameMax"),
    (#"{"a":1,"b":1,"c":1,"d":1,"e":1}"#, "keysPerObjectMax"),
  ])
  func otherLimitsCostOneFrameOnly(text: String, limit: String) {
    let limits = FrameLimits(frameBytesMax: 64, depthMax: 4, valuesPerFrameMax: 8, keysPerObjectMax: 4)
    var peer = PeerFixture(frames: limits)
    let events = peer.events((Self.framed(text) + Self.framed(Self.tick)).utf8)
    #expect(events.map(\.summary) == ["fault -32008 \(limit)", "notification tick"])
  }

  @Test(arguments: [
    "X: y\r\n\r\n{}", "Content-Length: -1\r\n\r\n", "Content-Length: 4 0\r\n\r\n", "Content-Length: 2x\r\n\r\n{}",
    "Content-Length:\r\n\r\n{}",
    "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", "Content-Length: 9999999999999999\r\n\r\n",
    "Content-Length: 2\r\nno header\r\n\r\n{}", "Content-Length: 2\r\nContent-Type: a/b; charset=latin1\r\n\r\n{}",
    "Content-Length: 2\r\nX: " + String(repeating: "y", count: 5_000) + "\r\n\r\n{}",
    "X: " + String(repeating: "y", count: 5_000),
  ])
  func headersThatMakeNoSenseEndTheConnection(text: String) {
    for step in [1, Int.max] {
      var peer = PeerFixture()
      let events = peer.events((text + Self.framed(Self.tick)).utf8, step: step)
      #expect(events.map(\.summary) == ["refused -32700"])
      #expect(peer.decoder.bufferedBytes == 0)
    }
  }

  @Test(arguments: ["Content-Len", "Content-Length: 5\r\n", "Content-Length: 5\r\n\r\n{\"a"])
  func anEndInsideAFrameIsAFault(text: String) {
    var peer = PeerFixture()
    #expect(peer.events(text.utf8).isEmpty)
    let end = peer.decoder.finish()
    #expect(end?.summary == (text.contains(":") ? "fault -32700" : "refused -32700"))
    #expect(peer.decoder.finish() == nil)
  }

  @Test func answersAndCallsHaveTheSameFraming() {
    var conversation = Conversation(limits: ConversationLimits())
    conversation.framing = .contentLength
    var out: [UInt8] = []
    _ = conversation.call(method: "m", parameters: JSONText(.object(["a": "é"])), into: &out)
    conversation.notify(method: "n", parameters: nil, into: &out)
    _ = conversation.receive(.fault(.parseError(hint: "h")), into: &out)
    var peer = PeerFixture()
    let summaries = peer.events(out).map(\.summary)
    #expect(summaries.prefix(2) == [#"request 1 m {"a":"é"}"#, "notification n"])
    #expect(summaries.count == 3 && summaries[2].hasPrefix("response null error"), "\(summaries)")
    #expect(String(decoding: out, as: UTF8.self).hasPrefix("Content-Length: 57\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1"))
  }

  @Test func aBatchIsAnsweredInOneFrame() {
    var peer = PeerFixture()
    peer.conversation.framing = .contentLength
    let call = #"{"jsonrpc":"2.0","id":1,"method":"m"}"#
    peer.serve(Self.framed("[\(call),1]")) { _, _ in .result(JSONText(.integer(7))) }
    let text = String(decoding: peer.output, as: UTF8.self)
    let body = text.drop { $0 != "[" }
    #expect(text == "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
    #expect(body.contains(#"{"jsonrpc":"2.0","id":1,"result":7}"#))
  }

  /// Whatever comes, it ends without a trap, holds little, and a good frame after an empty line is either found or the
  /// connection is refused.
  @Test func randomInputIsSurvived() {
    var generator = SeededGenerator(seed: 5)
    let pieces = [
      "Content-Length", ":", " ", "5", "38", "\r\n", "\n", "\r\n\r\n", "{", "}", "[", "\"", "a", "\u{0}", "é",
      Self.tick,
      "Content-Type: x; charset=utf-8", String(repeating: "z", count: 300),
    ]
    for _ in 0..<2_000 {
      var peer = PeerFixture()
      var text = "Content-Length: "
      for _ in 0..<Int.random(in: 1...40, using: &generator) { text += pieces.randomElement(using: &generator) ?? "" }
      _ = peer.events(text.utf8, step: Int.random(in: 1...50, using: &generator))
      _ = peer.decoder.finish()
      #expect(peer.decoder.bufferedBytes <= ContentLengthTests.largest)
    }
  }

  private static let largest = 16 << 10
}
