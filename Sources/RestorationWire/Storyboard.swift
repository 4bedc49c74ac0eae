// SPDX-License-Identifier: Apache-2.0

/// Where an object or a process comes from: a systemd user unit that brings it back (R22).
package struct Storyboard: WireObject, Hashable {
  package static let sharedName: String? = "Storyboard"
  package static let expected = "an object with a unit"

  /// Bytes of UTF-8 a unit's name has at most, as systemd has it.
  package static let nameBytesMax = 255

  package var unit = ""

  package init() {}

  package init(unit: String) {
    self.unit = unit
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("unit", &unit, .bytes(1...Self.nameBytesMax), "The systemd user unit.")
  }
}

extension MemberWalk {
  /// A storyboard, of which the unit is kept.
  package mutating func optional(_ name: StaticString, unit: inout String?, _ about: StaticString) throws(Misfit) {
    var storyboard = unit.map { Storyboard(unit: $0) }
    try optional(name, &storyboard, about)
    unit = storyboard?.unit
  }
}
