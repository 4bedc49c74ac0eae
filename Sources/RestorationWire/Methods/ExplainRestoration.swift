// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// Tells what became of an object when it was last to be saved and restored, step by step.
package struct ExplainRestoration: RestorationMethod {
  package static let method = "explainRestoration"
  package static let summary = "Tells why an object was saved and restored, or was not."
  package static let errors: [ErrorDescription] = [.unknownObject, .unknownApplication, .archiveUnreadable]

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

  package struct Reply: WireObject, Hashable {
    package var path: IdentifierPath?
    package var saved: [SavingStep] = []
    package var restored: [RestoringStep] = []
    package var verdict = ""

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.nullable("path", &path, "The object's path; null where it has none (R4).")
      var (saving, restoring) = (KnownSteps(steps: saved), KnownSteps(steps: restored))
      try members.required(
        "saved",
        &saving,
        "Steps of the last round, and of pushes since, in their order; empty where there was none."
      )
      try members.required("restored", &restoring, "Steps of the last restoration; empty where there was none.")
      try members.required("verdict", &verdict, .text(of: Verdict.self), "What it comes to.")
      (saved, restored) = (saving.steps, restoring.steps)
    }
  }

  /// Steps whose words are not known are left out.
  private struct KnownSteps<Step: WireValue>: WireValue {
    static var schema: Schema { [Step].schema }
    static var expected: String { [Step].expected }

    var steps: [Step]

    init(steps: [Step]) {
      self.steps = steps
    }

    init(wire slice: JSONSlice) throws(Misfit) {
      guard let slices = slice.elements else { throw Misfit(Self.expected) }
      steps = slices.compactMap { Step($0) }
    }

    func writeJSON(to writer: inout JSONWriter) {
      steps.writeJSON(to: &writer)
    }
  }
}
