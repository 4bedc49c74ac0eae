// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Whether there is saved state that can be given back (R20).
package enum RestorationState: String, WireWord {
  package static let schema = Schema.shared("RestorationState", .words(Self.self))

  case none
  case available
  /// It is there and cannot be read now.
  case unreadable
  /// It is there and withheld, because giving it out ended in crashes.
  case quarantined
}

/// Why an application, or one process role of it, finds itself as it is (R20).
package enum RestorationReason: String, WireWord {
  /// There was nothing, or it has been discarded.
  case pristine
  /// The last run left cleanly.
  case launch
  /// The last run crashed, or a damaged archive was replaced by its backup.
  case recover
  /// The broker started this process in order to restore it.
  case restore
}

/// What `initialize` says about the application's saved state.
package struct RestorationSituation: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "RestorationSituation",
    .object([
      .required(
        "state",
        RestorationState.schema,
        "`none`, `available`, `unreadable`: the archive exists and cannot be read now, nothing was touched."
      ),
      .required("reason", .words(RestorationReason.self), "`pristine`: there was nothing or it was discarded."),
      .required(
        "generation",
        .nullable(.generation),
        "The newest generation, from which the run started; null where none was sealed."
      ),
      .required("archive", .nullable(.uuid), "UUID of the archive."),
      .required(
        "coder",
        .nullable(ReservedKeys.schema),
        "Reserved keys of the newest write (R26); null where there is none."
      ),
      .optional(
        "damaged",
        .string,
        "Present until a run has ended, if the archive was found damaged: what was found and done, for people (R32)."
      ),
    ])
  )

  package var state: RestorationState
  package var reason: RestorationReason
  /// The generation that this run started from; nil where none has been sealed yet.
  package var generation: Int64?
  /// The archive's UUID, to compare cached numbers by; nil where the archive cannot be read.
  package var archive: String?
  /// Reserved keys of the newest write; nil where there is none.
  package var coder: JSONText?
  /// What was done about a damaged archive; nil where nothing was wrong (R32).
  package var damaged: String?

  package init(
    state: RestorationState,
    reason: RestorationReason,
    generation: Int64? = nil,
    archive: String? = nil,
    coder: JSONText? = nil,
    damaged: String? = nil
  ) {
    self.state = state
    self.reason = reason
    self.generation = generation
    self.archive = archive
    self.coder = coder
    self.damaged = damaged
  }

  /// Reads the member of a result; nil where it has another form.
  package init?(_ slice: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(slice)
      self.state = try reader.word("state", as: RestorationState.self)
      self.reason = try reader.word("reason", as: RestorationReason.self)
      self.generation = try reader.optionalInteger("generation")
      self.archive = try reader.optionalString("archive")
      self.coder = try reader.optionalText("coder")
      self.damaged = try reader.optionalString("damaged")
    } catch {
      return nil
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("state", state)
      writer.member("reason", reason)
      writer.member("generation", generation)
      writer.member("archive", archive)
      writer.member("coder", coder)
      writer.member("damaged", ifPresent: damaged)
    }
  }
}
