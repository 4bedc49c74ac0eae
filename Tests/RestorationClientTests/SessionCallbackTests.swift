// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import JSONRPC
internal import RestorationClient
internal import RestorationTransport
internal import Synchronization
internal import TestSupport
internal import Testing

/// When a session calls the program's objects, and what it does by itself when the broker wants their states.
@Suite(.timeLimit(.minutes(1))) struct SessionCallbackTests {
  private typealias Scene = WithoutBrokerScene

  // MARK: When register returns

  private final class Log: Sendable {
    private let events = Mutex<[String]>([])

    var all: [String] { events.withLock { $0 } }

    func note(_ event: String) { events.withLock { $0.append(event) } }
  }

  /// Belongs to the program's actor.
  private final class Editor: StateRestoring {
    private let program: Program
    private let log: Log

    init(_ program: Program, _ log: Log) { (self.program, self.log) = (program, log) }

    func encodeRestorableState() -> ObjectState { [:] }
    func decodeRestorableState(_ saved: ObjectState) async { await program.note("decoded", log) }
    func applicationFinishedRestoringState() async { await program.note("finished", log) }
  }

  /// Runs an actor on a queue that can be suspended.
  private final class QueueExecutor: SerialExecutor {
    let queue = DispatchQueue(label: "program")

    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
  }

  private actor Program {
    private nonisolated let executor = QueueExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    nonisolated func suspended(_ body: () async throws -> Void) async throws {
      executor.queue.suspend()
      defer { executor.queue.resume() }
      try await body()
    }

    func open(_ editor: Editor, _ session: RestorationSession, _ log: Log) async throws {
      try await session.register("Editor", restoring: editor)
      log.note("registered")
    }

    func note(_ event: String, _ log: Log) { log.note(event) }
  }

  private static func call(_ connection: Connection, _ method: String, _ parameters: String) async throws {
    let text = JSONText(validated: Array(parameters.utf8))
    try await connection.onLoop { _ = $0.call(method: method, parameters: text) }
  }

  @Test(.fakeBroker) func anObjectIsCalledAfterItsRegistrationHasReturned() async throws {
    let script = SessionScript()
    fake.answers(script.answer)
    let options = SessionOptions(application: "a", answersCalls: true)
    let session = try await RestorationSession.start(options, socket: fake.path)
    let (log, program) = (Log(), Program())
    let editor = Editor(program, log)
    script.change { $0.silent = ["registerObjectForStateRestoration"] }
    async let opened: Void = program.open(editor, session, log)
    let registration = try await fake.events.request()
    try await program.suspended {
      try await registration.answer(
        #"{"object":7,"path":["Editor"],"included":true,"restoration":{"state":"available","classMatches":true}}"#
      )
      let objects = #"{"objects":[{"object":7,"path":["Editor"],"state":{"a":1},"coder":null,"elements":[]}]}"#
      try await Self.call(registration.connection, "decodeRestorableStateWithCoder", objects)
      // Data sources are asked meanwhile.
      let element = #"{"view":["List"],"indexPath":[0],"role":"selected"}"#
      try await Self.call(registration.connection, "modelIdentifierForElementAtIndexPath", element)
      guard case .error = try await fake.events.response() else { throw TestFailure("it was called") }
      #expect(log.all == [])
    }
    try await opened
    guard case .result = try await fake.events.response() else { throw TestFailure("it was not called") }
    #expect(log.all == ["registered", "decoded"])
    withExtendedLifetime(editor) {}
    await session.end(.restart, timeout: .zero)
  }

  // MARK: Wanted states

  @Test(.session) func aStateThatWasNotStoredIsPushedWhenTheBrokerWantsIt() async throws {
    let connection = try await fake.events.opened()
    let (main, other) = (try await session.register("Main"), try await session.register("Other"))
    let unsaved = #"{"sequence":1,"included":false}"#
    for number in 1...2 {
      async let outcome = session.encode(["number": .integer(Int64(number))], for: main)
      let push = #"encodeRestorableState {"object":101,"state":{"number":\#(number)},"revision":\#(number)}"#
      try await Scene.expect(push, unsaved)
      #expect(try await outcome == .unsaved(sequence: 1))
    }
    for (handle, name) in [(101, "Main"), (102, "Other")] {
      let text = #"{"object":\#(handle),"path":["\#(name)"]}"#
      try await connection.onLoop {
        $0.notify(method: "stateWanted", parameters: JSONText(validated: Array(text.utf8)))
      }
    }
    try await Scene.expect(#"encodeRestorableState {"object":101,"state":{"number":2},"revision":2}"#)
    // The session has none of this one.
    var notifications = session.notifications.makeAsyncIterator()
    #expect(await notifications.next() == .stateWanted(other))
  }
}
