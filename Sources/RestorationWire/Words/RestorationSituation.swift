// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Whether a saved state is available (R20).
public enum RestorationState: String, WireWord {
  package static let schema = Schema.shared("RestorationState", .words(Self.self))

  case none
  case available
  /// A state exists but cannot be read now.
  case unreadable
  /// A state exists but is withheld, because restoring it crashed processes.
  case quarantined
}

/// Whether an object has a state, and if not, why.
public enum DecodingStatus: String, WireWord {
  case available
  case none
  /// The state's class is not one of the object's classes (R25).
  case classMismatch
  /// The state is withheld, because restoring it ended in crashes (R35).
  case quarantined
  /// The state is damaged (R32).
  case unreadable
}

/// Why an application, or one of its process roles, starts in this situation (R20).
public enum RestorationReason: String, WireWord {
  /// No state was saved, or it was discarded.
  case pristine
  /// The last run ended in order.
  case launch
  /// The last run crashed, or a damaged archive was replaced by its backup.
  case recover
  /// The broker started this process to restore it.
  case restore
}

/// The application's saved state, as `initialize` reports it.
public struct RestorationSituation: WireObject, Hashable {
  package static let sharedName: String? = "RestorationSituation"

  public package(set) var state = RestorationState.none
  public package(set) var reason = RestorationReason.pristine
  public package(set) var generation: Int64?
  /// Identifies the archive to which cached numbers belong; `nil` if the archive cannot be read.
  public package(set) var archive: String?
  package var coder: JSONText?
  public package(set) var damaged: String?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required(
      "state",
      &state,
      "`none`, `available`, `unreadable`: the archive exists but cannot be read now, and was left untouched."
    )
    try members.required("reason", &reason, "`pristine`: there was no state or it was discarded.")
    try members.nullable(
      "generation",
      &generation,
      .generation,
      "The newest generation, from which the run started; null if none was sealed."
    )
    try members.nullable("archive", &archive, .uuid, "UUID of the archive.")
    try members.nullable("coder", &coder, .coder, "Reserved keys of the newest write (R10); null if there is none.")
    try members.optional(
      "damaged",
      &damaged,
      .hostText,
      "Present until a run has ended, if the archive was found damaged: what was found and done, for people (R32)."
    )
  }
}
