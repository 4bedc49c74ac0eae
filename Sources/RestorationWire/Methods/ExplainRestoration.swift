// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// Tells what became of an object when it was last to be saved and restored, step by step.
package struct ExplainRestoration: RestorationMethod {
  package static let method = "explainRestoration"
  package static let summary = "Tells why an object was saved and restored, or was not."
  package static let errors: [ErrorDescription] = [.unknownObject, .unknownApplication, .archiveUnreadable]

  package typealias Reply = RestorationExplanation

  package var object = ObjectReference.blank
  package var reveal = false

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, "The object.")
    try members.flag(
      "reveal",
      &reveal,
      "Tell also what may quote the state of a confidential object: names of elements, and messages of clients."
    )
  }

  /// What it comes to. What went wrong comes before what went well, restoring before saving.
  package enum Verdict: String, OpenWireWord {
    /// Its state is withheld, because it has crashed its owner (R31, R35).
    case quarantined
    /// Its state is damaged (R32).
    case unreadable
    /// A restoration is under way and has not decided yet.
    case waiting
    /// Nobody had registered it by the end of the last restoration (R23).
    case absent
    /// The last restoration left it out.
    case skipped
    /// No walk reaches it and nothing saved refers to it: generations leave it out (R4, R5, R7).
    case excluded
    /// There is no state of it.
    case neverSaved
    /// The last round kept an older state of it (R12).
    case stale
    /// It has been restored in this run.
    case restored
    /// Its state is saved.
    case saved
  }
}
