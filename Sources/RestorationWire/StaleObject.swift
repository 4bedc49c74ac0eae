// SPDX-License-Identifier: Apache-2.0

/// An object whose state in a generation is an older one than the round that made it (R12).
package struct StaleObject: WireObject, Hashable {
  package static let sharedName: String? = "StaleObject"

  /// Why there is no newer state; besides these the kind of the error that refused it, and more may come.
  package enum Cause: String, OpenWireWord {
    /// No answer within the deadline, or one alone that was put off three times.
    case late
    /// The session ended, or its process did.
    case ended
    /// The connection was lost.
    case disconnected
    /// The answer was not of the form it has to have.
    case malformed
    /// The answer left the object out.
    case missing
    /// The client answered an error.
    case failed
  }

  package var object: ObjectHandle?
  package var path: [String]?
  package var process: String?
  package var pid: Int64?
  package var why = ""
  package var message: String?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("object", &object, .handle, "Its handle; null where its owner has it no more.")
    try members.nullable(
      "path",
      &path,
      "Its path; empty for the application's own state; null where its own identifier is null."
    )
    try members.nullable("process", &process, "Who was asked.")
    try members.nullable("pid", &pid, .processID, "Who was asked.")
    try members.required(
      "why",
      &why,
      .text(of: Cause.self),
      """
      One of the words below, or the kind of the error that an encode of this state would have got, such as \
      `reservedKey`, `invalidReference`, `limitExceeded`, `replaced`.
      """
    )
    try members.optional("message", &message, "Why, in the words of who was asked; for people. At most 256 bytes.")
  }
}
