// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationWire
internal import Synchronization
internal import Testing

/// Calls about generations: their messages and results.
@Suite(.timeLimit(.minutes(2))) struct GenerationTests {
  @Test(.connection) func aRollbackSaysWhatItMade() async throws {
    let sent = Mutex<[String]>([])
    fake.answers { request in
      sent.withLock { $0.append("\(request.method) \(request.parametersText)") }
      return .text(#"{"generation":5,"former":4,"unreadable":[["A","B"]]}"#)
    }
    let result = try await broker.call(RollBack(generation: 3, force: true), of: "a")
    #expect(result.generation == 5 && result.former == 4 && result.unreadable == [["A", "B"]])
    try await broker.call(RollBack(generation: 1))
    #expect(
      sent.withLock { $0 } == [
        #"rollBack {"generation":3,"force":true,"application":"a"}"#, #"rollBack {"generation":1}"#,
      ]
    )
  }

  @Test(.connection) func aComparisonHasTheDifferencesOfAllPages() async throws {
    let pages = [
      "": #"{"added":[["A"]],"removed":[],"changed":[{"path":["B"],"keys":["k"],"elements":true}],"cursor":"c"}"#,
      "c": #"{"added":[],"removed":[["C"]],"changed":[{"path":["D"],"keys":[],"redacted":true}]}"#,
    ]
    let sent = Mutex<[String]>([])
    fake.answers { request in
      sent.withLock { $0.append(request.parametersText) }
      guard case .named(let parameters) = request.parameters else { return nil }
      return pages[parameters["cursor"]?.string() ?? ""].map { .text($0) }
    }
    let difference = try await broker.diffGenerations(of: "a", from: 1, to: 2, reveal: true)
    #expect(difference.added == [["A"]] && difference.removed == [["C"]] && !difference.isEmpty)
    #expect(difference.changed.map(\.path) == [["B"], ["D"]])
    #expect(difference.changed[0].keys == ["k"] && difference.changed[0].elements)
    #expect(difference.changed[1].redacted && !difference.changed[1].unreadable)
    #expect(
      sent.withLock { $0 } == [
        #"{"from":1,"to":2,"reveal":true,"application":"a"}"#,
        #"{"from":1,"to":2,"reveal":true,"cursor":"c","application":"a"}"#,
      ]
    )
  }

  @Test(.connection) func stepsAreToldInWordsAndThoseNobodyKnowsAreLeftOut() async throws {
    let answer =
      #"{"path":["A"],"saved":[{"step":"asked","owner":{"process":"editor","pid":7},"round":3},{"step":"later"},"#
      + #"{"step":"stale","owner":null,"why":"ended"}],"restored":[{"step":"finished"}],"verdict":"strange"}"#
    fake.answers { _ in .text(answer) }
    let explanation = try await broker.call(ExplainRestoration(object: ["A"]), of: "a")
    #expect(explanation.path == ["A"] && explanation.verdict == "strange")
    #expect(explanation.saved.map(\.step.word) == ["asked", "stale"])
    #expect(explanation.saved[0].step.description == "asked editor (7) for its state in round 3")
    #expect(explanation.saved[0].step == .asked(ObjectOwner(process: "editor", pid: 7), round: 3))
    #expect(explanation.saved[1].step.description == "its last good state is kept: its owner ended before it answered")
    #expect(explanation.restored.map(\.step.description) == ["restored"])
    #expect(explanation.saved[0].at == nil && explanation.saved[0].times == 1)
  }

  private static let owner = ObjectOwner(process: "p", pid: 1)

  static let saving: [SavingStep] = [
    .included, .excluded(by: ["A"]), .excluded(by: nil), .referenced(by: ["A"]), .referenced(by: nil),
    .asked(owner, round: 1), .asked(owner, round: 0), .notServed(owner), .orphaned, .encoded(bytes: 1), .unchanged,
    .superseded,
    .stale(owner, why: "late"), .stale(owner, why: "reservedKey"), .stale(nil, why: "missing"),
    .stale(owner, why: "failed", message: "no"), .elementUnnamed(owner, message: "no"), .pushed(bytes: 1), .early,
    .confirmed, .dropped,
    .saved(generation: 1), .ownerEnded(owner, .crashed, ProcessOutcome(.exited, code: 3)),
    .ownerEnded(owner, .logout, ProcessOutcome(.outOfMemory, unit: "u")),
    .ownerEnded(owner, .stopped, ProcessOutcome(.stopped)), .ownerEnded(owner, .crashed, ProcessOutcome(.unknown)),
  ]

  static let restoring: [RestoringStep] = [
    .lookedUp(.delegate, owner), .lookedUp(.storyboard, nil), .located(owner), .refused(.restorationClass),
    .unitFailed(unit: "u", message: "m"), .awaited, .classMismatch(saved: "A", declared: ["B", "C"]),
    .classMismatch(saved: "A", declared: []), .quarantined(since: Timestamp(milliseconds: 0)), .unreadable, .noState,
    .handedOut(owner, deferred: true), .handedOut(owner, deferred: false), .suspected, .decoded(owner),
    .resolved(identifier: "m", found: true), .resolved(identifier: "m", found: false), .finished,
    .skipped(reason: "refused"), .skipped(reason: "later"), .skipped(reason: "failed", message: "no"), .absent,
    .unitStarted(unit: "u"), .elementUnresolved(owner, message: "no"), .elementUnresolved(owner, message: nil),
    .ownerEnded(owner, .crashed, ProcessOutcome(.signalled, signal: "SIGSEGV", unit: "u")),
  ]

  /// Each step has a sentence of its own.
  @Test(.connection) func noTwoStepsSayTheSame() async throws {
    let saved = Self.saving.map(\.text.string).joined(separator: ",")
    let restored = Self.restoring.map(\.text.string).joined(separator: ",")
    let answer = #"{"path":null,"saved":[\#(saved)],"restored":[\#(restored)],"verdict":"saved"}"#
    fake.answers { _ in .text(answer) }
    let explanation = try await broker.call(ExplainRestoration(object: 7))
    #expect(explanation.saved.map(\.step) == Self.saving && explanation.restored.map(\.step) == Self.restoring)
    let sentences = explanation.saved.map(\.step.description) + explanation.restored.map(\.step.description)
    #expect(Set(sentences).count == sentences.count)
    #expect(sentences.allSatisfy { !$0.isEmpty && !$0.contains("nil") })
  }
}
