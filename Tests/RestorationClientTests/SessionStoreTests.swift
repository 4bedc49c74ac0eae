// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationWire
internal import SeededRandom
internal import TestSupport
internal import Testing

/// Many objects encode through a session whose broker does at random anything a broker may do: acknowledged states are
/// stored, no older state replaces a newer one, and every call ends (R15).
@Suite(.timeLimit(.minutes(2))) struct SessionStoreTests {
  /// A broker's disk.
  private actor Store {
    private struct Row {
      var number: Int64
      /// The highest of each session.
      var revisions: [String: Int64]
    }

    private let script: SessionScript
    private var generator: SeededGenerator
    private var rows: [String: Row] = [:]
    private(set) var faults: [String] = []
    private var isKind = false

    init(_ script: SessionScript, seed: UInt64) {
      self.script = script
      generator = SeededGenerator(seed: seed)
    }

    func becomeKind() { isKind = true }

    func number(of name: String) -> Int64 { rows[name]?.number ?? 0 }

    func serve(_ events: FakeBroker.Events) async throws {
      while !Task.isCancelled { try await handle(try await events.request()) }
    }

    private func handle(_ request: FakeBroker.Pending) async throws {
      let chance = isKind ? 0 : Int.random(in: 0..<100, using: &generator)
      guard request.request.method == EncodeRestorableState.method,
        case .named(let parameters) = request.request.parameters, let handle = parameters["object"]?.integer(),
        let revision = parameters["revision"]?.integer(),
        let number = parameters["state"]?["n"]?.integer()
      else { return try await chance > 90 ? request.cut() : request.answer("{}") }
      guard let name = script.name(of: handle) else {
        return try await request.refuse(.restoration(.unknownObject, "no such object", hint: ""))
      }
      switch chance {
      case 80..<84: return try await request.cut()
      case 84..<86: return try await request.refuse(.restoration(.shuttingDown, "the broker is ending", hint: ""))
      default: break
      }
      let answer = store(number, revision, name)
      switch chance {
      case 86..<90: try await request.cut()
      case 90..<92:
        script.change { $0.token += "x" }
        try await request.cut()
      case 92..<94:
        try await request.refuse(
          .restoration(.storeFailed, "the disk failed", hint: "", details: ["indeterminate": true])
        )
      case 94..<96:
        // Another broker, which has lost everything but the states.
        script.change { state in
          state.token += "y"
          state.paths = [:]
        }
        try await request.cut()
      default: try await request.answer(answer)
      }
    }

    private func store(_ number: Int64, _ revision: Int64, _ name: String) -> String {
      let session = script.token
      var row = rows[name] ?? Row(number: 0, revisions: [:])
      guard revision > row.revisions[session] ?? 0 else {
        if number > row.number { faults.append("\(name): \(number) is superseded by \(row.number)") }
        return #"{"superseded":true}"#
      }
      if number < row.number { faults.append("\(name): \(number) after \(row.number)") }
      row.number = number
      row.revisions[session] = revision
      rows[name] = row
      return #"{"sequence":1,"durability":"disk"}"#
    }
  }

  /// A call with which eight connections are lost has an error at last.
  private static func unlessGivenUp(_ body: () async throws -> Void) async throws {
    do {
      try await body()
    } catch let error as RestorationSessionError where error.code == .outcomeUnknown {
      // No answer came.
    } catch let error as RestorationError where error.code == .shuttingDown || error.indeterminate {
      // That was the last answer.
    } catch let error as RestorationError where error.code == .unknownObject {
      // Its handling of a lost connection's requests can affect the next one: it forgot everything once more.
    }
  }

  /// Encodes one state after the other; some are cancelled, and sometimes the object is registered again.
  private static func work(
    _ name: String,
    _ session: RestorationSession,
    _ store: Store,
    _ generator: SeededGenerator
  ) async throws {
    var generator = generator
    var object = try await session.register(ObjectRegistration(name))
    for number in 1...60 as ClosedRange<Int64> {
      let state = try RestorableState(jsonText: #"{"n":\#(number)}"#)
      let target = object
      let encode = Task { try await session.encode(state, for: target) }
      if Int.random(in: 0..<4, using: &generator) == 0 {
        encode.cancel()
        _ = try? await encode.value
      } else {
        try await Self.unlessGivenUp {
          _ = try await encode.value
          let stored = await store.number(of: name)
          #expect(stored >= number, "\(name): \(number) was acknowledged, \(stored) is there")
        }
      }
      if Int.random(in: 0..<12, using: &generator) == 0 {
        let target = object
        try await Self.unlessGivenUp { try await session.unregister(target, keepState: true) }
        object = try await session.register(ObjectRegistration(name))
      }
    }
  }

  @Test(.session, arguments: 1...6)
  func nothingAcknowledgedIsLostAndNothingOlderComesAfterIt(_ seed: UInt64) async throws {
    let store = Store(script, seed: seed)
    let serving = Task { try await store.serve(fake.events) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<8 {
        let generator = SeededGenerator(seed: seed &* 100 &+ UInt64(number))
        group.addTask { try await Self.work("O\(number)", session, store, generator) }
      }
      try await group.waitForAll()
    }
    await store.becomeKind()
    #expect(await session.end(.restart))
    #expect(await store.faults == [])
    serving.cancel()
  }
}
