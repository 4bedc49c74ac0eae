// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Runs a save round: asks every process for the states of its objects and seals them as one generation (R11, R12).
package struct SaveApplicationState: RestorationMethod {
  package static let method = "saveApplicationState"
  package static let summary = "Runs a save round."
  package static let parameters: [Schema.Member] = [
    .optional("reason", .string, "For people."),
    .optional("deadlineMilliseconds", .integer(1...deadlineMax), "How long the round takes at most."),
    .optional(
      "progressToken",
      ProgressToken.schema,
      "Asks for `progress`: objects that need not be waited for any more, of those that were found."
    ),
  ]
  package static let errors: [ErrorDescription] = [
    .unknownApplication, .archiveUnreadable, .limitExceeded, .requestCancelled, .storeFailed,
  ]

  /// How long a round takes at most where the caller does not say.
  package static let deadlineDefault: Int64 = 5_000
  package static let deadlineMax: Int64 = 600_000

  /// For people.
  package var reason: String?
  /// Nil for the default.
  package var deadlineMilliseconds: Int64?
  package var progressToken: ProgressToken?

  package init(reason: String? = nil, deadlineMilliseconds: Int64? = nil, progressToken: ProgressToken? = nil) {
    self.reason = reason
    self.deadlineMilliseconds = deadlineMilliseconds
    self.progressToken = progressToken
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.reason = try reader.optionalString("reason")
    self.deadlineMilliseconds = try reader.optionalInteger("deadlineMilliseconds", in: 1...Self.deadlineMax)
    self.progressToken = try ProgressToken.read(from: reader)
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("reason", ifPresent: reason)
    writer.member("deadlineMilliseconds", ifPresent: deadlineMilliseconds)
    writer.member("progressToken", ifPresent: progressToken)
  }

  /// Why no generation was made; more words may come.
  package enum Obstacle: String, CaseIterable, Sendable {
    /// The delegate does not want it.
    case declined
    /// The caller has itself a call of this round to answer (R12).
    case reentrant
    /// Nothing was registered and nothing changed (R17).
    case unchanged
    /// A restoration was under way and did not end within the deadline.
    case restoring
    /// The head was emptied or replaced, or the archive loaded anew, while the round was under way.
    case interrupted
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required("saved", .boolean, "Whether a generation was made."),
      .optional("reason", .openWords(Obstacle.self), "Why none was made; only there."),
      .required("generation", .nullable(.generation), "The generation that was made; else the newest there is."),
      .required("objects", .count, "States that this generation holds, also those of objects that were not asked for."),
      .required("bytes", .count, "Bytes of these states and of the application's own."),
      .required(
        "stale",
        .list(StaleObject.schema),
        "Objects of which the round got no state: the generation holds what was stored of them last, if there is "
          + "anything."
      ),
      .required("excluded", .list(ExcludedObject.schema), "Live objects that the generation leaves out (R4, R5)."),
      .optional(
        "omitted",
        .count,
        "How many entries of `stale` and `excluded` there are besides: the answer ends at 1 MiB or half of the "
          + "client's `messageBytesMax`."
      ),
      .required("milliseconds", .count, "How long it took."),
    ])

    /// Whether a generation was made.
    package var saved: Bool
    /// A word of `Obstacle` where none was made.
    package var reason: String?
    /// The generation that was made, or the newest there is; nil where there is none.
    package var generation: Int64?
    /// States the whole generation holds, and their bytes.
    package var objects: Int
    package var bytes: Int
    /// Objects whose state is not of this round.
    package var stale: [StaleObject]
    /// Live objects the generation leaves out (R4, R5).
    package var excluded: [ExcludedObject]
    /// How many entries of `stale` and `excluded` there are besides; nil where all are listed.
    package var omitted: Int64?
    package var milliseconds: Int64

    package init(
      saved: Bool,
      reason: String? = nil,
      generation: Int64?,
      objects: Int,
      bytes: Int,
      stale: [StaleObject] = [],
      excluded: [ExcludedObject] = [],
      omitted: Int64? = nil,
      milliseconds: Int64
    ) {
      self.saved = saved
      self.reason = reason
      self.generation = generation
      self.objects = objects
      self.bytes = bytes
      self.stale = stale
      self.excluded = excluded
      self.omitted = omitted
      self.milliseconds = milliseconds
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.saved = try reader.value("saved") { $0.bool() }
        self.reason = try reader.optionalString("reason")
        self.generation = try reader.optionalInteger("generation")
        self.objects = try reader.count("objects")
        self.bytes = try reader.count("bytes")
        self.stale = try reader.list("stale") { StaleObject($0) }
        self.excluded = try reader.list("excluded") { ExcludedObject($0) }
        self.omitted = try reader.optionalInteger("omitted")
        self.milliseconds = try reader.integer("milliseconds")
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("saved", saved)
        writer.member("reason", ifPresent: reason)
        writer.member("generation", generation)
        writer.member("objects", objects)
        writer.member("bytes", bytes)
        writer.member("stale", stale)
        writer.member("excluded", excluded)
        writer.member("omitted", ifPresent: omitted)
        writer.member("milliseconds", milliseconds)
      }
    }
  }
}
