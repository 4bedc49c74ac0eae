// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// One step of what happened to an object when it was last to be saved, emitted where it was decided.
package enum SavingStep: Sendable, Hashable {
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

extension SavingStep: JSONWritable {
  package static let schema = Schema.shared(
    "SavingStep",
    .tagged(
      by: "step",
      [
        ("included", []),
        ("excluded", [.required("by", .nullable(.path))]),
        ("referenced", [.required("by", .nullable(.path))]),
        ("asked", [.required("owner", ObjectOwner.schema), .required("round", .count)]),
        ("notServed", [.required("owner", ObjectOwner.schema)]),
        ("orphaned", []),
        ("encoded", [.required("bytes", .count)]),
        ("unchanged", []),
        ("superseded", []),
        ("elementUnnamed", [.required("owner", ObjectOwner.schema), .optional("message", .string)]),
        (
          "stale",
          [
            .required("owner", .nullable(ObjectOwner.schema)), .required("why", .openWords(StaleObject.Cause.self)),
            .optional("message", .string),
          ]
        ),
        ("pushed", [.required("bytes", .count)]),
        ("early", []),
        (
          "ownerEnded",
          [
            .required("owner", ObjectOwner.schema), .required("ending", .openWords(SessionEnded.Ending.self)),
          ] + ProcessOutcome.members
        ),
        ("saved", [.required("generation", .generation)]),
      ]
    )
  )

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("step", word)
      switch self {
      case .included, .orphaned, .unchanged, .superseded, .early: break
      case .excluded(let path), .referenced(let path): writer.member("by", path)
      case .asked(let owner, let round):
        writer.member("owner", owner)
        writer.member("round", round)
      case .notServed(let owner): writer.member("owner", owner)
      case .encoded(let bytes), .pushed(let bytes): writer.member("bytes", bytes)
      case .elementUnnamed(let owner, let message):
        writer.member("owner", owner)
        writer.member("message", ifPresent: message)
      case .stale(let owner, let why, let message):
        writer.member("owner", owner)
        writer.member("why", why)
        writer.member("message", ifPresent: message)
      case .ownerEnded(let owner, let ending, let outcome):
        writer.member("owner", owner)
        writer.member("ending", ending)
        outcome.writeMembers(to: &writer)
      case .saved(let generation): writer.member("generation", generation)
      }
    }
  }

  /// Its name on the wire.
  package var word: String {
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

  /// Reads a step; nil where its word is none of this version's.
  package init?(_ slice: JSONSlice) {
    guard let reader = try? ResultReader(slice), let step = try? Self.read(reader) else { return nil }
    self = step
  }

  private static func read(_ reader: ResultReader) throws(WrongShape) -> SavingStep? {
    switch try reader.string("step") {
    case "included": .included
    case "excluded": .excluded(by: try reader.optionalPath("by"))
    case "referenced": .referenced(by: try reader.optionalPath("by"))
    case "asked": .asked(try reader.value("owner"), round: try reader.integer("round"))
    case "notServed": .notServed(try reader.value("owner"))
    case "orphaned": .orphaned
    case "encoded": .encoded(bytes: try reader.count("bytes"))
    case "unchanged": .unchanged
    case "superseded": .superseded
    case "elementUnnamed":
      .elementUnnamed(try reader.value("owner"), message: try reader.optionalString("message"))
    case "stale":
      .stale(
        try reader.optional("owner"),
        why: try reader.string("why"),
        message: try reader.optionalString("message")
      )
    case "pushed": .pushed(bytes: try reader.count("bytes"))
    case "early": .early
    case "ownerEnded":
      .ownerEnded(
        try reader.value("owner"),
        try reader.word("ending", as: SessionEnded.Ending.self),
        try reader.part(ProcessOutcome.self)
      )
    case "saved": .saved(generation: try reader.integer("generation"))
    default: nil
    }
  }
}
