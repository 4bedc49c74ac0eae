// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Testing

/// One decoder or conversation resumes if another has left off.
@Suite struct GoingOnTests {
  private static let messages = [
    #"{"jsonrpc":"2.0","method":"tick","params":{"text":"a\"{[é","list":[1,[2],{"a":null}]}}"#,
    #"[{"jsonrpc":"2.0","id":1,"method":"get"},{"jsonrpc":"2.0","method":"tick"}]"#,
    #" { "jsonrpc" : "2.0", "id" : "x", "method" : "get" } "#,
  ]

  private func input(_ framing: Framing) -> [UInt8] {
    switch framing {
    case .contentLength:
      Self.messages.flatMap {
        Array("Content-Type: application/json\r\nContent-Length: \($0.utf8.count)\r\n\r\n\($0)".utf8)
      }
    default:
      Self.messages.flatMap { Array("\n\($0)\n".utf8) }
    }
  }

  private func take(_ bytes: some Collection<UInt8>, _ decoder: inout FrameDecoder) -> [String] {
    Array(bytes).withUnsafeBytes { decoder.append($0) }
    var events: [String] = []
    while let event = decoder.next() { events.append(event.summary) }
    return events
  }

  @Test(arguments: [Framing.jsonStream, .contentLength])
  func aDecoderGoesOnAtEveryByte(framing: Framing) throws {
    let bytes = input(framing)
    var whole = FrameDecoder(limits: FrameLimits(), vocabulary: PeerFixture.vocabulary)
    let expected = take(bytes, &whole)
    #expect(expected.count == Self.messages.count)
    for cut in 0...bytes.count {
      var first = FrameDecoder(limits: FrameLimits(), vocabulary: PeerFixture.vocabulary)
      var events = take(bytes[..<cut], &first)
      let unfinished = try #require(first.unfinishedInput)
      let position = first.position
      #expect(!position.mustBeFinished)
      #expect(position != .betweenFrames || unfinished.isEmpty)
      var second = FrameDecoder(limits: FrameLimits(), vocabulary: PeerFixture.vocabulary, framing: first.framing)
      events += take(unfinished, &second) + take(bytes[cut...], &second)
      #expect(events == expected, "cut at \(cut)")
    }
  }

  @Test func framesThatWereNotTakenAreGivenOn() {
    var first = FrameDecoder(limits: FrameLimits(), vocabulary: PeerFixture.vocabulary)
    let bytes = input(.jsonStream)
    bytes.withUnsafeBytes { first.append($0) }
    _ = first.next()
    var second = FrameDecoder(limits: FrameLimits(), vocabulary: PeerFixture.vocabulary, framing: first.framing)
    #expect(take(first.unfinishedInput ?? [], &second).count == Self.messages.count - 1)
  }

  @Test func whatIsPassedOverIsNotGivenOn() {
    var limits = FrameLimits()
    limits.frameBytesMax = 40
    let long = #"{"jsonrpc":"2.0","method":"tick","params":["a long one ..."#
    for (text, position, rest) in [
      (long, FramePosition.finishingFrame, #""]}"#),
      ("Content-Length: 60\r\n\r\n\(long.prefix(50))", .finishingFrame, "1234567890"),
      ("Content-Length: 9\r\n\r\n{]", .finishingFrame, "1234567"), ("{]", .finishingLine, "\n"),
    ] {
      var decoder = FrameDecoder(limits: limits, vocabulary: PeerFixture.vocabulary)
      _ = take(text.utf8, &decoder)
      #expect(decoder.position == position, "\(text)")
      #expect(decoder.unfinishedInput == nil, "\(text)")
      _ = take(rest.utf8, &decoder)
      #expect(decoder.position == .betweenFrames, "\(text)")
      #expect(decoder.unfinishedInput == [], "\(text)")
    }
  }

  @Test(arguments: [Framing.jsonStream, .contentLength])
  func callsHeldBackAreGivenOnAsThePeerMightHaveSentThem(framing: Framing) {
    var limits = ConversationLimits()
    limits.inFlightMax = 1
    var first = PeerFixture(conversation: limits)
    first.conversation.framing = framing
    let calls = (1...4).map { #"{"jsonrpc":"2.0","id":\#($0),"method":"get"}"# }
    #expect(first.send(calls.joined()).count == 1)
    var second = FrameDecoder(limits: FrameLimits(), vocabulary: PeerFixture.vocabulary)
    let events = take(first.conversation.heldBackInput, &second)
    #expect(events == ["request 2 get", "request 3 get", "request 4 get"])
    #expect(second.framing == framing)
  }

  @Test func idsOfCallsGoOnAndLateAnswersAreForgiven() {
    var first = Conversation(limits: ConversationLimits())
    var output: [UInt8] = []
    let open = first.call(method: "a", parameters: nil, into: &output)
    first.forget(first.call(method: "b", parameters: nil, into: &output))
    #expect(!first.isSettled)
    #expect(first.callsMade == CallsMade(lastID: 2, unanswered: 2))
    var second = PeerFixture()
    second.conversation = Conversation(limits: ConversationLimits(), after: first.callsMade)
    #expect(second.conversation.isSettled)
    #expect(second.conversation.call(method: "c", parameters: nil, into: &output) == 3)
    for id in [open, 2] { #expect(second.send(#"{"jsonrpc":"2.0","id":\#(id),"result":null}"#).isEmpty) }
    #expect(second.conversation.strayResponses == 0)
    _ = second.send(#"{"jsonrpc":"2.0","id":1,"result":null}"#)
    #expect(second.conversation.strayResponses == 1)
  }
}
