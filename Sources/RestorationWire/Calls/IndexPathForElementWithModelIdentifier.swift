// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Asks a view's data source where the element with this identifier is today (R28).
package struct IndexPathForElementWithModelIdentifier: RestorationCall {
  package static let method = ServedMethod.indexPathForElementWithModelIdentifier
  package static let summary = "Where a view shows this element of the model today."

  package var view: IdentifierPath = []
  package var identifier = ""
  package var role = RestorableElement.Role.selected

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("view", &view, "Path of the view.")
    try members.required("identifier", &identifier, "The element's identifier.")
    try members.required("role", &role, "`selected` or `topVisible`.")
  }

  /// Today's index path; nil if the element is gone.
  package struct Answer: WireValue, Hashable {
    package static let schema = [Int]?.schema
    package static let expected = [Int]?.expected

    package var indexPath: [Int]?

    package init(indexPath: [Int]?) {
      self.indexPath = indexPath
    }

    package init(wire slice: JSONSlice) throws(Misfit) {
      indexPath = try Optional(wire: slice)
    }

    package func writeJSON(to writer: inout JSONWriter) {
      indexPath.writeJSON(to: &writer)
    }
  }
}
