// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Observation
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import Synchronization
internal import TestSupport
internal import Testing

@MainActor @Observable final class ObservedEditor {
  @ObservationIgnored @Restorable("cursor") var cursor = 0
  var shown = 0
}

/// `@Restorable` properties, which are their object's state.
@Suite(.timeLimit(.minutes(2))) struct RestorablePropertyTests {
  @MainActor private class Base {
    @Restorable("title") var title: String?
  }

  @MainActor private final class Editor: Base {
    @Restorable("cursor") var cursor = 0
    @Restorable("folds") var folds: [Int] = []
    var other = 5
  }

  private actor Counter {
    @Restorable("count") var count = 0

    /// All of it is one turn.
    func add(_ times: Int) { for _ in 0..<times { count += 1 } }

    func register(in session: RestorationSession) async throws {
      try await session.register("Counter", binding: self)
    }

    /// Writes, and lets nobody in until the test says so.
    func addAndStay(_ gate: Gate) throws {
      add(1)
      gate.steps.withLock { $0 = 1 }
      try Wait.until("the gate is open") { gate.steps.withLock { $0 == 2 } }
    }
  }

  private final class Gate: Sendable { let steps = Mutex(0) }

  /// Answers the decode that comes with a registration.
  private static func answerDecode(
    _ state: String?,
    status: String? = nil,
    at broker: FakeBroker = fake
  ) async throws {
    let request = try await broker.events.request()
    #expect(request.request.method == DecodeRestorableState.method)
    let status = status ?? (state == nil ? "none" : "available")
    try await request.answer(#"{"status":"\#(status)","state":\#(state ?? "null"),"coder":null}"#)
  }

  /// The state of the next push, which is stored.
  private static func nextPush(
    of handle: Int = 101,
    number: Int,
    at broker: FakeBroker = fake
  ) async throws -> String {
    let request = try await broker.events.request()
    let prefix = #"encodeRestorableState {"object":\#(handle),"state":"#
    let suffix = #","revision":\#(number)}"#
    let text = request.text
    guard text.hasPrefix(prefix), text.hasSuffix(suffix) else { throw TestFailure("unexpected: \(text)") }
    try await request.answer(#"{"sequence":\#(number),"durability":"disk"}"#)
    return String(text.dropFirst(prefix.count).dropLast(suffix.count))
  }

  @MainActor
  private func registered<Object: AnyObject>(
    _ object: Object,
    saved: String?,
    status: String? = nil
  ) async throws -> RestorableObject {
    async let answer: Void = Self.answerDecode(saved, status: status)
    let registered = try await session.register("Editor", binding: object)
    try await answer
    return registered
  }

  @MainActor @Test(.session) func registeringRestoresAndWhatWasSetBeforeIsOverwritten() async throws {
    let editor = Editor()
    (editor.cursor, editor.title) = (9, "before")
    _ = try await registered(editor, saved: #"{"cursor":42,"title":"saved","folds":[1,2],"unknown":true}"#)
    #expect(editor.cursor == 42 && editor.title == "saved" && editor.folds == [1, 2])
    editor.title = nil
    #expect(try await Self.nextPush(number: 1) == #"{"cursor":42,"folds":[1,2],"title":null,"unknown":true}"#)
    #expect(editor.title == nil && editor.other == 5)
  }

  @MainActor @Test(.session) func aThousandWritesInOneTurnAreOnePushAndALaterOneIsAnother() async throws {
    let editor = Editor()
    _ = try await registered(editor, saved: nil)
    for number in 1...1_000 {
      editor.cursor = number
      editor.folds.append(number)
    }
    let folds = (1...1_000).map(String.init).joined(separator: ",")
    #expect(try await Self.nextPush(number: 1) == #"{"cursor":1000,"folds":[\#(folds)],"title":null}"#)
    (editor.folds, editor.cursor) = ([], 7)
    #expect(try await Self.nextPush(number: 2) == #"{"cursor":7,"folds":[],"title":null}"#)
  }

  @Test(.session) func theTurnsOfAnActorAreOnePushEach() async throws {
    let counter = Counter()
    async let answer: Void = Self.answerDecode(#"{"count":5}"#)
    try await counter.register(in: session)
    try await answer
    #expect(await counter.count == 5)
    await counter.add(1_000)
    #expect(try await Self.nextPush(number: 1) == #"{"count":1005}"#)
  }

  @Test(.session) func anActorMayBeRegisteredFromOutside() async throws {
    let counter = Counter()
    async let answer: Void = Self.answerDecode(nil)
    try await session.register("Counter", binding: counter)
    try await answer
    await counter.add(2)
    #expect(try await Self.nextPush(number: 1) == #"{"count":2}"#)
  }

  @MainActor @Test(.session) func propertiesStandBesideObservedOnes() async throws {
    let model = ObservedEditor()
    _ = try await registered(model, saved: #"{"cursor":3}"#)
    (model.shown, model.cursor) = (1, model.cursor + 1)
    #expect(try await Self.nextPush(number: 1) == #"{"cursor":4}"#)
  }

  /// It would be lost otherwise: there may be no further write.
  @MainActor @Test(.session) func whatWasSetBeforeAndIsNotSavedIsPushed() async throws {
    let editor = Editor()
    editor.cursor = 9
    _ = try await registered(editor, saved: nil)
    #expect(editor.cursor == 9)
    #expect(try await Self.nextPush(number: 1) == #"{"cursor":9,"folds":[],"title":null}"#)
  }

  /// A newer version of the program may have written it, and may come back.
  @MainActor @Test(.session) func aSavedValueOfAnotherTypeOrAnUnknownKeyStaysAndIsReported() async throws {
    let editor = Editor()
    editor.cursor = 9
    var notifications = session.notifications.makeAsyncIterator()
    let unknown = #""new":{"$date":"2026-02-28T09:05:00.042Z"},"old":{"$literal":{"$data":[1e2]}}"#
    let object = try await registered(editor, saved: #"{"cursor":"x","folds":[3],\#(unknown)}"#)
    #expect(editor.cursor == 9 && editor.folds == [3])
    guard case .propertiesFailed(object, let reason) = await notifications.next() else {
      throw TestFailure("another notification")
    }
    #expect(reason.hasPrefix("cursor: ") && reason.contains(#"not "x""#))
    editor.title = "new"
    #expect(try await Self.nextPush(number: 1) == #"{"cursor":"x","folds":[3],\#(unknown),"title":"new"}"#)
    editor.cursor = 10
    #expect(try await Self.nextPush(number: 2) == #"{"cursor":10,"folds":[3],\#(unknown),"title":"new"}"#)
  }

  @MainActor @Test(.session, arguments: ["classMismatch", "quarantined", "unreadable"])
  func aStateThatIsWithheldIsReported(_ status: String) async throws {
    var notifications = session.notifications.makeAsyncIterator()
    let object = try await registered(Editor(), saved: nil, status: status)
    let reason = "the saved state is withheld (\(status)); the next write replaces it"
    #expect(await notifications.next() == .propertiesFailed(object, because: reason))
  }

  @MainActor @Test(.session) func twoPropertiesOfOneKeyAreAnError() async throws {
    final class Twice {
      @Restorable("a") var one = 1
      @Restorable("a") var other = 2
    }
    do {
      _ = try await session.register("Editor", binding: Twice())
      Issue.record("it was registered")
    } catch let error as RestorationError {
      #expect(error.message == "two properties of the object have the key \"a\"")
    }
    #expect(script.registrations.isEmpty)
  }

  // MARK: Nothing is lost

  @MainActor @Test(.session) func aGoodbyeFollowsWhatWasWrittenBeforeIt() async throws {
    let editor = Editor()
    _ = try await registered(editor, saved: nil)
    editor.cursor = 1
    #expect(try await Self.nextPush(number: 1).hasPrefix(#"{"cursor":1,"#))
    editor.cursor = 2
    async let end = session.end(.restart)
    // No time passes between the write and the goodbye.
    #expect(try await Self.nextPush(number: 2).hasPrefix(#"{"cursor":2,"#))
    let goodbye = try await fake.events.request()
    #expect(goodbye.request.method == Goodbye.method)
    try await goodbye.answer("{}")
    #expect(await end)
  }

  @MainActor @Test(.session) func aRoundFollowsWhatWasWrittenBeforeIt() async throws {
    let editor = Editor()
    _ = try await registered(editor, saved: nil)
    editor.cursor = 1
    let saving = Task { try await session.saveApplicationState() }
    #expect(try await fake.events.request().request.method == EncodeRestorableState.method)
    // The push has no answer yet; the calls keep their order all the same, and can be cancelled.
    #expect(try await fake.events.request().request.method == SaveApplicationState.method)
    saving.cancel()
    await #expect(throws: CancellationError.self) { try await saving.value }
  }

  @Test(.session) func anObjectThatIsBusyDoesNotHoldTheGoodbyeUpForLongerThanItsTime() async throws {
    let (counter, gate) = (Counter(), Gate())
    async let answer: Void = Self.answerDecode(nil)
    try await session.register("Counter", binding: counter)
    try await answer
    let busy = Task { try await counter.addAndStay(gate) }
    try Wait.until("the object is busy") { gate.steps.withLock { $0 == 1 } }
    #expect(await session.end(.closed, timeout: .zero) == false)
    #expect(try await fake.events.request().text == #"goodbye {"reason":"closed"}"#)
    gate.steps.withLock { $0 = 2 }
    try await busy.value
  }

  @MainActor @Test(.session) func aGoodbyeDoesNotWaitForTheAnswersToPushes() async throws {
    let editor = Editor()
    _ = try await registered(editor, saved: nil)
    editor.cursor = 1
    let push = try await fake.events.request()
    editor.cursor = 2
    async let end = session.end(.restart)
    #expect(try await fake.events.request().text.contains(#""cursor":2"#))
    let goodbye = try await fake.events.request()
    #expect(goodbye.request.method == Goodbye.method)
    try await push.answer(#"{"sequence":1,"durability":"disk"}"#)
    try await goodbye.answer("{}")
    #expect(await end)
  }

  /// The broker may have lost what it kept of an object.
  @MainActor @Test(.scene) func whatTheBrokerWantsIsPushed() async throws {
    let editor = Editor()
    async let answer: Void = Self.answerDecode(#"{"cursor":3}"#, at: scene.broker)
    try await scene.session.register("Editor", binding: editor)
    try await answer
    try await scene.notify("stateWanted", #"{"object":101,"path":["Editor"]}"#)
    #expect(try await Self.nextPush(number: 1, at: scene.broker).hasPrefix(#"{"cursor":3,"#))
    // Without a round, and in one that another process asks for.
    for (round, number) in [(0, 2), (1, 3)] {
      if round > 0 { editor.cursor = 4 }
      let objects = #"[{"object":101,"path":["Editor"]}]"#
      try await scene.call("encodeRestorableStateWithCoder", #"{"round":\#(round),"objects":\#(objects)}"#)
      #expect(try await Self.nextPush(number: number, at: scene.broker).hasPrefix(#"{"cursor":\#(3 + round),"#))
      // The push is there before the answer.
      guard case .result(let states) = try await scene.broker.events.response() else { throw TestFailure("an error") }
      #expect(states.compactText.string == #"{"states":[{"object":101,"unchanged":true}]}"#)
    }
  }

  @MainActor @Test(.session) func whatWasWrittenBeforeAnObjectIsUnregisteredIsKeptWithItsState() async throws {
    let editor = Editor()
    let object = try await registered(editor, saved: nil)
    editor.cursor = 1
    let unregistering = Task { try await session.unregister(object, keepState: true) }
    #expect(try await Self.nextPush(number: 1).hasPrefix(#"{"cursor":1,"#))
    try await fake.events.request().answer("{}")
    try await unregistering.value
  }

  @MainActor @Test(.session) func anotherObjectAtThePathGetsWhatWasWrittenToTheFormer() async throws {
    let (former, latter) = (Editor(), Editor())
    let object = try await registered(former, saved: nil)
    former.cursor = 1
    // The broker knows the path.
    script.change { $0.lastHandle = 100 }
    let registering = Task { try await session.register("Editor", binding: latter) }
    let state = try await Self.nextPush(number: 1)
    try await Self.answerDecode(state)
    #expect(try await registering.value == object && latter.cursor == 1)
    former.cursor = 2
    latter.cursor += 2
    #expect(try await Self.nextPush(number: 2).hasPrefix(#"{"cursor":3,"#))
  }

  @MainActor @Test(.fakeBroker) func aSessionThatIsReleasedPushesWhatWasWritten() async throws {
    let script = SessionScript()
    fake.answers(script.answer)
    @MainActor func live() async throws {
      let session = try await RestorationSession.start("a", socket: fake.path)
      let editor = Editor()
      async let answer: Void = Self.answerDecode(nil)
      try await session.register("Editor", binding: editor)
      try await answer
      editor.cursor = 1
      withExtendedLifetime(session) {}
    }
    // Session and object are gone when it returns.
    try await live()
    #expect(try await Self.nextPush(number: 1).hasPrefix(#"{"cursor":1,"#))
    #expect(try await fake.events.closed() == .peerClosed)
  }

  @MainActor @Test(.session) func whatCouldNotBeStoredIsReportedOnceAndPushedAgain() async throws {
    let editor = Editor()
    let object = try await registered(editor, saved: nil)
    var notifications = session.notifications.makeAsyncIterator()
    editor.cursor = 1
    for _ in 1...2 {
      try await fake.events.request().refuse(.restoration(.storeFailed, "the disk is full", hint: "Make room."))
    }
    guard case .propertiesFailed(object, let reason) = await notifications.next() else {
      throw TestFailure("another notification")
    }
    #expect(reason == "the disk is full. Make room.")
    // Without another write.
    #expect(try await Self.nextPush(number: 3).hasPrefix(#"{"cursor":1,"#))
    editor.cursor = 2
    try await fake.events.request().refuse(.restoration(.storeFailed, "the disk is broken", hint: ""))
    guard case .propertiesFailed(object, let other) = await notifications.next() else {
      throw TestFailure("another notification")
    }
    #expect(other.hasPrefix("the disk is broken"))
  }

  @MainActor @Test(.session) func anObjectThatIsGoneOrUnregisteredIsNotPushed() async throws {
    let editor = Editor()
    let object = try await registered(editor, saved: nil)
    let unregistering = Task { try await session.unregister(object) }
    try await fake.events.request().answer("{}")
    try await unregistering.value
    editor.cursor = 1
    async let end = session.end(.restart)
    let goodbye = try await fake.events.request()
    #expect(goodbye.request.method == Goodbye.method)
    try await goodbye.answer("{}")
    #expect(await end)
  }
}
