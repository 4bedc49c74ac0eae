// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A process ended abnormally while it was still taking in what it had been handed (R31).
package struct RestorationCrashed: RestorationEvent {
  package static let name = EventName.restorationCrashed
  package static let summary = "A process ended abnormally while it was still taking in what it had been handed (R31)."
  package static let members: [Schema.Member] = [
    .required("objects", .count, "States that its process had been handed."),
    .required("suspects", .count, "How many of them it may have been."),
    .required("guilty", .nullable(.path), "Path of the object whose state it was; null where that is not known."),
    .required(
      "strikes",
      .count,
      "Crashes in a row that count against the guilty object, or against the application where there is none."
    ),
  ] + SessionIdentity.members

  package var session: SessionIdentity
  /// States it had been handed lately.
  package var objects: Int
  /// Those of them after which no sign of life came.
  package var suspects: Int
  /// The one object whose state is to blame; nil where it is not known, and where its own identifier is null.
  package var guilty: IdentifierPath?
  /// Crashes in a row that count against the guilty object, or against the application where there is none.
  package var strikes: Int

  package init(session: SessionIdentity, objects: Int, suspects: Int, guilty: IdentifierPath?, strikes: Int) {
    self.session = session
    self.objects = objects
    self.suspects = suspects
    self.guilty = guilty
    self.strikes = strikes
  }

  package init(_ reader: ResultReader) throws(WrongShape) {
    self.session = try SessionIdentity(reader)
    self.objects = try reader.count("objects")
    self.suspects = try reader.count("suspects")
    self.guilty = try reader.optionalPath("guilty")
    self.strikes = try reader.count("strikes")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    session.writeMembers(to: &writer)
    writer.member("objects", objects)
    writer.member("suspects", suspects)
    writer.member("guilty", guilty)
    writer.member("strikes", strikes)
  }
}

/// The state of an object is withheld from now on (R35).
package struct StateQuarantined: RestorationEvent {
  package static let name = EventName.stateQuarantined
  package static let summary = "The state of an object is withheld from now on (R35)."
  package static let members: [Schema.Member] = [
    .required("object", .nullable(.handle), "Handle."),
    .required("path", .nullable(.path), "The object's path; null where its own identifier is null (R4)."),
  ]

  /// Nil where nobody has it registered.
  package var object: ObjectHandle?
  /// Nil where its own identifier is null (R4).
  package var path: IdentifierPath?

  package init(object: ObjectHandle?, path: IdentifierPath?) {
    self.object = object
    self.path = path
  }

  package init(_ reader: ResultReader) throws(WrongShape) {
    self.object = try reader.optionalInteger("object")
    self.path = try reader.optionalPath("path")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("object", object)
    writer.member("path", path)
  }
}

/// All states there are are withheld from now on (R31).
package struct ArchiveQuarantined: RestorationEvent {
  package static let name = EventName.archiveQuarantined
  package static let summary = "All states there are are withheld from now on (R31)."
  package static let members: [Schema.Member] = [
    .required("objects", .count, "Objects that have a state."),
  ]

  package var objects: Int

  package init(objects: Int) {
    self.objects = objects
  }

  package init(_ reader: ResultReader) throws(WrongShape) {
    self.objects = try reader.count("objects")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("objects", objects)
  }
}

/// States are not withheld any more.
package struct QuarantineEnded: RestorationEvent {
  package static let name = EventName.quarantineEnded
  package static let summary = "States are not withheld any more (R35)."
  package static let members: [Schema.Member] = [
    .required("cause", .openWords(Cause.self), "Why."),
    .required("path", .nullable(.path), "The object's path; null where its own identifier is null (R4)."),
    .required("objects", .count, "Objects that have a state."),
  ]

  package enum Cause: String, CaseIterable, Sendable, JSONWritable {
    /// A newer state was stored.
    case encoded
    /// `releaseQuarantine`.
    case released
  }

  package var cause: Cause
  /// Nil where all were released, and where the object's own identifier is null.
  package var path: IdentifierPath?
  package var objects: Int

  package init(cause: Cause, path: IdentifierPath?, objects: Int) {
    self.cause = cause
    self.path = path
    self.objects = objects
  }

  package init(_ reader: ResultReader) throws(WrongShape) {
    self.cause = try reader.word("cause", as: Cause.self)
    self.path = try reader.optionalPath("path")
    self.objects = try reader.count("objects")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("cause", cause)
    writer.member("path", path)
    writer.member("objects", objects)
  }
}
