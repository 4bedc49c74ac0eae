// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import TestSupport
internal import Testing

/// A session at a connected but useless broker: stopped, silent, or with answers that match no call.
@Suite(.timeLimit(.minutes(1))) struct SessionAdversityTests {
  private static let everything: Set<String> = [
    Initialize.method, RegisterObjectForStateRestoration.method, Ping.method,
  ]

  /// Connections to it succeed but are not read, as at a stopped broker.
  private static func withStoppedBroker(_ body: (String) async throws -> Void) async throws {
    let directory = try ScratchDirectory()
    defer { directory.remove() }
    let path = directory.file("b.sock")
    let socket = try ListeningSocket(binding: try SocketPath(path), backlog: 64)
    try await body(path)
    withExtendedLifetime(socket) {}
  }

  // MARK: A stopped broker

  @Test(.session(timeout: .seconds(3))) func callsAtABrokerThatStopsEndInTime() async throws {
    let object = try await session.register(ObjectRegistration("A"))
    script.change { $0.silent = Self.everything }
    let calls = [
      Task { _ = try await session.call("x") },
      Task { _ = try await session.decode(object) },
      Task { _ = try await session.encode(.empty, for: object) },
    ]
    for call in calls {
      #expect((await thrownError { try await call.value } as? RestorationSessionError)?.code == .outcomeUnknown)
    }
    let late = await thrownError { try await session.decode(object) } as? RestorationSessionError
    #expect(late?.code == .timedOut)
    #expect(await session.end(.restart, timeout: .milliseconds(10)) == false)
  }

  /// A late answer to one call says nothing about the broker.
  @Test(.session(timeout: .seconds(3))) func aCallThatTakesLongWaitsForABrokerThatIsAlive() async throws {
    script.change { $0.silent = [Ping.method] }
    let call = Task { try await session.call("x") }
    let slow = try await fake.events.request()
    for _ in 1...3 {
      let ping = try await fake.events.request()
      #expect(ping.request.method == Ping.method)
      try await ping.answer("{}")
    }
    try await slow.answer("7")
    #expect(try await call.value == "7")
  }

  @Test func aStartAtAStoppedBrokerEndsInTime() async throws {
    try await Self.withStoppedBroker { path in
      let error = await thrownError {
        try await RestorationSession.start(
          SessionOptions(application: "a"),
          socket: path,
          brokerTimeout: .milliseconds(10)
        )
      }
      #expect((error as? RestorationSessionError)?.code == .timedOut)
    }
  }

  @Test func aConnectionToAStoppedBrokerCanBeClosed() async throws {
    try await Self.withStoppedBroker { path in
      let broker = try await BrokerConnection.connect(to: path)
      // More than the kernel takes.
      let call = Task { try await broker.call("x", "[\"\(String(repeating: "x", count: 1 << 20))\"]") }
      let other = Task { try await broker.call("x", "[1]") }
      await broker.close()
      #expect((await thrownError { try await call.value } as? BrokerConnectionError)?.code == .closed)
      #expect((await thrownError { try await other.value } as? BrokerConnectionError)?.code == .closed)
    }
  }

  // MARK: Long calls

  @Test(.session(limits: { $0.frame.frameBytesMax = 100_000 }))
  func aCallThatIsLongerThanTheBrokerReadsEndsWithTheLimit() async throws {
    let large = "[\"\(String(repeating: "x", count: 200_000))\"]"
    let error = await thrownError { try await session.call("x", large) } as? RestorationError
    #expect(error?.code == .limitExceeded)
    let state = try RestorableState(jsonText: "{\"t\":\(large)}")
    let object = try await session.register(ObjectRegistration("A"))
    let again = await thrownError { try await session.encode(state, for: object) } as? RestorationError
    #expect(again?.code == .limitExceeded)
  }

  @Test(.session) func anObjectThatIsTooLargeToBeRegisteredAgainIsLost() async throws {
    let classes = (0..<2_000).map { "Class\($0)" + String(repeating: "x", count: 50) }
    let object = try await session.register(ObjectRegistration("A", classes: classes))
    script.change { state in
      state.token = "other"
      state.limits.frameBytesMax = 64 << 10
      state.silent = [RegisterObjectForStateRestoration.method]
    }
    try await fake.events.opened().onLoop { $0.close(afterOutput: false) }
    let error = await thrownError { try await session.encode(.empty, for: object) } as? RestorationSessionError
    #expect(error?.code == .notRegistered)
    #expect(error?.refusal?.limit?.name == "frameBytesMax")
  }

  // MARK: Numbers of states

  /// The broker may remember the revisions of a path, whichever of the session's objects has it.
  @Test(.session) func aPathThatIsRegisteredAgainGoesOnCounting() async throws {
    var last: Int64 = 0
    for _ in 1...3 {
      let object = try await session.register(ObjectRegistration("A"))
      for _ in 1...2 {
        async let outcome = session.encode(.empty, for: object)
        let request = try await fake.events.request()
        guard case .named(let parameters) = request.request.parameters else { return }
        let revision = try #require(parameters["revision"]?.integer())
        #expect(revision > last)
        last = revision
        try await request.answer(#"{"sequence":1,"durability":"disk"}"#)
        _ = try await outcome
      }
      async let gone: Void = session.unregister(object, keepState: true)
      try await fake.events.request().answer("{}")
      try await gone
    }
  }

  // MARK: Decoded states

  /// In a new session the broker takes pushes for blank ones if an older state was not decoded in it (R19).
  @Test(.session) func whatWasDecodedIsDecodedAgainInANewSession() async throws {
    let object = try await session.register(ObjectRegistration("A"))
    let other = try await session.register(ObjectRegistration("B"))
    let saved = #"{"status":"available","state":{},"coder":null,"elements":[]}"#
    async let decoded = session.decode(object)
    let request = try await fake.events.request()
    try await request.answer(saved)
    _ = try await decoded
    script.change { state in
      state.token = "other"
      state.saved = .available
    }
    try await request.cut()
    let encodes = [object, other].map { object in Task { try await session.encode(.empty, for: object) } }
    var texts: [String] = []
    for _ in 1...3 {
      let request = try await fake.events.request()
      texts.append(request.text)
      let isEncode = request.request.method == EncodeRestorableState.method
      try await request.answer(isEncode ? #"{"sequence":1,"durability":"disk"}"# : saved)
    }
    for encode in encodes { _ = try await encode.value }
    let decode = texts.firstIndex(of: #"decodeRestorableState {"object":103}"#)
    // The first revision may have been sent into the connection that was cut.
    let encode = texts.firstIndex { $0.hasPrefix(#"encodeRestorableState {"object":103,"#) }
    #expect(try #require(decode) < #require(encode), "\(texts)")
  }
}
