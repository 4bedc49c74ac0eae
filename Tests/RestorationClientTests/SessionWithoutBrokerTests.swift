// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire
internal import TestSupport
internal import Testing

/// Sessions that begin where no broker is, and a scripted broker that comes then.
@Suite(.timeLimit(.minutes(1))) struct SessionWithoutBrokerTests {
  /// A broker that comes when its socket has the name that the session looks for.
  private struct Scene {
    let script = SessionScript()
    let session: RestorationSession

    init() async throws {
      fake.answers(script.answer)
      session = try await RestorationSession.start(
        SessionOptions(application: "a", answersCalls: true),
        socket: directory.file("later.sock")
      )
    }

    func brokerComes() throws { try #require(symlink(fake.path, directory.file("later.sock")) == 0) }

    func end() async { await session.end(.restart, timeout: .zero) }
  }

  private static let storeFailed = ErrorObject.restoration(.storeFailed, "the disk is full", hint: "Make room.")

  // MARK: The machine

  private typealias Machine = RestorationSession.StateMachine

  private static func call(_ objects: [Int] = []) -> CallQueue.Call {
    CallQueue.Call(isIdempotent: true, objects: objects, bytes: 1)
  }

  @Test func aMachineThatIsAloneSendsAtOnceAndLooksForABrokerMoreAndMoreSlowly() {
    var machine = Machine(windowBytes: 100, timeout: 1_000, isAlone: true, at: 0)
    #expect(machine.connectFailed() == [.connect])
    var waits: [Int64] = []
    for ticket in 1...12 {
      guard case .wait(milliseconds: let milliseconds)? = machine.connectFailed().first else { break }
      waits.append(milliseconds)
      #expect(machine.submit(ticket, Self.call(), at: 0).contains(.send(ticket)))
      #expect(machine.answered(ticket, isFinal: true).first == .complete(ticket))
      #expect(machine.elapsed() == [.connect])
    }
    #expect(waits == [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 5_000, 5_000])
  }

  @Test func theFirstBrokerIsTaughtAllObjectsEvenIfItKnowsTheSession() {
    var machine = Machine(windowBytes: 100, timeout: nil, isAlone: true, at: 0)
    machine.registered(1, below: nil)
    machine.registered(2, below: 1)
    #expect(machine.connected() == [.initialize])
    #expect(machine.submit(1, Self.call([2]), at: 0) == [.send(1)])
    #expect(machine.answered(1, isFinal: true) == [.complete(1)])
    #expect(machine.lost(at: 0) == [.connect])
    #expect(machine.isAlone)
    _ = machine.connected()
    #expect(machine.initialized(isResumed: false, at: 0) == [.report(.connected), .register(1)])
    #expect(!machine.isAlone)
    #expect(machine.submit(2, Self.call([2]), at: 0) == [])
    #expect(machine.settled(1, isRegistered: true) == [.register(2)])
    #expect(machine.settled(2, isRegistered: true) == [.replay, .send(2)])
  }

  @Test func aMachineThatIsAloneEndsWithoutAGoodbye() {
    var machine = Machine(windowBytes: 100, timeout: nil, isAlone: true, at: 0)
    _ = machine.connectFailed()
    #expect(machine.look() == [])
    _ = machine.connectFailed()
    #expect(machine.look() == [.connect])
    #expect(
      machine.end(1, bytes: 0, at: 0) == [.close(leaving: false), .report(.ended(.left(isConfirmed: false)))]
    )
  }

  // MARK: Memory

  @Test(.fakeBroker, .scratch) func everythingIsAnsweredFromMemory() async throws {
    let scene = try await Scene()
    let session = scene.session
    #expect(session.state == .withoutBroker)
    #expect(session.info.restoration.state == .none)
    let editor = try await session.register(ObjectRegistration("Editor", restorationParent: ["Main"], position: 1))
    #expect(editor.path == ["Main", "Editor#1"])
    #expect(editor.included && !editor.existing && editor.state == .none)
    #expect(try await session.decode(editor).status == .none)
    let state = try RestorableState(jsonText: #"{"n":1e400,"front":{"$restorable":["Main"]}}"#)
    #expect(try await session.encode(state, for: editor) == .kept(sequence: 0))
    #expect(try await session.decode(editor).state == state)
    #expect(try await session.decode([]).status == .none)
    #expect(try await session.encodeApplicationState(["own": 1]) == .kept(sequence: 0))
    #expect(try await session.decode([]).state == ["own": 1])
    let again = try await session.register(ObjectRegistration("Editor", restorationParent: ["Main"], position: 1))
    #expect(again === editor && editor.existing && editor.state == .available)
    let saved = try await session.saveApplicationState()
    #expect(!saved.saved && saved.reason == "noBroker")
    #expect(try await session.restoreApplicationState().restored == [])
    #expect(try await session.completeStateRestoration() == 0)
    let raw = await thrownError { try await session.call("listGenerations") }
    #expect((raw as? BrokerConnectionError)?.code == .noBroker)
    let reopening = await thrownError { try await session.reopenObject() }
    #expect((reopening as? BrokerConnectionError)?.isNotRunning == true)
    let reserved = await thrownError { try await session.encode(["UIStateRestorationX": 1], for: editor) }
    #expect((reserved as? RestorationError)?.code == .reservedKey)
    let invalid = await thrownError { try await session.register("no/slash") }
    #expect((invalid as? RestorationError)?.code == .invalidIdentifier)
    #expect(await session.end(.closed) == false)
    #expect(session.state == .ended(.left(isConfirmed: false)))
  }

  @Test(.fakeBroker, .scratch) func aMoveTakesWhatIsBelowAlong() async throws {
    let scene = try await Scene()
    let session = scene.session
    let window = try await session.register("Window")
    let tabs = [
      try await session.register(ObjectRegistration("Tab", position: 0), below: window),
      try await session.register(ObjectRegistration("Tab", position: 1), below: window),
    ]
    let text = try await session.register("Text", below: tabs[1])
    try await session.encode(["next": .reference(text.reference)], for: window)
    #expect(
      try await session.setChildren(of: window, to: [tabs[1].reference, tabs[0].reference])
        == [["Window", "Tab#0"], ["Window", "Tab#1"]]
    )
    #expect(text.path == ["Window", "Tab#0", "Text"])
    try await session.setRestorationIdentifier(of: window, to: "Main")
    #expect(text.path == ["Main", "Tab#0", "Text"])
    #expect(session.object(at: ["Main", "Tab#1"]) === tabs[0])
    #expect(try await session.decode(window).state?["next"]?.reference == .object(text))
    let other = try await session.register("Other")
    let cycle = await thrownError { try await session.setRestorationParent(of: window, to: text.reference) }
    #expect((cycle as? RestorationError)?.code == .parentCycle)
    let taken = await thrownError { try await session.setRestorationIdentifier(of: other, to: "Main") }
    #expect((taken as? RestorationError)?.code == .duplicatePath)
    try await session.unregister(text)
    #expect(try await session.decode(window).state?["next"] == .null)
    await scene.end()
  }

  // MARK: A broker comes

  @Test(.fakeBroker, .scratch) func r29ABrokerThatComesLearnsAllOfItAndNothingIsDecodedOverIt() async throws {
    let scene = try await Scene()
    let session = scene.session
    scene.script.change { $0.saved = .available }
    let (main, tab) = (try await session.register("Main"), try await session.register("Tab"))
    let gone = try await session.register("Gone")
    try await session.encode(["old": true], for: main)
    try await session.encode(
      ["tab": .reference(tab.reference), "gone": .reference(gone.reference), "path": .reference(["Foreign"])],
      for: main
    )
    try await session.unregister(gone)
    try await session.completeStateRestoration()
    try scene.brokerComes()
    // What was removed comes first.
    let removal = try await fake.events.request()
    #expect(removal.text == #"unregisterObject {"object":["Gone"]}"#)
    #expect(session.state == .withoutBroker)
    try await removal.answer("{}")
    let push = try await fake.events.request()
    #expect(
      push.text == #"encodeRestorableState {"object":102,"state":{"gone":{"$restorable":null},"#
        + #""path":{"$restorable":["Foreign"]},"tab":{"$restorable":103}},"revision":2}"#
    )
    #expect(session.state == .connected)
    let again = scene.script.registrations.dropFirst()
    #expect(again.count == 2 && again.allSatisfy { $0.contains(#""fresh":true"#) })
    // The broker has not stored it yet.
    #expect(try await session.decode(main).state?["tab"]?.reference == .object(tab))
    try await push.answer(#"{"sequence":1,"durability":"disk"}"#)
    let complete = try await fake.events.request()
    #expect(complete.request.method == CompleteStateRestoration.method)
    try await complete.answer(#"{"pending":0}"#)
    async let decoded = session.decode(main)
    let asked = try await fake.events.request()
    #expect(asked.text == #"decodeRestorableState {"object":102}"#)
    try await asked.answer(#"{"status":"none","state":null,"coder":null}"#)
    #expect(try await decoded.status == .none)
    await scene.end()
  }

  @Test(.fakeBroker, .scratch) func whatIsLostMeanwhileIsSaidToTheNextBroker() async throws {
    let scene = try await Scene()
    let (main, gone) = (try await scene.session.register("Main"), try await scene.session.register("Gone"))
    try await scene.session.encode(["kept": true], for: main)
    try await scene.session.unregister(gone)
    try scene.brokerComes()
    try await fake.events.request().cut()
    let removal = try await fake.events.request()
    #expect(removal.request.method == UnregisterObject.method)
    try await removal.answer("{}")
    let first = try await fake.events.request()
    #expect(first.request.method == EncodeRestorableState.method)
    scene.script.change { $0.token = "of the next broker" }
    try await first.cut()
    let second = try await fake.events.request()
    #expect(second.request.parametersText.contains(#""state":{"kept":true},"revision":1"#))
    #expect(scene.script.registrations.last?.contains(#""fresh":true"#) == true)
    try await second.answer(#"{"sequence":1,"durability":"disk"}"#)
    await scene.end()
  }

  @Test(.fakeBroker, .scratch) func whatIsRefusedInPassingIsSaidAgain() async throws {
    let scene = try await Scene()
    let session = scene.session
    let main = try await session.register("Main")
    let gone = try await session.register("Gone")
    try await session.encode(["kept": true], for: main)
    try await session.unregister(gone)
    let script = scene.script
    script.change { $0.refusedObjects = ["Main": Self.storeFailed, "Gone": Self.storeFailed] }
    fake.answers { request in
      guard request.method == UnregisterObject.method else { return script.answer(request) }
      switch script.registrations.count(where: { $0.contains("Gone") }) {
      case 1:
        // What could not be registered cannot be removed either; that is no reason to forget it.
        script.change { $0.refusedObjects["Gone"] = nil }
        return .error(.restoration(.unknownObject, "Gone is unknown", hint: "Register it."))
      case 2: return .error(Self.storeFailed)
      default: return .text("{}")
      }
    }
    try scene.brokerComes()
    var states = session.states.makeAsyncIterator()
    while await states.next() != .connected {}
    #expect(script.registrations.count { $0.contains("Gone") } == 3)
    script.change { $0.refusedObjects = [:] }
    for refusal in [Self.storeFailed, .restoration(.invalidReference, "nothing is there", hint: "Register it.")] {
      let push = try await fake.events.request()
      #expect(push.request.method == EncodeRestorableState.method)
      try await push.refuse(refusal)
    }
    let last = try await fake.events.request()
    #expect(last.request.method == EncodeRestorableState.method)
    try await last.answer(#"{"sequence":1,"durability":"disk"}"#)
    #expect(main.isRegistered)
    await scene.end()
  }

  @Test(.fakeBroker, .scratch) func aNewerStateIsNotReplacedByWhatWasInMemory() async throws {
    let scene = try await Scene()
    let main = try await scene.session.register("Main")
    try await scene.session.encode(["from": "memory"], for: main)
    try scene.brokerComes()
    let old = try await fake.events.request()
    async let newer = scene.session.encode(["from": "later"], for: main)
    let push = try await fake.events.request()
    #expect(push.request.parametersText.contains(#""state":{"from":"later"},"revision":2"#))
    try await push.answer(#"{"sequence":1,"durability":"disk"}"#)
    #expect(try await newer == .stored(sequence: 1))
    try await old.refuse(Self.storeFailed)
    async let decoded = scene.session.decode(main)
    let asked = try await fake.events.request()
    #expect(asked.request.method == DecodeRestorableState.method)
    try await asked.answer(#"{"status":"none","state":null,"coder":null}"#)
    #expect(try await decoded.status == .none)
    await scene.end()
  }

  @Test(.fakeBroker, .scratch) func whatIsInMemoryIsToldBeforeTheGoodbye() async throws {
    let scene = try await Scene()
    let main = try await scene.session.register("Main")
    try await scene.session.encode(["kept": true], for: main)
    try scene.brokerComes()
    async let end = scene.session.end(.restart, timeout: .seconds(100))
    let push = try await fake.events.request()
    #expect(push.request.method == EncodeRestorableState.method)
    let goodbye = try await fake.events.request()
    #expect(goodbye.text == #"goodbye {"reason":"restart"}"#)
    try await push.answer(#"{"sequence":1,"durability":"disk"}"#)
    try await goodbye.answer("{}")
    #expect(await end)
  }

  @Test(.fakeBroker, .scratch) func aBrokerThatIsBeingStartedAgainIsAwaited() async throws {
    let (script, path) = (SessionScript(), directory.file("restorationd/broker.sock"))
    fake.answers(script.answer)
    try #require(mkdir(directory.file("restorationd"), 0o700) == 0)
    async let started = RestorationSession.start("a", socket: path)
    try #require(symlink(fake.path, path) == 0)
    let session = try await started
    #expect(session.state == .connected)
    await session.end(.restart, timeout: .zero)
  }

  @Test(.scratch) func whatIsNoSocketFailsAnyway() async throws {
    let error = await thrownError { try await RestorationSession.start("a", socket: "/dev/null/broker.sock") }
    #expect((error as? BrokerConnectionError)?.isNotRunning == false)
  }
}
