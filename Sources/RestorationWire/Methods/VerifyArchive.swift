// SPDX-License-Identifier: Apache-2.0

/// Checks everything that is stored of an application, and changes nothing (R32).
package struct VerifyArchive: RestorationMethod {
  package static let method = "verifyArchive"
  package static let summary = "Checks what is stored."
  package static let errors: [ErrorDescription] = [.unknownApplication, .archiveUnreadable, .requestCancelled]

  package var progressToken: ProgressToken?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("progressToken", &progressToken, "Asks for `progress`, which counts objects.")
  }

  package struct Reply: WireObject, Hashable {
    package var sound = false
    package var objects = 0
    package var states = 0
    package var bytes = 0
    package var problems: [ArchiveProblem] = []
    package var omitted: Int64?
    package var milliseconds: Int64 = 0

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("sound", &sound, "Nothing is wrong.")
      try members.required("objects", &objects, "Objects at the head.")
      try members.required("states", &states, "Stored states that were checked, those of generations included.")
      try members.required("bytes", &bytes, "Their bytes.")
      try members.required("problems", &problems, "What is wrong, at most 256.")
      try members.optional(
        "omitted",
        &omitted,
        .count,
        "How many problems there are besides; absent where all are listed."
      )
      try members.required("milliseconds", &milliseconds, .count, "How long it took.")
    }
  }
}
