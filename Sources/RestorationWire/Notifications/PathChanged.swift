// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// An object has another path because an ancestor or itself was moved (R6).
package struct PathChanged: RestorationNotification, Hashable {
  package static let method = ServedMethod.pathChanged
  package static let summary =
    "An object of this session has another path because it or an ancestor was moved or renamed (R6)."
  package static let parameters: [Schema.Member] = [
    .required("object", .handle, "Handle of the object; it stays the same."),
    .required("path", .nullable(.path), "Its path from now on; null where its own identifier is null."),
  ]

  package var object: ObjectHandle
  /// The path from now on; nil where the object's own identifier is null (R4).
  package var path: IdentifierPath?

  package init(object: ObjectHandle, path: IdentifierPath?) {
    self.object = object
    self.path = path
  }

  package init?(_ parameters: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(parameters)
      self.object = try reader.integer("object")
      self.path = try reader.optionalPath("path")
    } catch {
      return nil
    }
  }

  package func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("object", object)
      writer.member("path", path)
    }
  }
}
