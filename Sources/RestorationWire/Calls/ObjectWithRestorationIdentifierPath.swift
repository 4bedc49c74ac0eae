// SPDX-License-Identifier: Apache-2.0

/// Asks the session of a restoration class for the object of a path; it registers the object before it answers
/// (R22, R23, R24).
package struct ObjectWithRestorationIdentifierPath: RestorationCall {
  package typealias Answer = LocatedObject

  package static let method = ServedMethod.objectWithRestorationIdentifierPath
  package static let summary = "Makes, or finds, the object of this path (R22, R23, R24)."

  package var restorationClass = ""
  package var saved = SavedObject()

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("restorationClass", &restorationClass, .name, "The class that is to make it.")
    try saved.walk(&members)
  }
}
