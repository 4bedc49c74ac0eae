// SPDX-License-Identifier: Apache-2.0

/// What registering an object says about its saved state.
package struct ObjectRestoration: WireObject, Hashable {
  package static let sharedName: String? = "ObjectRestoration"

  package var state = RestorationState.none
  package var classMatches = true

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("state", &state, "Whether there is a state to decode.")
    try members.required("classMatches", &classMatches, "False where a decode would answer `classMismatch` (R25).")
  }
}
