// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Gives the children of a container their positions 0…n−1 in one step (R6).
package struct SetChildren: RestorationMethod {
  package static let method = "setChildren"
  package static let summary = "Gives children their positions."
  package static let parameters: [Schema.Member] = [
    .required("object", .reference, "The container; of this session."),
    .required("children", .list(.reference), "Children in order; each gets its index as position, 0 … n−1."),
  ]
  package static let errors: [ErrorDescription] = [
    .unknownObject, .notOwner, .replaced, .invalidParams, .duplicatePath, .limitExceeded, .archiveUnreadable,
    .storeFailed,
  ]
  package static let mayBeDiscarded = true

  /// The container; its owner calls.
  package var object: ObjectReference
  package var children: [ObjectReference]

  package init(object: ObjectReference, children: [ObjectReference]) {
    self.object = object
    self.children = children
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.object = try reader.reference("object")
    self.children = try reader.references("children")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("object", object)
    writer.member("children", children)
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required("paths", .list(.nullable(.path)), "Paths of the children from now on, in the order they were given."),
    ])

    /// Paths of the children from now on, in the order they were given; nil for one whose identifier is null (R4).
    package var paths: [IdentifierPath?]

    package init(paths: [IdentifierPath?]) {
      self.paths = paths
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        self.paths = try ResultReader(slice).list("paths") { element -> IdentifierPath?? in
          if element.isNull { return .some(nil) }
          return IdentifierPath(element).map { .some($0) }
        }
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { $0.member("paths", paths) }
    }
  }
}
