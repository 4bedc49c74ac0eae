// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A row or item of a view that is selected or topmost (R28).
package struct Element: WireObject, Hashable {
  package static let sharedName: String? = "Element"
  package static let plural = "elements"

  package enum Role: String, WireWord {
    case selected
    case topVisible
  }

  package var role = Role.selected
  /// Section and row, or as deep as the view nests.
  package var indexPath: [Int] = []
  package var identifier: String?
  package var resolved: Bool?

  package init() {}

  package init(role: Role, indexPath: [Int], identifier: String? = nil, resolved: Bool? = nil) {
    self.role = role
    self.indexPath = indexPath
    self.identifier = identifier
    self.resolved = resolved
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("role", &role, "Why it is told of.")
    try members.required("indexPath", &indexPath, "Where the element is in the view.")
    try members.member("identifier", &identifier, default: nil, "The data source's identifier of the element's model.")
    try members.member(
      "resolved",
      &resolved,
      default: nil,
      "On decoding, whether a data source has said where it is today."
    )
  }

  /// Writes the array of `elements`.
  package static func write(_ elements: [Element], to writer: inout JSONWriter) {
    elements.writeJSON(to: &writer)
  }
}
