// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

extension SaveRound {
  /// What a round waits for, and what comes next (R11, R12): events in, actions out.
  ///
  /// The delegate is asked first, then all sessions at the same time, each one batch after the other. Nobody is waited
  /// for beyond the deadline: what has not been answered by then is stale, and the round commits without it.
  package struct StateMachine: Hashable, Sendable {
    package enum Action: Hashable, Sendable {
      /// Ask the delegate whether to save, and tell `decided`.
      case decide
      /// Let the delegate encode the application's own state, and tell `prepared`.
      case prepare
      /// The delegate has had its time: what it is still asked is not waited for.
      case giveUpDelegate
      /// Find the objects that are to be asked for, and tell `found`.
      case walk
      /// Ask a session for these states, and tell `answered`, `failed` or `lost`.
      case encode(SessionID, [EncodeTarget])
      /// Ask a data source for the identifier of an element, and tell `identified` or `lost` (R28).
      case identify(SessionID, Question)
      /// Store what has come, and end.
      case commit
      /// End without storing anything.
      case end(SaveApplicationState.Obstacle)
      /// Tell `timePassed` at this time, and at no earlier one given before.
      case wait(until: Int64)
    }

    /// An element that has no identifier yet, by its place in the state it belongs to (R28).
    package struct Question: Hashable, Sendable {
      package let node: NodeID
      package let element: Int

      package init(node: NodeID, element: Int) { (self.node, self.element) = (node, element) }
    }

    /// What an answer says of one object.
    package enum Fate: Hashable, Sendable {
      /// A state that passes.
      case encoded
      /// To be asked for again.
      case later
      /// No state, and why: a word of `StaleObject`.
      case refused(String)
    }

    /// An object whose state is not of this round.
    package struct Stale: Hashable, Sendable {
      package let target: EncodeTarget
      /// A word of `StaleObject`; nil where its session was lost.
      package let why: String?

      package init(target: EncodeTarget, why: String?) { (self.target, self.why) = (target, why) }
    }

    private enum Phase: Hashable {
      case restoring, deciding, preparing, encoding, ended
    }

    /// Questions that one data source is asked at a time.
    package static let questionsMax = 64

    private var phase = Phase.restoring
    private var deadline: Int64
    /// When the delegate has had its time.
    private var delegateDue: Int64?
    private var lanes: [SessionID: EncodeLane] = [:]
    private var questions: [SessionID: QuestionLane] = [:]
    /// Sessions whose connection is lost; what they have not answered is asked again if they come back in time.
    private var absent: Set<SessionID> = []
    /// Nodes that were found to be asked for.
    package private(set) var known: Set<NodeID> = []
    package private(set) var stale: [Stale] = []

    private struct QuestionLane: Hashable {
      private var waiting: [Question] = []
      private var next = 0
      var asked: Set<Question> = []

      mutating func add(_ new: [Question]) { waiting += new }

      /// The questions that are to be asked now.
      mutating func take() -> ArraySlice<Question> {
        let end = min(waiting.count, next + max(0, StateMachine.questionsMax - asked.count))
        defer { next = end }
        asked.formUnion(waiting[next..<end])
        return waiting[next..<end]
      }
    }

    package init(deadline: Int64) { self.deadline = deadline }
  }
}

extension SaveRound.StateMachine {
  /// Everything that waits for an answer has one, or never will have.
  private var isSettled: Bool {
    lanes.values.allSatisfy { !$0.isAsking } && questions.values.allSatisfy { $0.asked.isEmpty }
  }

  /// Objects that need not be waited for any more, and all there are so far.
  package var progress: (done: Int, total: Int) {
    (known.count - lanes.values.reduce(0) { $0 + $1.asked.count + $1.waiting.count }, known.count)
  }

  /// The batch that the session is to answer, and everything that it has not answered.
  package func asked(of session: SessionID) -> [EncodeTarget] { lanes[session]?.asked ?? [] }
  package func unanswered(by session: SessionID) -> [EncodeTarget] {
    lanes[session].map { $0.asked + $0.waiting } ?? []
  }

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

  // MARK: States

  /// Objects to be asked for, in the order of the walk; those asked for already are left out.
  ///
  /// - Parameter bytesMax: bytes of one batch for each of their sessions.
  package mutating func found(_ targets: [EncodeTarget], bytesMax: [SessionID: Int]) -> [Action] {
    guard phase == .encoding else { return [] }
    for target in targets where known.insert(target.node).inserted {
      lanes[target.session, default: EncodeLane(bytesMax: bytesMax[target.session] ?? 0)].add(target)
    }
    return advance()
  }

  /// A session has answered its batch; an object it says nothing of is missing.
  package mutating func answered(_ session: SessionID, _ fates: [NodeID: Fate]) -> [Action] {
    guard phase == .encoding, let batch = lanes[session]?.asked, !batch.isEmpty else { return [] }
    for target in batch {
      switch fates[target.node] {
      case .encoded, .later: break
      case .refused(let why): stale.append(Stale(target: target, why: why))
      case nil: stale.append(Stale(target: target, why: StaleObject.Cause.missing.rawValue))
      }
    }
    if let late = lanes[session]?.answered(later: { fates[$0.node] == .later }) {
      stale.append(Stale(target: late, why: StaleObject.Cause.late.rawValue))
    }
    return advance()
  }

  /// A session has answered its batch in a way that says nothing of any object.
  package mutating func failed(_ session: SessionID, _ why: StaleObject.Cause) -> [Action] {
    let batch = lanes[session]?.asked ?? []
    return answered(session, Dictionary(uniqueKeysWithValues: batch.map { ($0.node, .refused(why.rawValue)) }))
  }

  /// A session can be asked nothing now: its connection is lost, or it has ended.
  package mutating func lost(_ session: SessionID) -> [Action] {
    absent.insert(session)
    lanes[session]?.lost()
    // Elements whose data source is gone stay as they are.
    questions[session] = nil
    return advance()
  }

  /// A session's answer is lost with a connection, and it has another one already.
  package mutating func asksAgain(_ session: SessionID) -> [Action] {
    lanes[session]?.lost()
    return advance()
  }

  /// A lost session is back.
  package mutating func resumed(_ session: SessionID) -> [Action] {
    absent.remove(session)
    return advance()
  }

  // MARK: Elements

  /// A state has come with elements that a data source is to be asked about.
  package mutating func ask(_ session: SessionID, _ new: [Question]) -> [Action] {
    guard phase == .encoding, !absent.contains(session) else { return [] }
    questions[session, default: QuestionLane()].add(new)
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
    case .encoding where now >= deadline: return commit()
    case .restoring, .deciding, .preparing, .encoding: return [.wait(until: delegateDue ?? deadline)]
    case .ended: return []
    }
  }

  /// The round is to end earlier than it was to (R33).
  package mutating func hurry(until earlier: Int64) -> [Action] {
    guard phase != .ended, earlier < deadline else { return [] }
    deadline = earlier
    delegateDue = delegateDue.map { min($0, earlier) }
    return [.wait(until: delegateDue ?? deadline)]
  }

  // MARK: Getting on

  /// Asks whatever can be asked now, and commits when everything is answered.
  private mutating func advance() -> [Action] {
    guard phase == .encoding else { return [] }
    var actions: [Action] = []
    for session in lanes.keys.sorted() where !absent.contains(session) {
      if let batch = lanes[session]?.next() { actions.append(.encode(session, batch)) }
    }
    for session in questions.keys.sorted() {
      actions += (questions[session]?.take() ?? []).map { .identify(session, $0) }
    }
    return isSettled ? actions + commit() : actions
  }

  private mutating func commit() -> [Action] {
    phase = .ended
    for session in lanes.keys.sorted() {
      let why = absent.contains(session) ? nil : StaleObject.Cause.late.rawValue
      for target in lanes[session]?.giveUp() ?? [] { stale.append(Stale(target: target, why: why)) }
    }
    return [.commit]
  }

  private mutating func end(_ obstacle: SaveApplicationState.Obstacle) -> [Action] {
    phase = .ended
    return [.end(obstacle)]
  }
}
