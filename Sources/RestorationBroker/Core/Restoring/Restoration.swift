// SPDX-License-Identifier: Apache-2.0

internal import HeapModule
package import RestorationArchive
package import RestorationWire

/// One restoration of an application: decides what is looked for, made, handed out and told, and in which order
/// (R21 – R25).
///
/// It knows objects and sessions by number only; what is true of them now it asks its `RestorationFacts`. It takes in
/// events and leaves actions; see `Restoration+StateMachine.swift`.
///
///     startingDelegate ─▶ asking ─▶ locating ─▶ decoding ─▶ telling ─▶ waiting ─▶ over
///
/// Invariants:
/// 1. Nothing is handed out before everything is located, refused, or was awaited for half of the time.
/// 2. No object is handed out before the one above it was dealt with, or in a batch before its parent.
/// 3. A session has at most one batch, and at most `askedMax` questions, unanswered.
/// 4. Each object is settled in the end, and at the deadline at the latest.
package struct Restoration {
  /// How many objects a session is asked to make at the same time.
  package static let askedMax = 8
  /// How many objects a batch has at most.
  static let batchMax = 64

  package typealias Lookup = RestoringStep.Lookup
  package typealias Reason = RestoreApplicationState.Reason

  package enum Phase {
    /// The delegate's unit was started, and it has not come.
    case startingDelegate
    /// The delegate is asked whether there shall be a restoration at all.
    case asking
    case locating
    case decoding
    /// The delegate is told that all is decoded.
    case telling
    /// Sessions that take part hold the end back.
    case waiting
    case over
  }

  /// An object that is to be restored, and in which ways it is looked for.
  package struct Planned: Equatable {
    package let node: NodeID
    /// The nearest object above it that is to be restored as well; it comes earlier in the plan.
    package let parent: NodeID?
    package let lookups: [Lookup]
    /// Somebody may be about to register it. What was never registered, or had been given up by the time a restoration
    /// completed, is restored if it comes, and not waited for (R23).
    package let isExpected: Bool
    /// The process role that had it last, if that role took part in the last run: though nobody expects it, a session
    /// of that role may be about to register it (R23).
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
    /// A session is to make it.
    case asked(SessionID)
    /// Nobody has registered it yet, or its class.
    case awaited
    /// It is there and was not handed its state yet.
    case located(SessionID)
    /// Its state is on the way to the session, or there.
    case handed(SessionID)
    case settled(Outcome)
  }

  package struct Item {
    package let node: NodeID
    let parent: Int?
    var children: [Int] = []
    /// Somebody may be about to register it, because the plan says so, or because a factory did.
    var isExpected: Bool
    let isAncestor: Bool
    var role: String?
    /// Ways of looking that have not been tried.
    var lookups: ArraySlice<Lookup>
    /// Several sessions may make it: those that have left it to others, and the one that was shown its state. Nobody
    /// else is shown it before that one has answered (R22, R31).
    var isShared = false
    var passed: Set<SessionID> = []
    var shownTo: SessionID?
    /// Its unit was asked to start, although nobody expects it.
    var isComing = false
    package internal(set) var place = Place.waiting
    /// Whose it is or was, once it was there.
    var owner: SessionID?
  }

  /// States for one message.
  struct Batch {
    var entries: [(number: Int, isDeferred: Bool)] = []
    var numbers: Set<Int> = []
    var bytes = 0
    var isFull = false

    /// Adds one, or is full.
    mutating func add(_ number: Int, _ whole: Int, _ deferred: Int, _ max: Int, alone: Bool) -> Bool {
      let isDeferred = whole > max
      let size = isDeferred ? deferred : whole
      guard entries.isEmpty || !alone && bytes + size <= max else {
        isFull = true
        return false
      }
      entries.append((number, isDeferred))
      numbers.insert(number)
      bytes += size
      if alone || entries.count == Restoration.batchMax { isFull = true }
      return true
    }
  }

  /// What is under way with one session.
  struct Line {
    /// To be made by it; the first ones have been asked for, and `asked` of them are not answered.
    private var questions: [Int] = []
    private var next = 0
    var asked = 0
    /// There, and not handed out; some may be neither any longer, or be named twice.
    var located: Heap<Int> = []
    var batch: [Int] = []
    /// It could not be reached; it may come back.
    var isUnreachable = false
    /// It can be handed something, and there may be something to hand out.
    var isFree: Bool { batch.isEmpty && !isUnreachable && !located.isEmpty }

    mutating func ask(_ number: Int) { questions.append(number) }

    /// How many it was to make so far.
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

  /// How an object's state is to be handed out now.
  package enum Handing: Equatable {
    /// With its state, or without where that is deferred.
    case state(bytes: Int, deferred: Int = 0)
    /// By itself, because it is suspected of a crash (R31).
    case alone(bytes: Int)
    /// Not yet.
    case later
    /// Not before states that were handed out earlier are proven (R31).
    case afterTrials
    /// There is nothing to be handed out; it is restored as it is.
    case nothing(because: RestoringStep?)
    case skip(Reason, because: RestoringStep?)
  }

  package struct Handout: Equatable {
    package let node: NodeID
    /// Too large to be sent unasked.
    package let isDeferred: Bool

    package init(node: NodeID, isDeferred: Bool) { (self.node, self.isDeferred) = (node, isDeferred) }
  }

  /// Something decided about one object, for those who ask later.
  package enum Note: Equatable {
    case lookedUp(Lookup, SessionID?)
    case located(SessionID)
    case refused(Lookup)
    case passed(SessionID)
    case awaited
    case suspected
    /// Why it is settled as it is about to be.
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
    case handOut(SessionID, [Handout])
    /// Send the event `trialsChanged` once the first of the trials under way is over (R31).
    case watchTrials
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
    /// Its owner has let go of the object, which is gone for good or may be claimed again.
    case released(NodeID, isGone: Bool)
    /// A state of the session's batch is not handed out after all.
    case withheld(NodeID, Outcome)
    case handled(SessionID, Handled)
    /// The delegate's answer to `tell`, or that there will be none.
    case told
    /// States that waited behind a suspect may be handed out, or the end is no longer held back (R21, R31).
    case trialsChanged
    /// A session has begun, or has said that it is restored.
    case rolesChanged
    case returned(SessionID)
    case ended(SessionID)
    case discarded
    case time(Int64)
  }

  /// What became of `make`.
  package enum Made: Equatable {
    /// An object of the session that was asked: the one that was asked for, if that has an owner now (R24).
    case object
    /// Somebody is about to register it.
    case awaited
    /// It is left to another session of the class.
    case passed
    /// It is not to be made now, or never again.
    case null, forgotten
    case failed, lost
  }

  /// What became of `handOut`.
  package enum Handled: Equatable {
    case done, failed, lost
  }

  // MARK: State

  package let begun: Int64
  package let deadline: Int64
  package private(set) var phase = Phase.asking
  package private(set) var isDeclined = false
  /// When the delegate was asked, and when objects began to be located.
  private var asked: Int64
  private var planned: Int64
  /// Objects that nobody has registered no longer hold up the others.
  private(set) var isHoldOver = false
  package internal(set) var items: [Item] = []
  var index: [NodeID: Int] = [:]
  var lines: [SessionID: Line] = [:]
  /// Sessions that were asked or handed something; the end waits for them and no others.
  var participants: Set<SessionID> = []
  /// Sessions that may be handed something more.
  var ready: Set<SessionID> = []
  /// When to ask again whether objects are awaited that only their process role may bring.
  var roleCheck: Int64?
  var unlocated = 0
  var unsettled = 0
  var actions: [Action] = []

  /// The run restores already: nobody is asked again.
  let isDecided: Bool
  /// It is one that somebody has called for.
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

  /// When it wants to be told the time next.
  package var due: Int64? {
    switch phase {
    case .startingDelegate: begun + (deadline - begun) / 2
    case .asking: asked + (deadline - asked) / 4
    case .locating, .decoding: min(isHoldOver ? deadline : holdEnd, roleCheck ?? deadline)
    case .over: nil
    case .telling, .waiting: deadline
    }
  }

  var holdEnd: Int64 { planned + (deadline - planned) / 2 }

  /// What the session has been handed and has not answered.
  func batch(of session: SessionID) -> [NodeID] { (lines[session]?.batch ?? []).map { items[$0].node } }

  var settledCount: Int { items.count - unsettled }

  /// Objects to be told that they are restored, by session: those whose state is withheld too (R35).
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

  /// Puts an object somewhere else.
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
    case .located, .handed, .settled: false
    }
  }

  var isSettled: Bool { if case .settled = self { true } else { false } }

  /// It is not awaited, but may still come: its session ended before it was restored, or nobody had it for long.
  var mayComeBack: Bool { self == .settled(.skipped(.ended)) || self == .settled(.absent) }
}

/// What is true of objects and sessions at this moment. To ask changes nothing.
package protocol RestorationFacts {
  /// The session that has the object registered.
  func registrant(of node: NodeID) -> SessionID?
  /// Sessions that can be asked to make the object, in the order in which they registered its class.
  func makers(of node: NodeID, by lookup: RestoringStep.Lookup) -> [Restoration.Maker]
  /// There is no delegate, and a unit that would bring it.
  var isDelegateMissing: Bool { get }
  /// The delegate, where it can be called by this method.
  func delegate(serving method: ServedMethod) -> SessionID?
  /// How the object's state is to be handed to its owner.
  func handing(of node: NodeID) -> Restoration.Handing
  /// Until when a session of this process role, which took part in the last run, may be about to register objects; nil
  /// if none is (R23).
  func awaitedUntil(_ role: String) -> Int64?
  /// Whether the session's process has this role.
  func isOfRole(_ session: SessionID, _ role: String?) -> Bool
  /// Bytes of states that one message to the session may have.
  func batchBytesMax(of session: SessionID) -> Int
  /// Whether the session holds the end back (R21).
  func isExtended(_ session: SessionID) -> Bool
}
