// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Another session has taken the object's path over; writes to the object now fail with `replaced` (R8).
package struct RegistrationReplaced: RestorationNotification, Hashable {
  package static let method = ServedMethod.registrationReplaced
  package static let summary = "Another session has taken over the path of an object of this session (R8)."
  package static let parameters: [Schema.Member] = [
    .required("object", .handle, "The handle that this session had."),
    .required("path", .path, "The path that was taken over."),
    .required("by", ObjectOwner.schema, "The new owner: `process` (string or null) and `pid` (integer)."),
  ]

  /// The loser's handle.
  package var object: ObjectHandle
  package var path: IdentifierPath
  /// The new owner.
  package var by: ObjectOwner

  package init(object: ObjectHandle, path: IdentifierPath, by: ObjectOwner) {
    self.object = object
    self.path = path
    self.by = by
  }

  package init?(_ parameters: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(parameters)
      self.object = try reader.integer("object")
      self.path = try reader.path("path")
      self.by = try reader.value("by") { ObjectOwner($0) }
    } catch {
      return nil
    }
  }

  package func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("object", object)
      writer.member("path", path)
      writer.member("by", by)
    }
  }
}
