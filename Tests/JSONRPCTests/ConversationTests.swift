// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Testing

@Suite struct ConversationTests {
  private static func request(_ id: String, _ method: String = "m") -> String {
    #"{"jsonrpc":"2.0","id":\#(id),"method":"\#(method)"}"#
  }

  private static func notification(_ method: String) -> String { #"{"jsonrpc":"2.0","method":"\#(method)"}"# }

  private static func answer(_ id: String, _ result: String = "null") -> String {
    #"{"jsonrpc":"2.0","id":\#(id),"result":\#(result)}"#
  }

  /// The first request among the deliveries.
  private func call(_ deliveries: [Conversation.Delivery]) throws -> Conversation.Call {
    try #require(deliveries.firstCall)
  }

  // Answers

  @Test func answersAreOneCompactLineEach() throws {
    var peer = PeerFixture()
    let first = try call(peer.send(Self.request("1")))
    let second = try call(peer.send(Self.request("\"b\"")))
    peer.conversation.respond(to: second, with: .result(JSONText(["x": 1])), into: &peer.output)
    peer.conversation.respond(
      to: first,
      with: .error(ErrorObject(code: -32002, message: "Unknown object")),
      into: &peer.output
    )
    #expect(
      peer.takeLines() == [
        #"{"jsonrpc":"2.0","id":"b","result":{"x":1}}"#,
        #"{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"Unknown object"}}"#,
      ]
    )
  }

  @Test func requestsTakeMemoryUntilTheyAreAnswered() throws {
    var peer = PeerFixture()
    _ = peer.send(Self.notification("n"))
    #expect(peer.conversation.waitingBytes == 0)
    let first = try call(peer.send(Self.request("1", String(repeating: "m", count: 1_000))))
    let one = peer.conversation.waitingBytes
    #expect(one > 1_000)
    let second = try call(peer.send(Self.request("2")))
    #expect(peer.conversation.waitingBytes > one)
    try peer.conversation.park(first)
    peer.conversation.respond(to: second, with: .result(.null), into: &peer.output)
    #expect(peer.conversation.waitingBytes == one)
    peer.conversation.respond(to: first, with: .result(.null), into: &peer.output)
    #expect(peer.conversation.waitingBytes == 0)
  }

  @Test func aCallIsAnsweredOnce() throws {
    var peer = PeerFixture()
    let first = try call(peer.send(Self.request("1")))
    peer.conversation.respond(to: first, with: .result(.null), into: &peer.output)
    peer.conversation.respond(to: first, with: .result(.null), into: &peer.output)
    let second = try call(peer.send(Self.request("2")))
    #expect(first != second)
    peer.conversation.respond(to: first, with: .result(.null), into: &peer.output)
    #expect(peer.takeLines() == [Self.answer("1")])
    #expect(peer.conversation.inFlight == 1)
  }

  @Test func faultsAreAnsweredWithIdNull() throws {
    var peer = PeerFixture()
    #expect(peer.send("{]\n").isEmpty)
    let line = try #require(peer.takeLines().first)
    #expect(
      line.hasPrefix(
        #"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error","data":{"kind":"parseError","#
      )
    )
  }

  @Test func aRefusalClosesAfterItsAnswer() {
    var peer = PeerFixture()
    let deliveries = peer.send("hello\r\n")
    #expect(deliveries.count == 1)
    if case .closeAfterOutput? = deliveries.first {} else { Issue.record("not closed") }
    #expect(peer.takeLines().count == 1)
  }

  @Test func notificationsAreNeverAnswered() {
    var peer = PeerFixture()
    #expect(peer.send(Self.notification("a")).count == 1)
    #expect(peer.send(#"{"jsonrpc":"2.0","method":"a","params":{"x":1,"x":2}}"#).count == 1)
    #expect(peer.takeLines().isEmpty)
  }

  // Ids

  @Test func aSecondRequestWithAnIdInFlightIsRefused() throws {
    var peer = PeerFixture()
    let first = try call(peer.send(Self.request(#""a""#)))
    #expect(peer.send(Self.request(#""\u0061""#)).isEmpty)
    #expect(peer.takeLines().first?.hasPrefix(#"{"jsonrpc":"2.0","id":"\u0061","error":{"code":-32600,"#) == true)
    peer.conversation.respond(to: first, with: .result(.null), into: &peer.output)
    #expect(peer.takeLines() == [Self.answer(#""a""#)])
    #expect(peer.send(Self.request(#""a""#)).count == 1)
    #expect(peer.takeLines().isEmpty)
  }

  @Test func aParkedIdIsInFlightToo() throws {
    var peer = PeerFixture()
    try peer.conversation.park(call(peer.send(Self.request("1"))))
    #expect(peer.send(Self.request("1")).isEmpty)
    #expect(peer.takeLines().count == 1)
  }

  @Test func idNullNamesNoRequest() throws {
    var peer = PeerFixture()
    let calls = try [call(peer.send(Self.request("null"))), call(peer.send(Self.request("null")))]
    for call in calls { peer.conversation.respond(to: call, with: .result(.null), into: &peer.output) }
    #expect(peer.takeLines() == [Self.answer("null"), Self.answer("null")])
    #expect(peer.conversation.pendingCall(withID: .null) == nil)
  }

  @Test func pendingCallsAreFoundByTheirId() throws {
    var peer = PeerFixture()
    let pending = try call(peer.send(Self.request("\"x\"")))
    #expect(peer.conversation.pendingCall(withID: RequestID("x")) == pending)
    #expect(peer.conversation.pendingCall(withID: RequestID("y")) == nil)
    peer.conversation.respond(to: pending, with: .result(.null), into: &peer.output)
    #expect(peer.conversation.pendingCall(withID: RequestID("x")) == nil)
  }

  // Batches

  @Test func aBatchIsAnsweredWholeWhenItsLastAnswerIsThere() throws {
    var peer = PeerFixture()
    let deliveries = peer.send(
      "[\(Self.request("1")),\(Self.notification("n")),7,\(Self.request("2")),\(Self.request("1"))]"
    )
    let calls = deliveries.calls
    #expect(deliveries.count == 3)
    #expect(calls.count == 2)
    #expect(peer.output.isEmpty)
    #expect(peer.conversation.unfinishedBytes > 0)
    peer.conversation.respond(to: calls[1], with: .result(.null), into: &peer.output)
    #expect(peer.output.isEmpty)
    let other = try call(peer.send(Self.request("3")))
    peer.conversation.respond(to: other, with: .result(.null), into: &peer.output)
    #expect(peer.takeLines() == [Self.answer("3")])
    peer.conversation.respond(to: calls[0], with: .result(.null), into: &peer.output)
    let lines = peer.takeLines()
    #expect(lines.count == 1)
    let answers = try #require(JSONCodec.parse(Array((lines.first ?? "").utf8)).array)
    #expect(answers.compactMap { $0["error"]?["code"]?.integer } == [-32600, -32600])
    #expect(answers.compactMap { $0["result"] != nil ? $0["id"]?.integer : nil } == [2, 1])
    #expect(peer.conversation.unfinishedBytes == 0)
  }

  @Test func requestsOfABatchWithoutRoomForTheirAnswersAreToBeRefused() throws {
    var limits = ConversationLimits()
    limits.batchReplyBytesMax = 20
    var peer = PeerFixture(conversation: limits)
    let calls = peer.send("[\(Self.request("1")),\(Self.request("2"))]").calls
    let other = try call(peer.send(Self.request("3")))
    #expect(peer.conversation.refusal(of: calls[1]) == nil)
    peer.conversation.respond(to: calls[0], with: .result(.null), into: &peer.output)
    let refusal = try #require(peer.conversation.refusal(of: calls[1]))
    #expect(refusal.code == -32008)
    #expect(peer.conversation.refusal(of: other) == nil)
    peer.conversation.respond(to: calls[1], with: .error(refusal), into: &peer.output)
    let next = peer.send("[\(Self.request("4"))]").calls
    #expect(peer.conversation.refusal(of: next[0]) == nil, "each batch has its own")
  }

  @Test func whatIsExpectedCountsUntilItIsThere() throws {
    var peer = PeerFixture()
    let calls = try [call(peer.send(Self.request("1"))), call(peer.send(Self.request("2")))]
    for call in calls { peer.conversation.expect(1_000, from: call) }
    peer.conversation.expect(300, from: calls[0])
    #expect(peer.conversation.expectedBytes == 1_300)
    for call in calls { peer.conversation.respond(to: call, with: .result(.null), into: &peer.output) }
    #expect(peer.conversation.expectedBytes == 0)
    peer.conversation.expect(300, from: calls[0])
    #expect(peer.conversation.expectedBytes == 0, "the call has ended")
  }

  @Test func aBatchOfNotificationsSendsZeroBytes() {
    var peer = PeerFixture()
    #expect(peer.send("[\(Self.notification("a")),\(Self.notification("b"))]").count == 2)
    #expect(peer.output.isEmpty)
    peer.conversation.inputEnded()
    #expect(peer.conversation.isDrained)
  }

  @Test func aBatchOfFaultsIsAnsweredAtOnce() throws {
    var peer = PeerFixture()
    #expect(peer.send("[1,[],{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":2}]").isEmpty)
    let answers = try JSONCodec.parse(Array((peer.takeLines().first ?? "").utf8)).array
    #expect(answers?.map { $0["id"] } == [.null, .null, 4])
  }

  @Test func batchesAreLimited() throws {
    for (count, isTaken) in [(256, true), (257, false)] {
      var peer = PeerFixture()
      let batch = "[" + (0..<count).map { _ in Self.notification("n") }.joined(separator: ",") + "]"
      #expect(peer.send(batch).count == (isTaken ? count : 0))
      guard !isTaken else { continue }
      let lines = peer.takeLines()
      #expect(lines.count == 1)
      let answer = try JSONCodec.parse(Array((lines.first ?? "").utf8))
      #expect(answer["id"] == .null)
      #expect(answer["error"]?["code"] == -32008)
      #expect(answer["error"]?["data"]?["limit"] == "batchMax")
      #expect(answer["error"]?["data"]?["value"] == 257)
    }
  }

  @Test func answersInABatchReachTheirCalls() {
    var peer = PeerFixture()
    let callID = peer.conversation.call(method: "ask", parameters: nil, into: &peer.output)
    _ = peer.takeLines()
    let deliveries = peer.send("[\(Self.answer("\(callID)", "5")),\(Self.request("1"))]")
    #expect(deliveries.responses == [callID])
    #expect(deliveries.calls.count == 1)
    peer.conversation.respond(to: deliveries.calls[0], with: .result(.null), into: &peer.output)
    #expect(peer.takeLines() == ["[\(Self.answer("1"))]"])
  }

  // Limits on what is in flight

  @Test func callsAreHeldBackWhileTooManyAreInFlight() throws {
    var peer = PeerFixture(batchMax: 4, inFlightMax: 2, parkedMax: 2)
    let first = try call(peer.send(Self.request("1")))
    #expect(peer.conversation.acceptsRequests)
    let second = try call(peer.send(Self.request("2")))
    #expect(!peer.conversation.acceptsRequests)
    #expect(peer.send(Self.request("3") + Self.notification("n") + Self.request("4")).isEmpty)
    #expect(peer.conversation.hasHeldBackCalls)
    #expect(peer.conversation.heldBackBytes > 2 * Self.request("3").utf8.count + Self.notification("n").utf8.count)
    #expect(peer.conversation.resume(into: &peer.output).isEmpty)

    peer.conversation.respond(to: second, with: .result(.null), into: &peer.output)
    let resumed = peer.conversation.resume(into: &peer.output)
    #expect(resumed.methods == ["m"])
    #expect(peer.conversation.resume(into: &peer.output).isEmpty)
    try peer.conversation.park(first)
    #expect(peer.conversation.resume(into: &peer.output).methods == ["n", "m"])
    #expect(!peer.conversation.hasHeldBackCalls)
    #expect(peer.conversation.heldBackBytes == 0)
    #expect(peer.conversation.inFlight == 2)
    #expect(peer.conversation.parked == 1)
  }

  @Test func answersPassWhileCallsAreHeldBack() throws {
    var peer = PeerFixture(batchMax: 4, inFlightMax: 1, parkedMax: 1)
    let callID = peer.conversation.call(method: "ask", parameters: nil, into: &peer.output)
    let other = peer.conversation.call(method: "ask", parameters: nil, into: &peer.output)
    let first = try call(peer.send(Self.request("1")))
    let deliveries = peer.send(
      Self.request("2") + Self.answer("\(callID)") + "[\(Self.request("3")),\(Self.answer("\(other)"))]"
    )
    #expect(deliveries.responses == [callID, other])
    #expect(deliveries.calls.isEmpty)
    peer.conversation.respond(to: first, with: .result(.null), into: &peer.output)
    let second = try call(peer.conversation.resume(into: &peer.output))
    peer.conversation.respond(to: second, with: .result(.null), into: &peer.output)
    let third = peer.conversation.resume(into: &peer.output)
    #expect(third.responses.isEmpty)
    try peer.conversation.respond(to: call(third), with: .result(.null), into: &peer.output)
    #expect(peer.takeLines().suffix(2) == [Self.answer("2"), "[\(Self.answer("3"))]"])
    #expect(peer.conversation.strayResponses == 0)
  }

  @Test func anIdHeldBackMayBeUsedAgainWhenTheFirstIsAnswered() throws {
    var peer = PeerFixture(batchMax: 4, inFlightMax: 1, parkedMax: 1)
    let first = try call(peer.send(Self.request("1") + Self.request("1")))
    peer.conversation.respond(to: first, with: .result(.null), into: &peer.output)
    #expect(peer.conversation.resume(into: &peer.output).count == 1)
    #expect(peer.takeLines() == [Self.answer("1")])
  }

  @Test func inFlightAndParkedAreExact() throws {
    var peer = PeerFixture()
    var calls: [Conversation.Call] = []
    for number in 1...128 { try calls.append(call(peer.send(Self.request("\(number)")))) }
    #expect(peer.send(Self.request("129")).isEmpty)
    #expect(peer.conversation.hasHeldBackCalls)
    for call in calls { try peer.conversation.park(call) }
    #expect(peer.conversation.inFlight == 0)
    calls += peer.conversation.resume(into: &peer.output).calls
    for number in 130...1_025 {
      let pending = try call(peer.send(Self.request("\(number)")))
      try peer.conversation.park(pending)
      calls.append(pending)
    }
    #expect(peer.conversation.parked == 1_024)
    let unparked = calls[128]
    let error = #expect(throws: ErrorObject.self) { try peer.conversation.park(unparked) }
    #expect(error?.code == -32008)
    #expect(error?.limit == "parkedMax")
    try peer.conversation.park(calls[0])
    peer.conversation.unpark(calls[0])
    peer.conversation.unpark(calls[0])
    #expect(peer.conversation.parked == 1_023)
    #expect(peer.conversation.inFlight == 2)
    try peer.conversation.park(unparked)
    peer.conversation.inputEnded()
    #expect(!peer.conversation.isDrained)
    for call in calls { peer.conversation.respond(to: call, with: .result(.null), into: &peer.output) }
    #expect(peer.takeLines().count == 1_025)
    #expect(peer.conversation.isDrained)
  }

  // Calls of ours

  @Test func callsHaveSmallPositiveIds() {
    var peer = PeerFixture()
    let params = JSONText(["a": 1])
    #expect(peer.conversation.call(method: "ask", parameters: params, into: &peer.output) == 1)
    #expect(peer.conversation.call(method: "a\"b", parameters: nil, into: &peer.output) == 2)
    peer.conversation.notify(method: "tell", parameters: params, into: &peer.output)
    #expect(
      peer.takeLines() == [
        #"{"jsonrpc":"2.0","id":1,"method":"ask","params":{"a":1}}"#,
        #"{"jsonrpc":"2.0","id":2,"method":"a\"b"}"#,
        #"{"jsonrpc":"2.0","method":"tell","params":{"a":1}}"#,
      ]
    )
    #expect(peer.send(Self.answer("2") + Self.answer("1")).responses == [2, 1])
    #expect(peer.conversation.strayResponses == 0)
  }

  @Test func errorsAnswerCallsToo() throws {
    var peer = PeerFixture()
    let callID = peer.conversation.call(method: "ask", parameters: nil, into: &peer.output)
    let deliveries = peer.send(#"{"jsonrpc":"2.0","id":\#(callID),"error":{"code":5,"message":"no"}}"#)
    guard case .response(callID, .error(let error))? = deliveries.first else {
      Issue.record("no error")
      return
    }
    #expect(error["code"]?.integer() == 5)
  }

  @Test func strayAnswersAreDroppedUntilTheyAreTooMany() {
    var peer = PeerFixture()
    _ = peer.conversation.call(method: "ask", parameters: nil, into: &peer.output)
    _ = peer.takeLines()
    let strays = [
      Self.answer("2"), Self.answer("\"1\""), Self.answer("null"), Self.answer("-1"), Self.answer("0"),
      #"{"jsonrpc":"2.0","id":1,"result":1,"error":2}"#, #"{"jsonrpc":"2.0","result":1}"#, "[\(Self.answer("9"))]",
    ]
    for number in 0..<64 { #expect(peer.send(strays[number % strays.count]).isEmpty) }
    #expect(peer.conversation.strayResponses == 64)
    #expect(peer.output.isEmpty)
    let deliveries = peer.send(Self.answer("2"))
    if case .closeAfterOutput? = deliveries.first {} else { Issue.record("not closed") }
    #expect(peer.takeLines().count == 1)
    #expect(peer.send(Self.answer("1")).responses == [1])
  }

  @Test func lateAnswersToForgottenCallsAreForgiven() {
    var peer = PeerFixture()
    for _ in 0..<100 {
      let callID = peer.conversation.call(method: "ask", parameters: nil, into: &peer.output)
      peer.conversation.forget(callID)
      peer.conversation.forget(callID)
      #expect(peer.send(Self.answer("\(callID)")).isEmpty)
    }
    #expect(peer.conversation.strayResponses == 0)
    _ = peer.send(Self.answer("1"))
    #expect(peer.conversation.strayResponses == 1)
  }

  // The end

  @Test func afterHalfClosePendingAnswersAreStillGiven() throws {
    var peer = PeerFixture(batchMax: 4, inFlightMax: 1, parkedMax: 1)
    let callID = peer.conversation.call(method: "ask", parameters: nil, into: &peer.output)
    _ = peer.takeLines()
    let first = try call(peer.send(Self.request("1") + Self.request("2")))
    #expect(peer.conversation.inputEnded() == [callID])
    #expect(!peer.conversation.isDrained)
    peer.conversation.respond(to: first, with: .result(.null), into: &peer.output)
    #expect(!peer.conversation.isDrained)
    let second = try call(peer.conversation.resume(into: &peer.output))
    try peer.conversation.park(second)
    #expect(!peer.conversation.isDrained)
    peer.conversation.respond(to: second, with: .result(.null), into: &peer.output)
    #expect(peer.conversation.isDrained)
    #expect(peer.takeLines() == [Self.answer("1"), Self.answer("2")])
  }

  @Test func withoutHalfCloseAConversationIsNeverDrained() {
    #expect(!PeerFixture().conversation.isDrained)
  }
}

extension [Conversation.Delivery] {
  fileprivate var calls: [Conversation.Call] { compactMap { if case .request(let call, _) = $0 { call } else { nil } } }

  fileprivate var firstCall: Conversation.Call? { calls.first }

  fileprivate var responses: [Int] { compactMap { if case .response(let callID, _) = $0 { callID } else { nil } } }

  fileprivate var methods: [String] {
    compactMap {
      switch $0 {
      case .request(_, let request): request.method
      case .notification(let notification): notification.method
      default: nil
      }
    }
  }
}
