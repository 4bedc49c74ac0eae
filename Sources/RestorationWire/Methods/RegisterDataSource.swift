// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Says that this session knows what the elements of a view stand for (R9, R28).
package struct RegisterDataSource: RestorationMethod {
  package static let method = "registerDataSource"
  package static let summary = "Says who knows the elements of a view."
  package static let parameters: [Schema.Member] = [
    .required("view", .reference, "The view; live, vacant, or known from the archive."),
  ]
  package static let errors: [ErrorDescription] = [
    .unknownObject, .alreadyServed, .invalidRequest, .limitExceeded, .archiveUnreadable,
  ]
  package static let mayBeDiscarded = true

  package typealias Reply = EmptyResult

  package var view: ObjectReference

  package init(view: ObjectReference) {
    self.view = view
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.view = try reader.reference("view")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("view", view)
  }
}
