// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// One restoration of an application: locates objects, has their states delivered, and waits for the end (R21 – R25).
///
/// It knows objects and sessions by number, and asks its `RestorationFacts` for the rest. Events in, actions out.
///
///     startingDelegate ─▶ asking ─▶ locating ─▶ delivering ─▶ telling ─▶ waiting ─▶ over
///
/// Invariants:
/// 1. Nothing is delivered before everything is located, refused, or was awaited for half of the time.
/// 2. No object is delivered before the one above it is settled, or is being delivered to the same session.
/// 3. A session has at most `askedMax` unanswered questions.
/// 4. Each object is settled in the end, and at the deadline at the latest.
package struct Restoration {
  /// How many objects a session is asked to make at the same time.
  package static let askedMax = 8

  package typealias Lookup = RestoringStep.Lookup
  package typealias Reason = RestoreApplicationState.Reason

  package enum Phase {
    /// The delegate's unit was started, and it has not come.
    case startingDelegate
    /// The delegate is asked whether there shall be a restoration at all.
    case asking
    case locating
    case delivering
    /// The delegate is told that all is decoded.
    case telling
    /// Sessions that take part hold the end back.
    case waiting
    case over
  }

  /// An object to restore, and its lookups.
  package struct Planned: Equatable {
    package let node: NodeID
    /// The nearest object above it to restore as well; it comes earlier in the plan.
    package let parent: NodeID?
    package let lookups: [Lookup]
    /// A session may be about to register it. Others were never registered, or had been given up when a restoration
    /// completed: they are restored if they come, and not waited for (R23).
    package let isExpected: Bool
    /// The role that had it last, if it took part in the last run: a session of it may register the object (R23).
    package let role: String?
    /// A unit was asked to start that may bring it.
    package let hasUnit: Bool
    /// It is above what is restored: it is located or made, and does not get its state.
    package let isAncestor: Bool

    package init(
      node: NodeID,
      parent: NodeID?,
      lookups: [Lookup],
      isExpected: Bool = true,
      role: String? = nil,
      hasUnit: Bool = false,
      isAncestor: Bool = false
    ) {
      (self.node, self.parent, self.lookups, self.isExpected) = (node, parent, lookups, isExpected)
      (self.role, self.hasUnit, self.isAncestor) = (role, hasUnit, isAncestor)
    }
  }

  package enum Outcome: Equatable {
    case restored
    case skipped(Reason)
    case absent
  }

  package enum Place: Equatable {
    /// The object above it comes first.
    case waiting
    case asked(SessionID)
    /// Neither it nor its class is registered yet.
    case awaited
    /// It is there, and its state is not delivered yet.
    case located(SessionID)
    case delivering(SessionID)
    case settled(Outcome)
  }

  package struct Item {
    package let node: NodeID
    let parent: Int?
    var children: [Int] = []
    /// A session may be about to register it, because the plan or a factory says so.
    var isExpected: Bool
    let isAncestor: Bool
    var role: String?
    /// Ways of looking that have not been tried.
    var lookups: ArraySlice<Lookup>
    /// Several sessions may make it: those that have passed, and the one that was shown its state. No other is shown it
    /// before that one has answered (R22, R31).
    var isShared = false
    var passed: Set<SessionID> = []
    var shownTo: SessionID?
    /// Its unit was asked to start, although it is not expected.
    var isComing = false
    package internal(set) var place = Place.waiting
    /// Its present or last owner, once it was there.
    var owner: SessionID?
  }

  /// The objects that a session is asked to make.
  struct Line {
    /// To be made by it; the first ones have been asked for, and `asked` of them are not answered.
    private var questions: [Int] = []
    private var next = 0
    var asked = 0
    /// It could not be reached; it may come back.
    var isUnreachable = false

    mutating func ask(_ number: Int) { questions.append(number) }

    var questionCount: Int { questions.count }

    /// The next one to ask for; nil while it is asked enough.
    mutating func takeQuestion() -> Int? {
      guard asked < Restoration.askedMax, next < questions.count else { return nil }
      next += 1
      return questions[next - 1]
    }

    /// All that were not asked for.
    mutating func takeQuestions() -> [Int] {
      defer { next = questions.count }
      return Array(questions[next...])
    }
  }

  /// A session that can be asked to make an object.
  package struct Maker {
    /// How near it is to the process that had the object last.
    package enum Nearness: Comparable {
      case sameUnit, sameRole, other
    }

    package let session: SessionID
    let nearness: Nearness
    /// Others make objects of the class as well.
    let isShared: Bool

    package init(_ session: SessionID, _ nearness: Nearness = .other, isShared: Bool = false) {
      (self.session, self.nearness, self.isShared) = (session, nearness, isShared)
    }
  }

  /// A decision about one object, for its explanation.
  package enum Note: Equatable {
    case lookedUp(Lookup, SessionID?)
    case located(SessionID)
    case refused(Lookup)
    case passed(SessionID)
    case awaited
    /// The reason for the outcome that follows.
    case because(RestoringStep)
    case settled(Outcome)
  }

  package enum Action: Equatable {
    /// Start the delegate's unit, and answer with `joined` or `delegateNotStarted`.
    case startDelegate
    /// Ask the delegate whether to restore.
    case ask(SessionID)
    /// Answer with the event `planned`.
    case plan
    case make(NodeID, Lookup, by: SessionID)
    /// Start the unit of the object's storyboard.
    case startUnit(NodeID)
    /// Forget the object, and all vacant ones below it.
    case forget(NodeID)
    /// Deliver the object's state to its owner, and send the event `delivered` when that has ended.
    case deliver(NodeID, to: SessionID)
    /// Tell the delegate that all is decoded.
    case tell(SessionID)
    case note(NodeID, Note)
    /// Tell sessions of their objects, and answer.
    case end
  }

  package enum Event: Equatable {
    case started
    /// The delegate's answer to `ask`; yes if there is none.
    case decided(Bool)
    case planned([Planned], at: Int64)
    /// The delegate has come, or nothing can bring it.
    case joined(at: Int64)
    case delegateNotStarted(at: Int64)
    /// The unit of these objects was not started.
    case unitFailed([NodeID])
    case made(NodeID, Made, by: SessionID)
    /// Restoration classes have been registered.
    case classesChanged
    /// A session owns the object now.
    case claimed(NodeID)
    /// Its owner has released the object, which is gone for good or may be claimed again.
    case released(NodeID, isGone: Bool)
    case delivered(NodeID, Outcome, because: RestoringStep?)
    /// The delegate's answer to `tell`, or that there will be none.
    case told
    /// A session may have stopped holding back the end (R21).
    case extensionsChanged
    /// A session has begun, or has said that it is restored.
    case rolesChanged
    case returned(SessionID)
    case ended(SessionID)
    case discarded
    case time(Int64)
  }

  /// The outcome of `make`.
  package enum Made: Equatable {
    /// An object of the session that was asked: the one that was asked for, if that has an owner now (R24).
    case object
    /// A session is about to register it.
    case awaited
    /// The session leaves it to another one of the class.
    case passed
    /// It is not to be made now, or never again.
    case null, forgotten
    case failed, lost
  }

  // MARK: State

  package let begun: Int64
  package let deadline: Int64
  package private(set) var phase = Phase.asking
  package private(set) var isDeclined = false
  /// When the delegate was asked, and when objects began to be located.
  private var asked: Int64
  private var planned: Int64
  /// Unregistered objects no longer hold up the others.
  private(set) var isHoldOver = false
  package internal(set) var items: [Item] = []
  var index: [NodeID: Int] = [:]
  var lines: [SessionID: Line] = [:]
  /// Sessions that were asked, or have what was located; the end waits for them and no others.
  var participants: Set<SessionID> = []
  /// When to ask again whether objects are awaited that only their process role may bring.
  var roleCheck: Int64?
  var unlocated = 0
  var unsettled = 0
  var actions: [Action] = []

  /// The run restores already: the delegate is not asked again.
  let isDecided: Bool
  /// A client has called for it.
  let isCalled: Bool

  package init(begun: Int64, deadline: Int64, isDecided: Bool = false, isCalled: Bool = true) {
    (self.isDecided, self.isCalled) = (isDecided, isCalled)
    (self.begun, self.deadline, self.asked, self.planned) = (begun, deadline, begun, begun)
  }

  mutating func enter(_ phase: Phase) { self.phase = phase }
  mutating func decline() { isDeclined = true }
  mutating func noteAsked(at now: Int64) { asked = max(begun, now) }
  mutating func notePlanned(at now: Int64) { planned = max(begun, now) }
  mutating func endHold() { isHoldOver = true }

  /// When the next `time` event is due.
  package var due: Int64? {
    switch phase {
    case .startingDelegate: begun + (deadline - begun) / 2
    case .asking: asked + (deadline - asked) / 4
    case .locating, .delivering: min(isHoldOver ? deadline : holdEnd, roleCheck ?? deadline)
    case .over: nil
    case .telling, .waiting: deadline
    }
  }

  var holdEnd: Int64 { planned + (deadline - planned) / 2 }

  var settledCount: Int { items.count - unsettled }

  /// Objects to report as restored, by session, including those whose state is withheld (R35).
  package var finished: [SessionID: [NodeID]] {
    var finished: [SessionID: [NodeID]] = [:]
    for item in items where !item.isAncestor {
      guard item.place == .settled(.restored) || item.place == .settled(.skipped(.quarantined)),
        let owner = item.owner
      else { continue }
      finished[owner, default: []].append(item.node)
    }
    return finished
  }

  /// Objects that their classes refused.
  package var refused: [NodeID] { items.filter { $0.place == .settled(.skipped(.refused)) }.map(\.node) }

  mutating func put(_ number: Int, _ place: Place) {
    let former = items[number].place
    unlocated += (place.isUnlocated ? 1 : 0) - (former.isUnlocated ? 1 : 0)
    unsettled += (place.isSettled ? 0 : 1) - (former.isSettled ? 0 : 1)
    items[number].place = place
  }
}

extension Restoration.Place {
  var isUnlocated: Bool {
    switch self {
    case .waiting, .asked, .awaited: true
    case .located, .delivering, .settled: false
    }
  }

  var isSettled: Bool { if case .settled = self { true } else { false } }

  /// It is not awaited, but may still come: its session ended before it was restored, or it was absent for long.
  var mayComeBack: Bool { self == .settled(.skipped(.ended)) || self == .settled(.absent) }
}

/// The present facts about objects and sessions. A question changes nothing.
package protocol RestorationFacts {
  func registrant(of node: NodeID) -> SessionID?
  /// Sessions that can be asked to make the object, in the order in which they registered its class.
  func makers(of node: NodeID, by lookup: RestoringStep.Lookup) -> [Restoration.Maker]
  /// There is no delegate, and a unit that would bring it.
  var isDelegateMissing: Bool { get }
  /// The delegate, if it can be called by this method.
  func delegate(serving method: ServedMethod) -> SessionID?
  /// Until when a session of this role of the last run may be about to register objects; nil if none is (R23).
  func awaitedUntil(_ role: String) -> Int64?
  func isOfRole(_ session: SessionID, _ role: String?) -> Bool
  /// Whether the session holds the end back (R21).
  func isExtended(_ session: SessionID) -> Bool
}
