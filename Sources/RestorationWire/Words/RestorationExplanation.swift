// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// Why an object was saved and restored, or was not.
public struct RestorationExplanation: WireObject, Hashable {
  public package(set) var path: IdentifierPath?
  public package(set) var saved: [NotedStep<SavingStep>] = []
  public package(set) var restored: [NotedStep<RestoringStep>] = []
  public package(set) var verdict = ""
  public package(set) var excluder: Excluder?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("path", &path, "The object's path; null if it has none (R4).")
    var (saving, restoring) = (KnownSteps(steps: saved), KnownSteps(steps: restored))
    try members.required(
      "saved",
      &saving,
      "Steps of the last round, and of pushes since, in their order; empty if there was none."
    )
    try members.required("restored", &restoring, "Steps of the last restoration; empty if there was none.")
    try members.required("verdict", &verdict, .text(of: ExplainRestoration.Verdict.self), "The overall result.")
    try members.optional("excluder", &excluder, "The object that excludes it, if the verdict is `excluded`.")
    (saved, restored) = (saving.steps, restoring.steps)
  }
}

/// The object or ancestor that excludes an object from save rounds (R4).
public struct Excluder: WireObject, Hashable {
  package static let sharedName: String? = "Excluder"

  public package(set) var object: ObjectHandle?
  public package(set) var path: IdentifierPath?
  public package(set) var below: IdentifierPath?
  public package(set) var owner: ObjectOwner?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("object", &object, .handle, "Handle of the object without identifier; null if unclaimed.")
    try members.nullable("path", &path, "Its path, if it has one: then a view must not be below it, or is a root.")
    try members.nullable("below", &below, "The nearest object above it that has a path; null if there is none.")
    try members.nullable("owner", &owner, "Who has it; null if unclaimed.")
  }
}

/// Skips steps with unknown words.
private struct KnownSteps<Step: WireValue>: WireValue {
  static var schema: Schema { [Step].schema }
  static var expected: String { [Step].expected }

  var steps: [Step]

  init(steps: [Step]) { self.steps = steps }

  init(wire slice: JSONSlice) throws(Misfit) {
    guard let slices = slice.elements else { throw Misfit(Self.expected) }
    steps = slices.compactMap { Step($0) }
  }

  mutating func conceal(within bounds: Bounds) { steps.conceal(within: bounds) }

  func writeJSON(to writer: inout JSONWriter) { steps.writeJSON(to: &writer) }
}

/// One step in the last save of an object, noted when it was decided.
public enum SavingStep: Sendable, Hashable {
  /// The save round's walk reached it.
  case included
  /// It or an ancestor has no identifier, or its chain of views is broken (R4). `by` is that ancestor's path; `nil` if
  /// it has none.
  case excluded(by: IdentifierPath?)
  /// A saved object (`nil`: the application) refers to it, so it is saved although the walk did not reach it (R7).
  case referenced(by: IdentifierPath?)
  /// Its owner was asked for its state in this round.
  case asked(ObjectOwner, round: Int64)
  /// Its owner does not serve encode: the last pushed state is current (R12).
  case notServed(ObjectOwner)
  /// It has no owner: the last saved state is retained (R13).
  case orphaned
  /// Its owner answered with a state of this size.
  case encoded(bytes: Int)
  /// The state equals the saved one and was not written again.
  case unchanged
  /// Its owner pushed a state after answering, so the answer is older (R12).
  case superseded
  /// The data source named no identifier for an element, which is saved by its index path (R28).
  case elementUnnamed(ObjectOwner, message: String?)
  /// Its last good state is retained; `why` in the words of `stale` (R12).
  case stale(ObjectOwner?, why: String, message: String? = nil)
  /// A push of the owner was stored.
  case pushed(bytes: Int)
  /// That push is provisional: the older state counts until it is confirmed (R19).
  case early
  /// Provisional pushes are what is saved (R19).
  case confirmed
  /// Provisional pushes are gone: the owner has the older state now (R19).
  case dropped
  /// Its owner ended without a goodbye (R30).
  case ownerEnded(ObjectOwner, SessionEnded.Ending, ProcessOutcome)
  /// This generation contains it.
  case saved(generation: Int64)
}

extension SavingStep: TaggedWireValue {
  package static let tag: StaticString = "step"
  package static let sharedName = "SavingStep"

  public var word: String { nameOfCase }

  package static let forms: KeyValuePairs<String, SavingStep> = [
    "included": .included, "excluded": .excluded(by: nil), "referenced": .referenced(by: nil),
    "asked": .asked(ObjectOwner(), round: 0), "notServed": .notServed(ObjectOwner()), "orphaned": .orphaned,
    "encoded": .encoded(bytes: 0), "unchanged": .unchanged, "superseded": .superseded,
    "elementUnnamed": .elementUnnamed(ObjectOwner(), message: nil), "stale": .stale(nil, why: ""),
    "pushed": .pushed(bytes: 0), "early": .early, "confirmed": .confirmed,
    "dropped": .dropped, "ownerEnded": .ownerEnded(ObjectOwner(), .closed, ProcessOutcome()),
    "saved": .saved(generation: 0),
  ]

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    switch self {
    case .included, .orphaned, .unchanged, .superseded, .early, .confirmed, .dropped: break
    case .excluded(let by): self = .excluded(by: try members.nullable("by", by))
    case .referenced(let by): self = .referenced(by: try members.nullable("by", by))
    case .asked(let owner, let round):
      self = .asked(try members.required("owner", owner), round: try members.required("round", round, .from(0)))
    case .notServed(let owner): self = .notServed(try members.required("owner", owner))
    case .encoded(let bytes): self = .encoded(bytes: try members.required("bytes", bytes))
    case .elementUnnamed(let owner, let message):
      let owner = try members.required("owner", owner)
      self = .elementUnnamed(owner, message: try members.optional("message", message))
    case .stale(let owner, let why, let message):
      let owner = try members.nullable("owner", owner)
      let why = try members.required("why", why, .text(of: StaleObject.Cause.self))
      self = .stale(owner, why: why, message: try members.optional("message", message))
    case .pushed(let bytes): self = .pushed(bytes: try members.required("bytes", bytes))
    case .ownerEnded(let owner, let ending, var outcome):
      let (owner, ending) = (try members.required("owner", owner), try members.required("ending", ending))
      try outcome.walk(&members)
      self = .ownerEnded(owner, ending, outcome)
    case .saved(let generation): self = .saved(generation: try members.required("generation", generation, .generation))
    }
  }
}

/// One step in the last restoration of an object, noted when it was decided.
public enum RestoringStep: Sendable, Hashable {
  /// The ways to find an object, in the order in which they are tried (R22, R23).
  public enum Lookup: String, WireWord {
    case restorationClass, delegate, existing, storyboard
  }

  /// Looked for in this way. `owner` was asked or has it; `nil` if there was no session to ask.
  case lookedUp(Lookup, ObjectOwner?)
  /// The factory or delegate made or found it.
  case located(ObjectOwner)
  /// The factory or delegate answered null (R22, R23).
  case refused(Lookup)
  /// This session was asked to make it and left it to another session of the class (R22).
  case passed(ObjectOwner)
  /// The storyboard's unit could not be started; the reason, for people.
  case unitFailed(unit: String, message: String)
  case unitStarted(unit: String)
  /// Its owner ended without a goodbye (R30).
  case ownerEnded(ObjectOwner, SessionEnded.Ending, ProcessOutcome)
  /// Neither it nor its class is registered yet; the broker waits until the deadline.
  case awaited
  /// The saved class is not among those its owner declared (R25).
  case classMismatch(saved: String, declared: [String])
  /// Its state has been withheld since then (R31, R35).
  case quarantined(since: Timestamp)
  /// Its state is damaged (R32).
  case unreadable
  case noState
  /// Its owner got its state; `deferred` if the owner must fetch it.
  case handedOut(ObjectOwner, deferred: Bool)
  /// Restored alone, because it may have crashed its owner before (R31).
  case suspected
  /// Its owner fetched the state.
  case decoded(ObjectOwner)
  /// An element's identifier was looked up in the current data (R28).
  case resolved(identifier: String, found: Bool)
  /// The data source did not find an element, whose saved index path is returned (R28).
  case elementUnresolved(ObjectOwner, message: String?)
  /// It is restored, and its finish callback was sent if its owner serves that (R21).
  case finished
  /// Not restored; `reason` in the words of `skipped`.
  case skipped(reason: String, message: String? = nil)
  /// It was not registered before the end (R23).
  case absent
}

extension RestoringStep: TaggedWireValue {
  package static let tag: StaticString = "step"
  package static let sharedName = "RestoringStep"

  public var word: String { nameOfCase }

  package static let forms: KeyValuePairs<String, RestoringStep> = [
    "lookedUp": .lookedUp(.existing, nil), "located": .located(ObjectOwner()), "refused": .refused(.existing),
    "passed": .passed(ObjectOwner()),
    "unitStarted": .unitStarted(unit: ""), "unitFailed": .unitFailed(unit: "", message: ""), "awaited": .awaited,
    "ownerEnded": .ownerEnded(ObjectOwner(), .closed, ProcessOutcome()),
    "classMismatch": .classMismatch(saved: "", declared: []),
    "quarantined": .quarantined(since: Timestamp(milliseconds: 0)), "unreadable": .unreadable, "noState": .noState,
    "handedOut": .handedOut(ObjectOwner(), deferred: false), "suspected": .suspected,
    "decoded": .decoded(ObjectOwner()), "resolved": .resolved(identifier: "", found: false),
    "elementUnresolved": .elementUnresolved(ObjectOwner(), message: nil), "finished": .finished,
    "skipped": .skipped(reason: ""), "absent": .absent,
  ]

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    switch self {
    case .awaited, .unreadable, .noState, .suspected, .finished, .absent: break
    case .lookedUp(let lookup, let owner):
      self = .lookedUp(try members.required("by", lookup), try members.nullable("owner", owner))
    case .located(let owner): self = .located(try members.required("owner", owner))
    case .refused(let lookup): self = .refused(try members.required("by", lookup))
    case .passed(let owner): self = .passed(try members.required("owner", owner))
    case .unitStarted(let unit): self = .unitStarted(unit: try members.required("unit", unit, .hostText))
    case .unitFailed(let unit, let message):
      let unit = try members.required("unit", unit, .hostText)
      self = .unitFailed(unit: unit, message: try members.required("message", message, .hostText))
    case .ownerEnded(let owner, let ending, var outcome):
      let (owner, ending) = (try members.required("owner", owner), try members.required("ending", ending))
      try outcome.walk(&members)
      self = .ownerEnded(owner, ending, outcome)
    case .classMismatch(let saved, let declared):
      let saved = try members.required("saved", saved)
      self = .classMismatch(saved: saved, declared: try members.required("declared", declared))
    case .quarantined(let since): self = .quarantined(since: try members.required("since", since))
    case .handedOut(let owner, let deferred):
      self = .handedOut(try members.required("owner", owner), deferred: try members.required("deferred", deferred))
    case .decoded(let owner): self = .decoded(try members.required("owner", owner))
    case .resolved(let identifier, let found):
      let identifier = try members.required("identifier", identifier)
      self = .resolved(identifier: identifier, found: try members.required("found", found))
    case .elementUnresolved(let owner, let message):
      let owner = try members.required("owner", owner)
      self = .elementUnresolved(owner, message: try members.optional("message", message))
    case .skipped(let reason, let message):
      let reason = try members.required("reason", reason, .text(of: RestoreApplicationState.Reason.self))
      self = .skipped(reason: reason, message: try members.optional("message", message))
    }
  }
}

/// A member of a case, returned as read.
extension MemberWalk {
  fileprivate mutating func required<Value: WireValue>(
    _ name: StaticString,
    _ value: Value,
    _ bounds: Bounds = .none
  ) throws(Misfit) -> Value {
    var value = value
    try required(name, &value, bounds, "")
    return value
  }

  fileprivate mutating func nullable<Value: WireValue>(_ name: StaticString, _ value: Value?) throws(Misfit) -> Value? {
    var value = value
    try nullable(name, &value, "")
    return value
  }

  fileprivate mutating func optional<Value: WireValue>(_ name: StaticString, _ value: Value?) throws(Misfit) -> Value? {
    var value = value
    try optional(name, &value, "")
    return value
  }
}
