// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Brings everything back that the head holds and nobody has restored yet (R21 – R29, R34).
package struct RestoreApplicationState: RestorationMethod {
  package static let method = "restoreApplicationState"
  package static let summary = "Brings everything back that is saved."
  package static let parameters: [Schema.Member] = [
    .optional(
      "deadlineMilliseconds",
      .integer(1...deadlineMillisecondsMax),
      "When it ends at the latest, with what has been restored until then."
    ),
    .optional("progressToken", ProgressToken.schema, "Asks for `progress`, which counts objects."),
  ]
  package static let errors: [ErrorDescription] = [
    .unknownApplication, .archiveUnreadable, .limitExceeded, .requestCancelled, .storeFailed,
  ]

  package static let deadlineMillisecondsDefault: Int64 = 10_000
  package static let deadlineMillisecondsMax: Int64 = 3_600_000

  /// By when it ends, with what has been restored until then.
  package var deadlineMilliseconds: Int64
  package var progressToken: ProgressToken?

  package init(deadlineMilliseconds: Int64 = deadlineMillisecondsDefault, progressToken: ProgressToken? = nil) {
    self.deadlineMilliseconds = deadlineMilliseconds
    self.progressToken = progressToken
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    let range = 1...Self.deadlineMillisecondsMax
    self.deadlineMilliseconds =
      try reader.optionalInteger("deadlineMilliseconds", in: range) ?? Self.deadlineMillisecondsDefault
    self.progressToken = try ProgressToken.read(from: reader)
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("deadlineMilliseconds", deadlineMilliseconds)
    writer.member("progressToken", ifPresent: progressToken)
  }

  /// Why an object was not restored although it is known.
  package enum Reason: String, OpenWireWord {
    /// Its restoration class said that it is not to be restored.
    case refused
    /// An object above it was not made.
    case parentSkipped
    case classMismatch
    case quarantined
    case unreadable
    /// Its owner does not serve `decodeRestorableStateWithCoder`.
    case notServed
    /// The client answered with an error, or with something that is no answer.
    case failed
    /// The client had not answered at the deadline.
    case late
    /// The session that was to restore it ended.
    case ended
    /// The application's state was discarded meanwhile.
    case discarded
  }

  package struct SkippedObject: Hashable, Sendable, JSONWritable {
    package static let schema = Schema.shared(
      "SkippedObject",
      .object([
        .required("path", .path, "The object."),
        .required("reason", .openWords(Reason.self), "Why it was not restored."),
        .optional("message", .string, "Why, in the words of who was asked; for people. At most 256 bytes."),
      ])
    )

    package var path: IdentifierPath
    /// One of `Reason`; later brokers may have more.
    package var reason: String
    /// What who was asked has said of it, or what is wrong with the answer.
    package var message: String?

    package init(path: IdentifierPath, reason: Reason, message: String? = nil) {
      self.path = path
      self.reason = reason.rawValue
      self.message = message
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.path = try reader.path("path")
        self.reason = try reader.string("reason")
        self.message = try reader.optionalString("message")
      } catch {
        return nil
      }
    }

    package func writeJSON(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("path", path)
        writer.member("reason", reason)
        writer.member("message", ifPresent: message)
      }
    }
  }

  package struct FailedUnit: Hashable, Sendable, JSONWritable {
    package static let schema = Schema.shared(
      "FailedUnit",
      .object([
        .required("unit", .string, "The unit's name."),
        .required("message", .string, "Why it was not started, for people."),
      ])
    )

    package var unit: String
    package var message: String

    package init(unit: String, message: String) {
      self.unit = unit
      self.message = message
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.unit = try reader.string("unit")
        self.message = try reader.string("message")
      } catch {
        return nil
      }
    }

    package func writeJSON(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("unit", unit)
        writer.member("message", message)
      }
    }
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required("restored", .list(.path), "Objects that are there and have their state, or have none to be given."),
      .required(
        "skipped",
        .list(SkippedObject.schema),
        "Objects that somebody or a rule refused."
      ),
      .required("absent", .list(.path), "Objects that nobody has registered."),
      .optional("declined", .true, "True where the delegate said no, and nothing was done; else absent."),
      .optional(
        "omitted",
        .count,
        "How many objects there are besides, where the lists would take more than 1 MiB or half of "
          + "`messageBytesMax`; else absent."
      ),
      .optional(
        "failedUnits",
        .list(FailedUnit.schema),
        "Units that were to bring missing processes and were not started, at most 64; absent where there are none."
      ),
      .required("milliseconds", .count, "How long it took."),
    ])

    package var restored: [IdentifierPath]
    package var skipped: [SkippedObject]
    /// What nobody had registered at the deadline.
    package var absent: [IdentifierPath]
    /// The delegate said no, and nothing was done.
    package var declined: Bool
    /// How many paths there are besides; nil where all are listed.
    package var omitted: Int64?
    /// Units that were to bring missing processes and were not started.
    package var failedUnits: [FailedUnit]
    package var milliseconds: Int64

    package init(
      restored: [IdentifierPath] = [],
      skipped: [SkippedObject] = [],
      absent: [IdentifierPath] = [],
      declined: Bool = false,
      omitted: Int64? = nil,
      failedUnits: [FailedUnit] = [],
      milliseconds: Int64
    ) {
      self.restored = restored
      self.skipped = skipped
      self.absent = absent
      self.declined = declined
      self.omitted = omitted
      self.failedUnits = failedUnits
      self.milliseconds = milliseconds
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.restored = try reader.list("restored") { IdentifierPath($0) }
        self.skipped = try reader.list("skipped") { SkippedObject($0) }
        self.absent = try reader.list("absent") { IdentifierPath($0) }
        self.declined = try reader.bool("declined")
        self.omitted = try reader.optionalInteger("omitted")
        let hasFailures = slice["failedUnits"] != nil
        self.failedUnits = try hasFailures ? reader.list("failedUnits") { FailedUnit($0) } : []
        self.milliseconds = try reader.integer("milliseconds")
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("restored", restored)
        writer.member("skipped", skipped)
        writer.member("absent", absent)
        writer.member("declined", ifTrue: declined)
        writer.member("omitted", ifPresent: omitted)
        if !failedUnits.isEmpty { writer.member("failedUnits", failedUnits) }
        writer.member("milliseconds", milliseconds)
      }
    }
  }
}
