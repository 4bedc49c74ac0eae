// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// One object in `listQuarantine`: what is held against it, and the texts that are kept for it (R31, R35).
package struct QuarantinedObject: WireObject, Hashable {
  package static let sharedName: String? = "QuarantinedObject"

  package enum Standing: String, WireWord {
    /// Its state is withheld from its owner.
    case quarantined
    /// A crash may be due to its state: it is handed out by itself.
    case suspect
    /// A newer state has taken the place of the withheld one, which is kept.
    case lifted
  }

  package var object: ObjectHandle?
  package var path: IdentifierPath?
  package var standing = Standing.quarantined
  package var strikes = 0
  package var confidential = false
  package var redacted = false
  package var states: [QuarantinedState] = []

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("object", &object, .handle, "Its handle now; null where nobody claims it.")
    try members.nullable("path", &path, "Null where its own identifier is null.")
    try members.required("standing", &standing, "`quarantined`: its state is withheld from its owner.")
    try members.required("strikes", &strikes, "Crashes in a row that its state was found guilty of.")
    try members.required("confidential", &confidential, "Whether it is confidential.")
    try members.required("redacted", &redacted, "Whether that is why texts are left out.")
    try members.required("states", &states, "What is or was withheld, oldest first, at most three.")
  }
}

/// One state that is or was withheld.
package struct QuarantinedState: WireObject, Hashable {
  package static let sharedName: String? = "QuarantinedState"

  package var sequence: Int64 = 0
  package var quarantined = Timestamp(milliseconds: 0)
  package var state: JSONText?
  package var elements: JSONText?
  package var coder: JSONText?
  package var unreadable = false

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("sequence", &sequence, .from(1), "Number of the write.")
    try members.required("quarantined", &quarantined, "When it was put into quarantine, RFC 3339, UTC, milliseconds.")
    try members.nullable(
      "state",
      &state,
      .state,
      "The state as it was encoded; null where it is redacted or unreadable."
    )
    try members.optional("elements", &elements, .elements, "Absent where there are none or they are redacted.")
    try members.nullable("coder", &coder, .coder, "Reserved keys of the session that wrote it.")
    try members.mark("unreadable", &unreadable, "Present and true where it is damaged (R32).")
  }
}
