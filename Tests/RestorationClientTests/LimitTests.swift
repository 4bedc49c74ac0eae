// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationWire
internal import Synchronization
internal import Testing

/// A frame beyond the broker's limits is answered without saying which call it was; so none may be sent.
@Suite(.timeLimit(.minutes(2))) struct LimitTests {
  private static let small: Limits = {
    var limits = Limits()
    limits.frameBytesMax = 100_000
    limits.depthMax = 20
    limits.valuesPerFrameMax = 2_000
    limits.keysPerObjectMax = 100
    return limits
  }()

  private static let answer: FakeBroker.Answer = { request in
    guard request.method == "limits" else { return .text("1") }
    var writer = JSONWriter()
    small.writeJSON(to: &writer)
    return .result(JSONText(validated: writer.bytes))
  }

  private static let tooMuch: [(String, String)] = [
    ("frameBytesMax", "[\"" + String(repeating: "x", count: 100_000) + "\"]"),
    ("depthMax", String(repeating: "[", count: 20) + String(repeating: "]", count: 20)),
    ("valuesPerFrameMax", "[" + String(repeating: "0,", count: 1_999) + "0]"),
    ("keysPerObjectMax", "{" + (0...100).map { "\"k\($0)\":0" }.joined(separator: ",") + "}"),
  ]

  @Test(.connection(answer: answer), arguments: tooMuch)
  func aMessageBeyondALimitIsRefusedBeforeItIsSent(_ limit: String, _ parameters: String) async throws {
    let error = await thrownError { try await broker.call("x", parameters) } as? RestorationError
    #expect(error?.code == .limitExceeded)
    #expect(error?.limit?.name == limit)
    #expect(try await broker.call("x", "[1]") == "1")
  }

  @Test(
    .connection(answer: answer),
    arguments: [
      "[\"" + String(repeating: "x", count: 99_900) + "\"]",
      String(repeating: "[", count: 19) + String(repeating: "]", count: 19),
      "[" + String(repeating: "0,", count: 1_994) + "0]",
      "{" + (0..<100).map { "\"k\($0)\":0" }.joined(separator: ",") + "}",
    ]
  )
  func aMessageWithinTheLimitsIsSent(_ parameters: String) async throws {
    let sent = try await broker.call("x", parameters)
    #expect(sent == "1")
  }

  @Test(.connection) func limitsAreAskedForOnceAndOnlyForMessagesThatNeedIt() async throws {
    let asked = Mutex(0)
    fake.answers { request in
      if request.method == "limits" { asked.withLock { $0 += 1 } }
      return Self.answer(request)
    }
    _ = try await broker.call("x", "[1]")
    #expect(asked.withLock { $0 } == 0)
    for _ in 0..<3 { _ = try await broker.call("x", "[\"" + String(repeating: "x", count: 70_000) + "\"]") }
    #expect(asked.withLock { $0 } == 1)
  }

  @Test(.connection) func aBrokerWithoutTheMethodIsTakenToHaveTheUsualLimits() async throws {
    fake.answers { request in
      request.method == "limits" ? .error(.methodNotFound("limits")) : .text("1")
    }
    let sent = try await broker.call("x", "[\"" + String(repeating: "x", count: 1 << 20) + "\"]")
    #expect(sent == "1")
    let large = "[\"" + String(repeating: "x", count: 4 << 20) + "\"]"
    let error = await thrownError { try await broker.call("x", large) } as? RestorationError
    #expect(error?.limit?.name == "frameBytesMax")
  }
}
