// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import TestSupport
internal import Testing

/// A session over real sockets, at a broker that goes away at every point.
@Suite(.timeLimit(.minutes(2))) struct SessionTests {
  private static let state = RestorableState.empty

  private static func text(_ number: Int) throws -> RestorableState {
    try RestorableState(jsonText: #"{"n":\#(number)}"#)
  }

  // MARK: Sending again

  @Test(.session) func aStateThatWasNotAnsweredIsSentAgainUnderItsRevision() async throws {
    let object = try await session.register(ObjectRegistration("A"))
    async let outcome = session.encode(Self.state, for: object)
    let first = try await fake.events.request()
    #expect(first.text == #"encodeRestorableState {"object":101,"state":{},"revision":1}"#)
    try await first.cut()
    let second = try await fake.events.request()
    #expect(second.text == first.text)
    try await second.answer(#"{"superseded":true}"#)
    #expect(try await outcome == .superseded)
    #expect(session.info.session == "t1" && session.info.wasResumed)
  }

  @Test(.session) func aStateThatWasAnsweredIsNotSentAgain() async throws {
    let object = try await session.register(ObjectRegistration("A"))
    async let outcome = session.encode(Self.state, for: object)
    let first = try await fake.events.request()
    try await first.answer(#"{"sequence":7,"durability":"disk"}"#)
    #expect(try await outcome == .stored(sequence: 7))
    try await first.cut()
    async let next = session.encode(Self.state, for: object)
    let second = try await fake.events.request()
    #expect(second.request.parametersText.hasSuffix(#""revision":2}"#))
    try await second.answer(#"{"discarded":true}"#)
    #expect(try await next == .discarded)
  }

  @Test(.session) func theApplicationsOwnStateIsNumberedToo() async throws {
    async let outcome = session.encodeApplicationState(Self.state)
    let request = try await fake.events.request()
    #expect(request.text == #"encodeRestorableState {"object":[],"state":{},"revision":1}"#)
    try await request.answer(#"{"sequence":7,"durability":"disk"}"#)
    #expect(try await outcome == .stored(sequence: 7))
  }

  @Test(.session) func callsAreSentAgainInTheirOrderBeforeLaterOnes() async throws {
    let one = try await session.register(ObjectRegistration("A"))
    let other = try await session.register(ObjectRegistration("B"))
    var calls: [Task<EncodeOutcome, any Error>] = []
    var pending: [FakeBroker.Pending] = []
    for (number, object) in [one, other, one, one].enumerated() {
      calls.append(Task { try await session.encode(try Self.text(number), for: object) })
      pending.append(try await fake.events.request())
    }
    try await pending[1].answer(#"{"sequence":1,"durability":"disk"}"#)
    _ = try await calls[1].value
    // The session cannot resume before the next call is made.
    script.change { $0.silent = ["initialize"] }
    try await pending[0].cut()
    let resumption = try await fake.events.request()
    calls.append(Task { try await session.encode(try Self.text(4), for: other) })
    script.change { $0.silent = [] }
    try await resumption.cut()
    for number in [0, 2, 3, 4] {
      let again = try await fake.events.request()
      #expect(again.text.contains(#"{"n":\#(number)}"#))
      try await again.answer(#"{"sequence":2,"durability":"disk"}"#)
    }
    for call in calls { _ = try await call.value }
  }

  @Test(.session) func whatMustNotBeSentTwiceFailsWithAnUnknownOutcome() async throws {
    let first = Task { try await session.call("x", "[1]") }
    try await fake.events.request().cut()
    let error = await thrownError { try await first.value } as? RestorationSessionError
    #expect(error?.code == .outcomeUnknown)
    #expect(error?.message.contains("before x was answered") == true)
    let second = Task { try await session.discardApplicationState() }
    try await fake.events.request().cut()
    #expect((await thrownError { try await second.value } as? RestorationSessionError)?.code == .outcomeUnknown)
    async let third = session.call("y")
    try await fake.events.request().answer("[3]")
    #expect(try await third == "[3]")
  }

  @Test(.session) func r30AfterTheUserHasQuitTheApplicationCallsSayThatNothingIsStored() async throws {
    let object = try await session.register(ObjectRegistration("A"))
    let renaming = Task { try await session.setRestorationIdentifier(of: object, to: "B") }
    try await fake.events.request().answer(#"{"discarded":true}"#)
    #expect((await thrownError { try await renaming.value } as? RestorationSessionError)?.code == .discarded)
    script.change { $0.silent = ["registerObjectForStateRestoration"] }
    let registration = Task { try await session.register(ObjectRegistration("C")) }
    try await fake.events.request().answer(#"{"discarded":true}"#)
    let error = await thrownError { try await registration.value } as? RestorationSessionError
    #expect(error?.code == .discarded)
    #expect(error?.message.hasPrefix("registerObjectForStateRestoration has no effect") == true)
    #expect(session.object(at: ["C"]) == nil)
  }

  @Test(.session) func aWriteThatPerhapsFailedIsSentAgainToTheNextBroker() async throws {
    let object = try await session.register(ObjectRegistration("A"))
    async let outcome = session.encode(Self.state, for: object)
    let indeterminate = ErrorObject.restoration(
      .storeFailed,
      "the disk failed",
      hint: "Again.",
      details: ["indeterminate": true]
    )
    try await fake.events.request().refuse(indeterminate)
    try await fake.events.request().refuse(.restoration(.shuttingDown, "the broker is ending", hint: "Again."))
    try await fake.events.request().answer(#"{"superseded":true}"#)
    #expect(try await outcome == .superseded)
    let definite = ErrorObject.restoration(.storeFailed, "full", hint: "", details: ["indeterminate": false])
    let next = Task { try await session.encode(Self.state, for: object) }
    try await fake.events.request().refuse(definite)
    #expect((await thrownError { try await next.value } as? RestorationError)?.code == .storeFailed)
  }

  @Test(.session) func aBrokerThatEndsIsAskedAgainOverAConnectionThatStays() async throws {
    let object = try await session.register(ObjectRegistration("A"))
    async let slow = session.discardApplicationState()
    let waiting = try await fake.events.request()
    async let outcome = session.encode(Self.state, for: object)
    let first = try await fake.events.request()
    try await first.refuse(.restoration(.shuttingDown, "the broker is ending", hint: "Again."))
    let second = try await fake.events.request()
    #expect(second.text == first.text)
    #expect(second.connection === first.connection)
    try await second.answer(#"{"superseded":true}"#)
    #expect(try await outcome == .superseded)
    // A call that must not be sent twice is answered on its own connection.
    try await waiting.answer("{}")
    try await slow
    #expect(script.connections == 1)
  }

  @Test(.session) func statesTellHowThingsStand() async throws {
    var states = session.states.makeAsyncIterator()
    #expect(await states.next() == .connected)
    try await fake.events.opened().onLoop { $0.close(afterOutput: false) }
    guard case .reconnecting(let since) = await states.next() else { throw TestFailure("it is not reconnecting") }
    #expect(since <= .now)
    #expect(await states.next() == .connected)
    #expect(session.state == .connected)
    async let end = session.end(.closed)
    let goodbye = try await fake.events.request()
    #expect(goodbye.text == #"goodbye {"reason":"closed"}"#)
    try await goodbye.answer("{}")
    #expect(await end)
    #expect(await states.next() == .ended(.left(isConfirmed: true)))
    #expect(await states.next() == nil)
    var late = session.states.makeAsyncIterator()
    #expect(await late.next() == .ended(.left(isConfirmed: true)))
    #expect(await late.next() == nil)
  }

  // MARK: A broker that has lost the session

  @Test(.session) func aNewSessionRegistersEverythingAgainAsItIsNow() async throws {
    let main = try await session.register(ObjectRegistration("Main", kind: .viewController, classes: ["W"]))
    let list = try await session.register(ObjectRegistration("List", kind: .view, takeOver: true), below: main)
    let other = try await session.register(ObjectRegistration("Other", restorationParent: ["Else"]))
    let row = try await session.register(ObjectRegistration("Row", kind: .view), below: list)
    async let renamed = session.setRestorationIdentifier(of: main, to: "Window", position: 2)
    try await fake.events.request().answer(#"{"path":["Window#2"],"included":true}"#)
    #expect(try await renamed.path == ["Window#2"])
    async let ordered = session.setChildren(of: list, to: [row.reference])
    try await fake.events.request().answer(#"{"paths":[["Window#2","List","Row#0"]]}"#)
    #expect(try await ordered == [["Window#2", "List", "Row#0"]])
    async let moved = session.setRestorationParent(of: other, to: main.reference)
    try await fake.events.request().answer(#"{"path":["Window#2","Other"]}"#)
    #expect(try await moved == ["Window#2", "Other"])
    let encode = Task { try await session.encode(Self.state, for: row) }
    let first = try await fake.events.request()
    #expect(first.request.parametersText.hasPrefix(#"{"object":104,"#))
    script.change { $0.token = "other" }
    try await first.cut()
    let again = try await fake.events.request()
    #expect(again.text == #"encodeRestorableState {"object":108,"state":{},"revision":1}"#)
    try await again.answer(#"{"sequence":1,"durability":"disk"}"#)
    _ = try await encode.value
    #expect(
      script.registrations.dropFirst(4) == [
        #"{"restorationIdentifier":"Window","kind":"viewController","objectClass":"W","position":2}"#,
        #"{"restorationIdentifier":"List","restorationParent":105,"kind":"view"}"#,
        #"{"restorationIdentifier":"Other","restorationParent":105}"#,
        #"{"restorationIdentifier":"Row","restorationParent":106,"kind":"view","position":0}"#,
      ]
    )
    #expect(row.handle == 108 && row.path == ["Window#2", "List", "Row#0"] && row.isRegistered)
    #expect(session.info.session == "other+" && !session.info.wasResumed)
  }

  @Test(.session) func anObjectIsUnregisteredWhereTheBrokerDoesNotKnowItAnyMore() async throws {
    let object = try await session.register(ObjectRegistration("A"))
    let removal = Task { try await session.unregister(object) }
    try await fake.events.request().cut()
    try await fake.events.request().refuse(.restoration(.unknownObject, "gone", hint: ""))
    try await removal.value
    #expect(!object.isRegistered)
  }

  /// The archive may have been replaced by its backup, which knows the session and not all of its objects.
  @Test(.session) func objectsThatTheBrokerHasForgottenAreRegisteredAgain() async throws {
    let main = try await session.register(ObjectRegistration("Main"))
    let child = try await session.register(ObjectRegistration("Child"), below: main)
    let unknown = ErrorObject.restoration(.unknownObject, "the application has no such object", hint: "")
    async let one = session.encode(try Self.text(1), for: child)
    let first = try await fake.events.request()
    async let two = session.encode(try Self.text(2), for: child)
    let second = try await fake.events.request()
    script.change { $0.silent = ["registerObjectForStateRestoration"] }
    try await first.refuse(unknown)
    let again = try await fake.events.request()
    #expect(again.text.contains("Main"))
    try await second.refuse(unknown)
    script.change { $0.silent = [] }
    let registered =
      #"{"object":101,"path":["Main"],"included":true,"restoration":{"state":"none","classMatches":true}}"#
    try await again.answer(registered)
    for number in 1...2 {
      let request = try await fake.events.request()
      #expect(request.request.parametersText == #"{"object":103,"state":{"n":\#(number)},"revision":\#(number)}"#)
      try await request.answer(#"{"sequence":1,"durability":"disk"}"#)
    }
    _ = try await (one, two)
    // That is done once a connection.
    let third = Task { try await session.decode(main) }
    try await fake.events.request().refuse(unknown)
    #expect((await thrownError { try await third.value } as? RestorationError)?.code == .unknownObject)
  }

  /// A broker that has lost everything may give out the same handles again.
  @Test(.session) func handlesThatWereGivenOutBeforeMeanWhatTheyMeanNow() async throws {
    let one = try await session.register(ObjectRegistration("One"))
    let two = try await session.register(ObjectRegistration("Two"))
    script.change { state in
      state.token = "other"
      state.lastHandle = 100
      state.silent = ["registerObjectForStateRestoration"]
    }
    try await fake.events.opened().onLoop { $0.close(afterOutput: false) }
    let again = [try await fake.events.request(), try await fake.events.request()]
    async let third = session.register(ObjectRegistration("Three"))
    let new = try await fake.events.request()
    for (request, handle, name) in [(new, 102, "Three"), (again[1], 101, "Two"), (again[0], 103, "One")] {
      let registered = #"{"object":\#(handle),"path":["\#(name)"],"included":true,"#
      try await request.answer(registered + #""restoration":{"state":"none","classMatches":true}}"#)
    }
    let three = try await third
    #expect(Set([one, two, three]).count == 3)
    for object in [one, two, three] {
      async let decoded = session.decode(object)
      let request = try await fake.events.request()
      #expect(request.request.parametersText == #"{"object":\#(object.handle)}"#)
      try await request.answer(#"{"status":"none","state":null,"coder":null,"elements":[]}"#)
      _ = try await decoded
    }
    #expect([one.handle, two.handle, three.handle] == [103, 101, 102])
  }

  @Test(.session) func whatHasAnotherOwnerMeanwhileIsReportedAndLeftToIt() async throws {
    let main = try await session.register(ObjectRegistration("Main"))
    let child = try await session.register(ObjectRegistration("Child"), below: main)
    let encode = Task { try await session.encode(Self.state, for: main) }
    let first = try await fake.events.request()
    script.change { state in
      state.token = "other"
      state.refusedObjects["Main"] = .restoration(
        .duplicatePath,
        "Main is registered by other (7)",
        hint: "",
        path: ["Main"],
        details: ["owners": [["process": "other", "pid": 7]]]
      )
    }
    try await first.cut()
    let error = try #require(await thrownError { try await encode.value } as? RestorationSessionError)
    #expect(error.code == .notRegistered)
    #expect(error.refusal?.owners == [RestorationClient.ObjectOwner(process: "other", pid: 7)])
    #expect(error.description.contains("Main is no longer registered by this session"))
    var notifications = session.notifications.makeAsyncIterator()
    guard case .registrationLost(main, let refusal) = await notifications.next() else {
      throw TestFailure("the loss was not told")
    }
    #expect(refusal.code == .duplicatePath)
    #expect(!main.isRegistered && child.isRegistered)
    // Its child is below it all the same.
    async let outcome = session.encode(Self.state, for: child)
    try await fake.events.request().answer(#"{"sequence":1,"durability":"disk"}"#)
    _ = try await outcome
    #expect(script.registrations.last?.contains(#""restorationParent":["Main"]"#) == true)
    try await session.unregister(main)
  }

  @Test(.session) func aCompletedRestorationIsSaidAgainToANewSession() async throws {
    _ = try await session.register(ObjectRegistration("A"))
    async let pending = session.completeStateRestoration()
    let first = try await fake.events.request()
    #expect(first.text == "completeStateRestoration {}")
    try await first.answer(#"{"pending":0}"#)
    #expect(try await pending == 0)
    script.change { $0.token = "other" }
    try await first.cut()
    #expect(try await fake.events.request().text == "completeStateRestoration ")
    #expect(script.registrations.count == 2)
  }

  @Test(.session) func aSessionThatIsNotTakenBackEndsAndSaysWhy() async throws {
    let call = Task { try await session.call("x") }
    let first = try await fake.events.request()
    script.change { state in
      // Temporarily, and then permanently.
      state.refusals = [
        .limitExceeded("connectionsPerApplicationMax", max: 1, value: 2),
        .restoration(.alreadyServed, "p (7) is the delegate", hint: ""),
      ]
    }
    try await first.cut()
    #expect((await thrownError { try await call.value } as? RestorationSessionError)?.code == .outcomeUnknown)
    var last: SessionState?
    for await state in session.states { last = state }
    guard case .ended(.refused(let refusal)) = last else { throw TestFailure("it ended as \(last as Any)") }
    #expect(refusal.code == .alreadyServed)
    let error = await thrownError { try await session.call("y") } as? RestorationSessionError
    #expect(error?.code == .ended)
    #expect(error?.refusal == refusal)
    #expect(await session.end(.closed) == false)
  }

  @Test(.session) func aMessageIsHeldAgainstTheLimitsOfTheBrokerItGoesTo() async throws {
    let object = try await session.register(ObjectRegistration("A"))
    let large = try RestorableState(jsonText: #"{"t":"\#(String(repeating: "x", count: 200_000))"}"#)
    let encode = Task { try await session.encode(large, for: object) }
    let first = try await fake.events.request()
    script.change { $0.limits.frameBytesMax = 100_000 }
    try await first.cut()
    let error = await thrownError { try await encode.value } as? RestorationError
    #expect(error?.code == .limitExceeded)
    #expect(error?.limit?.name == "frameBytesMax")
  }
}
