// SPDX-License-Identifier: Apache-2.0

// Imports only the product, as an application does: everything used here is public.
internal import RestorationClient
internal import TestSupport
internal import Testing

@Suite(.timeLimit(.minutes(2))) struct PublicInterfaceTests {
  /// The life of an editor, as its author writes it.
  private func live(_ socketPath: String) async throws {
    let broker = try await BrokerConnection.connect(to: socketPath)
    let session = try await broker.initialize(SessionOptions(application: "org.example.Notes", process: "editor"))
    print(session.restoration.reason, session.restoration.state, session.limits.stateBytesMax)
    let editor = try await broker.register(ObjectRegistration("Editor", restorationParent: ["Main"], kind: .view))
    let decoded = try await broker.decode(editor.reference)
    let state = try decoded.state ?? RestorableState(jsonText: #"{"cursor":0}"#)
    switch try await broker.encode(state, for: editor.reference, revision: 1) {
    case .stored(let sequence, _), .unsaved(let sequence): print(sequence)
    case .superseded, .discarded: break
    }
    try await broker.encodeUnacknowledged(
      state,
      for: editor.reference,
      elements: [RestorableElement(.selected, at: [0])]
    )
    for await notification in broker.notifications {
      switch notification {
      case .pathChanged(let facts): print(facts.object, facts.path ?? [])
      case .registrationReplaced(let facts): print(facts.object, facts.by)
      case .applicationFinishedRestoringState(let facts): print(facts.objects)
      case .applicationStateSaved(let facts): print(facts.generation)
      case .headReplaced(let facts): print(facts.generation)
      case .stateWanted(let facts): print(facts.object, facts.path as Any)
      case .encodeFailed(let facts): print(facts.path as Any, facts.error)
      case .archiveLost(let facts): print(facts.host ?? "", facts.since as Any, facts.unshipped)
      case .missed(let count): print(count)
      }
    }
    let subscription = try await broker.subscribe(to: [.stateEncoded, .sessionEnded])
    for try await event in subscription {
      switch event.facts {
      case .stateEncoded(let facts): print(facts.path ?? [], facts.bytes, facts.sequence)
      case .sessionEnded(let facts): if facts.ending == .crashed { subscription.cancel() }
      case .eventsLost(let facts): print(facts.lost)
      default: print(event.jsonText)
      }
    }
    for try await object in broker.readArchive() { print(object.path, object.status) }
    let document = try await broker.exportArchive(reveal: true) { print($0.done, $0.total ?? 0) }
    try await broker.importArchive(document, into: "org.example.Copy", force: true)
    try await broker.call(BackupArchive(to: "\(socketPath).sqlite")) { print($0.done) }
    let found = try await broker.call(VerifyArchive(), of: "org.example.Copy")
    for problem in found.problems { print(problem.kind, problem.path ?? []) }
    try await broker.goodbye(.closed)
    await broker.close()
  }

  /// The same with a session that outlives the broker.
  private func stay(_ socketPath: String) async throws {
    let options = SessionOptions(application: "org.example.Notes", process: "editor", bundleVersion: "2.1")
    let session = try await RestorationSession.start(
      options,
      socket: socketPath,
      brokerTimeout: .seconds(30),
      withoutBroker: .fails
    )
    print(session.info.restoration.reason, session.info.limits.frameBytesMax)
    let window = try await session.register(ObjectRegistration("Window", kind: .viewController))
    let editor = try await session.register(ObjectRegistration("Editor", kind: .view), below: window)
    print(editor.path ?? [], editor.state, editor.classMatches, editor.included, editor.handle, editor.isRegistered)
    let decoded = try await session.decode(editor)
    _ = try await session.decode(["Other", "Object"])
    try await session.completeStateRestoration()
    do {
      try await session.encode(decoded.state ?? .empty, for: editor, elements: [RestorableElement(.selected, at: [0])])
    } catch let error as RestorationSessionError where error.code == .notRegistered {
      print(error.refusal?.owners ?? [], error)
    }
    try await session.setRestorationParent(of: editor, to: nil)
    try await session.setRestorationParent(of: editor, to: window.reference)
    try await session.setRestorationIdentifier(of: editor, to: "Text", position: 1)
    try await session.setChildren(of: window, to: [editor.reference])
    try await session.discardApplicationState(force: true)
    try await session.unregister(editor)
    print(try await session.call("ping"))
    for await notification in session.notifications {
      switch notification {
      case .pathChanged(let object, let path): print(object, path ?? [])
      case .registrationReplaced(let object, _, let by): print(object, by)
      case .registrationLost(let object, let because): print(object, because)
      case .restorationClassLost(let name, let because): print(name, because)
      case .dataSourceLost(let view, let because): print(view, because)
      case .applicationStateSaved(let generation), .headReplaced(let generation): print(generation)
      case .stateWanted(let object): print(object)
      case .archiveLost(let host, let since, let unshipped): print(host ?? "", since as Any, unshipped)
      case .propertiesFailed(let object, let because): print(object, because)
      case .missed(let count): print(count)
      }
    }
    for await state in session.states {
      switch state {
      case .withoutBroker: print("in memory")
      case .connected: print("connected")
      case .reconnecting(let since): print(since)
      case .ended(.left(let isConfirmed)): print(isConfirmed)
      case .ended(.refused(let error)): print(error)
      }
    }
    await session.end(.restart)
  }

  /// Objects of a user interface.
  @MainActor private final class Editor: StateRestoring {
    var cursor: Int64 = 0
    weak var neighbor: Editor?
    var opened = Timestamp(milliseconds: 0)

    func encodeRestorableState() -> ObjectState {
      ["cursor": .integer(cursor), "opened": .date(opened), "bookmark": .data([1, 2])]
    }
    func decodeRestorableState(_ saved: ObjectState) {
      cursor = saved.state["cursor"]?.integer ?? 0
      neighbor = saved.state["neighbor"]?.reference?.restoring as? Editor
      opened = saved.state["opened"]?.date ?? Timestamp(milliseconds: 0)
    }
    func applicationFinishedRestoringState() { cursor += 1 }
  }

  @MainActor private final class Delegate: RestorationDelegate {
    var editors: [Editor] = []

    func shouldRestoreApplicationState(_ saved: SavedApplicationState) -> Bool { saved.origin?.bundleVersion == "2" }

    func viewController(for request: RestorationRequest) async throws -> RestorableObject? {
      guard request.path == ["Window"] else { return nil }
      let editor = Editor()
      editors.append(editor)
      return try await request.register(editor)
    }
  }

  private final class Notes: ModelAssociating {
    func modelIdentifierForElement(at indexPath: [Int], role: RestorableElement.Role, in view: IdentifierPath)
      -> String?
    {
      indexPath.first.map { "note-\($0)" }
    }

    func indexPathForElement(
      withModelIdentifier identifier: String,
      role: RestorableElement.Role,
      in view: IdentifierPath
    ) -> [Int]? {
      identifier.split(separator: "-").last.flatMap { Int($0) }.map { [$0] }
    }
  }

  /// The same as an author who knows UIKit writes it.
  @MainActor private func beAsked(_ socketPath: String) async throws {
    let options = SessionOptions(application: "org.example.Notes", bundleVersion: "2", answersCalls: true)
    let (delegate, editor, notes) = (Delegate(), Editor(), Notes())
    let session = try await RestorationSession.start(
      options,
      delegate: delegate,
      socket: socketPath,
      withoutBroker: .fails
    )
    let object = try await session.register(ObjectRegistration("Editor", kind: .view), restoring: editor)
    try await session.registerRestorationClass("Preview") { request in
      let preview = Editor()
      await MainActor.run { delegate.editors.append(preview) }
      return try await request.register(preview)
    }
    try await session.registerDataSource(notes, for: object.reference)
    try await session.extendStateRestoration()
    let restored = try await session.restoreApplicationState(deadline: .seconds(5))
    print(restored.restored, restored.skipped.map(\.reason), restored.absent, restored.declined)
    try await session.completeStateRestoration()
    editor.cursor = 17
    try await session.invalidateRestorableState(of: object)
    print(session.object(at: ["Editor"])?.restoring === editor, object.reference.path ?? [])
    let saved = try await session.saveApplicationState(reason: "menu")
    print(saved.generation ?? 0, saved.stale.map(\.why), saved.excluded.map(\.by), saved.duration)
  }

  @Test(.scratch) func anApplicationThatIsAskedIsToldThatNoBrokerRuns() async throws {
    do {
      try await beAsked(directory.file("b.sock"))
      Issue.record("somebody listened")
    } catch let error as BrokerConnectionError {
      #expect(error.isNotRunning)
    }
  }

  @Test(.scratch) func anApplicationWithASessionIsToldThatNoBrokerRuns() async throws {
    do {
      try await stay(directory.file("b.sock"))
      Issue.record("somebody listened")
    } catch let error as BrokerConnectionError {
      #expect(error.isNotRunning)
    }
  }

  @Test(.scratch) func anApplicationCompilesAgainstTheProductAndIsToldThatNoBrokerRuns() async throws {
    do {
      try await live(directory.file("b.sock"))
      Issue.record("somebody listened")
    } catch let error as BrokerConnectionError {
      #expect(error.isNotRunning)
    }
  }
}
