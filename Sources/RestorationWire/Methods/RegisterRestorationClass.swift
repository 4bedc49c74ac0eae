// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Says that this session makes the objects of a restoration class (R9, R22, R23).
package struct RegisterRestorationClass: RestorationMethod {
  package static let method = "registerRestorationClass"
  package static let summary = "Says who makes the objects of a class."
  package static let parameters: [Schema.Member] = [
    .required("restorationClass", .name, "The class, compared byte by byte."),
  ]
  package static let errors: [ErrorDescription] = [.alreadyServed, .invalidRequest, .limitExceeded, .archiveUnreadable]
  package static let mayBeDiscarded = true

  package typealias Reply = EmptyResult

  package var restorationClass: String

  package init(restorationClass: String) {
    self.restorationClass = restorationClass
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    _ = try reader.required("restorationClass")
    guard let name = try reader.optionalName("restorationClass") else {
      throw reader.wrong("restorationClass", "a string of 1 to \(ParameterReader.nameBytesMax) bytes")
    }
    self.restorationClass = name
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("restorationClass", restorationClass)
  }
}
