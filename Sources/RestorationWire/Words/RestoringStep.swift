// SPDX-License-Identifier: Apache-2.0

/// One step of what happened to an object when it was last to be restored, emitted where it was decided.
public enum RestoringStep: Sendable, Hashable {
  /// How an object is looked for, in the order of R22 and R23.
  public enum Lookup: String, WireWord {
    case restorationClass, delegate, existing, storyboard
  }

  /// Looked for in this way; `owner` is who was asked or has it, nil where nobody could be.
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
  /// Nobody has registered it yet, or its class: awaited until the deadline.
  case awaited
  /// The class that was saved is none of those its owner declared (R25).
  case classMismatch(saved: String, declared: [String])
  /// Its state is withheld since then (R31, R35).
  case quarantined(since: Timestamp)
  /// Its state is damaged (R32).
  case unreadable
  /// There is no state to be decoded.
  case noState
  /// Its state was handed to its owner; `deferred` where the owner has to fetch it.
  case handedOut(ObjectOwner, deferred: Bool)
  /// Handed out alone, because it may have crashed its owner before (R31).
  case suspected
  /// Its owner fetched the state by itself.
  case decoded(ObjectOwner)
  /// An identifier of an element was looked for in the data of today (R28).
  case resolved(identifier: String, found: Bool)
  /// Who knows what the view shows did not say where an element is, which is returned raw; why (R28).
  case elementUnresolved(ObjectOwner, message: String?)
  /// It is restored: its finish callback was sent, where its owner serves that (R21).
  case finished
  /// Not restored; why, in the words of `skipped`.
  case skipped(reason: String, message: String? = nil)
  /// Nobody had registered it by the end (R23).
  case absent
}

extension RestoringStep: TaggedWireValue {
  package static let tag: StaticString = "step"
  package static let sharedName = "RestoringStep"

  package static let forms: [RestoringStep] = [
    .lookedUp(.existing, nil), .located(ObjectOwner()), .refused(.existing), .unitStarted(unit: ""),
    .unitFailed(unit: "", message: ""), .awaited, .ownerEnded(ObjectOwner(), .closed, ProcessOutcome()),
    .classMismatch(saved: "", declared: []), .quarantined(since: Timestamp(milliseconds: 0)), .unreadable, .noState,
    .handedOut(ObjectOwner(), deferred: false), .suspected, .decoded(ObjectOwner()),
    .resolved(identifier: "", found: false), .elementUnresolved(ObjectOwner(), message: nil), .finished,
    .skipped(reason: ""), .absent,
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

  /// Its name on the wire.
  public var word: String {
    switch self {
    case .lookedUp: "lookedUp"
    case .located: "located"
    case .refused: "refused"
    case .unitStarted: "unitStarted"
    case .unitFailed: "unitFailed"
    case .ownerEnded: "ownerEnded"
    case .awaited: "awaited"
    case .classMismatch: "classMismatch"
    case .quarantined: "quarantined"
    case .unreadable: "unreadable"
    case .noState: "noState"
    case .handedOut: "handedOut"
    case .suspected: "suspected"
    case .decoded: "decoded"
    case .resolved: "resolved"
    case .elementUnresolved: "elementUnresolved"
    case .finished: "finished"
    case .skipped: "skipped"
    case .absent: "absent"
    }
  }
}
