// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Gives an object another identifier; it moves with everything below it (R4, R6).
package struct SetRestorationIdentifier: RestorationMethod {
  package static let method = "setRestorationIdentifier"
  package static let summary = "Renames or excludes an object."
  package static let parameters: [Schema.Member] = [
    .required("object", .reference, "The object; of this session."),
    .required(
      "restorationIdentifier",
      .nullable(.identifier),
      "The new identifier; null excludes the object and everything below it (R4)."
    ),
    .optional(
      "position",
      .integer(0...RegisterObjectForStateRestoration.positionMax),
      "The new position; without it the object has none any more."
    ),
    .optional(
      "takeOver",
      .boolean,
      "Displace what is in the way: a live owner (R8), or the state of a vacant path (R6)."
    ),
  ]
  package static let errors: [ErrorDescription] = [
    .unknownObject, .notOwner, .replaced, .invalidIdentifier, .duplicatePath, .limitExceeded, .archiveUnreadable,
    .storeFailed,
  ]
  package static let mayBeDiscarded = true

  package var object: ObjectReference
  /// Nil excludes the object and everything below it (R4).
  package var restorationIdentifier: String?
  /// Nil leaves the object without a position.
  package var position: Int64?
  /// Whether the move may displace the state of a vacant path that it ends on, or a live object there (R6, R8).
  package var takeOver: Bool

  package init(
    object: ObjectReference,
    restorationIdentifier: String?,
    position: Int64? = nil,
    takeOver: Bool = false
  ) {
    self.object = object
    self.restorationIdentifier = restorationIdentifier
    self.position = position
    self.takeOver = takeOver
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.object = try reader.reference("object")
    _ = try reader.required("restorationIdentifier")
    self.restorationIdentifier = try reader.optionalString("restorationIdentifier")
    self.position =
      try reader.optionalInteger("position", in: 0...RegisterObjectForStateRestoration.positionMax)
    self.takeOver = try reader.bool("takeOver")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("object", object)
    writer.member("restorationIdentifier", restorationIdentifier)
    writer.member("position", ifPresent: position)
    writer.member("takeOver", ifTrue: takeOver)
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required("path", .nullable(.path), "The path from now on; null where the identifier is null."),
      .required("included", .boolean, "Whether a generation holds the object by itself."),
    ])

    /// The object's path from now on; nil where its identifier is null (R4).
    package var path: IdentifierPath?
    /// Whether the next generation holds the object by itself (R4, R5).
    package var included: Bool

    package init(path: IdentifierPath?, included: Bool) {
      self.path = path
      self.included = included
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.path = try reader.optionalPath("path")
        self.included = try reader.value("included") { $0.bool() }
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("path", path)
        writer.member("included", included)
      }
    }
  }
}
