// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Says that the stored state of an object is not that of now: the broker asks its owner for the new one (R18).
package struct InvalidateRestorableState: RestorationMethod {
  package static let method = "invalidateRestorableState"
  package static let summary = "Has the broker ask for a state."
  package static let parameters: [Schema.Member] = [
    .required("object", .reference, "An object of this session."),
  ]
  package static let errors: [ErrorDescription] = [
    .unknownObject, .notOwner, .replaced, .invalidParams, .archiveUnreadable,
  ]
  package static let mayBeDiscarded = true

  package typealias Reply = EmptyResult

  /// The caller's own object.
  package var object: ObjectReference

  package init(object: ObjectReference) {
    self.object = object
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.object = try reader.reference("object")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("object", object)
  }
}
