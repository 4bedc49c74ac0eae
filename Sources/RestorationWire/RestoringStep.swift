// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// One step of what happened to an object when it was last to be restored, emitted where it was decided.
package enum RestoringStep: Sendable, Hashable {
  /// How an object is looked for, in the order of R22 and R23.
  package enum Lookup: String, Sendable, CaseIterable, JSONWritable {
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

extension RestoringStep: JSONWritable {
  package static let schema = Schema.shared(
    "RestoringStep",
    .tagged(
      by: "step",
      [
        ("lookedUp", [.required("by", .words(Lookup.self)), .required("owner", .nullable(ObjectOwner.schema))]),
        ("located", [.required("owner", ObjectOwner.schema)]),
        ("refused", [.required("by", .words(Lookup.self))]),
        ("unitStarted", [.required("unit", .string)]),
        ("unitFailed", [.required("unit", .string), .required("message", .string)]),
        ("awaited", []),
        (
          "ownerEnded",
          [
            .required("owner", ObjectOwner.schema), .required("ending", .openWords(SessionEnded.Ending.self)),
          ] + ProcessOutcome.members
        ),
        ("classMismatch", [.required("saved", .string), .required("declared", .list(.string))]),
        ("quarantined", [.required("since", .timestamp)]),
        ("unreadable", []),
        ("noState", []),
        ("handedOut", [.required("owner", ObjectOwner.schema), .required("deferred", .boolean)]),
        ("suspected", []),
        ("decoded", [.required("owner", ObjectOwner.schema)]),
        ("resolved", [.required("identifier", .string), .required("found", .boolean)]),
        ("elementUnresolved", [.required("owner", ObjectOwner.schema), .optional("message", .string)]),
        ("finished", []),
        (
          "skipped",
          [.required("reason", .openWords(RestoreApplicationState.Reason.self)), .optional("message", .string)]
        ),
        ("absent", []),
      ]
    )
  )

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("step", word)
      switch self {
      case .awaited, .unreadable, .noState, .suspected, .finished, .absent: break
      case .lookedUp(let lookup, let owner):
        writer.member("by", lookup)
        writer.member("owner", owner)
      case .located(let owner), .decoded(let owner): writer.member("owner", owner)
      case .refused(let lookup): writer.member("by", lookup)
      case .unitStarted(let unit): writer.member("unit", unit)
      case .ownerEnded(let owner, let ending, let outcome):
        writer.member("owner", owner)
        writer.member("ending", ending)
        outcome.writeMembers(to: &writer)
      case .unitFailed(let unit, let message):
        writer.member("unit", unit)
        writer.member("message", message)
      case .classMismatch(let saved, let declared):
        writer.member("saved", saved)
        writer.member("declared", declared)
      case .quarantined(let since): writer.member("since", since.description)
      case .handedOut(let owner, let deferred):
        writer.member("owner", owner)
        writer.member("deferred", deferred)
      case .resolved(let identifier, let found):
        writer.member("identifier", identifier)
        writer.member("found", found)
      case .elementUnresolved(let owner, let message):
        writer.member("owner", owner)
        writer.member("message", ifPresent: message)
      case .skipped(let reason, let message):
        writer.member("reason", reason)
        writer.member("message", ifPresent: message)
      }
    }
  }

  /// Its name on the wire.
  package var word: String {
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

  /// Reads a step; nil where its word is none of this version's.
  package init?(_ slice: JSONSlice) {
    guard let reader = try? ResultReader(slice), let step = try? Self.read(reader) else { return nil }
    self = step
  }

  private static func read(_ reader: ResultReader) throws(WrongShape) -> RestoringStep? {
    switch try reader.string("step") {
    case "lookedUp":
      .lookedUp(try reader.word("by", as: Lookup.self), try reader.optional("owner"))
    case "located": .located(try reader.value("owner"))
    case "refused": .refused(try reader.word("by", as: Lookup.self))
    case "unitFailed": .unitFailed(unit: try reader.string("unit"), message: try reader.string("message"))
    case "ownerEnded":
      .ownerEnded(
        try reader.value("owner"),
        try reader.word("ending", as: SessionEnded.Ending.self),
        try reader.part(ProcessOutcome.self)
      )
    case "unitStarted": .unitStarted(unit: try reader.string("unit"))
    case "awaited": .awaited
    case "classMismatch":
      .classMismatch(saved: try reader.string("saved"), declared: try reader.list("declared") { $0.string() })
    case "quarantined": .quarantined(since: try reader.value("since") { $0.string().flatMap { Timestamp($0) } })
    case "unreadable": .unreadable
    case "noState": .noState
    case "handedOut":
      .handedOut(try reader.value("owner"), deferred: try reader.bool("deferred"))
    case "suspected": .suspected
    case "decoded": .decoded(try reader.value("owner"))
    case "resolved": .resolved(identifier: try reader.string("identifier"), found: try reader.bool("found"))
    case "elementUnresolved":
      .elementUnresolved(try reader.value("owner"), message: try reader.optionalString("message"))
    case "finished": .finished
    case "skipped":
      .skipped(reason: try reader.string("reason"), message: try reader.optionalString("message"))
    case "absent": .absent
    default: nil
    }
  }
}
