// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import RestorationArchive
internal import RestorationReplica
internal import RestorationTransport
internal import TestSupport
internal import Testing

/// What a broker's way to the gateway does when the gateway does not.
@Suite(.timeLimit(.minutes(1))) struct GatewayLinkTests {
  private static func lease(_ link: GatewayLink) async throws(ReplicaError) -> ReplicaLease {
    try await link.acquire("draw", as: ReplicaClaim(reader: 1, wants: true)).lease
  }

  @Test func withoutAGatewayEachCallIsAwayAtOnce() async throws {
    let nowhere = try SocketPath("/nonexistent/gateway.sock")
    let link = GatewayLink(
      to: nowhere,
      host: "A",
      term: ReplicaFixture.term,
      on: ServedGateway.eventLoop,
      attention: {}
    )
    let lease = ReplicaLease(application: "draw", archive: 1, id: .numbered(1))
    for _ in 1...2 {
      #expect(await refusal { () async throws(ReplicaError) in try await link.append(.one(0, 1), lease) } == .away)
    }
    #expect(await refusal { () async throws(ReplicaError) in _ = try await link.renew() } == .away)
  }

  @Test func aGatewayThatDoesNotAnswerIsAwayAndThenWorksAgain() async throws {
    let gateway = try ServedGateway()
    let link = gateway.link(patience: 20)
    // The socket is there, as a service manager holds it, and nobody serves.
    #expect(await refusal { () async throws(ReplicaError) in _ = try await Self.lease(link) } == .away)
    let patient = gateway.link()
    try await gateway.start()
    let first = try await patient.acquire("draw", as: ReplicaClaim(reader: 1))
    await gateway.stop()
    try await gateway.start()
    // The end of the connection may be noticed only now, and what was sent over it is repeated.
    var outcome: ReplicaError.Kind? = .unknown
    while outcome == .unknown {
      outcome = await refusal { () async throws(ReplicaError) in try await patient.append(.one(0, 1), first.lease) }
    }
    #expect(outcome == nil)
    // The new gateway has another row for it.
    #expect(await refusal { () async throws(ReplicaError) in _ = try await patient.renew() } == .voided)
    let again = try await patient.acquire("draw", as: ReplicaClaim(standing: first.standing, reader: 1))
    #expect(try await patient.renew().held.map(\.key) == [again.lease])
  }

  @Test func aReplicaThatCannotBeReachedAndItsReturnAreToldOnceEach() async throws {
    let gateway = try ServedGateway()
    try await gateway.start()
    let told = Shared<[ReplicaError.Kind?]>([])
    let link = gateway.link(standingChanged: { told.value += [$0?.kind] })
    _ = try await Self.lease(link)
    gateway.cut("A")
    for _ in 1...2 {
      #expect(await refusal { () async throws(ReplicaError) in _ = try await link.renew() } == .away)
    }
    gateway.mend("A")
    for _ in 1...2 { _ = try await link.renew() }
    #expect(told.value == [.away, nil])
  }

  @Test func aCallUnderWayWhenTheGatewayEndsHasAnUnknownOutcomeIfItWrites() async throws {
    let (gateway, gates) = try await ServedGateway.gated()
    let link = gateway.link()
    let lease = try await Self.lease(link)
    async let append = refusal { () async throws(ReplicaError) in try await link.append(.one(0, 1), lease) }
    var all = gates.makeAsyncIterator()
    let gate = try #require(await all.next())
    var arrivals = gate.arrivals.makeAsyncIterator()
    _ = await arrivals.next()
    await gateway.stop(milliseconds: 0)
    #expect(await append == .unknown)
    gate.open()
    try await gateway.start()
    async let load = refusal { () async throws(ReplicaError) in
      _ = try await link.load(lease, from: .batches(after: 0))
    }
    let next = try #require(await all.next())
    arrivals = next.arrivals.makeAsyncIterator()
    _ = await arrivals.next()
    await gateway.stop(milliseconds: 0)
    #expect(await load == .away)
    next.open()
  }

  @Test func theRepetitionOfACallThatWasCutOffWaitsForItAndIsStoredOnce() async throws {
    let (gateway, gates) = try await ServedGateway.gated()
    let link = gateway.link()
    let lease = try await Self.lease(link)
    async let first = refusal { () async throws(ReplicaError) in try await link.append(.one(0, 1), lease) }
    var all = gates.makeAsyncIterator()
    let gate = try #require(await all.next())
    var arrivals = gate.arrivals.makeAsyncIterator()
    _ = await arrivals.next()
    await link.close()
    #expect(await first == .unknown)
    // For the gateway it is the same broker: no gate is made for another one.
    async let again: Void = link.append(.one(0, 1), lease)
    gate.open()
    try await again
    #expect(gateway.memory.contents(of: "draw").batches == [.one(0, 1)])
    #expect(try await link.renew().held.map(\.key) == [lease])
  }

  @Test func callsOfOneArchiveAreCarriedOutInTheirOrderAndOthersBesideThem() async throws {
    let (gateway, gates) = try await ServedGateway.gated()
    let link = gateway.link()
    let lease = try await Self.lease(link)
    var all = gates.makeAsyncIterator()
    let gate = try #require(await all.next())
    var arrivals = gate.arrivals.makeAsyncIterator()
    async let first: Void = link.append(.one(0, 1), lease)
    _ = await arrivals.next()
    async let release: Void = link.release(lease, .left(upto: nil, summary: []))
    // Of another archive, and of all of them.
    _ = try await link.acquire("notes", as: ReplicaClaim(reader: 1))
    #expect(try await link.list().map(\.application) == ["draw", "notes"])
    #expect(try await link.list().first?.holder != nil, "what came behind the batch waits for it")
    gate.open()
    _ = try await (first, release)
    #expect(try await link.list().first?.holder == nil)
  }

  @Test func aHolderIsToldThatAnotherHostWaits() async throws {
    let gateway = try ServedGateway()
    try await gateway.start()
    let (told, telling) = AsyncStream.makeStream(of: Void.self)
    let (a, b) = (gateway.link { telling.yield() }, gateway.link(from: nil))
    let lease = try await Self.lease(a)
    #expect(await refusal { () async throws(ReplicaError) in _ = try await Self.lease(b) } != nil)
    var iterator = told.makeAsyncIterator()
    _ = await iterator.next()
    #expect(try await a.renew().wanted == [lease: "here"], "who gives no name has the gateway's")
  }

  @Test func aHolderThatWasAwayIsToldWhenItComesBack() async throws {
    let gateway = try ServedGateway()
    try await gateway.start()
    let (told, telling) = AsyncStream.makeStream(of: Void.self)
    let (a, b) = (gateway.link { telling.yield() }, gateway.link(from: "B"))
    let lease = try await Self.lease(a)
    await a.close()
    #expect(await refusal { () async throws(ReplicaError) in _ = try await Self.lease(b) } != nil)
    #expect(try await a.renew().held.map(\.key) == [lease], "it is the same broker on another connection")
    var iterator = told.makeAsyncIterator()
    _ = await iterator.next()
  }

  @Test func longContentsComeInPagesThatFit() async throws {
    let gateway = try ServedGateway()
    try await gateway.start()
    let broker = ReplicaBroker(link: gateway.link(), application: "draw")
    let lease = try await broker.acquire().lease
    let tip = ReplicaTip(sequence: 1, change: .numbered(1))
    let parts = (0..<5).map { number in
      let bytes = [UInt8](repeating: UInt8(number), count: 256 << 10)
      return SnapshotPart(tip: tip, reader: 1, number: number, count: 5, bytes: bytes)
    }
    for part in parts { try await broker.link.snapshot(part, lease) }
    let batches = [1 << 20, 100].enumerated().map { index, count in
      let (after, body) = (SequenceNumber(index + 1), [UInt8](repeating: 7, count: count))
      return ReplicaBatch(after: after, upto: after + 1, change: .numbered(after + 1), body: body)
    }
    for batch in batches { try await broker.link.append(batch, lease) }
    let all = try await broker.load(.snapshot(part: 0), lease)
    #expect(all.parts == parts && all.batches == batches)
  }
}
