// SPDX-License-Identifier: Apache-2.0

/// What the broker says of an object that has been registered.
public struct RegisteredObject: WireObject, Hashable {
  public package(set) var object: ObjectHandle = 0
  public package(set) var path: IdentifierPath?
  public package(set) var included = false
  public package(set) var restoration = ObjectRestoration()
  public package(set) var session: String?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, .handle, "The handle: positive, below 2^53, never given out twice.")
    try members.nullable("path", &path, "The path; null where the identifier is null.")
    try members.required("included", &included, "Whether a generation holds the object by itself.")
    try members.required("restoration", &restoration, "Whether there is a state to decode.")
    try members.optional(
      "session",
      &session,
      .sessionToken,
      "Only where the call opened a detached session: its token."
    )
  }
}

/// What registering an object says about its saved state.
public struct ObjectRestoration: WireObject, Hashable {
  package static let sharedName: String? = "ObjectRestoration"

  public package(set) var state = RestorationState.none
  public package(set) var classMatches = true

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("state", &state, "Whether there is a state to decode.")
    try members.required("classMatches", &classMatches, "False where a decode would answer `classMismatch` (R25).")
  }
}

/// Where an object is after it was moved or renamed (R4, R6).
public struct ObjectPlacement: WireObject, Hashable {
  public package(set) var path: IdentifierPath?
  public package(set) var included = false

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("path", &path, "The path from now on; null where the identifier is null.")
    try members.required("included", &included, "Whether a generation holds the object by itself.")
  }
}
