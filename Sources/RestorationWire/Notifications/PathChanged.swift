// SPDX-License-Identifier: Apache-2.0

/// An object has another path because an ancestor or itself was moved (R6).
public struct PathChanged: RestorationNotification {
  package static let method = ServedMethod.pathChanged
  package static let summary =
    "An object of this session has another path because it or an ancestor was moved or renamed (R6)."

  public package(set) var object: ObjectHandle = 0
  public package(set) var path: IdentifierPath?

  package init() {}

  /// For one object.
  public init(object: ObjectHandle, path: IdentifierPath?) {
    self.object = object
    self.path = path
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, .handle, "Handle of the object; it stays the same.")
    try members.nullable("path", &path, "Its path from now on; null where its own identifier is null.")
  }
}
