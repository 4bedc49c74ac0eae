// SPDX-License-Identifier: Apache-2.0

/// Tells what differs between two generations, or a generation and the head, path by path.
package struct DiffGenerations: RestorationMethod {
  package static let method = "diffGenerations"
  package static let summary = "Tells what differs between two generations."
  package static let errors: [ErrorDescription] = [
    .invalidParams, .unknownApplication, .archiveUnreadable, .requestCancelled,
  ]

  package typealias Reply = GenerationDifference

  package var from: Int64 = 0
  /// Nil compares with the head.
  package var to: Int64?
  package var reveal = false
  package var cursor: String?
  package var progressToken: ProgressToken?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("from", &from, .generation, "The generation to start from.")
    try members.optional("to", &to, .generation, "The generation to come to.")
    try members.flag("reveal", &reveal, "Name the keys of confidential objects.")
    try members.optional("cursor", &cursor, .name, "From the page before.")
    try members.optional("progressToken", &progressToken, "Asks for `progress`, which counts objects.")
  }
}
