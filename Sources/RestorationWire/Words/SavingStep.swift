// SPDX-License-Identifier: Apache-2.0

/// One step of what happened to an object when it was last to be saved, emitted where it was decided.
public enum SavingStep: Sendable, Hashable {
  /// The walk reached it.
  case included
  /// It or an ancestor has no identifier, or its chain of views is broken; `by` is that ancestor's path, nil where that
  /// has none (R4, R5).
  case excluded(by: IdentifierPath?)
  /// A saved object refers to it: it is saved although the walk did not reach it (R7); nil: the application does.
  case referenced(by: IdentifierPath?)
  /// Its owner was asked for its state in this round.
  case asked(ObjectOwner, round: Int64)
  /// Its owner does not serve encode: what it pushed last is current (R12).
  case notServed(ObjectOwner)
  /// Nobody owns it: what was saved last is kept (R13).
  case orphaned
  /// Its owner answered with a state of so many bytes.
  case encoded(bytes: Int)
  /// The state is the same as before and was not written again.
  case unchanged
  /// Its owner pushed a state so late that the answer is older (R12).
  case superseded
  /// Who knows what the view shows did not name an element of it, which is saved by its index path; why (R28).
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

  package static let forms: [SavingStep] = [
    .included, .excluded(by: nil), .referenced(by: nil), .asked(ObjectOwner(), round: 0), .notServed(ObjectOwner()),
    .orphaned, .encoded(bytes: 0), .unchanged, .superseded, .elementUnnamed(ObjectOwner(), message: nil),
    .stale(nil, why: ""), .pushed(bytes: 0), .early, .ownerEnded(ObjectOwner(), .closed, ProcessOutcome()),
    .saved(generation: 0),
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

  /// Its name on the wire.
  public var word: String {
    switch self {
    case .included: "included"
    case .excluded: "excluded"
    case .referenced: "referenced"
    case .asked: "asked"
    case .notServed: "notServed"
    case .orphaned: "orphaned"
    case .encoded: "encoded"
    case .unchanged: "unchanged"
    case .superseded: "superseded"
    case .elementUnnamed: "elementUnnamed"
    case .stale: "stale"
    case .pushed: "pushed"
    case .early: "early"
    case .ownerEnded: "ownerEnded"
    case .saved: "saved"
    }
  }
}
