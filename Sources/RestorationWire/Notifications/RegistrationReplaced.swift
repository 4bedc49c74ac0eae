// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Another session has taken the object's path over; writes to the object now fail with `replaced` (R8).
package struct RegistrationReplaced: RestorationNotification, Hashable {
  package static let method = ServedMethod.registrationReplaced

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
