// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The states of an application that are blamed for crashes (R31, R35).
public struct QuarantineReport: WireObject, Hashable {
  public package(set) var archive: Timestamp?
  public package(set) var strikes = 0
  public package(set) var objects: [QuarantinedObject] = []
  package var cursor: String?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable(
      "archive",
      &archive,
      "When the archive as a whole was quarantined; null if it was not, or nothing is withheld now."
    )
    try members.required("strikes", &strikes, "Failures in a row.")
    try members.required("objects", &objects, "In the order in which they were first registered.")
    try members.optional("cursor", &cursor, .name, "For the next page; absent after the last one.")
  }
}

/// One object in `listQuarantine` with its withheld states (R31, R35).
public struct QuarantinedObject: WireObject, Hashable {
  package static let sharedName: String? = "QuarantinedObject"

  public enum Standing: String, WireWord {
    case quarantined
    /// Its state may have caused a failure, so it is restored alone.
    case suspect
    /// A newer state has replaced the withheld one, which is retained.
    case lifted
  }

  public package(set) var object: ObjectHandle?
  public package(set) var path: IdentifierPath?
  public package(set) var standing = Standing.quarantined
  public package(set) var strikes = 0
  public package(set) var confidential = false
  public package(set) var redacted = false
  public package(set) var states: [QuarantinedState] = []
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("object", &object, .handle, "Its handle now; null if unclaimed.")
    try members.nullable("path", &path, "Null if its own identifier is null.")
    try members.required("standing", &standing, "`quarantined`: its state is withheld from its owner.")
    try members.required("strikes", &strikes, "Failures in a row that its state may have caused.")
    try members.required("confidential", &confidential, "Whether it is confidential.")
    try members.required("redacted", &redacted, "Whether that is why texts are left out.")
    try members.required("states", &states, "States that are or were withheld, oldest first, at most three.")
  }
}

public struct QuarantinedState: WireObject, Hashable {
  package static let sharedName: String? = "QuarantinedState"

  public package(set) var sequence: Int64 = 0
  public package(set) var quarantined = Timestamp(milliseconds: 0)
  package var stateText: JSONText?
  package var elementsText: JSONText?
  package var coderText: JSONText?
  public package(set) var unreadable = false
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("sequence", &sequence, .from(1), "Number of the write.")
    try members.required("quarantined", &quarantined, "When it was quarantined, RFC 3339, UTC, milliseconds.")
    try members.nullable(
      "state",
      &stateText,
      .state,
      "The state as it was encoded; null if it is redacted or unreadable."
    )
    try members.optional("elements", &elementsText, .elements, "Absent if there are none or they are redacted.")
    try members.nullable("coder", &coderText, .coder, "Reserved keys of the session that wrote it.")
    try members.mark("unreadable", &unreadable, "Present and true if it is damaged (R32).")
  }
}

extension IdentifierPath {
  /// The shell command that releases a withheld state (R35), or all states for the empty path.
  package func releaseCommand(of application: String) -> String {
    let words = ["restorationctl", "quarantine", "release", application] + (components.isEmpty ? [] : [description])
    return words.map(\.shellWord).joined(separator: " ")
  }
}

extension String {
  /// Quoted for a shell if necessary.
  fileprivate var shellWord: String {
    let isHarmless = utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "a")...UInt8(ascii: "z"):
        true
      default: "-_./@:+,".utf8.contains(byte)
      }
    }
    return isHarmless ? self : "'\(replacing("'", with: #"'\''"#))'"
  }
}
