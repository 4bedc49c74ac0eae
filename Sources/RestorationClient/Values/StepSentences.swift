// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

extension SavingStep: CustomStringConvertible {
  /// A sentence for people.
  public var description: String {
    switch self {
    case .included: "the walk from the roots reached it"
    case .excluded(let by?): "left out because of \(by): it or an object above it has no identifier"
    case .excluded(nil): "left out: it or an object above it has no identifier"
    case .referenced(let by?): "saved because \(by) refers to it, although no walk reaches it"
    case .referenced(nil): "saved because the application's own state refers to it"
    case .asked(let owner, 0): "asked \(owner) for its state, because \(owner) reported a change"
    case .asked(let owner, let round): "asked \(owner) for its state in round \(round)"
    case .notServed(let owner): "\(owner) cannot be asked: the state it pushed last is current"
    case .orphaned: "it is unowned: the state saved last is kept"
    case .encoded(let bytes): "its owner gave a state of \(bytes) bytes"
    case .unchanged: "the state was the same as before and was not written again"
    case .superseded: "its owner pushed a newer state meanwhile, which takes precedence"
    case .elementUnnamed(let owner, let message):
      "\(owner) did not name an element, so that its index path was saved"
        + (message.map { ": \($0)" } ?? "")
    case .stale(let owner, let why, let message):
      "its last good state is kept: \(owner.map { "\($0) " } ?? "its owner ")\(Self.reason(why))"
        + (message.map { ": \($0)" } ?? "")
    case .pushed(let bytes): "its owner pushed a state of \(bytes) bytes"
    case .early: "that push is provisional: its owner has not had the older state yet"
    case .confirmed: "what its owner has pushed is what is saved"
    case .dropped: "what its owner has pushed is dropped: it has the older state now"
    case .ownerEnded(let owner, let ending, let outcome): outcome.sentence(of: owner, ending)
    case .saved(let generation): "it is in generation \(generation)"
    }
  }

  private static func reason(_ why: String) -> String {
    switch StaleObject.Cause(rawValue: why) {
    case .late: "did not answer in time"
    case .ended: "ended before it answered"
    case .disconnected: "lost its connection"
    case .malformed: "sent a malformed answer"
    case .missing: "left it out of its answer"
    case .failed: "answered with an error"
    case nil: "gave a state that was refused (\(why))"
    }
  }
}

extension RestoringStep: CustomStringConvertible {
  /// A sentence for people.
  public var description: String { sentence(\.description) }

  /// The same, with times in the reader's form.
  package func sentence(_ time: (Timestamp) -> String) -> String {
    switch self {
    case .lookedUp(let lookup, let owner?): "looked for by \(lookup.sentence): \(owner)"
    case .lookedUp(let lookup, nil): "looked for by \(lookup.sentence): not found"
    case .located(let owner): "found in \(owner)"
    case .passed(let owner): "\(owner) left it to another session of the class"
    case .refused(let lookup): "the \(lookup.sentence) declined to restore it"
    case .unitFailed(let unit, let message): "the unit \(unit) could not be started: \(message)"
    case .unitStarted(let unit): "its unit \(unit) was asked to start"
    case .ownerEnded(let owner, let ending, let outcome): outcome.sentence(of: owner, ending)
    case .awaited: "not registered yet: awaited until the deadline"
    case .classMismatch(let saved, let declared):
      "its state is of class \(saved); its owner is of \(declared.isEmpty ? "none" : declared.joined(separator: " < "))"
    case .quarantined(let since): "its state has been withheld since \(time(since)): restoring it crashed a process"
    case .unreadable: "its state is damaged"
    case .noState: "it has no state to decode"
    case .handedOut(let owner, false): "its state was handed to \(owner)"
    case .handedOut(let owner, true): "\(owner) was told to fetch its state, which is large"
    case .suspected: "handed out alone, because it may have crashed its owner before"
    case .decoded(let owner): "\(owner) fetched the state itself"
    case .resolved(let identifier, true): "the element \(identifier) was found again"
    case .resolved(let identifier, false): "the element \(identifier) no longer exists"
    case .elementUnresolved(let owner, let message):
      "\(owner) did not say where an element is, so that it is returned as it was saved"
        + (message.map { ": \($0)" } ?? "")
    case .finished: "restored"
    case .skipped(let reason, let message):
      "left out: " + SkippedObject().with { ($0.reason, $0.message) = (reason, message) }.sentence
    case .absent: "not registered before the restoration ended"
    }
  }
}

extension SkippedObject {
  /// The cause in a sentence for people.
  package var sentence: String { cause + (message.map { ": \($0)" } ?? "") }

  private var cause: String {
    switch RestoreApplicationState.Reason(rawValue: reason) {
    case .refused: "its factory declined"
    case .parentSkipped: "an object above it was left out"
    case .sameObject: "its factory answered with an object at another path; make it at this one, then rename it"
    case .classMismatch: "its owner is of another class"
    case .quarantined: "its state is withheld"
    case .unreadable: "its state is damaged"
    case .notServed: "its owner fetches its states by itself"
    case .failed: "its owner answered with an error"
    case .late: "its owner did not answer in time"
    case .ended: "its owner ended"
    case .discarded: "the saved state was discarded meanwhile"
    case nil: reason == "declined" ? "the delegate declined the restoration" : reason
    }
  }
}

extension RestoringStep.Lookup {
  fileprivate var sentence: String {
    switch self {
    case .restorationClass: "restoration class"
    case .delegate: "delegate"
    case .existing: "path"
    case .storyboard: "storyboard"
    }
  }
}

extension ProcessOutcome {
  fileprivate func sentence(of owner: ObjectOwner, _ ending: SessionEnded.Ending) -> String {
    let unit = unit.map { ", of unit \($0)," } ?? ""
    let what: String =
      switch how {
      case .exited: code.map { "exited with code \($0)" } ?? "exited"
      case .signalled: "was ended by \(signal ?? "a signal")"
      case .outOfMemory: "was killed because memory ran out"
      case .stopped: "was stopped by the service manager"
      case .unknown, nil: "ended"
      }
    return "\(owner)\(unit) \(what)" + (ending == .logout ? " when the user logged out" : "")
  }
}
