// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Asks the delegate for the view controller of a path that has no restoration class (R22, R24).
package struct ViewControllerWithRestorationIdentifierPath: RestorationCall {
  package typealias Answer = LocatedObject

  package static let method = ServedMethod.viewControllerWithRestorationIdentifierPath
  package static let summary = "The same of the delegate, for a view controller that has no restoration class."
  package static let parameters = SavedObject.members

  package var saved: SavedObject

  package init(saved: SavedObject) {
    self.saved = saved
  }

  package init?(_ parameters: JSONSlice) {
    guard let saved = SavedObject(parameters) else { return nil }
    self.saved = saved
  }

  package func write(to writer: inout JSONWriter) {
    writer.object { saved.writeMembers(to: &$0) }
  }
}
