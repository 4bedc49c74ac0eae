// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Testing

/// Messages that cannot be read to their end. A call of ours that such a one answers ends at once, instead of waiting
/// for its deadline, and a call of the peer is answered by its id, so that the peer does not wait either.
@Suite struct BrokenAnswerTests {
  /// The outcome of two open calls when a peer sends this, in pieces of `step` bytes.
  private static func ended(by text: String, step: Int = .max, frames: FrameLimits = FrameLimits()) -> [String] {
    var peer = PeerFixture(frames: frames)
    for _ in 1...2 { _ = peer.conversation.call(method: "ask", parameters: nil, into: &peer.output) }
    return peer.events(text.utf8, step: step).flatMap { peer.conversation.receive($0, into: &peer.output) }.map {
      switch $0 {
      case .brokenAnswer(let callID, let code, let reason): "\(callID) \(code) \(reason)"
      case .response(let callID, _): "\(callID) answered"
      case .request, .notification, .closeAfterOutput: "something else"
      }
    }
  }

  @Test(arguments: [
    (#"{"jsonrpc":"2.0","id":2,"result":k2}"#, "2 -32700 invalid JSON: a value was expected at offset 33"),
    (#"{"id":2,"result":{"a":[1,2,NaN]}}"#, "2 -32700 invalid JSON: a value was expected at offset 27"),
    (#"{"id":2,"error":{"code":1,"message":"a\x"}}"#, "2 -32700 invalid JSON: unknown escape in a string at offset 38"),
    (
      #"{"\u0069d":2,"jsonrpc":"2.0","result":tru}"#,
      "2 -32700 invalid JSON: the only literals are true, false and null at offset 41"
    ),
    (
      #"{"id":2 "result":1}"#,
      "2 -32700 invalid JSON: a comma or the end of the object or array was expected at offset 8"
    ),
    (#"{"result":{"params":1,"method":2},"id":2,"a":x}"#, "2 -32700 invalid JSON: a value was expected at offset 45"),
    // An id without an open call ends no call; an answer whose id was not read ends the oldest.
    (#"{"id":3,"result":k2}"#, nil), (#"{"id":"2","result":k2}"#, nil),
    (#"{"jsonrpc":"2.0","result":k2,"id":2}"#, "1 -32700 invalid JSON: a value was expected at offset 26"),
    (#"{'jsonrpc': '2.0', 'id': 2}"#, "1 -32700 invalid JSON: a member name in quotes was expected at offset 1"),
    (
      #"{"id":2x,"result":1}"#,
      "2 -32700 invalid JSON: a comma or the end of the object or array was expected at offset 7"
    ),
    // Calls of the peer, and texts that are no complete message.
    (#"{"jsonrpc":"2.0","id":2,"method":"m","params":{"a":k2}}"#, nil), (#"{"id":2,"method":m}"#, nil),
    (#"{"id":2,"params":[1,}"#, nil), (#"{"id":1,"m\u0065thod":"m",}"#, nil), (#"[{"id":2,"result":k2}]"#, nil),
  ])
  func aTextThatIsNoJSONEndsTheCallItAnswers(text: String, expected: String?) {
    let expected = expected.map { [$0] } ?? []
    for step in [1, 7, .max] {
      #expect(Self.ended(by: text + "\n", step: step) == expected, "\(step)")
      #expect(Self.ended(by: "Content-Length: \(text.utf8.count)\r\n\r\n\(text)", step: step) == expected, "\(step)")
    }
  }

  @Test func aTextThatEndsTooEarlyInItsFrameEndsTheCall() {
    let text = #"{"jsonrpc":"2.0","id":2,"result":{"a":1}"#
    let ended = Self.ended(by: "Content-Length: \(text.utf8.count)\r\n\r\n\(text)")
    #expect(ended == ["2 -32700 invalid JSON: the text ends too early"])
  }

  @Test func anAnswerThatSomethingFollowsInItsFrameEndsTheCall() {
    for (text, expected) in [
      (
        #"{"jsonrpc":"2.0","id":2,"result":1} k2"#,
        ["2 -32700 invalid JSON: something follows the message in its frame"]
      ),
      (
        #"{"id":2,"result":1}{"id":1,"result":1}"#,
        ["2 -32700 invalid JSON: something follows the message in its frame"]
      ),
      (#"{"id":2,"result":1,"method":"m"}x"#, []), (#"[{"id":2,"result":1}]x"#, []),
    ] {
      for step in [1, 7, .max] {
        let ended = Self.ended(by: "Content-Length: \(text.utf8.count)\r\n\r\n\(text)", step: step)
        #expect(ended == expected, "\(text)")
      }
    }
  }

  /// A text that does not begin as an object is not an answer: a line not meant for us must end no call.
  @Test(arguments: ["k2", "", "[k2]", "7", "}", "\"x\""])
  func aTextThatDoesNotBeginAsAnObjectEndsNoCall(_ text: String) {
    let answer = #"{"jsonrpc":"2.0","id":2,"result":1}"#
    #expect(Self.ended(by: "\(answer)\n\(text)\n") == ["2 answered"])
    let frames = [answer, text].map { "Content-Length: \($0.utf8.count)\r\n\r\n\($0)" }
    #expect(Self.ended(by: frames.joined()) == ["2 answered"])
  }

  @Test func anAnswerBeyondALimitEndsTheCall() {
    var limits = FrameLimits()
    limits.depthMax = 8
    limits.frameBytesMax = 1_000
    let deep = #"{"id":2,"result":"# + String(repeating: "[", count: 8) + String(repeating: "]", count: 8) + "}"
    #expect(Self.ended(by: deep, frames: limits) == ["2 -32008 over the limit depthMax"])
    let long = #"{"id":2,"result":""# + String(repeating: "x", count: 1_000) + #""}"#
    #expect(Self.ended(by: long, step: 10, frames: limits) == ["2 -32008 over the limit frameBytesMax"])
  }

  @Test func whatAnswersTheOthersStillDoes() {
    let lines = [
      #"{"jsonrpc":"2.0","id":2,"result":k2}"#, #"{"jsonrpc":"2.0","id":2,"result":1}"#,
      #"{"jsonrpc":"2.0","id":1,"result":1}"#,
    ]
    let ended = Self.ended(by: lines.joined(separator: "\n"))
    #expect(ended == ["2 -32700 invalid JSON: a value was expected at offset 33", "1 answered"])
  }

  @Test func thePeerIsToldOfTheFault() {
    var peer = PeerFixture()
    _ = peer.conversation.call(method: "ask", parameters: nil, into: &peer.output)
    _ = peer.takeLines()
    _ = peer.send(#"{"jsonrpc":"2.0","id":1,"result":k2}"# + "\n")
    let lines = peer.takeLines()
    #expect(lines.count == 1 && lines[0].hasPrefix(#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700"#), "\(lines)")
  }

  @Test(arguments: [
    (#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"text":"\ud83d"}}"#, "7"),
    (#"{"id":"a b","method":"m","params":{"n":NaN}}"#, #""a b""#), (#"{"id":7,"params":[1,}"#, "7"),
    (#"{"method":"m","id":7,"params":x}"#, "7"), (#"{"id":7,"m\u0065thod":"m",}"#, "7"),
    // Its id was not read, or may be that of a call of ours; a batch is none of these.
    (#"{"method":"m","params":x,"id":7}"#, "null"), (#"{"id":7,"result":x}"#, "null"), (#"{"id":7,x"#, "null"),
    (#"{"id":7x,"method":"m"}"#, "null"), (#"{"id":{"a":1,"method":x"#, "null"), (#"{"id":[7],"method":x"#, "null"),
    (#"[{"id":7,"method":"m"},x]"#, "null"),
  ])
  func aCallThatCannotBeReadIsAnsweredByTheIDThatStoodBeforeTheFault(_ text: String, id: String) {
    for step in [1, 7, .max] {
      for framed in [text + "\n", "Content-Length: \(text.utf8.count)\r\n\r\n\(text)"] {
        var peer = PeerFixture()
        _ = peer.events(framed.utf8, step: step).map { peer.conversation.receive($0, into: &peer.output) }
        let answer = String(decoding: peer.output, as: UTF8.self)
        #expect(answer.contains(#"{"jsonrpc":"2.0","id":\#(id),"error":{"code":-32700"#), "\(answer)")
      }
    }
  }

  @Test func aCallBeyondALimitIsAnsweredByItsID() {
    var limits = FrameLimits()
    limits.depthMax = 8
    var peer = PeerFixture(frames: limits)
    let deep = String(repeating: "[", count: 8) + String(repeating: "]", count: 8)
    _ = peer.send(#"{"id":7,"method":"m","params":\#(deep)}"# + "\n")
    let lines = peer.takeLines()
    #expect(lines.count == 1 && lines[0].hasPrefix(#"{"jsonrpc":"2.0","id":7,"error":{"code":-32008"#), "\(lines)")
  }

  /// There are so many that the test would not end if the bytes behind a fault were moved for each.
  @Test func eachOfManyFaultsInOneReadIsTold() {
    var peer = PeerFixture()
    let text = String(repeating: "{x\n", count: 200_000)
    #expect(peer.events(text.utf8).count == 200_000)
  }
}
