// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// One socket, three framings (`Protocol/README.md`, Framing): each is held to the same.
@Suite struct FramingTests {
  private static let ping = #"{"jsonrpc":"2.0","id":1,"method":"ping"}"#
  private static let pong = #"{"jsonrpc":"2.0","id":1,"result":{}}"#
  private static let notification = #"{"jsonrpc":"2.0","method":"ping"}"#

  private static func ping(_ id: Int) -> String { #"{"jsonrpc":"2.0","id":\#(id),"method":"ping"}"# }
  private static func pong(_ id: Int) -> String { #"{"jsonrpc":"2.0","id":\#(id),"result":{}}"# }

  /// A ping of exactly this many bytes.
  private static func ping(bytes: Int) -> String {
    let (start, end) = (#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":""#, #""}}"#)
    return start + String(repeating: "x", count: bytes - start.utf8.count - end.utf8.count) + end
  }

  @Test(.broker, arguments: FramedClient.Framing.allCases)
  func aWholeStayWithTheBroker(_ framing: FramedClient.Framing) throws {
    let client = try FramedClient(broker.socket, framing)
    try client.call("initialize", ["application": "a", "process": "p"])
    let registered = try client.register("É", of: "a")
    let object = try #require(registered["object"])
    let state: JSONValue = ["text": "Grüße, 世界", "nested": ["a": [1, ["b": .null]]]]
    try client.call("encodeRestorableState", ["application": "a", "object": object, "state": state])
    let decoded = try client.call("decodeRestorableState", ["application": "a", "object": object])
    #expect(decoded["state"] == state)
    let error = #expect(throws: CallError.self) {
      try client.decode("None", of: "a")
    }
    #expect(error?.code == -32002)
    #expect(error?.kind == "unknownObject")
    #expect(try broker.session("a").call("readArchive")["objects"]?.array?.count == 1)
  }

  @Test(.broker, arguments: FramedClient.Framing.allCases)
  func inputMayBeSplitAtEveryByte(_ framing: FramedClient.Framing) throws {
    // Quotes and brackets in strings, escapes, a character of two bytes.
    let first = #"{"jsonrpc":"2.0","id":"é\"}","method":"ping","params":{"":[1.50,{"x":"\u0000"}]}}"#
    let input = framing.frame(first) + framing.frame(#"[{"jsonrpc":"2.0","id":"é","method":"ping"}]"#)
    for split in 1..<input.count {
      let client = try FramedClient(broker.socket, framing)
      try client.send(bytes: input[..<split])
      // The broker reads the first half: the second half finds it in the middle of a frame.
      try broker.connect().call("ping")
      try client.send(bytes: input[split...])
      #expect(try client.receive()?.text == #"{"jsonrpc":"2.0","id":"é\"}","result":{}}"#, "split at \(split)")
      #expect(try client.receive()?.text == #"[{"jsonrpc":"2.0","id":"é","result":{}}]"#, "split at \(split)")
    }
    let client = try FramedClient(broker.socket, framing)
    for byte in input { try client.send(bytes: [byte]) }
    client.halfClose()
    #expect(try client.receiveToEnd().count == 2)
  }

  @Test(.broker, arguments: FramedClient.Framing.allCases)
  func aThousandMessagesMayComeInOnePiece(_ framing: FramedClient.Framing) throws {
    let client = try FramedClient(broker.socket, framing)
    try client.send(bytes: (1...1_000).flatMap { framing.frame(Self.ping($0)) })
    for number in 1...1_000 { #expect(try client.receive()?.text == Self.pong(number)) }
    client.halfClose()
    #expect(try client.receiveToEnd().isEmpty)
  }

  @Test(.broker, arguments: FramedClient.Framing.allCases)
  func aMixedBatchIsAnsweredInOneFrame(_ framing: FramedClient.Framing) throws {
    let client = try FramedClient(broker.socket, framing)
    let unknown = #"{"jsonrpc":"2.0","id":2,"method":"none"}"#
    try client.send("[\(Self.ping),1,\(Self.notification),\(unknown),\(Self.ping(3))]")
    let answers = try #require(try client.receiveMessage().array)
    #expect(answers.count == 4)
    #expect(answers.compactMap { $0["error"]?["code"]?.integer }.sorted() == [-32601, -32600])
    #expect(answers.contains { $0["id"] == 3 && $0["result"] != nil })
    try client.send(Self.ping)
    #expect(try client.receive()?.text == Self.pong)
  }

  @Test(.broker, arguments: FramedClient.Framing.allCases)
  func whatHasNoAnswerHasNone(_ framing: FramedClient.Framing) throws {
    let client = try FramedClient(broker.socket, framing)
    for text in [Self.notification, "[\(Self.notification),\(Self.notification)]"] {
      try client.send(text)
      if framing == .http { #expect(try client.receive() == FramedClient.Reply(status: 204)) }
    }
    try client.send(Self.ping)
    #expect(try client.receive()?.text == Self.pong)
  }

  /// Exactly 4 MiB pass, one byte more is refused, and the connection survives if the framing allows that.
  @Test(.broker, arguments: FramedClient.Framing.allCases)
  func theLargestFramePassesAndOneByteMoreDoesNot(_ framing: FramedClient.Framing) throws {
    let max = 4 << 20
    let client = try FramedClient(broker.socket, framing)
    try client.send(Self.ping(bytes: max))
    #expect(try client.receive()?.text == Self.pong)
    let above = framing.frame(Self.ping(bytes: max + 1))
    // HTTP is refused by its head already: the rest may not be read.
    do { try client.send(bytes: above) } catch { #expect(framing == .http) }
    let reply = try #require(try client.receive())
    let answer = try JSONCodec.parse(Array(reply.text.utf8))
    // The others know the length beforehand, and read nothing.
    #expect(answer["id"] == (framing == .jsonStream ? 1 : .null))
    #expect(answer["error"]?["code"] == -32008)
    #expect(answer["error"]?["data"]?["limit"] == "frameBytesMax")
    #expect(answer["error"]?["data"]?["max"] == .integer(Int64(max)))
    if framing == .http {
      #expect(reply.status == 413)
      #expect(try client.receive() == nil)
    } else {
      try client.send(Self.ping)
      #expect(try client.receive()?.text == Self.pong)
    }
  }

  @Test(.broker, arguments: FramedClient.Framing.allCases)
  func aSyntaxErrorCostsOneFrame(_ framing: FramedClient.Framing) throws {
    let client = try FramedClient(broker.socket, framing)
    try client.send(#"{"jsonrpc":,}"#)
    #expect(try client.receiveMessage()["error"]?["code"] == -32700)
    try client.send(Self.ping)
    #expect(try client.receive()?.text == Self.pong)
  }

  @Test(.broker, arguments: FramedClient.Framing.allCases)
  func aHalfClosedClientGetsItsAnswers(_ framing: FramedClient.Framing) throws {
    let client = try FramedClient(broker.socket, framing)
    // The second waits for the disk.
    let state: JSONValue = ["application": "a", "object": .path("A"), "state": ["n": 1]]
    try client.send(Self.ping)
    try client.send(WireClient.message("encodeRestorableState", state, id: 2))
    client.halfClose()
    let replies = try client.receiveToEnd()
    #expect(replies.count == 2)
    #expect(replies.last?.text.contains(#""durability":"disk""#) == true)
  }

  /// A save round asks each serving client in the framing of its connection.
  @Test(.broker, arguments: FramedClient.Framing.allCases.filter(\.canBeCalled))
  func theBrokerCallsInTheSameFraming(_ framing: FramedClient.Framing) throws {
    let client = try FramedClient(broker.socket, framing)
    try client.call("initialize", ["application": "a", "serves": ["encodeRestorableStateWithCoder"]])
    let object = try client.register("A")["object"]
    let saver = try broker.session("a")
    let round = try saver.request("saveApplicationState")
    let call = try client.receiveMessage()
    #expect(call["method"] == "encodeRestorableStateWithCoder")
    #expect(call["params"]?["objects"]?.array?.first?["object"] == object)
    let id = try #require(call["id"]?.integer)
    try client.send(
      #"{"jsonrpc":"2.0","id":\#(id),"result":{"states":[{"object":\#(object?.text ?? ""),"state":{"n":7}}]}}"#
    )
    #expect(try saver.answer(to: round)["saved"] == true)
    #expect(try saver.decode("A")["state"] == ["n": 7])
  }

  @Test(.broker(limits: ["partialFrameMilliseconds": 500]), arguments: FramedClient.Framing.allCases)
  func aFrameThatIsNeverFinishedEndsItsConnection(_ framing: FramedClient.Framing) throws {
    let idle = try FramedClient(broker.socket, framing)
    try idle.send(Self.ping)
    #expect(try idle.receive()?.text == Self.pong)
    let frame = framing.frame(Self.ping)
    // In the middle of the headers, if there are any, and in the middle of the text.
    for length in [20, frame.count - 5] {
      let slow = try FramedClient(broker.socket, framing)
      try slow.send(bytes: frame[..<length])
      let replies = try slow.receiveToEnd()
      #expect(replies.first?.text.contains("partialFrameMilliseconds") == true, "\(length) bytes: \(replies)")
      if framing == .http { #expect(replies.first?.status == 408) }
    }
    try idle.send(Self.ping)
    #expect(try idle.receive()?.text == Self.pong, "an idle connection has no limit")
  }

  /// A frame that came in two pieces is complete, and its request may take longer than a frame.
  @Test(.broker(limits: ["partialFrameMilliseconds": 500]), arguments: FramedClient.Framing.allCases)
  func aRequestThatWaitsIsNoUnfinishedFrame(_ framing: FramedClient.Framing) throws {
    let client = try FramedClient(broker.socket, framing)
    let child: JSONValue = [
      "application": "a", "restorationIdentifier": "C", "restorationParent": .path("P"),
      "awaitParentMilliseconds": 1_500,
    ]
    let frame = framing.frame(WireClient.message("registerObjectForStateRestoration", child, id: 1))
    try client.send(bytes: frame[..<30])
    try broker.connect().call("ping")
    try client.send(bytes: frame[30...])
    #expect(try client.receiveMessage()["error"]?["data"]?["kind"] == "unknownParent")
    try client.send(Self.ping)
    #expect(try client.receive()?.text == Self.pong)
  }
}
