// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import Testing

/// Subscriptions: what reaches the application, and how they end.
@Suite(.timeLimit(.minutes(2))) struct EventTests {
  /// Answers subscribe with 1, 2, 3 …, by the request, and everything else with `{}`.
  private static let answer: FakeBroker.Answer = { request in
    guard request.method == "subscribe" else { return .text("{}") }
    switch request.parametersText {
    case "{}": return .text(#"{"subscription":1}"#)
    case #"{"events":["encodeFailed","stateEncoded"],"application":"a"}"#: return .text(#"{"subscription":2}"#)
    case #"{"events":["odd"]}"#: return .text(#"{"number":1}"#)
    default: return .error(.invalidParameter("/events/0", "there is no such event", hint: "h"))
    }
  }

  private static func sequence(of event: BrokerEvent?) -> Int64? {
    guard case .stateEncoded(let facts) = event?.facts else { return nil }
    return facts.sequence
  }

  private static func encoded(_ number: Int64, _ subscription: Int64 = 1) -> JSONText {
    let event = StateEncoded().with {
      $0.object = nil
      $0.path = ["A"]
      $0.bytes = 7
      $0.sequence = number
      $0.session = SessionIdentity()
    }
    return EventNotification(application: ApplicationName("a"), event: event).parameters(for: subscription)
  }

  private static func send(_ parameters: [JSONText], on connection: Connection) async throws {
    try await connection.onLoop { link in
      for text in parameters { link.notify(method: "event", parameters: text) }
    }
  }

  @Test(.connection(answer: answer)) func eventsComeInOrderToTheirOwnSubscription() async throws {
    let connection = try await fake.events.opened()
    let all = try await broker.subscribe()
    let some = try await broker.subscribe(to: [.stateEncoded, .encodeFailed], application: "a")
    try await Self.send([Self.encoded(1), Self.encoded(2, 2), Self.encoded(3), Self.encoded(4, 9)], on: connection)
    var (first, second) = (all.makeAsyncIterator(), some.makeAsyncIterator())
    #expect(Self.sequence(of: try await first.next()) == 1)
    #expect(Self.sequence(of: try await first.next()) == 3)
    let event = try #require(try await second.next())
    guard case .stateEncoded(let facts) = event.facts else { return #expect(Bool(false), "\(event)") }
    #expect(event.name == "stateEncoded" && event.application?.description == "a")
    #expect(facts.path == ["A"] && facts.bytes == 7)
    #expect(event.jsonText == Self.encoded(2, 2).string)
  }

  /// The facts of each, as their own type writes them.
  @Test func everyEventHasItsFacts() async throws {
    let texts = [
      #"{"subscription":1,"name":"sessionBegan","application":"a","process":"p","pid":7,"delegate":true,"#
        + #""detached":false,"restoration":{"state":"available","reason":"recover"}}"#,
      #"{"subscription":1,"name":"sessionEnded","application":"a","ending":"crashed","objects":3,"#
        + #""how":"signalled","code":null,"signal":"SIGSEGV","unit":"a.service","process":"p","pid":7}"#,
      #"{"subscription":1,"name":"objectRegistered","application":"a","object":9,"path":["A"],"kind":"view","#
        + #""process":null,"pid":null}"#,
      #"{"subscription":1,"name":"encodeFailed","application":"a","object":null,"path":null,"#
        + #""error":{"code":-32008,"kind":"limitExceeded","limit":"stateBytesMax","max":4,"value":5},"#
        + #""process":null,"pid":null}"#,
    ]
    let events = try await received(texts)
    #expect(events.map(\.jsonText) == texts)
    #expect(events.map(\.application?.description) == ["a", "a", "a", "a"])
    guard case .sessionBegan(let began) = events[0].facts, case .sessionEnded(let ended) = events[1].facts,
      case .objectRegistered(let registered) = events[2].facts, case .encodeFailed(let failed) = events[3].facts
    else { return #expect(Bool(false), "\(events)") }
    #expect(began.session == SessionIdentity(process: "p", pid: 7) && began.delegate && !began.detached)
    #expect(began.restoration?.state == .available && began.restoration?.reason == .recover)
    #expect(ended.ending == .crashed && ended.objects == 3)
    #expect(ended.outcome == ProcessOutcome(.signalled, signal: "SIGSEGV", unit: "a.service"))
    #expect(registered.object == 9 && registered.path == ["A"] && registered.kind == .view)
    #expect(failed.error.code == -32008 && failed.error.limit == "stateBytesMax" && failed.error.value == 5)
  }

  /// Each name leads to the type of that name.
  @Test(arguments: EventName.allCases) func everyNameHasFacts(_ name: EventName) async throws {
    let blank = EventNotification.facts(of: name).init()
    let sample = EventNotification(application: ApplicationName("a"), event: blank).parameters(for: 1).string
      .replacing(#""archive":"""#, with: #""archive":"0b8f6a1c-3c5e-4d0e-9a55-6f1f5f0f6d11""#)
      .replacing(#""generation":0"#, with: #""generation":1"#).replacing(#""sequence":0"#, with: #""sequence":1"#)
      .replacing(#""object":0"#, with: #""object":1"#).replacing(#""lost":0"#, with: #""lost":1"#)
    let event = try #require(try await received([sample]).first)
    #expect(event.name == name.rawValue)
    let facts = try #require(event.facts, "\(sample)")
    #expect("\(facts)".hasPrefix("\(name.rawValue)("))
  }

  @Test func anEventThatThisVersionDoesNotKnowIsGivenAsText() async throws {
    let texts = [
      #"{"subscription":1,"name":"somethingNew","application":"a","color":"red"}"#,
      #"{"subscription":1,"name":"sessionEnded","application":"a","ending":"somehow","objects":3}"#,
      #"{"subscription":1,"name":"sessionEnded","application":"a"}"#,
      #"{"subscription":1,"name":"eventsLost","lost":12}"#,
    ]
    let events = try await received(texts)
    #expect(events.map(\.jsonText) == texts)
    #expect(events.map(\.name) == ["somethingNew", "sessionEnded", "sessionEnded", "eventsLost"])
    #expect(events.map(\.facts) == [nil, nil, nil, .eventsLost(EventsLost(lost: 12))])
    #expect(events[0].application?.description == "a" && events[3].application == nil)
  }

  private func received(_ texts: [String]) async throws -> [BrokerEvent] {
    var events: [BrokerEvent] = []
    try await FakeBroker.run(answer: Self.answer) { fake in
      let broker = try await BrokerConnection.connect(to: fake.path)
      let subscription = try await broker.subscribe()
      let connection = try await fake.events.opened()
      let odd = [#"{"subscription":1}"#, "[1]", #"{"subscription":"1","name":"eventsLost"}"#]
      try await Self.send((odd + texts).map { JSONText(validated: Array($0.utf8)) }, on: connection)
      var iterator = subscription.makeAsyncIterator()
      while events.count < texts.count, let event = try await iterator.next() { events.append(event) }
    }
    return events
  }

  @Test(.connection(answer: answer)) func namesThatTheBrokerDoesNotKnowAreItsErrorToTell() async throws {
    let refused = await thrownError { _ = try await broker.subscribe(toNamed: ["nope"], application: nil) }
    #expect((refused as? RestorationError)?.code == .invalidParams)
    #expect((refused as? RestorationError)?.pointer == "/events/0")
    let odd = await thrownError { _ = try await broker.subscribe(toNamed: ["odd"], application: nil) }
    #expect((odd as? BrokerConnectionError)?.code == .unexpectedAnswer)
  }

  @Test(.connection(answer: answer)) func whatIsNotTakenIsCountedWithWhatTheBrokerLost() async throws {
    let subscription = try await broker.subscribe()
    let connection = try await fake.events.opened()
    let lost = EventNotification(application: nil, event: EventsLost(lost: 10)).parameters(for: 1)
    try await Self.send((1...2_000).map { Self.encoded($0) } + [lost, Self.encoded(2_001)], on: connection)
    // Its answer comes after the events.
    try await broker.call(Ping())
    var iterator = subscription.makeAsyncIterator()
    for number in 1...1_024 { #expect(Self.sequence(of: try await iterator.next()) == Int64(number)) }
    let event = try #require(try await iterator.next())
    #expect(event.facts == .eventsLost(EventsLost(lost: 976 + 10 + 1)))
    #expect(event.jsonText == #"{"subscription":1,"name":"eventsLost","lost":987}"#)
    try await Self.send([Self.encoded(2_002)], on: connection)
    #expect(Self.sequence(of: try await iterator.next()) == 2_002)
  }

  @Test(.connection(answer: answer)) func aReaderThatIsLateMayKeepMore() async throws {
    let subscription = try await broker.subscribe(toNamed: nil, application: nil, capacity: .max)
    try await Self.send((1...2_000).map { Self.encoded($0) }, on: try await fake.events.opened())
    try await broker.call(Ping())
    var iterator = subscription.makeAsyncIterator()
    for number in 1...2_000 { try #require(Self.sequence(of: try await iterator.next()) == Int64(number)) }
  }

  // MARK: Ends

  @Test(.connection(answer: answer)) func cancellingTellsTheBrokerAndEndsTheSequence() async throws {
    let subscription = try await broker.subscribe()
    let connection = try await fake.events.opened()
    try await Self.send([Self.encoded(1)], on: connection)
    async let count = subscription.reduce(0) { count, _ in count + 1 }
    try await broker.call(Ping())
    subscription.cancel()
    subscription.cancel()
    let notification = try await fake.events.notification()
    #expect(notification.method == "unsubscribe")
    #expect(notification.parameters.text == #"{"subscription":1}"#)
    #expect(try await count <= 1)
    var iterator = subscription.makeAsyncIterator()
    #expect(try await iterator.next() == nil)
    try await broker.call(Ping())
  }

  @Test(.connection(answer: answer)) func theLastReferenceEndsTheSubscription() async throws {
    do {
      let subscription = try await broker.subscribe()
      withExtendedLifetime(subscription) {}
    }
    #expect(try await fake.events.notification().method == "unsubscribe")
    try await broker.call(Ping())
  }

  @Test(.connection(answer: answer)) func aTaskThatIsCancelledStopsAndTheSubscriptionGoesOn() async throws {
    let subscription = try await broker.subscribe()
    let reader = Task { try await subscription.reduce(0) { count, _ in count + 1 } }
    try await broker.call(Ping())
    reader.cancel()
    #expect(try await reader.value == 0)
    try await Self.send([Self.encoded(1)], on: try await fake.events.opened())
    var iterator = subscription.makeAsyncIterator()
    #expect(Self.sequence(of: try await iterator.next()) == 1)
  }

  @Test(.connection(answer: answer)) func whenTheBrokerEndsWhatHasComeIsGivenAndThenItIsThrown() async throws {
    let subscription = try await broker.subscribe()
    let other = try await broker.subscribe(to: [.stateEncoded, .encodeFailed], application: "a")
    async let waiting = thrownError { for try await _ in other {} }
    let connection = try await fake.events.opened()
    try await Self.send([Self.encoded(1)], on: connection)
    try await connection.onLoop { $0.close(afterOutput: true) }
    #expect((await waiting as? BrokerConnectionError)?.code == .lost)
    var iterator = subscription.makeAsyncIterator()
    #expect(Self.sequence(of: try await iterator.next()) == 1)
    for _ in 1...2 {
      let error = await thrownError { _ = try await subscription.first { _ in true } }
      #expect((error as? BrokerConnectionError)?.code == .lost)
    }
    let late = await thrownError { _ = try await broker.subscribe() }
    #expect((late as? BrokerConnectionError)?.code == .lost)
  }

  @Test(.connection(answer: answer)) func closingTheConnectionEndsTheSequence() async throws {
    let subscription = try await broker.subscribe()
    async let count = subscription.reduce(0) { count, _ in count + 1 }
    await broker.close()
    #expect(try await count == 0)
  }

  @Test(.connection) func aCancelledCallLeavesNoSubscriptionBehind() async throws {
    let task = Task { try await broker.subscribe() }
    let request = try await fake.events.request()
    task.cancel()
    let error = await thrownError { _ = try await task.value }
    #expect(error is CancellationError)
    try await request.answer(#"{"subscription":5}"#)
    let notification = try await fake.events.notification()
    #expect(notification.method == "unsubscribe")
    #expect(notification.parameters.text == #"{"subscription":5}"#)
  }
}
