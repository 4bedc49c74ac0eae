// SPDX-License-Identifier: Apache-2.0

// Imports nothing but the product, as an application does: what is used here is public.
internal import RestorationClient
internal import TestSupport
internal import Testing

@Suite(.timeLimit(.minutes(2))) struct PublicInterfaceTests {
  /// What an editor does in its life, as its author writes it.
  private func live(_ socketPath: String) async throws {
    let broker = try await BrokerConnection.connect(to: socketPath)
    let session = try await broker.initialize(SessionOptions(application: "org.example.Notes", process: "editor"))
    print(session.restoration.reason, session.restoration.state, session.limits.stateBytesMax)
    let editor = try await broker.register(ObjectRegistration("Editor", restorationParent: ["Main"], kind: .view))
    let decoded = try await broker.decode(editor.reference)
    let state = try decoded.state ?? RestorableState(jsonText: #"{"cursor":0}"#)
    switch try await broker.encode(state, for: editor.reference, revision: 1) {
    case .stored(let sequence): print(sequence)
    case .superseded, .discarded: break
    }
    try await broker.encodeUnacknowledged(
      state,
      for: editor.reference,
      elements: [RestorableElement(.selected, at: [0])]
    )
    for await notification in broker.notifications {
      switch notification {
      case .pathChanged(let object, let path): print(object, path ?? [])
      case .registrationReplaced(let object, _, let by): print(object, by)
      case .missed(let count): print(count)
      }
    }
    let subscription = try await broker.subscribe(to: [.stateEncoded, .sessionEnded])
    for try await event in subscription {
      switch event.name {
      case .stateEncoded: print(event.path ?? [], event.bytes ?? 0, event.sequence ?? 0)
      case .sessionEnded: if event.ending == .crashed { subscription.cancel() }
      case .eventsLost: print(event.lost ?? 0)
      default: print(event.jsonText)
      }
    }
    for try await object in broker.readArchive() { print(object.path, object.status) }
    let document = try await broker.exportArchive(reveal: true) { print($0.done, $0.total ?? 0) }
    try await broker.importArchive(document, into: "org.example.Copy", force: true)
    try await broker.backUpArchive(to: "\(socketPath).sqlite")
    for problem in try await broker.verifyArchive().problems { print(problem.kind, problem.path ?? []) }
    try await broker.goodbye(.closed)
    await broker.close()
  }

  @Test func anApplicationCompilesAgainstTheProductAndIsToldThatNoBrokerRuns() async throws {
    let directory = try ScratchDirectory()
    defer { directory.remove() }
    do {
      try await live(directory.file("b.sock"))
      Issue.record("somebody listened")
    } catch let error as BrokerConnectionError {
      #expect(error.isNotRunning)
    }
  }
}
