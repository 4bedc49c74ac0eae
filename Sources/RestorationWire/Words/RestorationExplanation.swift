// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// Why an object was saved and restored, or was not.
public struct RestorationExplanation: WireObject, Hashable {
  public package(set) var path: IdentifierPath?
  public package(set) var saved: [SavingStep] = []
  public package(set) var restored: [RestoringStep] = []
  public package(set) var verdict = ""
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
    (saved, restored) = (saving.steps, restoring.steps)
  }
}

/// Steps with unknown words are left out.
private struct KnownSteps<Step: WireValue>: WireValue {
  static var schema: Schema { [Step].schema }
  static var expected: String { [Step].expected }

  var steps: [Step]

  init(steps: [Step]) { self.steps = steps }

  init(wire slice: JSONSlice) throws(Misfit) {
    guard let slices = slice.elements else { throw Misfit(Self.expected) }
    steps = slices.compactMap { Step($0) }
  }

  func writeJSON(to writer: inout JSONWriter) { steps.writeJSON(to: &writer) }
}

/// One step in the last save of an object, noted when it was decided.
public enum SavingStep: Sendable, Hashable {
  /// The walk reached it.
  case included
  /// It or an ancestor has no identifier, or its chain of views is broken; `by` is that ancestor's path, `nil` if that
  /// has none (R4, R5).
  case excluded(by: IdentifierPath?)
  /// A saved object refers to it: it is saved although the walk did not reach it (R7); `nil`: the application does.
  case referenced(by: IdentifierPath?)
  /// Its owner was asked for its state in this round.
  case asked(ObjectOwner, round: Int64)
  /// Its owner does not serve encode: the state it pushed last is current (R12).
  case notServed(ObjectOwner)
  /// It is unowned: the state saved last is kept (R13).
  case orphaned
  /// Its owner answered with a state of this size.
  case encoded(bytes: Int)
  /// The state is the same as before and was not written again.
  case unchanged
  /// Its owner pushed a state so late that the answer is older (R12).
  case superseded
  /// The data source did not name an element, which is saved by its index path; `message` says why (R28).
  case elementUnnamed(ObjectOwner, message: String?)
  /// Its last good state is kept; why, in the words of `stale` (R12).
  case stale(ObjectOwner?, why: String, message: String? = nil)
  /// A push of the owner was stored.
  case pushed(bytes: Int)
  /// That push is early: it hides nothing until it is settled (R19).
  case early
  /// Its owner ended without a goodbye (R30).
  case ownerEnded(ObjectOwner, SessionEnded.Ending, ProcessOutcome)
  /// It is in this generation.
  case saved(generation: Int64)
}

extension SavingStep: TaggedWireValue {
  package static let tag: StaticString = "step"
  package static let sharedName = "SavingStep"

  /// Its name on the wire.
  public var word: String { nameOfCase }

  package static let forms: KeyValuePairs<String, SavingStep> = [
    "included": .included, "excluded": .excluded(by: nil), "referenced": .referenced(by: nil),
    "asked": .asked(ObjectOwner(), round: 0), "notServed": .notServed(ObjectOwner()), "orphaned": .orphaned,
    "encoded": .encoded(bytes: 0), "unchanged": .unchanged, "superseded": .superseded,
    "elementUnnamed": .elementUnnamed(ObjectOwner(), message: nil), "stale": .stale(nil, why: ""),
    "pushed": .pushed(bytes: 0), "early": .early, "ownerEnded": .ownerEnded(ObjectOwner(), .closed, ProcessOutcome()),
    "saved": .saved(generation: 0),
  ]

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    switch self {
    case .included, .orphaned, .unchanged, .superseded, .early: break
    case .excluded(var path):
      try members.nullable("by", &path, "")
      self = .excluded(by: path)
    case .referenced(var path):
      try members.nullable("by", &path, "")
      self = .referenced(by: path)
    case .asked(var owner, var round):
      try members.required("owner", &owner, "")
      try members.required("round", &round, .from(0), "")
      self = .asked(owner, round: round)
    case .notServed(var owner):
      try members.required("owner", &owner, "")
      self = .notServed(owner)
    case .encoded(var bytes):
      try members.required("bytes", &bytes, "")
      self = .encoded(bytes: bytes)
    case .elementUnnamed(var owner, var message):
      try members.required("owner", &owner, "")
      try members.optional("message", &message, "")
      self = .elementUnnamed(owner, message: message)
    case .stale(var owner, var why, var message):
      try members.nullable("owner", &owner, "")
      try members.required("why", &why, .text(of: StaleObject.Cause.self), "")
      try members.optional("message", &message, "")
      self = .stale(owner, why: why, message: message)
    case .pushed(var bytes):
      try members.required("bytes", &bytes, "")
      self = .pushed(bytes: bytes)
    case .ownerEnded(var owner, var ending, var outcome):
      try members.required("owner", &owner, "")
      try members.required("ending", &ending, "")
      try outcome.walk(&members)
      self = .ownerEnded(owner, ending, outcome)
    case .saved(var generation):
      try members.required("generation", &generation, .generation, "")
      self = .saved(generation: generation)
    }
  }
}

/// One step in the last restoration of an object, noted when it was decided.
public enum RestoringStep: Sendable, Hashable {
  /// How an object is looked for, in the order of R22 and R23.
  public enum Lookup: String, WireWord {
    case restorationClass, delegate, existing, storyboard
  }

  /// Looked for in this way; `owner` was asked or has it; `nil` if no session could be.
  case lookedUp(Lookup, ObjectOwner?)
  /// The factory or delegate made or found it.
  case located(ObjectOwner)
  /// The factory or delegate said null (R22, R23).
  case refused(Lookup)
  /// The storyboard's unit could not be started; why, for people.
  case unitFailed(unit: String, message: String)
  /// Its unit was asked to start (R22).
  case unitStarted(unit: String)
  /// Its owner ended without a goodbye (R30).
  case ownerEnded(ObjectOwner, SessionEnded.Ending, ProcessOutcome)
  /// Neither it nor its class is registered yet: awaited until the deadline.
  case awaited
  /// The saved class is not among those its owner declared (R25).
  case classMismatch(saved: String, declared: [String])
  /// Its state is withheld since then (R31, R35).
  case quarantined(since: Timestamp)
  /// Its state is damaged (R32).
  case unreadable
  /// It has no state to decode.
  case noState
  /// Its state was handed to its owner; `deferred` if the owner must fetch it.
  case handedOut(ObjectOwner, deferred: Bool)
  /// Handed out alone, because it may have crashed its owner before (R31).
  case suspected
  /// Its owner fetched the state itself.
  case decoded(ObjectOwner)
  /// An identifier of an element was looked up in the current data (R28).
  case resolved(identifier: String, found: Bool)
  /// The data source did not locate an element, which is returned raw; `message` says why (R28).
  case elementUnresolved(ObjectOwner, message: String?)
  /// It is restored: its finish callback was sent, if its owner serves that (R21).
  case finished
  /// Not restored; why, in the words of `skipped`.
  case skipped(reason: String, message: String? = nil)
  /// It was not registered before the end (R23).
  case absent
}

extension RestoringStep: TaggedWireValue {
  package static let tag: StaticString = "step"
  package static let sharedName = "RestoringStep"

  /// Its name on the wire.
  public var word: String { nameOfCase }

  package static let forms: KeyValuePairs<String, RestoringStep> = [
    "lookedUp": .lookedUp(.existing, nil), "located": .located(ObjectOwner()), "refused": .refused(.existing),
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
    case .lookedUp(var lookup, var owner):
      try members.required("by", &lookup, "")
      try members.nullable("owner", &owner, "")
      self = .lookedUp(lookup, owner)
    case .located(var owner):
      try members.required("owner", &owner, "")
      self = .located(owner)
    case .refused(var lookup):
      try members.required("by", &lookup, "")
      self = .refused(lookup)
    case .unitStarted(var unit):
      try members.required("unit", &unit, "")
      self = .unitStarted(unit: unit)
    case .unitFailed(var unit, var message):
      try members.required("unit", &unit, "")
      try members.required("message", &message, "")
      self = .unitFailed(unit: unit, message: message)
    case .ownerEnded(var owner, var ending, var outcome):
      try members.required("owner", &owner, "")
      try members.required("ending", &ending, "")
      try outcome.walk(&members)
      self = .ownerEnded(owner, ending, outcome)
    case .classMismatch(var saved, var declared):
      try members.required("saved", &saved, "")
      try members.required("declared", &declared, "")
      self = .classMismatch(saved: saved, declared: declared)
    case .quarantined(var since):
      try members.required("since", &since, "")
      self = .quarantined(since: since)
    case .handedOut(var owner, var deferred):
      try members.required("owner", &owner, "")
      try members.required("deferred", &deferred, "")
      self = .handedOut(owner, deferred: deferred)
    case .decoded(var owner):
      try members.required("owner", &owner, "")
      self = .decoded(owner)
    case .resolved(var identifier, var found):
      try members.required("identifier", &identifier, "")
      try members.required("found", &found, "")
      self = .resolved(identifier: identifier, found: found)
    case .elementUnresolved(var owner, var message):
      try members.required("owner", &owner, "")
      try members.optional("message", &message, "")
      self = .elementUnresolved(owner, message: message)
    case .skipped(var reason, var message):
      try members.required("reason", &reason, .text(of: RestoreApplicationState.Reason.self), "")
      try members.optional("message", &message, "")
      self = .skipped(reason: reason, message: message)
    }
  }
}
