// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

extension SaveRound {
  /// The steps of a round (R11, R12): events in, actions out. The delegate is asked first, then all sessions at the
  /// same time, each one batch after the other. At the deadline the round commits; unanswered objects are stale.
  package struct StateMachine: Hashable, Sendable {
    package enum Action: Hashable, Sendable {
      /// Ask the delegate whether to save, and tell `decided`.
      case decide
      /// Let the delegate encode the application's own state, and tell `prepared`.
      case prepare
      /// The delegate's time is over: its open calls are not waited for.
      case giveUpDelegate
      /// Find the objects to ask for, and tell `found`.
      case walk
      /// Ask a session for these states, and tell `answered` or `lost`.
      case encode(SessionID, [EncodeTarget])
      /// Ask a data source for the identifier of an element, and tell `identified` or `lost` (R28).
      case identify(SessionID, Question)
      /// Store what has come, and end.
      case commit
      /// End without storing anything.
      case end(SaveApplicationState.Obstacle)
      /// Tell `timePassed` at this time, and at no earlier one given before.
      case wait(until: Int64)
      /// Tell `timePassed` as soon as others have been served.
      case rest
    }

    /// An element that has no identifier yet, by its place in the state it belongs to (R28).
    package struct Question: Hashable, Sendable {
      package let node: NodeID
      package let element: Int

      package init(node: NodeID, element: Int) { (self.node, self.element) = (node, element) }
    }

    private enum Phase: Hashable {
      case restoring, deciding, preparing, resting, encoding, ended
    }

    /// The round rests after a walk among more objects than these, because it takes long.
    package static let walkMax = 1_024

    /// Questions that one data source is asked at a time.
    package static let questionsMax = 64

    private var phase = Phase.restoring
    private var deadline: Int64
    /// The delegate's timeout.
    private var delegateDue: Int64?
    package private(set) var batches = EncodeBatcher()
    private var questions: [SessionID: QuestionQueue] = [:]
    /// Nodes that were found to be asked for.
    package private(set) var known: Set<NodeID> = []
    package private(set) var stale: [EncodeBatcher.Stale] = []

    private struct QuestionQueue: Hashable {
      var waiting: ArraySlice<Question> = []
      var asked: Set<Question> = []

      mutating func next() -> ArraySlice<Question> {
        let next = waiting.prefix(max(0, StateMachine.questionsMax - asked.count))
        waiting.removeFirst(next.count)
        asked.formUnion(next)
        return next
      }
    }

    package init(deadline: Int64) { self.deadline = deadline }
  }
}

extension SaveRound.StateMachine {
  /// No answer is outstanding.
  private var isSettled: Bool { !batches.isAsking && questions.values.allSatisfy { $0.asked.isEmpty } }

  /// Objects that the round does not wait for, and all that it knows of.
  package var progress: (done: Int, total: Int) { (known.count - batches.count, known.count) }

  package var isDeciding: Bool { phase == .deciding }

  // MARK: The delegate

  /// - Parameter isRestoring: a restoration is under way; it is waited for (R12).
  package mutating func begin(isRestoring: Bool, at now: Int64) -> [Action] {
    isRestoring ? [.wait(until: deadline)] : decide(at: now)
  }

  package mutating func restorationEnded(at now: Int64) -> [Action] { phase == .restoring ? decide(at: now) : [] }

  /// The delegate gets half of the time that is left, for both questions together.
  private mutating func decide(at now: Int64) -> [Action] {
    phase = .deciding
    let due = now + max(1, (deadline - now) / 2)
    delegateDue = due
    return [.wait(until: min(due, deadline)), .decide]
  }

  package mutating func decided(_ isWanted: Bool) -> [Action] {
    guard phase == .deciding else { return [] }
    guard isWanted else { return end(.declined) }
    phase = .preparing
    return [.prepare]
  }

  package mutating func prepared() -> [Action] {
    guard phase == .preparing else { return [] }
    return walk()
  }

  private mutating func walk() -> [Action] {
    phase = .encoding
    delegateDue = nil
    return [.wait(until: deadline), .walk]
  }

  /// The walk looks at `count` objects; `found` follows.
  package mutating func walks(among count: Int) -> [Action] {
    guard phase == .encoding, count > Self.walkMax else { return [] }
    phase = .resting
    return [.rest]
  }

  // MARK: States

  /// Objects to be asked for, in the order of the walk; those asked for already are left out.
  package mutating func found(_ targets: [EncodeTarget]) -> [Action] {
    guard phase == .encoding || phase == .resting else { return [] }
    for target in targets where known.insert(target.node).inserted { batches.add(target) }
    return advance()
  }

  package mutating func answered(_ session: SessionID, _ fates: [NodeID: EncodeBatcher.Fate]) -> [Action] {
    guard phase == .encoding, !batches.asked(of: session).isEmpty else { return [] }
    stale += batches.answered(session, fates)
    return advance()
  }

  /// A session is lost, or has ended. `isBack`: it has another connection already.
  package mutating func lost(_ session: SessionID, isBack: Bool = false) -> [Action] {
    batches.lost(session, isBack: isBack)
    // Elements whose data source is gone stay as they are.
    if !isBack { questions[session] = nil }
    return advance()
  }

  package mutating func resumed(_ session: SessionID) -> [Action] {
    batches.resumed(session)
    return advance()
  }

  // MARK: Elements

  /// A state has come with elements to ask a data source about.
  package mutating func ask(_ session: SessionID, _ new: [Question]) -> [Action] {
    guard phase == .encoding, !batches.isAbsent(session) else { return [] }
    questions[session, default: QuestionQueue()].waiting += new
    return advance()
  }

  package mutating func identified(_ session: SessionID, _ question: Question) -> [Action] {
    questions[session]?.asked.remove(question)
    return advance()
  }

  // MARK: Time

  package mutating func timePassed(at now: Int64) -> [Action] {
    switch phase {
    case .restoring where now >= deadline: return end(.restoring)
    case .deciding where now >= delegateDue ?? deadline, .preparing where now >= delegateDue ?? deadline:
      return [.giveUpDelegate] + walk()
    case .resting where now < deadline:
      phase = .encoding
      return [.wait(until: deadline)] + advance()
    case .resting: return commit()
    case .encoding where now >= deadline: return commit()
    case .restoring, .deciding, .preparing, .encoding: return [.wait(until: delegateDue ?? deadline)]
    case .ended: return []
    }
  }

  /// Brings the deadline forward (R33).
  package mutating func hurry(until earlier: Int64) -> [Action] {
    guard phase != .ended, earlier < deadline else { return [] }
    deadline = earlier
    delegateDue = delegateDue.map { min($0, earlier) }
    return [phase == .resting ? .rest : .wait(until: delegateDue ?? deadline)]
  }

  // MARK: Getting on

  /// Asks whatever can be asked now, and commits when everything is answered.
  private mutating func advance() -> [Action] {
    guard phase == .encoding else { return [] }
    var actions = batches.next().map { Action.encode($0.session, $0.batch) }
    for session in questions.keys.sorted() {
      actions += (questions[session]?.next() ?? []).map { .identify(session, $0) }
    }
    return isSettled ? actions + commit() : actions
  }

  private mutating func commit() -> [Action] {
    phase = .ended
    stale += batches.giveUp()
    return [.commit]
  }

  private mutating func end(_ obstacle: SaveApplicationState.Obstacle) -> [Action] {
    phase = .ended
    return [.end(obstacle)]
  }
}
