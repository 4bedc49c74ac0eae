// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The wire form of an object's class and its superclasses (R25): a string for one name, an array for several.
package struct ClassList: WireValue, Hashable {
  package static let schema = Schema.objectClass
  package static let expected =
    "a class name or an array of at most \(countMax) class names, own class first, "
    + "each of at most \(nameBytesMax) bytes"

  /// The most names of a list, and the most bytes of UTF-8 of a name. All are stored for every object.
  package static let countMax = 64
  package static let nameBytesMax = 255

  /// Own class first, never empty.
  package let names: [String]

  package init?(_ names: [String]) {
    if names.isEmpty { return nil }
    self.names = names
  }

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard let names = slice.string().map({ [$0] }) ?? slice.strings, (1...Self.countMax).contains(names.count),
      names.allSatisfy({ (1...Self.nameBytesMax).contains($0.utf8.count) })
    else { throw Misfit(Self.expected) }
    self.names = names
  }

  package func writeJSON(to writer: inout JSONWriter) {
    if names.count == 1 { writer.string(names[0]) } else { names.writeJSON(to: &writer) }
  }
}

extension MemberWalk {
  /// The class and its superclasses; null if there are none.
  package mutating func nullable(_ name: StaticString, classes: inout [String], _ about: StaticString) throws(Misfit) {
    var list = ClassList(classes)
    try nullable(name, &list, about)
    classes = list?.names ?? []
  }

  /// The class and its superclasses; absent if there are none.
  package mutating func optional(_ name: StaticString, classes: inout [String], _ about: StaticString) throws(Misfit) {
    var list = ClassList(classes)
    try optional(name, &list, about)
    classes = list?.names ?? []
  }
}

/// Names from earlier versions of an application, with their current names (R25). Aliases are not chained.
package struct Aliases: WireObject, Hashable {
  package static let sharedName: String? = "Aliases"
  package static let expected = "an object of classes and identifiers"

  package var classes: [String: String] = [:]
  package var identifiers: [String: String] = [:]
  package init() {}

  package var isEmpty: Bool { classes.isEmpty && identifiers.isEmpty }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    typealias Names = [String: String]?
    try members.member("classes", &classes, default: [:], "Archived and current class names.", as: Names.schema)
    try members.member(
      "identifiers",
      &identifiers,
      default: [:],
      "Archived and current restoration identifiers.",
      as: Names.schema
    )
  }
}
