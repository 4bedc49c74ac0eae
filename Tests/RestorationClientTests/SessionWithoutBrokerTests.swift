// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import NIOCore
internal import NIOPosix
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import Synchronization
internal import TestSupport
internal import Testing

/// Sessions that begin where no broker is, and a scripted broker that comes then.
@Suite(.timeLimit(.minutes(1))) struct SessionWithoutBrokerTests {
  private typealias Scene = WithoutBrokerScene

  private final class Editor: StateRestoring {
    func encodeRestorableState() -> ObjectState { ObjectState(["of": "Editor"]) }
    func decodeRestorableState(_ saved: ObjectState) {}
  }

  @MainActor private final class Note {
    @Restorable("text") var text = ""
  }

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

  @Test func aMachineThatIsAloneRegistersEverythingWhenABrokerComes() {
    var machine = Machine(windowBytes: 100, timeout: nil, isAlone: true, at: 0)
    machine.registered(1, below: nil)
    machine.registered(2, below: nil)
    machine.registered(3, below: 2)
    #expect(machine.connected() == [.initialize])
    #expect(machine.submit(1, Self.call([2]), at: 0) == [.send(1)])
    #expect(machine.answered(1, isFinal: true) == [.complete(1)])
    #expect(machine.lost(at: 0) == [.connect])
    #expect(machine.isAlone)
    _ = machine.connected()
    #expect(
      machine.initialized(isResumed: false, at: 0) == [.report(.connected), .register(1), .register(2)]
    )
    #expect(!machine.isAlone)
    #expect(machine.submit(2, Self.call([3]), at: 0) == [])
    #expect(machine.settled(1, isRegistered: true) == [])
    #expect(machine.settled(2, isRegistered: true) == [.register(3)])
    #expect(machine.settled(3, isRegistered: true) == [.replay, .send(2)])
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

  @Test(.fakeBroker) func everythingIsAnsweredFromMemory() async throws {
    let scene = try await Scene()
    let session = scene.session
    #expect(session.state == .withoutBroker)
    #expect(session.info.restoration.state == .none)
    let editor = try await session.register(ObjectRegistration("Editor", restorationParent: ["Main"], position: 1))
    #expect(editor.path == ["Main", "Editor#1"])
    #expect(editor.included && !editor.existing && editor.state == .none)
    #expect(try await session.decode(editor).status == .none)
    let state = try RestorableState(jsonText: #"{"n":1e400,"front":{"$restorable":["Main"]}}"#)
    #expect(try await session.encode(state, for: editor) == .unsaved(sequence: 0))
    #expect(try await session.decode(editor).state == state)
    #expect(try await session.decode([]).status == .none)
    #expect(try await session.encodeApplicationState(["own": 1]) == .unsaved(sequence: 0))
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
    let forgetting = await thrownError { try await session.forget(["Old"]) }
    #expect((forgetting as? BrokerConnectionError)?.isNotRunning == true)
    let reserved = await thrownError { try await session.encode(["UIStateRestorationX": 1], for: editor) }
    #expect((reserved as? RestorationError)?.code == .reservedKey)
    let invalid = await thrownError { try await session.register("no/slash") }
    #expect((invalid as? RestorationError)?.code == .invalidIdentifier)
    #expect(await session.end(.closed) == false)
    #expect(session.state == .ended(.left(isConfirmed: false)))
  }

  @Test(.fakeBroker) func aMoveTakesWhatIsBelowAlong() async throws {
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

  @Test(.fakeBroker) func aStateThatWasKeptIsGivenToTheNextObject() async throws {
    let scene = try await Scene()
    let session = scene.session
    let main = try await session.register("Main")
    try await session.encode(["kept": true], for: main)
    try await session.unregister(main, keepState: true)
    let next = try await session.register("Main")
    #expect(next !== main && next.state == .available)
    #expect(try await session.decode(next).state == ["kept": true])
    try await session.unregister(next, keepState: true)
    let new = try await session.register(ObjectRegistration("Main", fresh: true))
    #expect(new.state == .none)
    #expect(try await session.decode(new).status == .none)
    try await session.unregister(new)
    try await session.encode(["kept": 1], for: try await session.register("Main"))
    let other = try await session.register("Other")
    try await session.encode(["kept": 2], for: other)
    try await session.unregister(other, keepState: true)
    try scene.brokerComes()
    let pushes = [try await fake.events.request().text, try await fake.events.request().text]
    #expect(
      pushes.sorted() == [
        #"encodeRestorableState {"object":101,"state":{"kept":1},"revision":2}"#,
        #"encodeRestorableState {"object":["Other"],"state":{"kept":2},"revision":3}"#,
      ]
    )
    #expect(scene.script.registrations.count == 1)
    await scene.end()
  }

  // MARK: A broker comes

  @Test(.fakeBroker) func r29ABrokerThatComesLearnsAllOfItAndNothingIsDecodedOverIt() async throws {
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
    try await session.extendStateRestoration()
    try scene.brokerComes()
    let extend = try await fake.events.request()
    #expect(extend.request.method == ExtendStateRestoration.method)
    let push = try await fake.events.request()
    #expect(
      push.text == #"encodeRestorableState {"object":101,"state":{"gone":{"$restorable":null},"#
        + #""path":{"$restorable":["Foreign"]},"tab":{"$restorable":102}},"revision":2}"#
    )
    #expect(scene.script.registrations.map { $0.contains(#""fresh":true"#) } == [true, true])
    #expect(session.state == .connected)
    // The broker has not stored it yet.
    #expect(try await session.decode(main).state?["tab"]?.reference == .object(tab))
    try await push.answer(Scene.stored)
    // Its answer comes after that of the push.
    async let pong = session.call("ping")
    _ = try await pong
    async let decoded = session.decode(main)
    try await Scene.expect(#"decodeRestorableState {"object":101}"#, Scene.nothing)
    #expect(try await decoded.status == .none)
    // The next broker is told of the restoring too.
    scene.script.change { ($0.token, $0.saved) = ("of the next broker", .none) }
    try await extend.cut()
    #expect(try await fake.events.request().request.method == ExtendStateRestoration.method)
    #expect(scene.fresh("Main") == [true, false] && scene.fresh("Tab") == [true, true])
    await scene.end()
  }

  @Test(.fakeBroker) func whatIsLostMeanwhileIsSaidToTheNextBroker() async throws {
    let scene = try await Scene()
    let main = try await scene.session.register("Main")
    try await scene.session.encode(["kept": true], for: main)
    try scene.brokerComes()
    let push = try await fake.events.request()
    #expect(push.text == #"encodeRestorableState {"object":101,"state":{"kept":true},"revision":1}"#)
    scene.script.change { $0.token = "of the next broker" }
    try await push.cut()
    // It does not know the object, and may not have the state.
    try await Scene.expect(#"encodeRestorableState {"object":102,"state":{"kept":true},"revision":1}"#)
    #expect(scene.fresh("Main") == [true, true])
    await scene.end()
  }

  @Test(.fakeBroker) func whatWasUnregisteredIsNotRemovedAtTheBroker() async throws {
    let scene = try await Scene()
    let session = scene.session
    let window = try await session.register("Window")
    let tab = try await session.register("Tab", below: window)
    try await session.register("Text", below: tab)
    try await session.unregister(window)
    try await session.unregister(tab)
    try scene.brokerComes()
    async let end = session.end(.restart)
    try await Scene.expect(#"goodbye {"reason":"restart"}"#, "{}")
    #expect(await end)
    #expect(scene.script.path(of: 101) == ["Window", "Tab", "Text"] && scene.script.registrations.count == 1)
  }

  // MARK: Refusals

  @Test(.fakeBroker) func aRegistrationThatIsRefusedInPassingHoldsNothingUp() async throws {
    let scene = try await Scene()
    let session = scene.session
    let (main, other) = (try await session.register("Main"), try await session.register("Other"))
    let child = try await session.register("Child", below: main)
    try await session.encode(["of": "Main"], for: main)
    try await session.encode(["of": "Other"], for: other)
    try await session.encode(["of": "Child"], for: child)
    scene.script.change { $0.refusedObjects = ["Main": Scene.storeFailed] }
    try scene.brokerComes()
    try await Scene.expect(#"encodeRestorableState {"object":101,"state":{"of":"Other"},"revision":2}"#)
    #expect(session.state == .connected && main.isRegistered)
    scene.script.change { $0.refusedObjects = [:] }
    // It is said again within a second.
    try await Scene.expect(#"encodeRestorableState {"object":102,"state":{"of":"Main"},"revision":1}"#)
    try await Scene.expect(#"encodeRestorableState {"object":103,"state":{"of":"Child"},"revision":3}"#)
    await scene.end()
  }

  @Test(.fakeBroker) func whatIsRefusedForGoodIsDroppedAndHoldsNothingUp() async throws {
    let scene = try await Scene()
    let session = scene.session
    let (main, taken) = (try await session.register("Main"), try await session.register("Taken"))
    try await session.encode(["of": "Main"], for: main)
    try await session.encodeApplicationState(["own": true])
    let refusal = ErrorObject.restoration(.duplicatePath, "another process has it", hint: "Use another.")
    scene.script.change { $0.refusedObjects = ["Taken": refusal] }
    var notifications = session.notifications.makeAsyncIterator()
    try scene.brokerComes()
    for _ in 0..<2 {
      let request = try await fake.events.request()
      #expect(request.request.method == EncodeRestorableState.method)
      try await request.refuse(.limitExceeded("archiveBytesMax", max: 1, value: 2))
    }
    guard case .registrationLost(taken, _) = await notifications.next() else { throw TestFailure("another one") }
    async let end = session.end(.restart)
    try await Scene.expect(#"goodbye {"reason":"restart"}"#, "{}")
    #expect(await end && !taken.isRegistered)
  }

  @Test(.fakeBroker) func aBrokerThatIsEndingRefusesNothingForGood() async throws {
    let scene = try await Scene()
    let main = try await scene.session.register("Main")
    try await scene.session.encode(["of": "Main"], for: main)
    let refusal = ErrorObject.restoration(.shuttingDown, "the broker is ending", hint: "Call again.")
    scene.script.change { $0.refusals = [refusal] }
    try scene.brokerComes()
    try await fake.events.request().refuse(refusal)
    try await Scene.expect(#"encodeRestorableState {"object":101,"state":{"of":"Main"},"revision":1}"#)
    try await scene.becomes(.connected)
    await scene.end()
  }

  @Test(.fakeBroker) func aStateThatIsRefusedInPassingFollowsUnlessThereIsANewerOne() async throws {
    let scene = try await Scene()
    let session = scene.session
    let main = try await session.register("Main")
    try await session.encode(["of": "Main"], for: main)
    try scene.brokerComes()
    let invalid = ErrorObject.restoration(.invalidReference, "nothing is there", hint: "Register it.")
    for refusal in [invalid, Scene.storeFailed] { try await fake.events.request().refuse(refusal) }
    let push = try await fake.events.request()
    #expect(push.text == #"encodeRestorableState {"object":101,"state":{"of":"Main"},"revision":1}"#)
    #expect(try await session.decode(main).state == ["of": "Main"])
    async let newer = session.encode(["of": "the new Main"], for: main)
    try await Scene.expect(#"encodeRestorableState {"object":101,"state":{"of":"the new Main"},"revision":2}"#)
    #expect(try await newer == .stored(sequence: 1))
    try await push.refuse(Scene.storeFailed)
    async let decoded = session.decode(main)
    try await Scene.expect(#"decodeRestorableState {"object":101}"#, Scene.nothing)
    #expect(try await decoded.status == .none)
    await scene.end()
  }

  @Test(.fakeBroker) func anObjectWhoseParentIsMissingWaitsForItAtTheBroker() async throws {
    let scene = try await Scene()
    let session = scene.session
    let list = try await session.register(ObjectRegistration("List", restorationParent: ["Foreign"]))
    let row = try await session.register("Row", below: list)
    try await session.encode(["of": "Row"], for: row)
    try scene.brokerComes()
    try await Scene.expect(#"encodeRestorableState {"object":102,"state":{"of":"Row"},"revision":1}"#)
    let awaits = scene.script.registrations.map { $0.contains(#""awaitParentMilliseconds":10000"#) }
    #expect(awaits == [true, false])
    await scene.end()
  }

  // MARK: Objects that are asked, and properties

  @Test(.fakeBroker) func r15WhatIsInMemoryReplacesNothingNewerInAnotherSession() async throws {
    let scene = try await Scene()
    let (session, editor) = (scene.session, Editor())
    let asked = try await session.register("Asked", restoring: editor)
    let pushed = try await session.register("Pushed")
    for object in [asked, pushed] { try await session.encode(["of": "memory"], for: object) }
    try scene.brokerComes()
    var invalidations = 0
    for _ in 0..<3 {
      let request = try await fake.events.request()
      guard request.text != #"invalidateRestorableState {"object":101}"# else {
        invalidations += 1
        continue
      }
      try await request.refuse(Scene.storeFailed)
    }
    #expect(invalidations == 1)
    let pushes = [try await fake.events.request(), try await fake.events.request()]
    #expect(pushes.map(\.request.method) == [EncodeRestorableState.method, EncodeRestorableState.method])
    async let newer = session.encode(["of": "the program"], for: pushed)
    try await Scene.expect(#"encodeRestorableState {"object":102,"state":{"of":"the program"},"revision":3}"#)
    #expect(try await newer == .stored(sequence: 1))
    try await pushes[0].connection.onLoop {
      let objects = #"{"round":1,"objects":[{"object":101,"path":["Asked"]}]}"#
      _ = $0.call(method: "encodeRestorableStateWithCoder", parameters: JSONText(validated: Array(objects.utf8)))
    }
    _ = try await fake.events.response()
    scene.script.change { $0.token = "of the next broker" }
    try await pushes[0].cut()
    // Only what the round was given follows, and that the object has changed.
    let last = [try await fake.events.request(), try await fake.events.request()]
    #expect(
      last.map(\.text).sorted() == [
        #"encodeRestorableState {"object":103,"state":{"of":"Editor"},"revision":4}"#,
        #"invalidateRestorableState {"object":103}"#,
      ]
    )
    for request in last { try await request.answer(Scene.stored) }
    async let end = session.end(.restart)
    try await Scene.expect(#"goodbye {"reason":"restart"}"#, "{}")
    #expect(await end)
    withExtendedLifetime(editor) {}
  }

  @Test(.fakeBroker) func anObjectThatARoundHasAskedStaysFresh() async throws {
    let scene = try await Scene()
    let editor = Editor()
    let main = try await scene.session.register("Main", restoring: editor)
    try scene.brokerComes()
    let invalidation = try await fake.events.request()
    #expect(invalidation.text == #"invalidateRestorableState {"object":101}"#)
    try await invalidation.connection.onLoop {
      let objects = #"{"round":1,"objects":[{"object":101,"path":["Main"]}]}"#
      _ = $0.call(method: "encodeRestorableStateWithCoder", parameters: JSONText(validated: Array(objects.utf8)))
    }
    guard case .result(let states) = try await fake.events.response() else { throw TestFailure("an error") }
    #expect(states.compactText.string.contains(#""state":{"of":"Editor"}"#))
    scene.script.change { $0.token = "of the next broker" }
    try await invalidation.cut()
    try Wait.until("it is registered again") { scene.script.registrations.count == 2 }
    #expect(scene.script.registrations.map { $0.contains(#""fresh":true"#) } == [true, true])
    withExtendedLifetime((main, editor)) {}
    await scene.end()
  }

  @MainActor @Test(.fakeBroker) func writtenPropertiesAreSavedAlsoIfTheSessionIsReleased() async throws {
    @MainActor func live() async throws {
      let scene = try await Scene()
      let note = Note()
      try await scene.session.register("Note", binding: note)
      note.text = "typed"
      try scene.brokerComes()
    }
    try await live()
    try await Scene.expect(#"encodeRestorableState {"object":101,"state":{"text":"typed"},"revision":1}"#)
    try await Scene.expect(#"goodbye {"reason":"restart"}"#, "{}")
    #expect(try await fake.events.closed() == .peerClosed)
  }

  @Test(.fakeBroker) func whatIsInMemoryIsToldBeforeTheGoodbye() async throws {
    let scene = try await Scene()
    let main = try await scene.session.register("Main")
    try await scene.session.encode(["kept": true], for: main)
    try scene.brokerComes()
    async let end = scene.session.end(.restart, timeout: .seconds(100))
    try await Scene.expect(#"encodeRestorableState {"object":101,"state":{"kept":true},"revision":1}"#)
    try await Scene.expect(#"goodbye {"reason":"restart"}"#, "{}")
    #expect(await end)
  }

  @Test(.fakeBroker) func theEndWaitsForNoBrokerThatRefuses() async throws {
    let scene = try await Scene()
    _ = try await scene.session.register("Main")
    scene.script.change { $0.refusals = Array(repeating: Scene.storeFailed, count: 100) }
    try scene.brokerComes()
    #expect(await scene.session.end(.restart, timeout: .seconds(100)) == false)
  }

  @Test(.fakeBroker) func aBrokerThatIsBeingStartedAgainIsAwaited() async throws {
    let directory = fake.path.replacing("b.sock", with: "restorationd")
    let (script, path) = (SessionScript(), directory + "/broker.sock")
    fake.answers(script.answer)
    try #require(mkdir(directory, 0o700) == 0)
    let route = RestartingRoute(path: path, leadsTo: fake.path)
    let session = try await RestorationSession.start(
      SessionOptions(application: "a"),
      by: route,
      withoutBroker: .memory
    )
    #expect(session.state == .connected)
    try await session.register("Main")
    #expect(script.registrations.map { $0.contains("fresh") } == [false])
    await session.end(.restart, timeout: .zero)
  }

  @Test func whatIsNoSocketFailsAnyway() async throws {
    let error = await thrownError { try await RestorationSession.start("a", socket: "/dev/null/broker.sock") }
    #expect((error as? BrokerConnectionError)?.isNotRunning == false)
  }
}

/// The way to a broker that is there after the third try.
private final class RestartingRoute: BrokerRoute {
  let eventLoop: any EventLoop = MultiThreadedEventLoopGroup.singleton.next()
  let path: String
  private let broker: String
  private let tries = Atomic(0)

  init(path: String, leadsTo broker: String) { (self.path, self.broker) = (path, broker) }

  nonisolated(nonsending) func connect(
    _ settings: ConnectionSettings,
    delegate: any ConnectionDelegate
  ) async throws(TransportError) {
    defer { if tries.add(1, ordering: .relaxed).newValue == 3 { symlink(broker, path) } }
    _ = try await UnixConnector.connect(to: SocketPath(path), on: eventLoop, settings: settings, delegate: delegate)
  }
}
