// SPDX-License-Identifier: Apache-2.0

/// Says that this session has restored what it wanted to (R19, R31).
package struct CompleteStateRestoration: RestorationMethod {
  package static let method = "completeStateRestoration"
  package static let summary = "Says that the session is restored."
  package static let errors: [ErrorDescription] = [.archiveUnreadable]
  package static let mayBeDiscarded = true

  package init() {}

  package struct Reply: WireObject, Hashable {
    package var pending: Int64 = 0

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("pending", &pending, .count, "Sessions of the application that are still restoring.")
    }
  }
}
