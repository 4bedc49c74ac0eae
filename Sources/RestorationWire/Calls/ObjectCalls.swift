// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Asks a session for the states of some of its objects, in this order (R11, R12).
package struct EncodeRestorableStateWithCoder: RestorationCall {
  package static let method = ServedMethod.encodeRestorableStateWithCoder
  package static let summary = "Asks for the states of these objects."

  /// 0 if objects were invalidated outside of a round.
  package var round: Int64 = 0
  package var objects: [Object] = []
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("round", &round, .from(0), "Number of the round.")
    try members.required(
      "objects",
      &objects,
      "Handle and path of each object; the path is null if its own identifier is null."
    )
  }

  package struct Object: WireObject, Hashable {
    package var object: ObjectHandle = 0
    /// `nil` for an object with a null identifier that a saved object refers to (R7).
    package var path: IdentifierPath?
    package init() {}

    package init(object: ObjectHandle, path: IdentifierPath?) { (self.object, self.path) = (object, path) }

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("object", &object, .handle, "The handle.")
      try members.nullable("path", &path, "The path; null if the object's own identifier is null.")
    }
  }

  package struct Answer: WireObject {
    package var states: [EncodedObject] = []
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("states", &states, "One for each object, in any order.")
    }
  }
}

package struct EncodedObject: WireValue {
  package static let schema = Schema.shared(
    "EncodedObject",
    .either([
      .object([handle] + Encoded.members),
      .object([
        handle, .required("error", .present, "There is no state now; a string, or a `message` in an object, says why."),
      ]),
      .object([handle, .required("later", .true, "It does not fit into this answer; ask again.")]),
      .object([handle, .required("unchanged", .true, "The saved state is current.")]),
    ])
  )

  private static let handle = Schema.Member.required("object", .handle, "The handle.")
  package static let expected = "an object with a handle"
  package static let plural = "objects"

  package enum Outcome: Sendable {
    case encoded(Encoded)
    /// Encoding failed; the reason, for people.
    case failed(String)
    /// The broker must ask again in another batch.
    case later
    /// The saved state is current: its owner pushes its states, or the state has not changed.
    case unchanged
    case malformed
  }

  package var object: ObjectHandle
  package var outcome: Outcome

  package init(object: ObjectHandle, _ outcome: Outcome) { (self.object, self.outcome) = (object, outcome) }

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard slice.kind == .object, let object = slice["object"]?.integer() else { throw Misfit(Self.expected) }
    self.object = object
    if let error = slice["error"], !error.isNull {
      self.outcome = .failed(error.string() ?? error["message"]?.string() ?? "")
    } else if slice["later"]?.bool() == true {
      self.outcome = .later
    } else if slice["unchanged"]?.bool() == true {
      self.outcome = .unchanged
    } else {
      let encoded = slice["state"]?.duplicateName == nil ? Encoded(slice) : nil
      self.outcome = encoded.map { .encoded($0) } ?? .malformed
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("object", object)
      switch outcome {
      case .encoded(let encoded):
        encoded.writeMembers(to: &writer)
      case .failed(let message):
        writer.key("error")
        writer.object { $0.member("message", message) }
      case .later:
        writer.member("later", true)
      case .unchanged:
        writer.member("unchanged", true)
      case .malformed:
        break
      }
    }
  }

  package struct Encoded: WireObject {
    package static let isGiven = true

    package var state = EncodedState.empty
    package var elements: [RestorableElement] = []
    package var revision: Int64?
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("state", &state, "The state.")
      try members.member("elements", &elements, default: [], "As in `encodeRestorableState`.")
      try members.optional("revision", &revision, .from(1), "As in `encodeRestorableState`.")
    }
  }
}

/// Gives a session the states of some of its objects, parents first (R21).
package struct DecodeRestorableStateWithCoder: RestorationCall {
  package typealias Answer = Acknowledgement

  package static let method = ServedMethod.decodeRestorableStateWithCoder
  package static let summary = "Restores these objects (R21)."

  package var objects: [Object] = []
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("objects", &objects, "The objects, each with its state or deferred.")
  }

  package struct Object: WireValue, Hashable {
    package static let schema = Schema.shared(
      "DecodedObject",
      .either([
        .object(Name.members + Content.members),
        .object(Name.members + [.required("deferred", .true, "To be fetched with `decodeRestorableState`.")]),
      ])
    )
    package static let expected = "an object"
    package static let plural = "objects"

    private typealias Name = EncodeRestorableStateWithCoder.Object

    package var object: ObjectHandle
    package var path: IdentifierPath?
    /// `nil` if the state is too large for the call and must be fetched.
    package var content: Content?

    package init(object: ObjectHandle, path: IdentifierPath?, content: Content?) {
      (self.object, self.path, self.content) = (object, path, content)
    }

    package init(wire slice: JSONSlice) throws(Misfit) {
      let name = try Name(wire: slice)
      self.init(object: name.object, path: name.path, content: nil)
      if slice["deferred"]?.bool() != true { content = try Content(wire: slice) }
    }

    package func writeJSON(to writer: inout JSONWriter) {
      writer.object { writer in
        Name(object: object, path: path).writeMembers(to: &writer)
        if let content { content.writeMembers(to: &writer) } else { writer.member("deferred", true) }
      }
    }
  }

  package struct Content: WireObject, Hashable {
    package var state = JSONText.emptyObject
    package var coder: JSONText?
    package var elements = JSONText.emptyArray
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("state", &state, .state, "The state.")
      try members.nullable("coder", &coder, .coder, "Its reserved keys.")
      try members.added("elements", &elements, .elements, "Its elements.")
    }
  }
}

/// Asks the session of a restoration class for the object of a path; the session registers the object before it answers
/// (R22–R24).
package struct ObjectWithRestorationIdentifierPath: RestorationCall {
  package typealias Answer = LocatedObject

  package static let method = ServedMethod.objectWithRestorationIdentifierPath
  package static let summary = "Makes or finds the object of this path (R22, R23, R24)."

  package var restorationClass = ""
  package var saved = SavedObject()
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("restorationClass", &restorationClass, .name, "The class that makes it.")
    try saved.walk(&members)
  }
}

package struct SavedObject: WireObject, Hashable {
  package var identifierPath: IdentifierPath = []
  package var kind = ObjectKind.object
  /// `nil` if the object has no class.
  package var objectClass: String?
  /// `nil` if there is no state, or it is deferred.
  package var state: JSONText?
  package var coder: JSONText?
  package var isDeferred = false
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("identifierPath", &identifierPath, "The whole path.")
    try members.required("kind", &kind, "What the object is.")
    try members.nullable("objectClass", &objectClass, "The class that the object had when the state was written (R25).")
    try members.nullable("state", &state, .state, "What the object wrote; it comes again to be decoded.")
    try members.nullable("coder", &coder, .coder, "The state's reserved keys.")
    try members.mark("deferred", &isDeferred, "The state does not fit: fetch it with `decodeRestorableState` by path.")
  }
}

package enum LocatedObject: WireValue, Hashable {
  package static let schema = Schema.nullable(
    .either([
      .object([
        .required("object", .nullable(.handle), "The object that was made or found."),
        .optional("forget", .true, "With null: the path and all vacant objects below it are forgotten."),
      ]),
      .object([.required("awaited", .true, "A session is about to register the object.")]),
      .object([.required("pass", .true, "Another session that makes objects of the class is to be asked.")]),
    ])
  )
  package static let expected = "null, an object with a handle, awaited or pass"

  case object(ObjectHandle)
  case refused
  /// Forget the path and all vacant objects below it.
  case forgotten
  /// Another session is about to register it.
  case awaited
  /// Ask another session.
  case passed

  /// Accepts null, `{"object": handle}`, `{"awaited": true}` and `{"pass": true}`. A null handle may come with
  /// `forget`.
  package init(wire slice: JSONSlice) throws(Misfit) {
    if slice.isNull {
      self = .refused
    } else if slice["awaited"]?.bool() == true {
      self = .awaited
    } else if slice["pass"]?.bool() == true {
      self = .passed
    } else if slice.kind == .object, let member = slice["object"] {
      let isForgotten = if let forget = slice["forget"] { try Bool?(wire: forget) ?? false } else { false }
      self = try ObjectHandle?(wire: member).map { .object($0) } ?? (isForgotten ? .forgotten : .refused)
    } else {
      throw Misfit(Self.expected)
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    switch self {
    case .object(let object): writer.object { $0.member("object", object) }
    case .refused: writer.null()
    case .forgotten:
      writer.object {
        $0.key("object")
        $0.null()
        $0.member("forget", true)
      }
    case .awaited: writer.object { $0.member("awaited", true) }
    case .passed: writer.object { $0.member("pass", true) }
    }
  }
}
