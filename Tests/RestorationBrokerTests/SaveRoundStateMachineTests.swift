// SPDX-License-Identifier: Apache-2.0

internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// The waits and steps of a save round, in isolation (R11, R12).
@Suite struct SaveRoundStateMachineTests {
  typealias Machine = SaveRound.StateMachine

  private func target(_ node: Int64, of session: Int64, bytes: Int = 10) -> EncodeTarget {
    EncodeTarget(node: node, handle: 100 + node, session: session, bytes: bytes, batchBytesMax: 1_000)
  }

  /// A machine that has been told what to ask for, at 0 and with 1,000 milliseconds.
  private func encoding(_ targets: [EncodeTarget]) -> (Machine, [Machine.Action]) {
    var machine = Machine(deadline: 1_000)
    _ = machine.begin(isRestoring: false, at: 0)
    _ = machine.decided(true)
    _ = machine.prepared()
    let actions = machine.found(targets)
    return (machine, actions)
  }

  // MARK: The delegate

  @Test func r11TheDelegateIsAskedThenEncodesThenTheWalkBegins() {
    var machine = Machine(deadline: 1_000)
    #expect(machine.begin(isRestoring: false, at: 0) == [.wait(until: 500), .decide])
    #expect(machine.isDeciding)
    #expect(machine.decided(true) == [.prepare])
    #expect(machine.prepared() == [.wait(until: 1_000), .walk])
    #expect(machine.found([]) == [.commit])
  }

  @Test func r11ANoOfTheDelegateEndsTheRound() {
    var machine = Machine(deadline: 1_000)
    _ = machine.begin(isRestoring: false, at: 0)
    #expect(machine.decided(false) == [.end(.declined)])
    #expect(machine.timePassed(at: 1_000) == [])
    #expect(machine.prepared() == [])
  }

  @Test func r12ADelegateThatDoesNotAnswerHasHalfOfTheTime() {
    var machine = Machine(deadline: 1_000)
    _ = machine.begin(isRestoring: false, at: 200)
    #expect(machine.timePassed(at: 599) == [.wait(until: 600)])
    #expect(machine.timePassed(at: 600) == [.giveUpDelegate, .wait(until: 1_000), .walk])
    #expect(machine.decided(false) == [], "too late")
    var other = Machine(deadline: 1_000)
    _ = other.begin(isRestoring: false, at: 0)
    _ = other.decided(true)
    #expect(other.timePassed(at: 500) == [.giveUpDelegate, .wait(until: 1_000), .walk])
    #expect(other.prepared() == [])
  }

  @Test func r12ARestorationIsWaitedForUntilTheDeadline() {
    var machine = Machine(deadline: 1_000)
    #expect(machine.begin(isRestoring: true, at: 0) == [.wait(until: 1_000)])
    #expect(machine.decided(true) == [])
    #expect(machine.restorationEnded(at: 800) == [.wait(until: 900), .decide])
    #expect(machine.restorationEnded(at: 801) == [])
    var other = Machine(deadline: 1_000)
    _ = other.begin(isRestoring: true, at: 0)
    #expect(other.timePassed(at: 1_000) == [.end(.restoring)])
  }

  // MARK: The walk

  @Test func othersGoFirstAfterAWalkAmongManyObjects() {
    let target = target(1, of: 1)
    func walked(among count: Int) -> (Machine, [Machine.Action]) {
      var machine = Machine(deadline: 1_000)
      _ = machine.begin(isRestoring: false, at: 0)
      _ = machine.decided(true)
      _ = machine.prepared()
      let actions = machine.walks(among: count) + machine.found([target])
      return (machine, actions)
    }
    #expect(walked(among: Machine.walkMax).1 == [.encode(1, [target])])
    var (machine, actions) = walked(among: Machine.walkMax + 1)
    #expect(actions == [.rest], "nobody is asked yet")
    #expect(machine.resumed(1) == [])
    #expect(machine.hurry(until: 900) == [.rest])
    var late = machine
    #expect(machine.timePassed(at: 1) == [.wait(until: 900), .encode(1, [target])])
    #expect(late.timePassed(at: 900) == [.commit])
    #expect(late.stale == [.init(target: target, EncodeRefusal(.late))])
  }

  // MARK: Batches

  @Test func r12SessionsAreAskedAtTheSameTimeOneBatchEach() {
    let targets = (1...70).map { target($0, of: 1) } + [target(71, of: 2)]
    var (machine, actions) = encoding(targets)
    #expect(actions == [.encode(1, Array(targets[..<64])), .encode(2, [targets[70]])])
    #expect(machine.progress == (done: 0, total: 71))
    #expect(machine.answered(2, [71: .encoded]) == [])
    #expect(machine.answered(1, allEncoded(targets[..<64])) == [.encode(1, Array(targets[64..<70]))])
    #expect(machine.answered(1, allEncoded(targets[64..<70])) == [.commit])
    #expect(machine.stale.isEmpty)
    #expect(machine.progress == (done: 71, total: 71))
  }

  private func allEncoded(_ targets: ArraySlice<EncodeTarget>) -> [Int64: EncodeBatcher.Fate] {
    Dictionary(uniqueKeysWithValues: targets.map { ($0.node, .encoded) })
  }

  @Test func aBatchIsBoundedByBytesButHoldsOneAtLeast() {
    let targets = [target(1, of: 1, bytes: 2_000), target(2, of: 1, bytes: 600), target(3, of: 1, bytes: 500)]
    var (machine, actions) = encoding(targets)
    #expect(actions == [.encode(1, [targets[0]])])
    #expect(machine.answered(1, [1: .encoded]) == [.encode(1, [targets[1]])])
    #expect(machine.answered(1, [2: .encoded]) == [.encode(1, [targets[2]])])
  }

  @Test func r12WhatIsMissingOrRefusedIsStaleAndSaysWhy() {
    let targets = (1...3).map { target($0, of: 1) }
    var (machine, _) = encoding(targets)
    #expect(machine.answered(1, [1: .encoded, 2: .refused(EncodeRefusal(.malformed))]) == [.commit])
    #expect(machine.stale.map(\.target) == Array(targets[1...]))
    #expect(machine.stale.map(\.refusal?.why) == ["malformed", "missing"])
  }

  // MARK: Later

  @Test func whatIsPutOffComesFirstInTheNextBatch() {
    let targets = (1...66).map { target($0, of: 1) }
    var (machine, _) = encoding(targets)
    var fates = allEncoded(targets[..<64])
    fates[2] = .later
    fates[5] = .later
    #expect(machine.answered(1, fates) == [.encode(1, [targets[1], targets[4], targets[64], targets[65]])])
  }

  @Test func aBatchThatBringsNothingIsHalvedAndOneAloneIsGivenUpAtTheThirdTime() {
    let targets = (1...4).map { target($0, of: 1) }
    var (machine, _) = encoding(targets)
    func putOff(_ nodes: ClosedRange<Int64>) -> [Int64: EncodeBatcher.Fate] {
      Dictionary(uniqueKeysWithValues: nodes.map { ($0, .later) })
    }
    #expect(machine.answered(1, putOff(1...4)) == [.encode(1, Array(targets[..<2]))])
    #expect(machine.answered(1, putOff(1...2)) == [.encode(1, [targets[0]])])
    #expect(machine.answered(1, putOff(1...1)) == [.encode(1, [targets[0]])])
    #expect(machine.answered(1, putOff(1...1)) == [.encode(1, [targets[0]])])
    #expect(machine.answered(1, putOff(1...1)) == [.encode(1, [targets[1]])])
    #expect(machine.stale == [.init(target: targets[0], EncodeRefusal(.late))])
    #expect(machine.answered(1, [2: .encoded]) == [.encode(1, Array(targets[2...]))])
    #expect(machine.answered(1, allEncoded(targets[2...])) == [.commit])
  }

  // MARK: Sessions that come and go

  @Test func r12ALostSessionIsNotWaitedFor() {
    let targets = [target(1, of: 1), target(2, of: 2)]
    var (machine, _) = encoding(targets)
    #expect(machine.lost(1) == [])
    #expect(machine.batches.unanswered(by: 1) == [targets[0]])
    #expect(machine.answered(2, [2: .encoded]) == [.commit])
    #expect(machine.stale == [.init(target: targets[0], nil)])
  }

  @Test func aSessionThatComesBackInTimeIsAskedAgain() {
    let targets = [target(1, of: 1), target(2, of: 2)]
    var (machine, _) = encoding(targets)
    _ = machine.lost(1)
    #expect(machine.resumed(1) == [.encode(1, [targets[0]])])
    #expect(machine.answered(1, [1: .encoded]) == [])
    #expect(machine.answered(2, [2: .encoded]) == [.commit])
    #expect(machine.stale.isEmpty)
    #expect(machine.resumed(1) == [])
  }

  @Test func r12TheDeadlineCommitsWhatHasCome() {
    let targets = (1...66).map { target($0, of: 1) } + [target(67, of: 2), target(68, of: 3)]
    var (machine, _) = encoding(targets)
    _ = machine.answered(2, [67: .encoded])
    _ = machine.lost(3)
    #expect(machine.timePassed(at: 999) == [.wait(until: 1_000)])
    #expect(machine.timePassed(at: 1_000) == [.commit])
    #expect(machine.stale.map(\.target) == Array(targets[..<66]) + [targets[67]])
    #expect(machine.stale.map(\.refusal?.why) == Array(repeating: "late", count: 66) + [nil])
    #expect(machine.answered(1, [1: .encoded]) == [])
  }

  @Test func r33ARoundCanBeMadeToEndEarlier() {
    var (machine, _) = encoding([target(1, of: 1)])
    #expect(machine.hurry(until: 2_000) == [])
    #expect(machine.hurry(until: 300) == [.wait(until: 300)])
    #expect(machine.timePassed(at: 300) == [.commit])
    #expect(machine.hurry(until: 100) == [])
    var deciding = Machine(deadline: 1_000)
    _ = deciding.begin(isRestoring: false, at: 0)
    #expect(deciding.hurry(until: 300) == [.wait(until: 300)])
    #expect(deciding.timePassed(at: 300) == [.giveUpDelegate, .wait(until: 300), .walk])
  }

  // MARK: References and elements

  @Test func r7WhatIsFoundByReferencesIsAskedForOnce() {
    let targets = [target(1, of: 1), target(2, of: 1), target(3, of: 2)]
    var (machine, _) = encoding([targets[0]])
    #expect(machine.found(targets) == [.encode(2, [targets[2]])])
    #expect(machine.answered(1, [1: .encoded]) == [.encode(1, [targets[1]])])
    #expect(machine.answered(2, [3: .encoded]) == [])
    #expect(machine.answered(1, [2: .encoded]) == [.commit])
    #expect(machine.found([target(4, of: 1)]) == [], "the round is over")
  }

  @Test func r28ElementsAreAskedForBeforeTheCommit() {
    let view = target(1, of: 1)
    var (machine, _) = encoding([view])
    let questions = (0..<66).map { Machine.Question(node: 1, element: $0) }
    #expect(machine.ask(9, questions) == questions[..<64].map { .identify(9, $0) })
    #expect(machine.answered(1, [1: .encoded]) == [])
    #expect(machine.identified(9, questions[3]) == [.identify(9, questions[64])])
    #expect(machine.identified(9, questions[4]) == [.identify(9, questions[65])])
    for question in questions[5...] + questions[..<2] { #expect(machine.identified(9, question) == []) }
    #expect(machine.identified(9, questions[2]) == [.commit])
  }

  @Test func r28ElementsOfALostDataSourceStayAsTheyAre() {
    var (machine, _) = encoding([target(1, of: 1)])
    _ = machine.ask(9, [Machine.Question(node: 1, element: 0)])
    _ = machine.answered(1, [1: .encoded])
    #expect(machine.lost(9) == [.commit])
    var other = encoding([target(1, of: 1)]).0
    _ = other.lost(9)
    #expect(other.ask(9, [Machine.Question(node: 1, element: 0)]) == [])
    #expect(other.answered(1, [1: .encoded]) == [.commit])
  }
}
