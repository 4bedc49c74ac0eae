// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Asks a session for the states of some of its objects, in this order (R11, R12).
package struct EncodeRestorableStateWithCoder: RestorationCall {
  package static let method = ServedMethod.encodeRestorableStateWithCoder
  package static let summary = "The states of these objects, please."
  package static let parameters: [Schema.Member] = [
    .required("round", .count, "Number of the round."),
    .required(
      "objects",
      .list(Object.schema),
      "Handle and path of each object; the path is null where its own identifier is null."
    ),
  ]

  /// Number of the round; 0 where the objects were invalidated and no round is under way.
  package var round: Int64
  package var objects: [Object]

  package init(round: Int64, objects: [Object]) {
    self.round = round
    self.objects = objects
  }

  package init?(_ parameters: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(parameters)
      self.round = try reader.integer("round")
      self.objects = try reader.list("objects") { Object($0) }
    } catch {
      return nil
    }
  }

  package func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("round", round)
      writer.member("objects", objects)
    }
  }

  package struct Object: Hashable, Sendable, JSONWritable {
    package static let schema = Schema.object([
      .required("object", .handle, "The handle."),
      .required("path", .nullable(.path), "The path; null where the object's own identifier is null."),
    ])

    package var object: ObjectHandle
    /// Nil for an object whose identifier is null, which a reference led to (R7).
    package var path: IdentifierPath?

    package init(object: ObjectHandle, path: IdentifierPath?) {
      self.object = object
      self.path = path
    }

    init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.object = try reader.integer("object")
        self.path = try reader.optionalPath("path")
      } catch {
        return nil
      }
    }

    package func writeJSON(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("object", object)
        writer.member("path", path)
      }
    }
  }

  package struct Answer: RestorationResult {
    package static let schema = Schema.object([
      .required("states", .list(EncodedObject.schema), "One for each object, in any order.")
    ])

    package var states: [EncodedObject]

    package init(states: [EncodedObject]) {
      self.states = states
    }

    /// Nil unless there is an array of objects with a handle each.
    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        self.states = try ResultReader(slice).list("states") { EncodedObject($0) }
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { $0.member("states", states) }
    }
  }
}

/// What a session answered for one object it was asked to encode.
package struct EncodedObject: Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "EncodedObject",
    .either([
      .object([
        .required("object", .handle, "The handle."),
        .required("state", .state, "The state."),
        .optional("elements", .nullable(.elements), "As in `encodeRestorableState`."),
        .optional("revision", .nullable(.integer(1...)), "As in `encodeRestorableState`."),
      ]),
      .object([
        .required("object", .handle, "The handle."),
        .required("error", .present, "There is no state now; a string, or a `message` in an object, says why."),
      ]),
      .object([
        .required("object", .handle, "The handle."),
        .required("later", .true, "It does not fit into this answer; ask again."),
      ]),
      .object([
        .required("object", .handle, "The handle."),
        .required("unchanged", .true, "What is saved of the object holds."),
      ]),
    ])
  )

  package enum Outcome: Sendable {
    case state(EncodedState, elements: [Element], revision: Int64?)
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

  init?(_ slice: JSONSlice) {
    guard slice.kind == .object, let object = slice["object"]?.integer() else { return nil }
    self.object = object
    if let error = slice["error"], !error.isNull {
      self.outcome = .failed(error.string() ?? error["message"]?.string() ?? "")
    } else if slice["later"]?.bool() == true {
      self.outcome = .later
    } else if slice["unchanged"]?.bool() == true {
      self.outcome = .unchanged
    } else {
      self.outcome = Self.state(slice) ?? .malformed
    }
  }

  private static func state(_ slice: JSONSlice) -> Outcome? {
    guard let member = slice["state"], let state = EncodedState(member), member.duplicateName == nil else { return nil }
    var elements: [Element] = []
    if let member = slice["elements"], !member.isNull {
      guard let slices = member.elements else { return nil }
      for slice in slices {
        guard let element = Element(slice) else { return nil }
        elements.append(element)
      }
    }
    var revision: Int64?
    if let member = slice["revision"], !member.isNull {
      guard let number = member.integer(), number >= 1 else { return nil }
      revision = number
    }
    return .state(state, elements: elements, revision: revision)
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("object", object)
      switch outcome {
      case .state(let state, let elements, let revision):
        writer.member("state", state.text)
        if !elements.isEmpty { writer.member("elements", elements) }
        writer.member("revision", ifPresent: revision)
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
}
