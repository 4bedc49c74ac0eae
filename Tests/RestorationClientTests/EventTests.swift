// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import Testing

/// Subscriptions: what reaches the application, and how they end.
@Suite(.timeLimit(.minutes(2))) struct EventTests {
  /// Answers subscribe with 1, 2, 3 …, by what is asked for, and everything else with `{}`.
  private static let answer: FakeBroker.Answer = { request in
    guard request.method == "subscribe" else { return .text("{}") }
    switch request.parametersText {
    case "{}": return .text(#"{"subscription":1}"#)
    case #"{"events":["encodeFailed","stateEncoded"],"application":"a"}"#: return .text(#"{"subscription":2}"#)
    case #"{"events":["odd"]}"#: return .text(#"{"number":1}"#)
    default: return .error(.invalidParameter("/events/0", "there is no such event", hint: "h"))
    }
  }

  private static func encoded(_ number: Int64, _ subscription: Int64 = 1) -> JSONText {
    let event = StateEncoded().with {
      $0.object = nil
      $0.path = ["A"]
      $0.bytes = 7
      $0.sequence = number
      $0.session = SessionIdentity()
    }
    return EventNotification(subscription: subscription, application: ApplicationName("a"), event: event).parameters
  }

  private static func send(_ parameters: [JSONText], on connection: Connection) async throws {
    try await connection.onLoop { link in
      for text in parameters { link.notify(method: "event", parameters: text) }
    }
  }

  @Test func eventsComeInOrderToTheirOwnSubscription() async throws {
    try await FakeBroker.run(answer: Self.answer) { fake in
      let broker = try await BrokerConnection.connect(to: fake.path)
      let connection = try await fake.events.opened()
      let all = try await broker.subscribe()
      let some = try await broker.subscribe(to: [.stateEncoded, .encodeFailed], application: "a")
      try await Self.send([Self.encoded(1), Self.encoded(2, 2), Self.encoded(3), Self.encoded(4, 9)], on: connection)
      var (first, second) = (all.makeAsyncIterator(), some.makeAsyncIterator())
      #expect(try await first.next()?.sequence == 1)
      #expect(try await first.next()?.sequence == 3)
      let event = try #require(try await second.next())
      #expect(event.name == .stateEncoded && event.application == "a" && event.path == ["A"] && event.bytes == 7)
      #expect(event.jsonText == Self.encoded(2, 2).string)
    }
  }

  @Test func everyFactHasItsProperty() async throws {
    let texts = [
      #"{"subscription":1,"name":"sessionBegan","application":"a","process":"p","pid":7,"delegate":true,"#
        + #""detached":false,"restoration":{"state":"available","reason":"recover"}}"#,
      #"{"subscription":1,"name":"sessionEnded","application":"a","process":"p","pid":7,"ending":"crashed","objects":3,"#
        + #""how":"signalled","code":null,"signal":"SIGSEGV","unit":"a.service"}"#,
      #"{"subscription":1,"name":"objectRegistered","application":"a","object":9,"path":["A"],"kind":"view"}"#,
      #"{"subscription":1,"name":"objectUnregistered","application":"a","object":9,"path":null,"cause":"replaced","#
        + #""stateKept":true}"#,
      #"{"subscription":1,"name":"pathChanged","application":"a","object":null,"from":["A"],"path":["B"]}"#,
      #"{"subscription":1,"name":"encodeFailed","application":"a","error":{"code":-32008,"kind":"limitExceeded","#
        + #""limit":"stateBytesMax","max":4,"value":5}}"#,
      #"{"subscription":1,"name":"generationSealed","application":"a","generation":3,"kind":"startup","objects":2}"#,
      #"{"subscription":1,"name":"archiveDamaged","application":"a","message":"m"}"#,
      #"{"subscription":1,"name":"applicationDiscarded","application":"a","cause":"userQuit","reason":"r","#
        + #""generations":true}"#,
      #"{"subscription":1,"name":"somethingNew","application":"a","color":"red"}"#,
      #"{"subscription":1,"name":"eventsLost","lost":12}"#,
    ]
    let events = try await received(texts)
    #expect(events.map(\.jsonText) == texts)
    #expect(events[0].process == "p" && events[0].pid == 7)
    #expect(events[1].processEnding == "signalled" && events[1].exitCode == nil)
    #expect(events[1].signal == "SIGSEGV" && events[1].unit == "a.service")
    #expect(events[0].isDelegate == true && events[0].isDetached == false)
    #expect(events[0].restoration?.state == .available && events[0].restoration?.reason == .recover)
    #expect(events[1].ending == .crashed && events[1].objects == 3)
    #expect(events[2].object == 9 && events[2].objectKind == .view && events[2].generationKind == nil)
    #expect(events[3].path == nil && events[3].cause == .replaced && events[3].stateKept == true)
    #expect(events[4].formerPath == ["A"] && events[4].path == ["B"])
    #expect(events[5].failure?.code == .limitExceeded && events[5].failure?.limit?.name == "stateBytesMax")
    #expect(events[6].generation == 3 && events[6].generationKind == "startup" && events[6].objectKind == nil)
    #expect(events[7].message == "m")
    #expect(events[8].cause == .userQuit && events[8].reason == "r" && events[8].discardedGenerations == true)
    #expect(events[9].name.rawValue == "somethingNew" && events[9].application == "a")
    #expect(events[10].name == .eventsLost && events[10].lost == 12 && events[10].application == nil)
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

  @Test func namesThatTheBrokerDoesNotKnowAreItsErrorToTell() async throws {
    try await FakeBroker.run(answer: Self.answer) { fake in
      let broker = try await BrokerConnection.connect(to: fake.path)
      let refused = await thrownError { _ = try await broker.subscribe(to: [BrokerEvent.Name(rawValue: "nope")]) }
      #expect((refused as? RestorationError)?.code == .invalidParams)
      #expect((refused as? RestorationError)?.pointer == "/events/0")
      let odd = await thrownError { _ = try await broker.subscribe(to: [BrokerEvent.Name(rawValue: "odd")]) }
      #expect((odd as? BrokerConnectionError)?.code == .unexpectedAnswer)
    }
  }

  @Test func whatIsNotTakenIsCountedWithWhatTheBrokerLost() async throws {
    try await FakeBroker.run(answer: Self.answer) { fake in
      let broker = try await BrokerConnection.connect(to: fake.path)
      let subscription = try await broker.subscribe()
      let connection = try await fake.events.opened()
      let lost = EventNotification(subscription: 1, application: nil, event: EventsLost(lost: 10)).parameters
      try await Self.send((1...2_000).map { Self.encoded($0) } + [lost, Self.encoded(2_001)], on: connection)
      // Its answer comes after the events.
      try await broker.ping()
      var iterator = subscription.makeAsyncIterator()
      for number in 1...1_024 { #expect(try await iterator.next()?.sequence == Int64(number)) }
      let event = try #require(try await iterator.next())
      #expect(event.name == .eventsLost && event.lost == 976 + 10 + 1)
      #expect(event.jsonText == #"{"subscription":1,"name":"eventsLost","lost":987}"#)
      try await Self.send([Self.encoded(2_002)], on: connection)
      #expect(try await iterator.next()?.sequence == 2_002)
    }
  }

  // MARK: Ends

  @Test func cancellingTellsTheBrokerAndEndsTheSequence() async throws {
    try await FakeBroker.run(answer: Self.answer) { fake in
      let broker = try await BrokerConnection.connect(to: fake.path)
      let subscription = try await broker.subscribe()
      let connection = try await fake.events.opened()
      try await Self.send([Self.encoded(1)], on: connection)
      async let count = subscription.reduce(0) { count, _ in count + 1 }
      try await broker.ping()
      subscription.cancel()
      subscription.cancel()
      let notification = try await fake.events.notification()
      #expect(notification.method == "unsubscribe")
      #expect(notification.parameters.text == #"{"subscription":1}"#)
      #expect(try await count <= 1)
      var iterator = subscription.makeAsyncIterator()
      #expect(try await iterator.next() == nil)
      try await broker.ping()
    }
  }

  @Test func theLastReferenceEndsTheSubscription() async throws {
    try await FakeBroker.run(answer: Self.answer) { fake in
      let broker = try await BrokerConnection.connect(to: fake.path)
      do {
        let subscription = try await broker.subscribe()
        withExtendedLifetime(subscription) {}
      }
      #expect(try await fake.events.notification().method == "unsubscribe")
      try await broker.ping()
    }
  }

  @Test func aTaskThatIsCancelledStopsAndTheSubscriptionGoesOn() async throws {
    try await FakeBroker.run(answer: Self.answer) { fake in
      let broker = try await BrokerConnection.connect(to: fake.path)
      let subscription = try await broker.subscribe()
      let reader = Task { try await subscription.reduce(0) { count, _ in count + 1 } }
      try await broker.ping()
      reader.cancel()
      #expect(try await reader.value == 0)
      try await Self.send([Self.encoded(1)], on: try await fake.events.opened())
      var iterator = subscription.makeAsyncIterator()
      #expect(try await iterator.next()?.sequence == 1)
    }
  }

  @Test func whenTheBrokerEndsWhatHasComeIsGivenAndThenItIsThrown() async throws {
    try await FakeBroker.run(answer: Self.answer) { fake in
      let broker = try await BrokerConnection.connect(to: fake.path)
      let subscription = try await broker.subscribe()
      let other = try await broker.subscribe(to: [.stateEncoded, .encodeFailed], application: "a")
      async let waiting = thrownError { for try await _ in other {} }
      let connection = try await fake.events.opened()
      try await Self.send([Self.encoded(1)], on: connection)
      try await connection.onLoop { $0.close(afterOutput: true) }
      #expect((await waiting as? BrokerConnectionError)?.code == .lost)
      var iterator = subscription.makeAsyncIterator()
      #expect(try await iterator.next()?.sequence == 1)
      for _ in 1...2 {
        let error = await thrownError { _ = try await subscription.first { _ in true } }
        #expect((error as? BrokerConnectionError)?.code == .lost)
      }
      let late = await thrownError { _ = try await broker.subscribe() }
      #expect((late as? BrokerConnectionError)?.code == .lost)
    }
  }

  @Test func closingTheConnectionEndsTheSequence() async throws {
    try await FakeBroker.run(answer: Self.answer) { fake in
      let broker = try await BrokerConnection.connect(to: fake.path)
      let subscription = try await broker.subscribe()
      async let count = subscription.reduce(0) { count, _ in count + 1 }
      await broker.close()
      #expect(try await count == 0)
    }
  }

  @Test func aCancelledCallLeavesNoSubscriptionBehind() async throws {
    try await FakeBroker.run { fake in
      let broker = try await BrokerConnection.connect(to: fake.path)
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
}
