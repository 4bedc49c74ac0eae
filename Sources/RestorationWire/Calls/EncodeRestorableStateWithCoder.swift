// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Asks a session for the states of some of its objects, in this order (R11, R12).
package struct EncodeRestorableStateWithCoder: RestorationCall {
  package static let method = ServedMethod.encodeRestorableStateWithCoder
  package static let summary = "The states of these objects, please."

  /// 0 if the objects were invalidated and no round is under way.
  package var round: Int64 = 0
  package var objects: [Object] = []

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("round", &round, .from(0), "Number of the round.")
    try members.required(
      "objects",
      &objects,
      "Handle and path of each object; the path is null where its own identifier is null."
    )
  }

  package struct Object: WireObject, Hashable {
    package var object: ObjectHandle = 0
    /// Nil for an object whose identifier is null, which a reference led to (R7).
    package var path: IdentifierPath?

    package init() {}

    package init(object: ObjectHandle, path: IdentifierPath?) {
      self.object = object
      self.path = path
    }

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("object", &object, .handle, "The handle.")
      try members.nullable("path", &path, "The path; null where the object's own identifier is null.")
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

/// What a session answered for one object it was asked to encode.
package struct EncodedObject: WireValue {
  package static let schema = Schema.shared(
    "EncodedObject",
    .either([
      .object([handle] + Encoded.members),
      .object([
        handle, .required("error", .present, "There is no state now; a string, or a `message` in an object, says why."),
      ]),
      .object([handle, .required("later", .true, "It does not fit into this answer; ask again.")]),
      .object([handle, .required("unchanged", .true, "What is saved of the object holds.")]),
    ])
  )

  private static let handle = Schema.Member.required("object", .handle, "The handle.")
  package static let expected = "an object with a handle"
  package static let plural = "objects"

  package enum Outcome: Sendable {
    case encoded(Encoded)
    /// It cannot be encoded; why, for people.
    case failed(String)
    /// To be asked for in a further batch.
    case later
    /// What is saved of it holds: its owner pushes its states, or nothing has changed.
    case unchanged
    /// The entry has none of these forms.
    case malformed
  }

  package var object: ObjectHandle
  package var outcome: Outcome

  package init(object: ObjectHandle, _ outcome: Outcome) {
    self.object = object
    self.outcome = outcome
  }

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

  /// A state that is there.
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
