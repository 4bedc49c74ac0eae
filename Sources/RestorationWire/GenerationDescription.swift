// SPDX-License-Identifier: Apache-2.0

/// One generation in `listGenerations` (R16).
package struct GenerationDescription: WireObject, Hashable {
  package static let sharedName: String? = "GenerationDescription"

  package var generation: Int64 = 0
  /// Later versions add words.
  package var kind = ""
  package var committed = Timestamp(milliseconds: 0)
  package var objects = 0
  package var bytes = 0
  package var pinned = false

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("generation", &generation, .generation, "1, 2, 3 …; a number is never used twice.")
    try members.required("kind", &kind, "`startup`: what the run before left.")
    try members.required("committed", &committed, "RFC 3339, UTC, milliseconds.")
    try members.required("objects", &objects, "Objects that have a state in it, and bytes of their states.")
    try members.required("bytes", &bytes, "Objects that have a state in it, and bytes of their states.")
    try members.required("pinned", &pinned, "This run started from it, and it is held (R16).")
  }
}
