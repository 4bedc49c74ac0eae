// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The state of an object was stored.
package struct StateEncoded: RestorationEvent {
  package static let name = EventName.stateEncoded
  package static let summary = "A state was stored."
  package static let members: [Schema.Member] = [
    .required("object", .nullable(.handle), "Handle."),
    .required("path", .nullable(.path), "The object's path; null where its own identifier is null (R4)."),
    .required("bytes", .count, "Of this state, as `describeApplication` counts it."),
    .required("sequence", .integer(1...), "Number of the write."),
  ] + SessionIdentity.members

  /// Nil where nobody has it registered.
  package var object: ObjectHandle?
  /// Nil where its own identifier is null (R4).
  package var path: IdentifierPath?
  /// As `describeApplication` counts them.
  package var bytes: Int
  /// Number of the write.
  package var sequence: Int64
  /// Of the writer; nothing for a call without a session.
  package var session: SessionIdentity

  package init(
    object: ObjectHandle?,
    path: IdentifierPath?,
    bytes: Int,
    sequence: Int64,
    session: SessionIdentity
  ) {
    self.object = object
    self.path = path
    self.bytes = bytes
    self.sequence = sequence
    self.session = session
  }

  package init(_ reader: ResultReader) throws(WrongShape) {
    self.object = try reader.optionalInteger("object")
    self.path = try reader.optionalPath("path")
    self.bytes = try reader.count("bytes")
    self.sequence = try reader.integer("sequence")
    self.session = try SessionIdentity(reader)
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("object", object)
    writer.member("path", path)
    writer.member("bytes", bytes)
    writer.member("sequence", sequence)
    session.writeMembers(to: &writer)
  }
}

/// An encode that was sent as a notification stored nothing; there was no answer that could have said so.
package struct EncodeFailed: RestorationEvent {
  package static let name = EventName.encodeFailed
  package static let summary =
    "An encode that was sent as a notification stored nothing, so that no answer could say so."
  package static let members: [Schema.Member] = [
    .required("object", .nullable(.handle), "Handle."),
    .required("path", .nullable(.path), "The object's path; null where its own identifier is null (R4)."),
    .required("error", Failure.schema, "As in the answer that there was not, without a message."),
  ] + SessionIdentity.members

  /// Why, in the terms of `Protocol/errors.md`. The message is left out: it may repeat keys of the state.
  package struct Failure: Sendable, Hashable, JSONWritable {
    package static let schema = Schema.object([
      .required("code", .integer, "As in an answer."),
      .required("kind", .string, "The word for it."),
      .optional("limit", .string, "Of `limitExceeded`: the limit."),
      .optional("max", .integer, "What passes."),
      .optional("value", .integer, "What was sent."),
    ])

    package var code: Int
    package var kind: String
    /// Of `limitExceeded`: the limit, what passes, and what was sent.
    package var limit: String?
    package var max: Int64?
    package var value: Int64?

    package init(code: Int, kind: String, limit: String? = nil, max: Int64? = nil, value: Int64? = nil) {
      self.code = code
      self.kind = kind
      self.limit = limit
      self.max = max
      self.value = value
    }

    package init(_ error: ErrorObject) {
      self.init(
        code: error.code,
        kind: error.data?["kind"]?.string ?? "",
        limit: error.data?["limit"]?.string,
        max: error.data?["max"]?.integer,
        value: error.data?["value"]?.integer
      )
    }

    init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.code = try reader.count("code")
        self.kind = try reader.string("kind")
        self.limit = try reader.optionalString("limit")
        self.max = try reader.optionalInteger("max")
        self.value = try reader.optionalInteger("value")
      } catch {
        return nil
      }
    }

    package func writeJSON(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("code", code)
        writer.member("kind", kind)
        writer.member("limit", ifPresent: limit)
        writer.member("max", ifPresent: max)
        writer.member("value", ifPresent: value)
      }
    }
  }

  /// Nil where it is not known, and where nobody has it registered.
  package var object: ObjectHandle?
  /// Nil where it is not known.
  package var path: IdentifierPath?
  /// Of the writer; nothing for a notification without a session.
  package var session: SessionIdentity
  package var error: Failure

  package init(object: ObjectHandle?, path: IdentifierPath?, session: SessionIdentity, error: Failure) {
    self.object = object
    self.path = path
    self.session = session
    self.error = error
  }

  package init(_ reader: ResultReader) throws(WrongShape) {
    self.object = try reader.optionalInteger("object")
    self.path = try reader.optionalPath("path")
    self.session = try SessionIdentity(reader)
    self.error = try reader.value("error") { Failure($0) }
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("object", object)
    writer.member("path", path)
    session.writeMembers(to: &writer)
    writer.member("error", error)
  }
}
