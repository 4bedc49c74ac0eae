// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The role of an object in its application; it decides which rules apply (R4, R22, R23).
public enum ObjectKind: String, WireWord {
  package static let schema = Schema.shared("ObjectKind", .words(Self.self))

  /// Any object with state; needs an identifier.
  case object
  /// May have a storyboard and a null identifier; located first by its restoration class (R22).
  case viewController
  /// Saved only below views and view controllers that all have identifiers (R4).
  case view
}

/// The broker's answer to a registration.
public struct RegisteredObject: WireObject, Hashable {
  public package(set) var object: ObjectHandle = 0
  public package(set) var path: IdentifierPath?
  public package(set) var included = false
  public package(set) var restoration = ObjectRestoration()
  public package(set) var existing = false
  public package(set) var session: String?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, .handle, "The handle: positive, below 2^53, never given out twice.")
    try members.nullable("path", &path, "The path; null if the identifier is null.")
    try members.required("included", &included, "Whether the walk of a save round reaches the object.")
    try members.required("restoration", &restoration, "Whether there is a state to decode.")
    try members.mark("existing", &existing, "Only if the session had the path already (R1).")
    try members.optional("session", &session, .sessionToken, "Only if the call opened a detached session: its token.")
  }
}

/// The saved state of an object, as its registration reports it.
public struct ObjectRestoration: WireObject, Hashable {
  package static let sharedName: String? = "ObjectRestoration"

  public package(set) var state = RestorationState.none
  public package(set) var classMatches = true
  public package(set) var handing = false
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("state", &state, "Whether there is a state to decode.")
    try members.required("classMatches", &classMatches, "False if a decode would answer `classMismatch` (R25).")
    try members.mark("handing", &handing, "Only if the broker hands the state out without a call (R29).")
  }
}

/// The place of an object after a move or renaming (R4, R6).
public struct ObjectPlacement: WireObject, Hashable {
  public package(set) var path: IdentifierPath?
  public package(set) var included = false
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("path", &path, "The path from now on; null if the identifier is null.")
    try members.required("included", &included, "Whether the walk of a save round reaches the object.")
  }
}

/// The result of storing a state (R15, R30).
public enum EncodeOutcome: WireValue, Hashable {
  package static let schema = Schema.either([
    .object([
      .required("sequence", .integer(1...), "Stored, as the change with this number."),
      .required("durability", .constant("disk"), "Where it is."),
      .optional("withheld", .true, "The state that it replaces was withheld, and is kept (R35)."),
    ]),
    .object([
      .required("sequence", .integer(1...), "The last change that is on disk."),
      .required(
        "included",
        .constant(false),
        "Nothing was stored: the object is neither included nor referred to by what is saved (R4)."
      ),
    ]),
    .object([.required("superseded", .true, "This or a higher revision is stored already.")]),
    .discarded,
  ])
  package static let expected = "an object that says how the push ended"

  /// On disk as the change with this number. `withheld`: the replaced state was withheld and is retained (R35).
  case stored(sequence: Int64, withheld: Bool = false)
  /// Not stored: the object is excluded and no saved object refers to it (R4), or no broker runs yet. The number is
  /// that of the last change on disk.
  case unsaved(sequence: Int64)
  /// An equal or higher revision was stored before (R15).
  case superseded
  /// The application's state was emptied during this session (R30).
  case discarded

  package init(wire slice: JSONSlice) throws(Misfit) {
    if let sequence = slice["sequence"]?.integer() {
      let stored = Self.stored(sequence: sequence, withheld: slice["withheld"]?.bool() == true)
      self = slice["included"]?.bool() == false ? .unsaved(sequence: sequence) : stored
    } else if slice["superseded"]?.bool() == true {
      self = .superseded
    } else if slice["discarded"]?.bool() == true {
      self = .discarded
    } else {
      throw Misfit(Self.expected)
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.beginObject()
    switch self {
    case .stored(let sequence, let isOverWithheld):
      writer.member("sequence", sequence)
      writer.member("durability", "disk")
      if isOverWithheld { writer.member("withheld", true) }
    case .unsaved(let sequence):
      writer.member("sequence", sequence)
      writer.member("included", false)
    case .superseded: writer.member("superseded", true)
    case .discarded: writer.member("discarded", true)
    }
    writer.endObject()
  }
}
