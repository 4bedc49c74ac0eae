// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The answer comes when the state is on disk (R15).
package struct EncodeRestorableState: RestorationMethod {
  package static let method = "encodeRestorableState"
  package static let summary = "Stores a state."
  package static let errors: [ErrorCode] = [
    .reservedKey, .limitExceeded, .unknownObject, .notOwner, .replaced, .stateChanged, .invalidReference,
    .invalidIdentifier, .archiveUnreadable, .storeFailed,
  ]

  package typealias Reply = EncodeOutcome

  package var object = ObjectReference.blank
  package var state = EncodedState.empty
  package var elements: [RestorableElement] = []
  package var revision: Int64?
  package var expecting: Int64?
  package init() {}

  package init(_ parameters: Parameters) throws(ErrorObject) { try self.init(walking: parameters) }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    var target = StateTarget(reference: object)
    try members.required(
      "object",
      &target,
      "The object; of this session, or a path that no live session owns. The empty path is the application itself."
    )
    object = target.reference
    try members.required("state", &state, "The state.")
    try members.member("elements", &elements, default: [], "Selected and topmost rows of a view (R28).")
    try members.optional(
      "revision",
      &revision,
      .from(1),
      "Counts up per path and session, even if the session gives up the path and registers it again."
    )
    try members.optional(
      "expecting",
      &expecting,
      .count,
      "Stores the state only if this is `sequence` of what a decode returns to the caller; 0 if there must be none."
    )
  }

  /// The call's object, readable even if other members are invalid.
  package static func object(of parameters: Parameters) -> ObjectReference? {
    parameters.first("object").flatMap { ObjectReference($0) }
  }
}

/// An object, or with the empty path the application itself.
private struct StateTarget: WireValue {
  static let schema = Schema.either([.handle, .list(.string)])
  static let expected = ObjectReference.expected

  var reference: ObjectReference

  init(reference: ObjectReference) { self.reference = reference }

  init(wire slice: JSONSlice) throws(Misfit) {
    if let reference = ObjectReference(slice) {
      self.reference = reference
    } else {
      guard slice.elements?.isEmpty == true else { throw Misfit(Self.expected) }
      reference = .path([])
    }
  }

  func writeJSON(to writer: inout JSONWriter) { reference.writeJSON(to: &writer) }
}

package struct DecodeRestorableState: RestorationMethod {
  package static let method = "decodeRestorableState"
  package static let summary = "Gives a state back."
  package static let errors: [ErrorCode] = [
    .unknownObject, .invalidIdentifier, .replaced, .unknownApplication, .archiveUnreadable, .storeFailed,
    .requestCancelled,
  ]

  /// The empty path is the application itself, which has its delegate's state.
  package var object = ObjectReference.blank
  package init() {}

  package init(_ parameters: Parameters) throws(ErrorObject) { try self.init(walking: parameters) }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    var target = StateTarget(reference: object)
    try members.required(
      "object",
      &target,
      "The object; live, vacant or archived. The empty path is the application itself."
    )
    object = target.reference
  }

  package struct Reply: WireObject {
    package var status = DecodingStatus.none
    package var state: JSONText?
    package var coder: JSONText?
    package var elements = JSONText.emptyArray
    package var sequence: Int64 = 0
    package var confidential = false
    package var withheld = false
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("status", &status, "Whether there is a state and, if not, why.")
      try members.nullable("state", &state, .state, "The state as it was encoded; null unless `available`.")
      try members.nullable(
        "coder",
        &coder,
        .coder,
        "The reserved keys of the session that wrote the state; null if there is none."
      )
      try members.added(
        "elements",
        &elements,
        .elements,
        "As encoded, each with `resolved`: whether `indexPath` was found from `identifier` now."
      )
      try members.added("sequence", &sequence, .count, "The change that stored this state; 0 if none is stored.")
      try members.mark(
        "confidential",
        &confidential,
        "Present and true if the state is a confidential object's: tools show it only if they are asked to."
      )
      try members.mark("withheld", &withheld, "Present and true if the state is withheld from its owner (R35).")
    }
  }
}

/// The object has changed since its last encode; the broker asks its owner for a new state (R18).
public struct InvalidateRestorableState: RestorationMethod {
  package static let method = "invalidateRestorableState"
  package static let summary = "Asks the broker to fetch a state."
  package static let errors: [ErrorCode] = [
    .unknownObject, .invalidIdentifier, .notOwner, .replaced, .invalidParams, .archiveUnreadable,
  ]
  package static let mayBeDiscarded = true

  public var object = ObjectReference.blank
  package init() {}

  public init(object: ObjectReference) { self.object = object }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, "An object of this session.")
  }
}
