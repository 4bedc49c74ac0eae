// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationTransport
internal import TestSupport
internal import Testing

/// One connection over a real socket: pipelining, cancelling, ending.
@Suite(.timeLimit(.minutes(2))) struct ConnectionTests {
  /// Gives back the parameters of `echo`.
  private static let echo: FakeBroker.Answer = { request in
    request.method == "echo" ? .text(request.parametersText) : nil
  }

  @Test(.connection(answer: echo)) func aThousandCallsAtOnceGetTheirOwnAnswers() async throws {
    try await withThrowingTaskGroup(of: (Int, String).self) { group in
      for number in 0..<1_000 { group.addTask { (number, try await broker.call("echo", "[\(number)]")) } }
      var answered = 0
      for try await (number, result) in group {
        #expect(result == "[\(number)]")
        answered += 1
      }
      #expect(answered == 1_000)
    }
    await broker.close()
  }

  @Test(.connection(limits: { $0.conversation.inFlightMax = 2_000 }))
  func aThousandCallsAreUnderWayAtTheSameTime() async throws {
    async let answers = withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<1_000 { group.addTask { try await broker.call("wait") } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    // None is answered before all are there.
    var pending: [FakeBroker.Pending] = []
    while pending.count < 1_000 { pending.append(try await fake.events.request()) }
    for (number, request) in pending.enumerated().reversed() { try await request.answer("\(number)") }
    #expect(Set(try await answers).count == 1_000)
  }

  @Test(.connection(answer: echo)) func messagesOfOneTaskArriveInTheirOrder() async throws {
    for number in 0..<500 {
      let state = try RestorableState(jsonText: #"{"n":\#(number)}"#)
      try await broker.encodeUnacknowledged(state, for: ["A"], application: "a")
    }
    for number in 0..<500 {
      let text = try await fake.events.notification().parameters.text
      #expect(text == #"{"object":["A"],"state":{"n":\#(number)},"application":"a"}"#)
    }
  }

  @Test(.connection) func moreThanTheWindowIsSentPieceByPiece() async throws {
    fake.answers { $0.method == "ping" ? .text("{}") : .text("1") }
    let large = "\"" + String(repeating: "x", count: 200_000) + "\""
    try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<100 { group.addTask { try await broker.call("measure", "[\(large)]") } }
      for try await result in group { #expect(result == "1") }
    }
    let state = try RestorableState(jsonText: "{\"text\":\(large)}")
    for _ in 0..<100 { try await broker.encodeUnacknowledged(state, for: ["A"], application: "a") }
    try await broker.call(Ping())
    for _ in 0..<100 { _ = try await fake.events.notification() }
  }

  @Test(.connection) func aCancelledCallThrowsAndItsLateAnswerIsDropped() async throws {
    let waiting = Task { try await broker.call("wait") }
    let pending = try await fake.events.request()
    waiting.cancel()
    await #expect(throws: CancellationError.self) { try await waiting.value }
    try await pending.answer("\"late\"")
    async let next = broker.call("next")
    try await fake.events.request().answer("\"next\"")
    #expect(try await next == "\"next\"")
  }

  @Test(.connection(answer: echo)) func aTaskThatIsCancelledAlreadySendsNothing() async throws {
    let (start, go) = AsyncStream.makeStream(of: Void.self)
    let task = Task {
      for await _ in start {}
      return try await broker.call("never")
    }
    task.cancel()
    go.finish()
    await #expect(throws: CancellationError.self) { try await task.value }
    async let next = broker.call("first")
    let request = try await fake.events.request()
    #expect(request.request.method == "first")
    try await request.answer("1")
    _ = try await next
  }

  @Test(.connection) func callsFailWhenTheBrokerClosesInTheMiddle() async throws {
    let calls = (0..<2).map { _ in Task { try await broker.call("wait") } }
    let connection = try await fake.events.request().connection
    _ = try await fake.events.request()
    try await connection.onLoop { $0.close(afterOutput: false) }
    for call in calls {
      let error = try #require(await thrownError { try await call.value } as? BrokerConnectionError)
      #expect(error.code == .lost)
      #expect(error.socketPath == fake.path)
      #expect(error.description.contains(fake.path))
    }
    let later = await thrownError { try await broker.call(Ping()) }
    #expect((later as? BrokerConnectionError)?.code == .lost)
  }

  @Test(.connection) func closingEndsCallsAndDeliversWhatWasSent() async throws {
    let waiting = Task { try await broker.call("wait") }
    _ = try await fake.events.request()
    try await broker.encodeUnacknowledged(.empty, for: 7)
    await broker.close()
    #expect((await thrownError { try await waiting.value } as? BrokerConnectionError)?.code == .closed)
    #expect(try await fake.events.notification().parameters.text == #"{"object":7,"state":{}}"#)
    let later = await thrownError { try await broker.call(Ping()) }
    #expect((later as? BrokerConnectionError)?.code == .closed)
    await broker.close()
  }

  @Test(.fakeBroker(answer: echo)) func theConnectionEndsWithItsLastReference() async throws {
    var broker: BrokerConnection? = try await BrokerConnection.connect(to: fake.path)
    #expect(try await broker?.call("echo", "[1]") == "[1]")
    broker = nil
    #expect(try await fake.events.closed() == .peerClosed)
  }

  @Test(.scratch) func whatIsNoBrokerIsToldSo() async throws {
    try await RawListener.run(directory.file("b.sock"), says: "HTTP/1.1 400 Bad Request\r\n\r\n") { path in
      let broker = try await BrokerConnection.connect(to: path)
      let error = await thrownError { try await broker.call(Ping()) } as? BrokerConnectionError
      #expect(error?.code == .unexpectedAnswer)
      #expect(error?.message == "the server on \(path) does not speak the restoration protocol")
    }
  }

  @Test(
    .scratch,
    arguments: [
      (-32008, #"{"hint":"Close one.","limit":"connectionsMax","max":2,"value":3}"#, BrokerConnectionError.Code.busy),
      (-32008, #"{"hint":"Close one.","limit":"frameBytesMax","max":2,"value":3}"#, .unexpectedAnswer),
      (-32014, #"{"hint":"Ask outside."}"#, .notPermitted), (-32700, "{}", .unexpectedAnswer),
    ]
  )
  func aBrokerThatTakesNoCallsHasItsWords(_ code: Int, _ data: String, _ kind: BrokerConnectionError.Code) async throws
  {
    let error = #"{"code":\#(code),"message":"I do not","data":\#(data)}"#
    let answer = #"{"jsonrpc":"2.0","id":null,"error":\#(error)}"# + "\n"
    try await RawListener.run(directory.file("b.sock"), says: answer) { path in
      let broker = try await BrokerConnection.connect(to: path)
      let error = await thrownError { try await broker.call(Ping()) } as? BrokerConnectionError
      #expect(error?.code == kind)
      #expect(error?.message.hasPrefix("I do not") == true && error?.refusal?.code.rawValue == code)
    }
  }

  @Test(.connection) func anAnswerOfAnotherFormIsAnError() async throws {
    fake.answers { _ in .text("[1]") }
    let error = await thrownError { _ = try await broker.call(ReportStatistics()) } as? BrokerConnectionError
    #expect(error?.code == .unexpectedAnswer)
    #expect(error?.message.contains("statistics") == true)
  }

  @Test(.connection(answer: echo)) func aCallOfTheBrokerIsRefused() async throws {
    try await fake.events.opened().onLoop { _ = $0.call(method: "shouldSaveApplicationState", parameters: nil) }
    guard case .error(let error) = try await fake.events.response() else {
      Issue.record("it was not refused")
      return
    }
    #expect(error["code"]?.integer() == -32601)
    #expect(try await broker.call("echo", "[1]") == "[1]")
  }
}
