// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Makes an object known under its restoration path and gives it a handle (R1–R5, R8).
package struct RegisterObjectForStateRestoration: RestorationMethod {
  package static let method = "registerObjectForStateRestoration"
  package static let summary = "Makes an object known and gives it a handle."
  package static let parameters: [Schema.Member] = [
    .optional("restorationIdentifier", .identifier, "The identifier (R1). Null or absent excludes the object (R4)."),
    .optional(
      "restorationParent",
      .reference,
      "The parent that scopes the identifier; absent or null makes a root (R2, R3)."
    ),
    .optional("kind", ObjectKind.schema, "What the object is."),
    .optional(
      "objectClass",
      .objectClass,
      "The class, or the class and its superclasses, own class first; at most 64 names of 1 to 255 bytes (R25)."
    ),
    .optional("restorationClass", .name, "The class that recreates the object; 1 to 1,024 bytes (R22, R23)."),
    .optional(
      "position",
      .integer(0...positionMax),
      "Where the object is in its container; becomes part of the path: `identifier#position`."
    ),
    .optional(
      "storyboard",
      Storyboard.schema,
      "The systemd user unit that brings the object back."
    ),
    .optional(
      "awaitParentMilliseconds",
      .integer(0...awaitParentMillisecondsMax),
      "How long to wait for a parent that is not there yet."
    ),
    .optional("takeOver", .boolean, "Claim the path although another live session has it (R8)."),
    .optional("confidential", .boolean, "Keep the state out of what tools show, unless they ask with `reveal`."),
    .optional("keep", .words(Keep.self), "The state is never retired, however long nobody claims it (R13)."),
  ]
  package static let errors: [ErrorDescription] = [
    .invalidIdentifier, .unknownParent, .duplicatePath, .requestCancelled, .limitExceeded, .archiveUnreadable,
    .storeFailed,
  ]
  package static let mayBeDiscarded = true

  /// Positions stay exact in every language's numbers.
  package static let positionMax: Int64 = 1 << 53 - 1

  /// A day; longer waits are asked for again.
  package static let awaitParentMillisecondsMax: Int64 = 86_400_000

  /// Nil excludes the object and everything below it (R4).
  package var restorationIdentifier: String?
  package var restorationParent: ObjectReference?
  package var kind: ObjectKind
  /// The object's class and its superclasses, own class first; empty where none was given (R25).
  package var classes: [String]
  package var restorationClass: String?
  package var position: Int64?
  /// The unit of the storyboard.
  package var storyboard: String?
  package var awaitParentMilliseconds: Int64?
  package var takeOver: Bool
  package var confidential: Bool
  /// `keep: "forever"` (R13).
  package var keepsForever: Bool

  package init(
    restorationIdentifier: String?,
    restorationParent: ObjectReference? = nil,
    kind: ObjectKind = .object,
    classes: [String] = [],
    restorationClass: String? = nil,
    position: Int64? = nil,
    storyboard: String? = nil,
    awaitParentMilliseconds: Int64? = nil,
    takeOver: Bool = false,
    confidential: Bool = false,
    keepsForever: Bool = false
  ) {
    self.restorationIdentifier = restorationIdentifier
    self.restorationParent = restorationParent
    self.kind = kind
    self.classes = classes
    self.restorationClass = restorationClass
    self.position = position
    self.storyboard = storyboard
    self.awaitParentMilliseconds = awaitParentMilliseconds
    self.takeOver = takeOver
    self.confidential = confidential
    self.keepsForever = keepsForever
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.restorationIdentifier = try reader.optionalString("restorationIdentifier")
    self.restorationParent = try reader.optionalReference("restorationParent")
    self.kind = try reader.optionalWord("kind", as: ObjectKind.self) ?? .object
    self.classes = try reader.classes("objectClass")
    self.restorationClass = try reader.optionalName("restorationClass")
    self.position = try reader.optionalInteger("position", in: 0...Self.positionMax)
    self.storyboard = try Storyboard.unit(from: reader)
    self.awaitParentMilliseconds =
      try reader.optionalInteger("awaitParentMilliseconds", in: 0...Self.awaitParentMillisecondsMax)
    self.takeOver = try reader.bool("takeOver")
    self.confidential = try reader.bool("confidential")
    self.keepsForever = try reader.optionalWord("keep", as: Keep.self) == .forever
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("restorationIdentifier", restorationIdentifier)
    writer.member("restorationParent", ifPresent: restorationParent)
    writer.member("kind", kind)
    if !classes.isEmpty {
      writer.key("objectClass")
      ClassList.write(classes, to: &writer)
    }
    writer.member("restorationClass", ifPresent: restorationClass)
    writer.member("position", ifPresent: position)
    writer.member("storyboard", ifPresent: storyboard.map { Storyboard(unit: $0) })
    writer.member("awaitParentMilliseconds", ifPresent: awaitParentMilliseconds)
    writer.member("takeOver", ifTrue: takeOver)
    writer.member("confidential", ifTrue: confidential)
    if keepsForever {
      writer.member("keep", Keep.forever.rawValue)
    }
  }

  /// Values of `keep`.
  private enum Keep: String, CaseIterable {
    case forever
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required("object", .handle, "The handle: positive, below 2^53, never given out twice."),
      .required("path", .nullable(.path), "The path; null where the identifier is null."),
      .required("included", .boolean, "Whether a generation holds the object by itself."),
      .required(
        "restoration",
        ObjectRestoration.schema,
        "Whether there is a state to decode."
      ),
      .optional("session", .sessionToken, "Only where the call opened a detached session: its token."),
    ])

    package var object: ObjectHandle
    /// Nil where the object's own identifier is null (R4).
    package var path: IdentifierPath?
    /// Whether the next generation holds the object by itself, without a reference to it (R4, R5, R7).
    package var included: Bool
    package var restoration: ObjectRestoration
    /// Token of the detached session that the call began; nil for a call of a session.
    package var session: String?

    package init(
      object: ObjectHandle,
      path: IdentifierPath?,
      included: Bool,
      restoration: ObjectRestoration,
      session: String? = nil
    ) {
      self.object = object
      self.path = path
      self.included = included
      self.restoration = restoration
      self.session = session
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.object = try reader.integer("object")
        self.path = try reader.optionalPath("path")
        self.included = try reader.value("included") { $0.bool() }
        self.restoration = try reader.value("restoration") { ObjectRestoration($0) }
        self.session = try reader.optionalString("session")
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("object", object)
        writer.member("path", path)
        writer.member("included", included)
        writer.member("restoration", restoration)
        writer.member("session", ifPresent: session)
      }
    }
  }
}
