// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import TestSupport
internal import Testing

/// What a program changes at paths that objects have left, before and while the first broker is told.
@Suite(.timeLimit(.minutes(1))) struct SessionWithoutBrokerChangeTests {
  private typealias Scene = WithoutBrokerScene

  @MainActor private final class Note {
    @Restorable("text") var text = ""
  }

  // MARK: Paths that objects have left

  @Test(.fakeBroker) func whatMovesToAPathThatWasToldFollowsTheRemovalAndIsNumberedAnew() async throws {
    let scene = try await Scene()
    let session = scene.session
    let window = try await session.register("Window")
    let tabs = [
      try await session.register(ObjectRegistration("Tab", position: 0), below: window),
      try await session.register(ObjectRegistration("Tab", position: 1), below: window),
    ]
    let other = try await session.register("Other", below: window)
    try await session.encode(["of": "the second"], for: tabs[1])
    try await session.encode(["of": "the first"], for: tabs[0])
    try await session.encode(["of": "Other"], for: other)
    try scene.brokerComes()
    try await Scene.expect(#"encodeRestorableState {"object":102,"state":{"of":"the first"},"revision":2}"#)
    try await Scene.expect(#"encodeRestorableState {"object":103,"state":{"of":"the second"},"revision":1}"#)
    let slow = try await fake.events.request()
    try await session.unregister(tabs[0])
    try await session.setChildren(of: window, to: [tabs[1].reference])
    try await slow.answer(Scene.stored)
    try await Scene.expect(#"unregisterObject {"object":105}"#, "{}")
    try await Scene.expect(#"unregisterObject {"object":106}"#, "{}")
    // A broker would take an older number for a state that it has.
    try await Scene.expect(#"encodeRestorableState {"object":107,"state":{"of":"the second"},"revision":4}"#)
    try await scene.becomes(.connected)
    let paths = (105...107).map { scene.script.path(of: $0)?.last }
    #expect(paths == ["Tab#0", "Tab#1", "Tab#0"])
    await scene.end()
  }

  @Test(.fakeBroker) func whatIsClosedAndOpenedAgainIsRemovedFirst() async throws {
    let scene = try await Scene()
    try await scene.session.unregister(try await scene.session.register("Main"))
    let main = try await scene.session.register("Main")
    // It waits for its parent, and must not be waited for.
    try await scene.session.register("Tab", below: main)
    try scene.brokerComes()
    let removal = try await fake.events.request()
    #expect(removal.text == #"unregisterObject {"object":101}"#)
    #expect(scene.fresh("Main") == [false])
    try await removal.answer("{}")
    try await scene.becomes(.connected)
    #expect(scene.fresh("Main") == [false, true])
    #expect(scene.script.path(of: 103) == ["Main", "Tab"])
    await scene.end()
  }

  @Test(.fakeBroker) func whatIsBelowAnObjectThatIsClosedAndForgottenStays() async throws {
    let scene = try await Scene()
    let session = scene.session
    let main = try await session.register("Main")
    let tab = try await session.register("Tab", below: main)
    try await session.encode(["of": "Tab"], for: tab)
    try await session.unregister(main)
    try await session.forget(["Main"])
    try scene.brokerComes()
    try await Scene.expect(#"encodeRestorableState {"object":102,"state":{"of":"Tab"},"revision":1}"#)
    try await Scene.expect(#"unregisterObject {"object":101}"#, "{}")
    try await Scene.expect(#"unregisterObject {"object":["Main"]}"#, "{}")
    try await scene.becomes(.connected)
    #expect(scene.script.path(of: 102) == ["Main", "Tab"] && tab.isRegistered)
    await scene.end()
  }

  @Test(.fakeBroker) func whatIsBelowAPathThatIsForgottenIsRegisteredBefore() async throws {
    let scene = try await Scene()
    let list = try await scene.session.register(ObjectRegistration("List", restorationParent: ["Foreign"]))
    for _ in 1...2 { try await scene.session.forget(["Foreign"]) }
    try scene.brokerComes()
    let removal = try await fake.events.request()
    #expect(removal.text == #"unregisterObject {"object":["Foreign"]}"#)
    #expect(scene.script.registrations.count == 1)
    try await removal.answer("{}")
    async let end = scene.session.end(.restart)
    try await Scene.expect(#"goodbye {"reason":"restart"}"#, "{}")
    #expect(await end)
    withExtendedLifetime(list) {}
  }

  @Test(.fakeBroker) func aStateThatIsKeptWaitsForItsParent() async throws {
    let scene = try await Scene()
    let session = scene.session
    let list = try await session.register(ObjectRegistration("List", restorationParent: ["Foreign"]))
    let row = try await session.register("Row", below: list)
    try await session.encode(["of": "Row"], for: row)
    try await session.unregister(row, keepState: true)
    let missing = ErrorObject.restoration(.unknownParent, "Foreign is unknown", hint: "Register it.")
    scene.script.change { $0.refusedObjects = ["List": missing, "Row": missing] }
    fake.answers { [script = scene.script] request in
      if script.registrations.count == 3 { script.change { $0.refusedObjects = [:] } }
      return script.answer(request)
    }
    try scene.brokerComes()
    try await Scene.expect(#"encodeRestorableState {"object":101,"state":{"of":"Row"},"revision":1}"#)
    try await Scene.expect(#"unregisterObject {"object":101,"keepState":true}"#, "{}")
    try await scene.becomes(.connected)
    await scene.end()
  }

  // MARK: States

  @Test(.fakeBroker) func aNewerStateIsNotEarlyForABrokerThatDoesNotResumeTheSession() async throws {
    let scene = try await Scene()
    let session = scene.session
    let (main, other) = (try await session.register("Main"), try await session.register("Other"))
    try await session.encode(["number": 1], for: main)
    scene.script.change { $0.refusedObjects = ["Other": Scene.storeFailed] }
    try scene.brokerComes()
    try await Scene.expect(#"encodeRestorableState {"object":101,"state":{"number":1},"revision":1}"#)
    try Wait.until("the answer is read") { scene.script.registrations.count >= 3 }
    try await session.encode(["number": 2], for: main)
    let push = try await fake.events.request()
    scene.script.change { ($0.token, $0.refusedObjects) = ("of the next broker", [:]) }
    try await push.cut()
    try await Scene.expect(#"encodeRestorableState {"object":102,"state":{"number":2},"revision":2}"#)
    #expect(scene.fresh("Main") == [true, true])
    try await scene.becomes(.connected)
    withExtendedLifetime(other) {}
    await scene.end()
  }

  @MainActor @Test(.fakeBroker) func propertiesThatHaveNoRoomArePushedAgain() async throws {
    let scene = try await Scene()
    let note = Note()
    try await scene.session.register("Note", binding: note)
    note.text = "typed"
    try scene.brokerComes()
    try await fake.events.request().refuse(.limitExceeded("archiveBytesMax", max: 1, value: 2))
    try await Scene.expect(#"encodeRestorableState {"object":101,"state":{"text":"typed"},"revision":2}"#)
    withExtendedLifetime(note) {}
    await scene.end()
  }

  // MARK: Newer states

  private final class Delegate: RestorationDelegate {
    func willEncodeRestorableState() -> RestorableState? { ["of": "a round"] }
  }

  @Test(.fakeBroker) func r15TheApplicationsOwnStateInMemoryDoesNotFollowThatOfARound() async throws {
    let delegate = Delegate()
    let scene = try await Scene(delegate: delegate)
    try await scene.session.encodeApplicationState(["of": "memory"])
    try scene.brokerComes()
    try await Scene.expect(#"decodeRestorableState {"object":[]}"#, Scene.nothing)
    try await fake.events.request().refuse(Scene.storeFailed)
    let push = try await fake.events.request()
    #expect(push.text == #"encodeRestorableState {"object":[],"state":{"of":"memory"},"revision":1}"#)
    try await push.connection.onLoop {
      _ = $0.call(method: "willEncodeRestorableState", parameters: JSONText(validated: Array(#"{"round":1}"#.utf8)))
    }
    guard case .result = try await fake.events.response() else { throw TestFailure("an error") }
    try await push.refuse(Scene.storeFailed)
    try await Scene.expect(#"encodeRestorableState {"object":[],"state":{"of":"a round"},"revision":2}"#)
    withExtendedLifetime(delegate) {}
    await scene.end()
  }

  @Test(.fakeBroker) func r15AStateInMemoryDoesNotFollowANewerOneThatHasNoAnswer() async throws {
    let scene = try await Scene(timeout: .milliseconds(100))
    let session = scene.session
    let main = try await session.register("Main")
    try await session.encode(["of": "memory"], for: main)
    try scene.brokerComes()
    try await fake.events.request().refuse(Scene.storeFailed)
    let push = try await fake.events.request()
    let newer = Task { try await session.encode(["of": "the program"], for: main) }
    let sent = try await fake.events.request()
    #expect(sent.text == #"encodeRestorableState {"object":101,"state":{"of":"the program"},"revision":2}"#)
    try scene.brokerGoes()
    try await push.cut()
    let error = await #expect(throws: RestorationSessionError.self) { try await newer.value }
    #expect(error?.code == .outcomeUnknown)
    scene.script.change { $0.token = "of the next broker" }
    try scene.brokerComes()
    try await Scene.expect(#"encodeRestorableState {"object":102,"state":{"of":"the program"},"revision":2}"#)
    await scene.end()
  }

  // MARK: The start

  @Test(.fakeBroker) func aBrokerThatIsEndingAtTheStartIsAwaited() async throws {
    let script = SessionScript()
    script.change { $0.silent = [Initialize.method] }
    fake.answers(script.answer)
    async let started = RestorationSession.start("a", socket: fake.path)
    let first = try await fake.events.request()
    let ending = ErrorObject.restoration(.shuttingDown, "the broker is ending", hint: "Call again.")
    script.change { ($0.silent, $0.refusals) = ([], [ending]) }
    try await first.cut()
    let session = try await started
    #expect(session.state == .connected)
    await session.end(.restart, timeout: .zero)
  }
}
