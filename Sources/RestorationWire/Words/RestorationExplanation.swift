// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// Why an object was saved and restored, or was not.
public struct RestorationExplanation: WireObject, Hashable {
  public package(set) var path: IdentifierPath?
  public package(set) var saved: [SavingStep] = []
  public package(set) var restored: [RestoringStep] = []
  public package(set) var verdict = ""

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
    try members.required("verdict", &verdict, .text(of: ExplainRestoration.Verdict.self), "What it comes to.")
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
