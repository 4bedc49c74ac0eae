// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Takes an object out of its application; its state goes with it unless it is to be kept (R3, R13).
package struct UnregisterObject: RestorationMethod {
  package static let method = "unregisterObject"
  package static let summary = "Takes an object out."
  package static let parameters: [Schema.Member] = [
    .required("object", .reference, "The object; of this session."),
    .optional("keepState", .boolean, "Keep the state; the object becomes an orphan (R13)."),
  ]
  package static let errors: [ErrorDescription] = [
    .unknownObject, .notOwner, .replaced, .archiveUnreadable, .storeFailed,
  ]
  package static let mayBeDiscarded = true

  package typealias Reply = EmptyResult

  package var object: ObjectReference
  package var keepState: Bool

  package init(object: ObjectReference, keepState: Bool = false) {
    self.object = object
    self.keepState = keepState
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.object = try reader.reference("object")
    self.keepState = try reader.bool("keepState")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("object", object)
    writer.member("keepState", ifTrue: keepState)
  }
}
