// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A generation was sealed (R16).
package struct GenerationSealed: RestorationEvent {
  package static let name = EventName.generationSealed
  package static let summary = "A generation was sealed (R16)."
  package static let members: [Schema.Member] = [
    .required(
      "generation",
      .generation,
      "Number of the generation; in `archiveOpened` of the newest, null where there is none."
    ),
    .required("kind", .string, "As in `listGenerations`."),
    .required("objects", .count, "Objects that have a state."),
    .required("bytes", .count, "Of all states concerned."),
  ]

  package var generation: Int64
  /// As `listGenerations` has it.
  package var kind: String
  package var objects: Int
  package var bytes: Int

  package init(generation: Int64, kind: String, objects: Int, bytes: Int) {
    self.generation = generation
    self.kind = kind
    self.objects = objects
    self.bytes = bytes
  }

  package init(_ reader: ResultReader) throws(WrongShape) {
    self.generation = try reader.integer("generation")
    self.kind = try reader.string("kind")
    self.objects = try reader.count("objects")
    self.bytes = try reader.count("bytes")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("generation", generation)
    writer.member("kind", kind)
    writer.member("objects", objects)
    writer.member("bytes", bytes)
  }
}

/// An archive was opened, made, or opened again after a write that failed.
package struct ArchiveOpened: RestorationEvent {
  package static let name = EventName.archiveOpened
  package static let summary = "An archive was opened or made; also when it was loaded again after a write that failed."
  package static let members: [Schema.Member] = [
    .required("archive", .uuid, "UUID of the archive."),
    .required("generation", .nullable(.generation), "The newest."),
    .required("objects", .count, "Nodes of the tree."),
    .required("bytes", .count, "Of the states at the head."),
  ]

  /// Its UUID.
  package var archive: String
  /// The newest; nil where none has been sealed.
  package var generation: Int64?
  package var objects: Int
  /// Of the states at the head.
  package var bytes: Int

  package init(archive: String, generation: Int64?, objects: Int, bytes: Int) {
    self.archive = archive
    self.generation = generation
    self.objects = objects
    self.bytes = bytes
  }

  package init(_ reader: ResultReader) throws(WrongShape) {
    self.archive = try reader.string("archive")
    self.generation = try reader.optionalInteger("generation")
    self.objects = try reader.count("objects")
    self.bytes = try reader.count("bytes")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("archive", archive)
    writer.member("generation", generation)
    writer.member("objects", objects)
    writer.member("bytes", bytes)
  }
}

/// An archive nobody needs now was closed.
package struct ArchiveClosed: RestorationEvent {
  package static let name = EventName.archiveClosed
  package static let summary = "An archive that nobody needs now was closed."

  package init() {}

  package init(_ reader: ResultReader) throws(WrongShape) {}

  package func writeMembers(to writer: inout JSONWriter) {}
}

/// An archive was found damaged when it was opened (R32).
package struct ArchiveDamaged: RestorationEvent {
  package static let name = EventName.archiveDamaged
  package static let summary = "An archive was found damaged when it was opened: what was found and done (R32)."
  package static let members: [Schema.Member] = [
    .required("message", .string, "For people: what is wrong and what was done."),
  ]

  /// For people: what was wrong and what was done.
  package var message: String

  package init(message: String) {
    self.message = message
  }

  package init(_ reader: ResultReader) throws(WrongShape) {
    self.message = try reader.string("message")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("message", message)
  }
}

/// An archive is there and could not be opened; it was not touched (R20).
package struct ArchiveUnreadable: RestorationEvent {
  package static let name = EventName.archiveUnreadable
  package static let summary = "An archive is there and could not be opened; it was not touched (R20)."
  package static let members: [Schema.Member] = [
    .required("message", .string, "For people: what is wrong and what was done."),
  ]

  /// For people: why.
  package var message: String

  package init(message: String) {
    self.message = message
  }

  package init(_ reader: ResultReader) throws(WrongShape) {
    self.message = try reader.string("message")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("message", message)
  }
}

/// The head was replaced by an imported document.
package struct ArchiveImported: RestorationEvent {
  package static let name = EventName.archiveImported
  package static let summary = "A document took the place of the head."
  package static let members: [Schema.Member] = [
    .required("objects", .count, "Objects that have a state."),
    .required("bytes", .count, "Of all states concerned."),
  ]

  /// What the document held.
  package var objects: Int
  package var bytes: Int

  package init(objects: Int, bytes: Int) {
    self.objects = objects
    self.bytes = bytes
  }

  package init(_ reader: ResultReader) throws(WrongShape) {
    self.objects = try reader.count("objects")
    self.bytes = try reader.count("bytes")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("objects", objects)
    writer.member("bytes", bytes)
  }
}

/// The head was emptied (R30).
package struct ApplicationDiscarded: RestorationEvent {
  package static let name = EventName.applicationDiscarded
  package static let summary = "The head was emptied."
  package static let members: [Schema.Member] = [
    .required("cause", .openWords(Cause.self), "Why."),
    .required(
      "reason",
      .nullable(.string),
      "As the caller gave it, at most 200 Unicode characters; null where it gave none."
    ),
    .required("generations", .boolean, "Whether the generations went as well."),
  ]

  /// Who wanted it.
  package enum Cause: String, CaseIterable, Sendable, JSONWritable {
    /// `discardApplicationState`.
    case discarded
    /// A goodbye of this reason: registrations of the sessions still live have ended, too.
    case userQuit
  }

  package var cause: Cause
  /// As the caller gave it, for people.
  package var reason: String?
  /// Whether the generations went as well.
  package var generations: Bool

  package init(cause: Cause, reason: String?, generations: Bool) {
    self.cause = cause
    self.reason = reason
    self.generations = generations
  }

  package init(_ reader: ResultReader) throws(WrongShape) {
    self.cause = try reader.word("cause", as: Cause.self)
    self.reason = try reader.optionalString("reason")
    self.generations = try reader.bool("generations")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("cause", cause)
    writer.member("reason", reason)
    writer.member("generations", generations)
  }
}
