// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import TestSupport
internal import Testing

/// How waiting for a session's broker ends: by time, by cancelling, by the session's end.
@Suite(.timeLimit(.minutes(2))) struct SessionEndTests {
  @Test(.session(timeout: .seconds(1))) func callsWaitForABrokerAsLongAsTheyMay() async throws {
    let sent = Task { try await session.call("x") }
    let again = Task { try await session.decode(["A"]) }
    let requests = [try await fake.events.request(), try await fake.events.request()]
    script.change { $0.silent = ["initialize"] }
    try await requests[0].cut()
    #expect((await thrownError { try await sent.value } as? RestorationSessionError)?.code == .outcomeUnknown)
    #expect((await thrownError { try await again.value } as? RestorationSessionError)?.code == .outcomeUnknown)
    let error = await thrownError { try await session.decode(["A"]) } as? RestorationSessionError
    #expect(error?.code == .timedOut)
    #expect(error?.message.contains(fake.path) == true)
    // The session itself continues.
    script.change { $0.silent = [] }
    try await fake.events.request().cut()
    for await state in session.states where state == .connected { break }
    let late = Task { try await session.call("y") }
    try await fake.events.request().answer("1")
    #expect(try await late.value == "1")
  }

  @Test(.session) func aCancelledCallEndsAtOnceWhereverItIs() async throws {
    let sent = Task { try await session.decode(["A"]) }
    let first = try await fake.events.request()
    sent.cancel()
    await #expect(throws: CancellationError.self) { try await sent.value }
    let between = Task { try await session.decode(["B"]) }
    _ = try await fake.events.request()
    script.change { $0.silent = ["initialize"] }
    try await first.cut()
    let resumption = try await fake.events.request()
    between.cancel()
    await #expect(throws: CancellationError.self) { try await between.value }
    let waiting = Task { try await session.decode(["C"]) }
    waiting.cancel()
    await #expect(throws: CancellationError.self) { try await waiting.value }
    script.change { $0.silent = [] }
    try await resumption.cut()
    // None of them is sent again.
    async let next = session.call("next")
    let request = try await fake.events.request()
    #expect(request.request.method == "next")
    try await request.answer("1")
    _ = try await next
  }

  @Test(.session) func whatACancelledCallChangesIsFollowedAllTheSame() async throws {
    let object = try await session.register(ObjectRegistration("A"))
    let removal = Task { try await session.unregister(object) }
    let request = try await fake.events.request()
    removal.cancel()
    await #expect(throws: CancellationError.self) { try await removal.value }
    #expect(object.isRegistered)
    try await request.answer("{}")
    async let next = session.call("next")
    try await fake.events.request().answer("1")
    _ = try await next
    #expect(!object.isRegistered)
    script.change { $0.token = "gone" }
    try await request.cut()
    async let last = session.decode(["Other"])
    try await fake.events.request().answer(#"{"status":"none","state":null,"coder":null,"elements":[]}"#)
    _ = try await last
    #expect(script.registrations.count == 1)
  }

  @Test(.session) func manyCallsThroughManyConnectionsEndOnceEach() async throws {
    let calls = (0..<400).map { number in
      Task { try await session.decode(["N\(number)"]) }
    }
    for (number, call) in calls.enumerated() where number % 5 == 0 { call.cancel() }
    var answered = 0
    async let outcomes = withTaskGroup(of: Bool.self) { group in
      for call in calls { group.addTask { (try? await call.value) != nil } }
      return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    while answered < 320 {
      let request = try await fake.events.request()
      if answered % 40 == 39 { try await request.cut() }
      try await request.answer(#"{"status":"none","state":null,"coder":null,"elements":[]}"#)
      answered += 1
    }
    // Answers that went into a connection that had been cut are given again.
    let rest = Task {
      while !Task.isCancelled {
        try await fake.events.request().answer(#"{"status":"none","state":null,"coder":null,"elements":[]}"#)
      }
    }
    #expect(await outcomes >= 320)
    rest.cancel()
  }

  @Test(.session) func anEndReturnsWithoutABroker() async throws {
    let call = Task { try await session.call("x") }
    let first = try await fake.events.request()
    script.change { $0.silent = ["initialize"] }
    try await first.cut()
    _ = try await fake.events.request()
    #expect(await session.end(.restart, timeout: .milliseconds(20)) == false)
    #expect(session.state == .ended(.left(isConfirmed: false)))
    #expect((await thrownError { try await call.value } as? RestorationSessionError)?.code == .outcomeUnknown)
    #expect((await thrownError { try await session.call("y") } as? RestorationSessionError)?.code == .ended)
    #expect(await session.end(.restart) == false)
    #expect(try await fake.events.closed() != .protocolFault)
  }

  @Test(.session) func aCancelledEndReturnsAndEndsTheSessionAllTheSame() async throws {
    let end = Task { await session.end(.restart) }
    _ = try await fake.events.request()
    end.cancel()
    #expect(await end.value == false)
    #expect(session.state == .ended(.left(isConfirmed: false)))
  }

  @Test(.session) func anEndThatIsRefusedIsOneAllTheSame() async throws {
    async let end = session.end(.closed)
    async let same = session.end(.closed)
    try await fake.events.request().refuse(.restoration(.archiveUnreadable, "no", hint: ""))
    #expect(await end == false)
    #expect(await same == false)
  }

  @Test(.session) func aGoodbyeThatWasHeardIsNotSaidToTheSessionOpenedByMistake() async throws {
    async let end = session.end(.userQuit, timeout: .seconds(100))
    let first = try await fake.events.request()
    script.change { $0.token = "gone" }
    try await first.cut()
    #expect(await end)
    // That session is left with the reason that changes nothing.
    #expect(try await fake.events.request().text == #"goodbye {"reason":"restart"}"#)
  }

  @Test(.fakeBroker) func aSessionSaysGoodbyeWithTheLastReference() async throws {
    let script = SessionScript()
    fake.answers(script.answer)
    var session: RestorationSession? = try await .start(SessionOptions(application: "a"), socket: fake.path)
    #expect(session?.state == .connected)
    session = nil
    let goodbye = try await fake.events.request()
    #expect(goodbye.text == #"goodbye {"reason":"restart"}"#)
    try await goodbye.answer("{}")
    #expect(try await fake.events.closed() == .peerClosed)
  }

  @Test(.session) func aProgramStartedMeanwhileDoesNotHoldTheConnection() async throws {
    let child = try ChildProcess(["cat"])
    await session.end(.restart, timeout: .zero)
    // The broker would not see the end if another process had the connection open.
    _ = try await fake.events.closed()
    #expect(child.isRunning)
    child.closeInput()
    try child.waitForEnd()
  }

  @Test(.scratch) func startingFailsWhereThereIsNoBroker() async throws {
    let error = await thrownError {
      try await RestorationSession.start("a", socket: directory.file("b.sock"), withoutBroker: .fails)
    }
    #expect((error as? BrokerConnectionError)?.isNotRunning == true)
  }

  @Test(.fakeBroker) func startingFailsWhereTheBrokerRefuses() async throws {
    let script = SessionScript()
    script.change { $0.refusals = [.restoration(.alreadyServed, "p (7) is the delegate", hint: "")] }
    fake.answers(script.answer)
    let error = await thrownError {
      try await RestorationSession.start(SessionOptions(application: "a"), socket: fake.path)
    }
    #expect((error as? RestorationError)?.code == .alreadyServed)
    #expect(try await fake.events.closed() == .peerClosed)
  }

  // MARK: Notifications

  @Test(.session) func aSessionIsToldOfItsObjects() async throws {
    let connection = try await fake.events.opened()
    let main = try await session.register(ObjectRegistration("Main", restorationParent: ["Top"], position: 1))
    let other = try await session.register(ObjectRegistration("Other"))
    try await connection.onLoop { connection in
      for (method, text) in [
        ("pathChanged", #"{"object":101,"path":["New","Main#4"]}"#),
        ("pathChanged", #"{"object":999,"path":["Nobody"]}"#),
        ("registrationReplaced", #"{"object":102,"path":["Other"],"by":{"process":"q","pid":7}}"#),
      ] {
        connection.notify(method: method, parameters: JSONText(validated: Array(text.utf8)))
      }
    }
    var notifications = session.notifications.makeAsyncIterator()
    #expect(await notifications.next() == .pathChanged(main, path: ["New", "Main#4"]))
    #expect(
      await notifications.next()
        == .registrationReplaced(other, path: ["Other"], by: RestorationClient.ObjectOwner(process: "q", pid: 7))
    )
    #expect(main.path == ["New", "Main#4"])
    #expect(!other.isRegistered)
    let error = await thrownError { try await session.encode(.empty, for: other) } as? RestorationSessionError
    #expect(error?.code == .notRegistered)
    // It is registered again at its current path; an object that was taken over is not.
    script.change { $0.token = "gone" }
    try await connection.onLoop { $0.close(afterOutput: false) }
    async let outcome = session.encode(.empty, for: main)
    try await fake.events.request().answer(#"{"sequence":1,"durability":"disk"}"#)
    _ = try await outcome
    #expect(
      script.registrations.dropFirst(2) == [
        #"{"restorationIdentifier":"Main","restorationParent":["New"],"position":4,"#
          + #""awaitParentMilliseconds":10000}"#
      ]
    )
  }

  /// By the notification, or by what is answered to a call.
  @Test(.session, arguments: [true, false])
  func r36ASessionWhoseApplicationAnotherHostHasEndsAndDoesNotConnectAgain(isTold: Bool) async throws {
    let connection = try await fake.events.opened()
    let main = try await session.register(ObjectRegistration("Main"))
    let outcome = Task { [session] in try await session.encode(.empty, for: main) }
    let request = try await fake.events.request()
    if isTold {
      let lost = #"{"host":"tower","since":null,"unshipped":2}"#
      try await connection.onLoop { connection in
        connection.notify(method: "archiveLost", parameters: JSONText(validated: Array(lost.utf8)))
      }
      var notifications = session.notifications.makeAsyncIterator()
      #expect(await notifications.next() == .archiveLost(host: "tower", since: nil, unshipped: 2))
    }
    try await connection.onLoop {
      $0.respond(to: request.call, with: .error(.restoration(.fenced, "it is on tower", hint: "Continue there.")))
    }
    #expect((await thrownError { try await outcome.value } as? RestorationError)?.code == .fenced)
    var last: SessionState?
    for await state in session.states { last = state }
    guard case .ended(.refused(let refusal)) = last else { throw TestFailure("it goes on: \(session.state)") }
    #expect(refusal.code == .fenced)
    let later = await thrownError { try await session.encode(.empty, for: main) } as? RestorationSessionError
    #expect(later?.code == .ended && later?.refusal?.code == .fenced)
    #expect(await session.end(.restart) == false)
    #expect(try await fake.events.closed() == .peerClosed)
    #expect(script.connections == 1)
  }

  @Test(.session) func theSameRegistrationIsTheSameObject() async throws {
    let object = try await session.register(ObjectRegistration("A"))
    script.change { $0.silent = ["registerObjectForStateRestoration"] }
    async let again = session.register(ObjectRegistration("A", classes: ["C"]))
    try await fake.events.request().answer(
      #"{"object":101,"path":["A"],"included":true,"restoration":{"state":"none","classMatches":true}}"#
    )
    #expect(try await again == object)
    async let gone: Void = session.unregister(object, keepState: true)
    let request = try await fake.events.request()
    #expect(request.text == #"unregisterObject {"object":101,"keepState":true}"#)
    try await request.answer("{}")
    try await gone
    #expect(!object.isRegistered)
    let error = await thrownError { try await session.decode(object) } as? RestorationSessionError
    #expect(error?.code == .notRegistered)
  }
}
