// SPDX-License-Identifier: Apache-2.0

/// Objects closed together, in `listClosedObjects` (R13).
public struct ClosedObject: WireObject, Hashable {
  package static let sharedName: String? = "ClosedObject"

  public package(set) var path: IdentifierPath = []
  public package(set) var closed = Timestamp(milliseconds: 0)
  public package(set) var objects = 0
  public package(set) var bytes = 0
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("path", &path, "The path it had.")
    try members.required("closed", &closed, "When it was closed.")
    try members.required("objects", &objects, "How many objects it is, with those that were closed with it.")
    try members.required("bytes", &bytes, "Bytes of their states.")
  }
}

/// The result of `reopenObject`.
public struct ReopenedObject: WireObject, Hashable {
  package static let sharedName: String? = "ReopenedObject"

  public package(set) var path: IdentifierPath = []
  public package(set) var objects = 0
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("path", &path, "Its path, which is vacant.")
    try members.required("objects", &objects, "How many objects are there again.")
  }
}
