// SPDX-License-Identifier: Apache-2.0

/// Names of earlier versions of an application and what they are called today (R25).
///
/// An alias is followed once: the new name of one is not looked up again.
package struct Aliases: WireObject, Hashable {
  package static let sharedName: String? = "Aliases"
  package static let expected = "an object of classes and identifiers"

  package var classes: [String: String] = [:]
  package var identifiers: [String: String] = [:]

  package init() {}

  package var isEmpty: Bool {
    classes.isEmpty && identifiers.isEmpty
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    typealias Names = [String: String]?
    try members.member("classes", &classes, default: [:], "Archived class names, and today's.", as: Names.schema)
    try members.member(
      "identifiers",
      &identifiers,
      default: [:],
      "Archived restoration identifiers, and today's.",
      as: Names.schema
    )
  }
}
