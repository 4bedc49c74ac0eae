// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Whether there is saved state that can be given back (R20).
public enum RestorationState: String, WireWord {
  package static let schema = Schema.shared("RestorationState", .words(Self.self))

  case none
  case available
  /// It exists but cannot be read now.
  case unreadable
  /// It exists but is withheld, because restoring it crashed processes.
  case quarantined
}

/// Whether there is a state, and if not why not.
public enum DecodingStatus: String, WireWord {
  case available
  case none
  /// There is one, of a class that the object is not (R25).
  case classMismatch
  /// It is withheld, because giving it out ended in crashes (R35).
  case quarantined
  /// It is damaged (R32).
  case unreadable
}

/// Why an application, or one process role of it, starts in its situation (R20).
public enum RestorationReason: String, WireWord {
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
public struct RestorationSituation: WireObject, Hashable {
  package static let sharedName: String? = "RestorationSituation"

  public package(set) var state = RestorationState.none
  public package(set) var reason = RestorationReason.pristine
  public package(set) var generation: Int64?
  /// To compare cached numbers by; `nil` if the archive cannot be read.
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
