// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Asks a view's data source what element is at an index path now, to find it again when the data has changed (R28).
package struct ModelIdentifierForElementAtIndexPath: RestorationCall {
  package static let method = ServedMethod.modelIdentifierForElementAtIndexPath
  package static let summary = "Which element of the model a view shows at this index path."

  package var view: IdentifierPath = []
  package var indexPath: [Int] = []
  package var role = RestorableElement.Role.selected

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("view", &view, "Path of the view.")
    try members.required("indexPath", &indexPath, "Where the element is in the view.")
    try members.required("role", &role, "`selected` or `topVisible`.")
  }

  /// The element's identifier; nil if there is none to be kept.
  package struct Answer: WireValue, Hashable {
    package static let schema = String?.schema
    package static let expected = String?.expected

    package var identifier: String?

    package init(identifier: String?) {
      self.identifier = identifier
    }

    package init(wire slice: JSONSlice) throws(Misfit) {
      identifier = try Optional(wire: slice)
    }

    package func writeJSON(to writer: inout JSONWriter) {
      identifier.writeJSON(to: &writer)
    }
  }
}
