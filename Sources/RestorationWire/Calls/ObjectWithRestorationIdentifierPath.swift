// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Asks the session of a restoration class for the object of a path; it registers the object before it answers
/// (R22, R23, R24).
package struct ObjectWithRestorationIdentifierPath: RestorationCall {
  package typealias Answer = LocatedObject

  package static let method = ServedMethod.objectWithRestorationIdentifierPath
  package static let summary = "Makes, or finds, the object of this path (R22, R23, R24)."
  package static let parameters =
    [.required("restorationClass", .name, "The class that is to make it.")] + SavedObject.members

  package var restorationClass: String
  package var saved: SavedObject

  package init(restorationClass: String, saved: SavedObject) {
    self.restorationClass = restorationClass
    self.saved = saved
  }

  package init?(_ parameters: JSONSlice) {
    guard let name = parameters["restorationClass"]?.string(), let saved = SavedObject(parameters) else { return nil }
    self.restorationClass = name
    self.saved = saved
  }

  package func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("restorationClass", restorationClass)
      saved.writeMembers(to: &writer)
    }
  }
}
