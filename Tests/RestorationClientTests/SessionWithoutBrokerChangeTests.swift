// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import TestSupport
internal import Testing

/// States that are newer than those in memory, and brokers that are ending.
@Suite(.timeLimit(.minutes(1))) struct SessionWithoutBrokerChangeTests {
  private typealias Scene = WithoutBrokerScene

  @MainActor private final class Note {
    @Restorable("text") var text = ""
  }

  @Test(.fakeBroker) func aNewerStateIsNotEarlyForABrokerThatDoesNotResumeTheSession() async throws {
    let scene = try await Scene()
    let session = scene.session
    let main = try await session.register("Main")
    try await session.encode(["number": 1], for: main)
    try scene.brokerComes()
    try await Scene.expect(#"encodeRestorableState {"object":101,"state":{"number":1},"revision":1}"#)
    async let newer = session.encode(["number": 2], for: main)
    let push = try await fake.events.request()
    scene.script.change { ($0.token, $0.saved) = ("of the next broker", .available) }
    try await push.cut()
    // The program's state is saved.
    try await Scene.expect(#"decodeRestorableState {"object":102}"#, Scene.nothing)
    try await Scene.expect(#"encodeRestorableState {"object":102,"state":{"number":2},"revision":2}"#)
    #expect(try await newer == .stored(sequence: 1))
    #expect(scene.fresh("Main") == [true, false])
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
