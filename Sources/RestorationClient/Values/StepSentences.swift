// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

extension SavingStep: CustomStringConvertible {
  /// What happened, in a sentence for people.
  public var description: String {
    switch self {
    case .included: "the walk from the roots reached it"
    case .excluded(let by?): "left out, because of \(by): it or something above has no identifier there"
    case .excluded(nil): "left out: it has no identifier, or something above it has none"
    case .referenced(let by?): "\(by) refers to it, so that it is saved although no walk reaches it"
    case .referenced(nil): "the application's own state refers to it, so that it is saved"
    case .asked(let owner, 0): "asked \(owner) for its state, because it said that it has changed"
    case .asked(let owner, let round): "asked \(owner) for its state in round \(round)"
    case .notServed(let owner): "\(owner) cannot be asked: what it pushed last is current"
    case .orphaned: "nobody owns it: what was saved last is kept"
    case .encoded(let bytes): "its owner gave a state of \(bytes) bytes"
    case .unchanged: "the state was the same as before and was not written again"
    case .superseded: "its owner pushed a newer state meanwhile, which counts"
    case .elementUnnamed(let owner, let message):
      "\(owner) did not name an element, which is saved by its index path"
        + (message.map { ": \($0)" } ?? "")
    case .stale(let owner, let why, let message):
      "its last good state is kept: \(owner.map { "\($0) " } ?? "its owner ")\(Self.reason(why))"
        + (message.map { ": \($0)" } ?? "")
    case .pushed(let bytes): "its owner pushed a state of \(bytes) bytes"
    case .early: "that push is early: its owner had not decoded the older state, which is kept until it has"
    case .ownerEnded(let owner, let ending, let outcome): outcome.sentence(of: owner, ending)
    case .saved(let generation): "it is in generation \(generation)"
    }
  }

  private static func reason(_ why: String) -> String {
    switch StaleObject.Cause(rawValue: why) {
    case .late: "did not answer in time"
    case .ended: "ended before it answered"
    case .disconnected: "lost its connection"
    case .malformed: "gave an answer that is none"
    case .missing: "left it out of its answer"
    case .failed: "answered with an error"
    case nil: "gave a state that was refused (\(why))"
    }
  }
}

extension RestoringStep: CustomStringConvertible {
  /// What happened, in a sentence for people.
  public var description: String {
    switch self {
    case .lookedUp(let lookup, let owner?): "looked for by \(lookup.sentence): \(owner)"
    case .lookedUp(let lookup, nil): "looked for by \(lookup.sentence): nobody is there"
    case .located(let owner): "found in \(owner)"
    case .refused(let lookup): "the \(lookup.sentence) said that it is not to be restored"
    case .unitFailed(let unit, let message): "the unit \(unit) could not be started: \(message)"
    case .unitStarted(let unit): "its unit \(unit) was asked to start"
    case .ownerEnded(let owner, let ending, let outcome): outcome.sentence(of: owner, ending)
    case .awaited: "not there yet: waited for until the deadline"
    case .classMismatch(let saved, let declared):
      "its state is of class \(saved), its owner of \(declared.isEmpty ? "none" : declared.joined(separator: " < "))"
    case .quarantined(let since): "its state is withheld since \(since): processes that got it have crashed"
    case .unreadable: "its state is damaged"
    case .noState: "it has no state to be decoded"
    case .handedOut(let owner, false): "its state was handed to \(owner)"
    case .handedOut(let owner, true): "\(owner) was told to fetch its state, which is large"
    case .suspected: "handed out alone, because it may have crashed its owner before"
    case .decoded(let owner): "\(owner) fetched the state by itself"
    case .resolved(let identifier, true): "the element \(identifier) was found again"
    case .resolved(let identifier, false): "the element \(identifier) is not there any more"
    case .elementUnresolved(let owner, let message):
      "\(owner) did not say where an element is, which is returned as it was saved"
        + (message.map { ": \($0)" } ?? "")
    case .finished: "restored"
    case .skipped(let reason, let message): "left out: \(Self.reason(reason))" + (message.map { ": \($0)" } ?? "")
    case .absent: "nobody had registered it by the end of the restoration"
    }
  }

  private static func reason(_ reason: String) -> String {
    switch RestoreApplicationState.Reason(rawValue: reason) {
    case .refused: "its factory said no"
    case .parentSkipped: "an object above it was left out"
    case .classMismatch: "its owner is of another class"
    case .quarantined: "its state is withheld"
    case .unreadable: "its state is damaged"
    case .notServed: "its owner cannot be called to decode"
    case .failed: "its owner answered with an error"
    case .late: "its owner did not answer in time"
    case .ended: "its owner ended"
    case .discarded: "the saved state was discarded meanwhile"
    case nil: reason
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
