// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import JSONRPC
internal import Logging
internal import NIOCore
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// What becomes of what an owner has its archives do, in which order it hears of it.
@Suite struct ArchiveGatewayTests {
  /// Notes what it is told, in order.
  actor Owner: ArchiveGateway.Delegate {
    nonisolated let unownedExecutor: UnownedSerialExecutor
    let archives: ArchiveGateway
    private var heard: [String] = []

    init(_ store: any ArchiveStore, on eventLoop: TestEventLoop) {
      unownedExecutor = eventLoop.asUnownedSerialExecutor()
      archives = ArchiveGateway(
        on: eventLoop,
        store: store,
        lock: nil,
        random: (.random(in: 0...UInt64.max), .random(in: 0...UInt64.max)),
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
      )
    }

    /// What was heard since the last call.
    func takeHeard() -> [String] {
      defer { heard = [] }
      return heard
    }

    func drain(on eventLoop: TestEventLoop) {
      _ = Task {
        await withTaskExecutorPreference(eventLoop) {
          await archives.drain()
          await archives.closeAll()
        }
        hear("drained")
      }
    }

    private func hear(_ event: String) { heard.append(event) }

    /// Waits for a change, as a report does.
    func read(after sequence: SequenceNumber) {
      let wait = archives.wait(for: sequence, in: 1, for: self)
      _ = Task {
        let failure = await wait.failure()
        hear(failure.map { "not durable: \($0.kind)" } ?? "durable")
      }
    }

    func report(_ event: ArchiveEvent) {
      switch event {
      case .opened(let id, .success(let opened)): hear("opened \(id) at \(opened.opening.sequence)")
      case .opened(let id, .failure(let error)): hear("opened \(id): \(error.kind)")
      case .committed(let id, let receipt): hear("committed \(id) at \(receipt.sequence)")
      case .commitFailed(let id, _, let pause): hear("failed \(id), pause \(pause ?? 0)")
      case .read(_, let request, .success(let readings)):
        hear("read \(request.rows.count): \(readings.count { $0 != nil })")
      case .read(_, _, .failure(let error)): hear("read: \(error.kind)")
      case .listed(_, let result): hear("listed \((try? result.get())?.summaries.map(\.application) ?? [])")
      case .wanted(let id, let host): hear("\(host) wants \(id)")
      case .lost(let id, let loss): hear("lost \(id) to \(loss.host ?? "")")
      case .replica(let name, let fact): hear("\(name): \(fact)")
      }
    }

    func carryOut() { hear("carry out") }

    func send(_ answer: Answer, to caller: Caller) {
      if case .result = answer { hear("answer \(caller.client)") } else { hear("error \(caller.client)") }
    }

    func send(_ notice: WriteQueue.Notice, of id: ApplicationID) { hear("notice of \(id)") }

    func settled(_ clients: [ClientID]) { if !clients.isEmpty { hear("settled \(clients)") } }

    func broke(_ message: String) { hear("broke") }
  }

  private let loop = TestEventLoop()
  private let store: MemoryArchiveStore
  private let owner: Owner
  private let name: ApplicationName

  init() throws {
    store = try MemoryArchiveStore(on: loop)
    owner = Owner(store, on: loop)
    name = try #require(ApplicationName("App"))
  }

  /// Does this in one tick, and returns what was heard until nothing was left to do.
  @discardableResult
  private func perform(_ body: @Sendable (isolated Owner) -> Void) -> [String] {
    owner.assumeIsolated(body)
    loop.run()
    return owner.assumeIsolated { $0.takeHeard() }
  }

  private func open() { perform { [name] in $0.archives.open(1, name, .writing, for: $0) } }

  private static func node(_ node: NodeID) -> ArchiveChange {
    .node(NodeRecord(node: node, parent: nil, component: "node\(node)", kind: .object))
  }

  private static let state = ArchiveChange.state(
    StateRecord(node: 1, context: 1, written: 0, text: Array("{}".utf8)[...])
  )

  /// A client that has called: notifications get no answer.
  private static func caller(_ client: ClientID) -> Caller {
    var decoder = FrameDecoder(limits: FrameLimits(), vocabulary: EncodedState.vocabulary)
    var conversation = Conversation(limits: ConversationLimits())
    var output: [UInt8] = []
    Array(#"{"jsonrpc":"2.0","id":1,"method":"statistics"}"#.utf8).withUnsafeBytes { decoder.append($0) }
    let deliveries = decoder.next().map { conversation.receive($0, into: &output) } ?? []
    guard case .request(let call, _) = deliveries.first else { return Caller(client: client, call: nil) }
    return Caller(client: client, call: call)
  }

  private static func decode(_ node: NodeID, at sequence: SequenceNumber) -> StateRequest {
    let row = StateRequest.Row(node: node, sequence: sequence)
    return StateRequest(caller: caller(1), purpose: .decode(node: node), rows: [row])
  }

  /// Also what is written before the archive is open (R15).
  @Test func anAnswerLeavesWhenItsChangeIsDurableAndBeforeTheCommitIsReported() {
    let heard = perform { [name] owner in
      owner.archives.open(1, name, .writing, for: owner)
      owner.archives.write(Self.node(1), to: 1, for: owner)
      owner.archives.respond(.result(EmptyResult()), to: Self.caller(7), after: 1, in: 1, for: owner)
      owner.archives.write(Self.node(2), to: 1, for: owner)
      #expect(owner.archives.awaitSettling(of: 9) == 1)
      owner.archives.add(.notification(.client(8), method: "pathChanged", parameters: .null), of: 1)
      let wasSent = owner.archives.sendNotices(for: owner)
      #expect(wasSent)
    }
    let expected = ["opened 1 at 0", "carry out", "answer 7", "settled [9]", "notice of 1", "committed 1 at 2"]
    #expect(heard == expected + ["carry out"])
  }

  @Test func whatIsWrittenInOneTickSharesATransaction() {
    open()
    perform { owner in
      for node in 1...50 { owner.archives.write(Self.node(NodeID(node)), to: 1, for: owner) }
    }
    #expect(owner.assumeIsolated { $0.archives.transactions } == 1)
  }

  @Test func anArchiveIsOpenedAgainWhenWhatWasWrittenBeforeItWasClosedIsDurable() {
    open()
    let heard = perform { [name] owner in
      owner.archives.write(Self.node(1), to: 1, for: owner)
      owner.archives.close(1, for: owner)
      owner.archives.open(2, name, .reading, for: owner)
    }
    #expect(heard == ["committed 1 at 1", "carry out", "opened 2 at 1", "carry out"])
  }

  @Test func whatWasWrittenLatelyIsReadAtOnceAndTheRestFromTheStore() {
    open()
    let early = perform { owner in
      let changes: [ArchiveChange] = [.context(1, text: "{}"), Self.node(1), Self.state]
      for change in changes { owner.archives.write(change, to: 1, for: owner) }
      owner.archives.read(1, Self.decode(1, at: 3), after: 3, for: owner)
    }
    // In one event with the commit.
    #expect(early == ["read 1: 1", "committed 1 at 3", "carry out"])
    let cached = perform {
      $0.archives.read(1, Self.decode(1, at: 3), after: 3, for: $0)
    }
    #expect(cached == ["read 1: 1"])
    perform { [name] owner in
      owner.archives.close(1, for: owner)
      owner.archives.open(2, name, .reading, for: owner)
    }
    let stored = perform { owner in
      owner.archives.read(2, Self.decode(1, at: 3), after: 3, for: owner)
    }
    #expect(stored == ["read 1: 1", "carry out"])
  }

  @Test func aTransactionOfWhichNobodyKnowsWhatBecameBreaksTheBroker() {
    open()
    // Another writer: the lease is fenced off.
    store.assumeIsolated { store in _ = Task { _ = try await store.open("App", for: .reading) } }
    loop.run()
    let heard = perform { owner in
      owner.archives.write(Self.node(1), to: 1, for: owner)
      owner.archives.respond(.result(EmptyResult()), to: Self.caller(7), after: 1, in: 1, for: owner)
      #expect(owner.archives.awaitSettling(of: 9) == 1)
      owner.archives.add(.notification(.client(8), method: "pathChanged", parameters: .null), of: 1)
      _ = owner.archives.sendNotices(for: owner)
    }
    #expect(heard == ["error 7", "settled [9]", "broke"])
    #expect(owner.assumeIsolated { $0.archives.isStopping })
  }

  /// What the archive has cannot be taken back, and is sent on; the broker has lost nothing.
  @Test(arguments: [ArchiveError.Kind.unconfirmed, .lost(host: "B"), .elsewhere(host: "B", since: 1)])
  func aTransactionThatTheFleetDoesNotHaveEndsNoBroker(kind: ArchiveError.Kind) throws {
    let disk = try MemoryDisk(on: loop) { "archive" }
    disk.holdsCommits = true
    let owner = Owner(disk.connect(), on: loop)
    owner.assumeIsolated { [name] in $0.archives.open(1, name, .writing, for: $0) }
    loop.run()
    owner.assumeIsolated { owner in
      owner.archives.write(Self.node(1), to: 1, for: owner)
      owner.archives.respond(.result(EmptyResult()), to: Self.caller(7), after: 1, in: 1, for: owner)
    }
    loop.run()
    disk.failCommit("App", as: ArchiveError(kind, "the fleet's store does not answer"))
    loop.run()
    let heard = owner.assumeIsolated { $0.takeHeard() }
    #expect(heard == ["opened 1 at 0", "carry out", "error 7", "failed 1, pause 80", "carry out"])
    #expect(!owner.assumeIsolated { $0.archives.isStopping })
  }

  /// The replica answers when the broker has just told somebody that it does not.
  @Test func aTransactionThatIsStoredBehindOneThatFailedIsFoundWhenTheArchiveIsOpenedAgain() throws {
    let disk = try MemoryDisk(on: loop) { "archive" }
    disk.holdsReceipts = true
    let owner = Owner(disk.connect(), on: loop)
    owner.assumeIsolated { [name] in $0.archives.open(1, name, .writing, for: $0) }
    loop.run()
    for node in 1...2 as ClosedRange<NodeID> {
      owner.assumeIsolated { owner in
        owner.archives.write(Self.node(node), to: 1, for: owner)
        let caller = Self.caller(ClientID(6 + node))
        owner.archives.respond(.result(EmptyResult()), to: caller, after: SequenceNumber(node), in: 1, for: owner)
      }
      loop.run()
    }
    disk.answerFirst(ArchiveError(.unconfirmed, "the fleet's store does not answer"))
    disk.answerFirst()
    loop.run()
    let heard = owner.assumeIsolated { $0.takeHeard() }
    #expect(heard == ["opened 1 at 0", "carry out", "error 7", "error 8", "failed 1, pause 80", "carry out"])
    owner.assumeIsolated { [name] in $0.archives.open(1, name, .writing, for: $0) }
    loop.run()
    #expect(owner.assumeIsolated { $0.takeHeard() } == ["opened 1 at 2", "carry out"])
  }

  /// Otherwise what was deleted would lie there until somebody writes again.
  @Test func upkeepThatAFailedTransactionHasCutOffIsDoneAfterTheNextOpening() throws {
    let disk = try MemoryDisk(on: loop) { "archive" }
    let owner = Owner(disk.connect(), on: loop)
    owner.assumeIsolated { owner in
      owner.archives.open(1, name, .writing, for: owner)
      owner.archives.write(Self.node(1), to: 1, for: owner)
    }
    loop.run()
    disk.holdsCommits = true
    owner.assumeIsolated { $0.archives.write(Self.node(2), to: 1, for: $0) }
    loop.run()
    disk.failCommit("App")
    loop.run()
    disk.holdsCommits = false
    owner.assumeIsolated { [name] in $0.archives.open(1, name, .writing, for: $0) }
    loop.run()
    let before = disk.upkeepCount
    let end = loop.now + .seconds(2)
    while loop.advance(to: end) {}
    #expect(disk.upkeepCount > before)
  }

  /// A report would otherwise be under way for ever.
  @Test func aFailedCommitEndsTheReportsThatWaitedForIt() {
    open()
    perform { owner in
      owner.archives.write(Self.node(1), to: 1, for: owner)
      owner.read(after: 1)
    }
    let heard = perform { owner in
      // There is no such generation.
      owner.archives.write(.pin(generation: 9), to: 1, for: owner)
      for sequence in [1, 2] as [SequenceNumber] { owner.read(after: sequence) }
    }
    // What waits for their end must not begin before the archive is opened again.
    #expect(heard == ["durable", "failed 1, pause 80", "carry out", "not durable: definite"])
  }

  /// Whoever has it opened again reads at once.
  @Test func whatIsWrittenAfterAFailedTransactionWaitsForThePauseToEnd() {
    open()
    perform { $0.archives.write(.pin(generation: 9), to: 1, for: $0) }
    let heard = perform { [name] owner in
      owner.archives.open(1, name, .writing, for: owner)
      owner.archives.write(Self.node(1), to: 1, for: owner)
      owner.archives.respond(.result(EmptyResult()), to: Self.caller(7), after: 1, in: 1, for: owner)
    }
    #expect(heard == ["opened 1 at 0", "carry out"])
    let read = perform { $0.archives.read(1, Self.decode(1, at: 0), after: 0, for: $0) }
    #expect(read == ["read 1: 0", "carry out"])
    let end = loop.now + .milliseconds(80)
    while loop.advance(to: end - .milliseconds(1)) {}
    #expect(perform { _ in }.isEmpty)
    while loop.advance(to: end) {}
    #expect(perform { _ in } == ["answer 7", "committed 1 at 1", "carry out"])
  }

  /// What the broker has to write of itself it would write, and reload the archive, as fast as the disk refuses it.
  @Test func afterAFailedTransactionWhatNobodyWaitsForIsWrittenASecondLater() {
    open()
    func fail() {
      perform { $0.archives.write(.pin(generation: 9), to: 1, for: $0) }
      perform { [name] owner in
        owner.archives.open(1, name, .writing, for: owner)
        owner.archives.write(Self.node(1), to: 1, for: owner)
      }
    }
    func heard(after milliseconds: Int64) -> [String] {
      let end = loop.now + .milliseconds(milliseconds)
      while loop.advance(to: end) {}
      return perform { _ in }
    }
    fail()
    #expect(heard(after: 999).isEmpty)
    #expect(heard(after: 1) == ["committed 1 at 1", "carry out"])
    fail()
    #expect(heard(after: 500).isEmpty)
    let read = perform { $0.archives.read(1, Self.decode(1, at: 2), after: 2, for: $0) }
    #expect(read.contains("committed 1 at 2"))
  }

  /// What was asked for before a commit failed comes back, and asks for more.
  @Test func whatIsReadWhileAnArchiveIsReopenedIsAnsweredWhenItIsOpen() {
    open()
    perform { owner in
      let changes = [.context(1, text: "{}"), Self.node(1), Self.state]
      for change in changes { owner.archives.write(change, to: 1, for: owner) }
    }
    perform { $0.archives.write(.pin(generation: 9), to: 1, for: $0) }
    let heard = perform { [name] owner in
      owner.archives.open(1, name, .writing, for: owner)
      owner.archives.read(1, Self.decode(1, at: 3), after: 3, for: owner)
      // The change that it is to follow was lost.
      owner.read(after: 4)
    }
    #expect(heard == ["not durable: definite", "opened 1 at 3", "carry out", "read 1: 1", "carry out"])
  }

  @Test func drainingWaitsForWhatIsUnderWay() {
    open()
    let heard = perform { [loop] owner in
      owner.archives.write(Self.node(1), to: 1, for: owner)
      owner.read(after: 1)
      owner.drain(on: loop)
    }
    #expect(heard.contains("durable") && heard.last == "drained")
    #expect(store.assumeIsolated { $0.contents(of: "App")?.sequence } == 1)
  }
}
