// SPDX-License-Identifier: Apache-2.0

/// What is saved was replaced as a whole by this generation; objects may be restored anew.
package struct HeadReplaced: GenerationNotification, Hashable {
  package static let method = ServedMethod.headReplaced
  package static let summary = "What is saved was replaced as a whole."
  package static let parameters: [Schema.Member] = [
    .required("generation", .generation, "Number of the generation that the head equals now."),
  ]

  package var generation: Int64

  package init(generation: Int64) {
    self.generation = generation
  }
}
