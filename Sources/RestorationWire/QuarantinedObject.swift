// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// One object in `listQuarantine`: what is held against it, and the texts that are kept for it (R31, R35).
package struct QuarantinedObject: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "QuarantinedObject",
    .object([
      .required("object", .nullable(.handle), "Its handle now; null where nobody claims it."),
      .required("path", .nullable(.path), "Null where its own identifier is null."),
      .required("standing", .words(Standing.self), "`quarantined`: its state is withheld from its owner."),
      .required("strikes", .count, "Crashes in a row that its state was found guilty of."),
      .required("confidential", .boolean, "Whether it is confidential."),
      .required("redacted", .boolean, "Whether that is why texts are left out."),
      .required("states", .list(QuarantinedState.schema), "What is or was withheld, oldest first, at most three."),
    ])
  )

  package enum Standing: String, CaseIterable, Sendable, JSONWritable {
    /// Its state is withheld from its owner.
    case quarantined
    /// A crash may be due to its state: it is handed out by itself.
    case suspect
    /// A newer state has taken the place of the withheld one, which is kept.
    case lifted
  }

  /// Nil where nobody claims the object now.
  package var object: ObjectHandle?
  /// Nil where its own identifier is null (R4).
  package var path: IdentifierPath?
  package var standing: Standing
  /// Crashes in a row that its state was found guilty of.
  package var strikes: Int
  package var confidential: Bool
  /// Whether texts are left out because the object is confidential and `reveal` was not said.
  package var redacted: Bool
  /// Oldest first.
  package var states: [QuarantinedState]

  package init(
    object: ObjectHandle?,
    path: IdentifierPath?,
    standing: Standing,
    strikes: Int,
    confidential: Bool,
    redacted: Bool,
    states: [QuarantinedState]
  ) {
    self.object = object
    self.path = path
    self.standing = standing
    self.strikes = strikes
    self.confidential = confidential
    self.redacted = redacted
    self.states = states
  }

  /// Reads an item of a result; nil where it has another form.
  package init?(_ slice: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(slice)
      self.object = try reader.optionalInteger("object")
      self.path = try reader.optionalPath("path")
      self.standing = try reader.word("standing", as: Standing.self)
      self.strikes = try reader.count("strikes")
      self.confidential = try reader.bool("confidential")
      self.redacted = try reader.bool("redacted")
      self.states = try reader.list("states") { QuarantinedState($0) }
    } catch {
      return nil
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("object", object)
      writer.member("path", path)
      writer.member("standing", standing)
      writer.member("strikes", strikes)
      writer.member("confidential", confidential)
      writer.member("redacted", redacted)
      writer.member("states", states)
    }
  }
}

/// One state that is or was withheld.
package struct QuarantinedState: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "QuarantinedState",
    .object([
      .required("sequence", .integer(1...), "Number of the write."),
      .required("quarantined", .timestamp, "When it was put into quarantine, RFC 3339, UTC, milliseconds."),
      .required("state", .nullable(.state), "The state as it was encoded; null where it is redacted or unreadable."),
      .optional("elements", .elements, "Absent where there are none or they are redacted."),
      .required("coder", .nullable(ReservedKeys.schema), "Reserved keys of the session that wrote it."),
      .optional("unreadable", .true, "Present and true where it is damaged (R32)."),
    ])
  )

  /// Number of the write.
  package var sequence: Int64
  /// When it was put into quarantine.
  package var quarantined: Timestamp
  /// The text; nil where it is redacted, and where it cannot be read (R32).
  package var state: JSONText?
  package var elements: JSONText?
  /// Reserved keys of the session that wrote the state; nil where they are not known.
  package var coder: JSONText?
  package var unreadable: Bool

  package init(
    sequence: Int64,
    quarantined: Timestamp,
    state: JSONText? = nil,
    elements: JSONText? = nil,
    coder: JSONText? = nil,
    unreadable: Bool = false
  ) {
    self.sequence = sequence
    self.quarantined = quarantined
    self.state = state
    self.elements = elements
    self.coder = coder
    self.unreadable = unreadable
  }

  /// Reads an item of a result; nil where it has another form.
  package init?(_ slice: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(slice)
      self.sequence = try reader.integer("sequence")
      self.quarantined = try reader.value("quarantined") { $0.string().flatMap { Timestamp($0) } }
      self.state = try reader.optionalText("state")
      self.elements = try reader.optionalText("elements")
      self.coder = try reader.optionalText("coder")
      self.unreadable = try reader.bool("unreadable")
    } catch {
      return nil
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("sequence", sequence)
      writer.member("quarantined", quarantined)
      writer.member("state", state)
      writer.member("elements", ifPresent: elements)
      writer.member("coder", coder)
      writer.member("unreadable", ifTrue: unreadable)
    }
  }
}
