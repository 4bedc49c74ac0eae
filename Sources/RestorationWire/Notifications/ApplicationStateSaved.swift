// SPDX-License-Identifier: Apache-2.0

/// A save round was committed as this generation (R11).
package struct ApplicationStateSaved: GenerationNotification, Hashable {
  package static let method = ServedMethod.applicationStateSaved
  package static let summary = "A save round was committed (R11)."
  package static let parameters: [Schema.Member] = [
    .required("generation", .generation, "The generation it made."),
  ]

  package var generation: Int64

  package init(generation: Int64) {
    self.generation = generation
  }
}
