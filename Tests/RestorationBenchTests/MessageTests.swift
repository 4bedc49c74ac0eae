// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Testing
internal import restoration_bench

/// What is sent to servers, and how their replies are told apart.
@Suite struct MessageTests {
  private static func text(_ template: MessageTemplate, id: Int = MessageTemplate.firstID, key: Int = 0) -> String {
    String(decoding: template.message(id: id, key: key), as: UTF8.self)
  }

  private static func reply(_ framing: ReplyFraming, _ bytes: [UInt8]) -> ReplyFraming.Reply? {
    bytes.withUnsafeBufferPointer { buffer in
      buffer.baseAddress.flatMap { framing.reply(in: $0, count: buffer.count) }
    }
  }

  @Test func numbersAreFilledInAtTheirPlaces() {
    let template = MessageTemplate(
      #"{"id":\#(MessageTemplate.id),"o":"w-\#(MessageTemplate.key)","n":\#(MessageTemplate.id)}"#
    )
    #expect(Self.text(template, id: 12_345_678, key: 7) == #"{"id":12345678,"o":"w-00000007","n":12345678}"#)
    let serial = MessageTemplate([9, 9, 9, 9, 9, 9], serial: 1)
    #expect(serial.message(id: 0x0102_0304) == [9, 4, 3, 2, 1, 9])
  }

  @Test(arguments: [40, 64, 300, 1_024, 100_000]) func aStateHasItsSizeAndIsJSON(bytes: Int) throws {
    let state = Self.text(MessageTemplate(SampleState.text(bytes: bytes)))
    #expect(state.utf8.count == bytes)
    #expect(try JSONCodec.parse(Array(state.utf8))["turn"] == .integer(10_000_000))
  }

  @Test(arguments: Work.allCases) func requestsOfEachWorkAreJSON(work: Work) throws {
    let lines = Self.text(Requests.broker(work, size: 200)).split(separator: "\n")
    #expect(lines.count == (work == .notify ? 2 : 1))
    for line in lines { _ = try JSONCodec.parse(Array(line.utf8)) }
  }

  @Test func aHeadTellsTheLengthOfItsMessage() {
    #expect(MessageFraming.headers.frame("{}") == "Content-Length: 2\r\n\r\n{}")
    #expect(MessageFraming.http.frame("{}").hasSuffix("Content-Length: 2\r\n\r\n{}"))
    #expect(Self.text(Requests.redis(.decode, size: 100)) == "*2\r\n$3\r\nGET\r\n$15\r\nwindow-00000000\r\n")
  }

  /// Each reply is found once its last byte is there, and not before.
  @Test(arguments: [
    (ReplyFraming.lines(1), #"{"jsonrpc":"2.0","id":10000003,"result":{}}"# + "\n", true, false, 10_000_003 as Int?),
    (.lines(1), #"{"jsonrpc":"2.0","id":10000003,"error":{"code":1}}"# + "\n", true, true, 10_000_003),
    (.lines(1), #"{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}"# + "\n", true, true, nil),
    (.lines(1), #"{"jsonrpc":"2.0","method":"applicationStateSaved"}"# + "\n", false, false, nil),
    (.lines(1), "+OK\r\n", true, false, nil),
    (.lines(1), "-ERR no\r\n", true, true, nil),
    (.lines(2), "$5\r\nstate\r\n", true, false, nil),
    (.lines(2), "$-1\r\n", true, true, nil),
    (.headers, "Content-Length: 43\r\n\r\n" + #"{"jsonrpc":"2.0","id":10000003,"result":{}}"#, true, false, 10_000_003),
    (
      .headers,
      "HTTP/1.1 200 OK\r\ncontent-length: 43\r\nX: y\r\n\r\n" + #"{"jsonrpc":"2.0","id":10000003,"result":{}}"#,
      true, false, 10_000_003
    ),
    (.headers, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", false, false, nil),
  ]) func repliesAreFoundAtTheirLastByte(
    framing: ReplyFraming,
    text: String,
    isAnswer: Bool,
    isRefusal: Bool,
    id: Int?
  ) throws {
    let bytes = Array(text.utf8)
    for count in 0..<bytes.count { #expect(Self.reply(framing, Array(bytes.prefix(count))) == nil) }
    let reply = try #require(Self.reply(framing, bytes + Array("{".utf8)))
    #expect(reply.length == bytes.count)
    #expect((reply.isAnswer, reply.isRefusal, reply.id) == (isAnswer, isRefusal, id))
  }

  /// A call of a save round.
  @Test func everyObjectOfACallIsAnswered() throws {
    var states = ServedStates(size: 100)
    let call = #"""
      {"jsonrpc":"2.0","id":4,"method":"encodeRestorableStateWithCoder","params":{"round":1,"objects":[{"object":7,"path":["a"]},{"object":12,"path":["b"]}]}}
      """#
    let first = try #require(call.withCString { states.answer(to: $0) })
    let answer = try JSONCodec.parse(first)
    #expect(answer["id"] == .integer(4))
    let objects = try #require(answer["result"]?["states"]?.array)
    #expect(objects.map { $0["object"] } == [.integer(7), .integer(12)])
    let second = try #require(call.withCString { states.answer(to: $0) })
    #expect(first != second, "nothing would be saved in the second round")
    #expect(#"{"jsonrpc":"2.0","id":4,"result":{}}"#.withCString { states.answer(to: $0) } == nil)
    #expect(#"{"jsonrpc":"2.0","method":"x"}"#.withCString { states.answer(to: $0) } == nil)
  }
}
