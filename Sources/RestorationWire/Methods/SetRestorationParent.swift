// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Moves an object and everything below it under another parent, or makes it a root (R6).
package struct SetRestorationParent: RestorationMethod {
  package static let method = "setRestorationParent"
  package static let summary = "Moves a subtree under another parent."
  package static let parameters: [Schema.Member] = [
    .required("object", .reference, "The object; of this session."),
    .required("restorationParent", .nullable(.reference), "The new parent; null makes the object a root."),
    .optional(
      "takeOver",
      .boolean,
      "Displace what is in the way: a live owner (R8), or the state of a vacant path (R6)."
    ),
  ]
  package static let errors: [ErrorDescription] = [
    .unknownObject, .notOwner, .replaced, .unknownParent, .parentCycle, .duplicatePath, .limitExceeded,
    .archiveUnreadable, .storeFailed,
  ]
  package static let mayBeDiscarded = true

  package var object: ObjectReference
  /// Nil makes the object a root.
  package var restorationParent: ObjectReference?
  /// Whether the move may displace the state of a vacant path that it ends on, or a live object there (R6, R8).
  package var takeOver: Bool

  package init(object: ObjectReference, restorationParent: ObjectReference?, takeOver: Bool = false) {
    self.object = object
    self.restorationParent = restorationParent
    self.takeOver = takeOver
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.object = try reader.reference("object")
    _ = try reader.required("restorationParent")
    self.restorationParent = try reader.optionalReference("restorationParent")
    self.takeOver = try reader.bool("takeOver")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("object", object)
    writer.member("restorationParent", restorationParent)
    writer.member("takeOver", ifTrue: takeOver)
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required("path", .nullable(.path), "The path from now on; null where the object's own identifier is null."),
    ])

    /// The object's path from now on; nil where its own identifier is null (R4).
    package var path: IdentifierPath?

    package init(path: IdentifierPath?) {
      self.path = path
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        self.path = try ResultReader(slice).optionalPath("path")
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { $0.member("path", path) }
    }
  }
}
