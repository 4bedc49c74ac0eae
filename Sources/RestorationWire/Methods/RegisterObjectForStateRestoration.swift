// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Makes an object known under its restoration path and gives it a handle (R1–R5, R8).
package struct RegisterObjectForStateRestoration: RestorationMethod {
  package static let method = "registerObjectForStateRestoration"
  package static let summary = "Makes an object known and gives it a handle."
  package static let errors: [ErrorDescription] = [
    .invalidIdentifier, .unknownParent, .duplicatePath, .requestCancelled, .limitExceeded, .archiveUnreadable,
    .storeFailed,
  ]
  package static let mayBeDiscarded = true

  /// Positions stay exact in every language's numbers.
  package static let positionMax: Int64 = 1 << 53 - 1

  /// A day; longer waits are asked for again.
  package static let awaitParentMillisecondsMax: Int64 = 86_400_000

  package typealias Reply = RegisteredObject

  /// Nil excludes the object and everything below it (R4).
  package var restorationIdentifier: String?
  package var restorationParent: ObjectReference?
  package var kind = ObjectKind.object
  package var classes: [String] = []
  package var restorationClass: String?
  package var position: Int64?
  package var storyboard: String?
  package var awaitParentMilliseconds: Int64?
  package var takeOver = false
  package var confidential = false
  package var keep: Keep?

  package init() {}

  package init(_ parameters: Parameters) throws(ErrorObject) {
    try self.init(walking: parameters)
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional(
      "restorationIdentifier",
      &restorationIdentifier,
      .identifier,
      "The identifier (R1). Null or absent excludes the object (R4)."
    )
    try members.optional(
      "restorationParent",
      &restorationParent,
      "The parent that scopes the identifier; absent or null makes a root (R2, R3)."
    )
    try members.member("kind", &kind, default: .object, "What the object is.")
    try members.optional(
      "objectClass",
      classes: &classes,
      "The class, or the class and its superclasses, own class first; at most 64 names of 1 to 255 bytes (R25)."
    )
    try members.optional(
      "restorationClass",
      &restorationClass,
      .name,
      "The class that recreates the object; 1 to 1,024 bytes (R22, R23)."
    )
    try members.optional(
      "position",
      &position,
      .range(0...Self.positionMax),
      "Where the object is in its container; becomes part of the path: `identifier#position`."
    )
    try members.optional("storyboard", unit: &storyboard, "The systemd user unit that brings the object back.")
    try members.optional(
      "awaitParentMilliseconds",
      &awaitParentMilliseconds,
      .range(0...Self.awaitParentMillisecondsMax),
      "How long to wait for a parent that is not there yet."
    )
    try members.flag("takeOver", &takeOver, "Claim the path although another live session has it (R8).")
    try members.flag(
      "confidential",
      &confidential,
      "Keep the state out of what tools show, unless they ask with `reveal`."
    )
    try members.optional("keep", &keep, "The state is never retired, however long nobody claims it (R13).")
  }

  package enum Keep: String, WireWord {
    case forever
  }
}
