// SPDX-License-Identifier: Apache-2.0

/// Another session has taken the object's path over; writes to the object now fail with `replaced` (R8).
public struct RegistrationReplaced: RestorationNotification {
  package static let method = ServedMethod.registrationReplaced
  package static let summary = "Another session has taken over the path of an object of this session (R8)."

  public package(set) var object: ObjectHandle = 0
  public package(set) var path: IdentifierPath = []
  public package(set) var by = ObjectOwner()

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, .handle, "The handle that this session had.")
    try members.required("path", &path, "The path that was taken over.")
    try members.required("by", &by, "The new owner: `process` (string or null) and `pid` (integer).")
  }
}
