// SPDX-License-Identifier: Apache-2.0

/// Asks the delegate for the view controller of a path that has no restoration class (R22, R24).
package struct ViewControllerWithRestorationIdentifierPath: RestorationCall {
  package typealias Answer = LocatedObject

  package static let method = ServedMethod.viewControllerWithRestorationIdentifierPath
  package static let summary = "The same of the delegate, for a view controller that has no restoration class."

  package var saved = SavedObject()

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try saved.walk(&members)
  }
}
