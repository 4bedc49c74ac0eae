// SPDX-License-Identifier: Apache-2.0

/// Asks for an identifier by which the element can be found after the data has changed (R28).
package struct ModelIdentifierForElementAtIndexPath: RestorationCall {
  package static let method = ServedMethod.modelIdentifierForElementAtIndexPath
  package static let summary = "Asks which element of the model a view shows at this index path."

  package var view: IdentifierPath = []
  package var indexPath: [Int] = []
  package var role = RestorableElement.Role.selected
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("view", &view, "Path of the view.")
    try members.required("indexPath", &indexPath, "Index path of the element in the view.")
    try members.required("role", &role, "`selected` or `topVisible`.")
  }

  /// The element's identifier; `nil` drops the element.
  package typealias Answer = String?
}

package struct IndexPathForElementWithModelIdentifier: RestorationCall {
  package static let method = ServedMethod.indexPathForElementWithModelIdentifier
  package static let summary = "Asks where a view shows this element of the model now."

  package var view: IdentifierPath = []
  package var identifier = ""
  package var role = RestorableElement.Role.selected
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("view", &view, "Path of the view.")
    try members.required("identifier", &identifier, "The element's identifier.")
    try members.required("role", &role, "`selected` or `topVisible`.")
  }

  /// The present index path; `nil` if the element is gone.
  package typealias Answer = [Int]?
}
