// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Stores the state of one object; acknowledged when it is on disk (R15).
package struct EncodeRestorableState: RestorationMethod {
  package static let method = "encodeRestorableState"
  package static let summary = "Stores a state."
  package static let errors: [ErrorDescription] = [
    .reservedKey, .limitExceeded, .unknownObject, .notOwner, .replaced, .invalidReference, .invalidIdentifier,
    .archiveUnreadable, .storeFailed,
  ]

  package typealias Reply = EncodeOutcome

  package var object = ObjectReference.blank
  package var state = EncodedState.empty
  package var elements: [RestorableElement] = []
  package var revision: Int64?

  package init() {}

  package init(_ parameters: Parameters) throws(ErrorObject) {
    try self.init(walking: parameters)
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, "The object; of this session, or a path that no live session owns.")
    try members.required("state", &state, "The state.")
    try members.member("elements", &elements, default: [], "Selected and topmost rows of a view (R28).")
    try members.optional(
      "revision",
      &revision,
      .from(1),
      "Counts up per path and session, also where the session gives the path up and registers it again."
    )
  }

  /// The object that a call is about, which may be wrong in other members.
  package static func object(of parameters: Parameters) -> ObjectReference? {
    parameters.first("object").flatMap { ObjectReference($0) }
  }
}
