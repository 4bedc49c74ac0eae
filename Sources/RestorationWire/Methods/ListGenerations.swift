// SPDX-License-Identifier: Apache-2.0

/// Lists the generations that are kept (R16).
package struct ListGenerations: RestorationMethod {
  package static let method = "listGenerations"
  package static let summary = "Lists generations."
  package static let errors: [ErrorDescription] = [.unknownApplication, .archiveUnreadable]

  package init() {}

  package struct Reply: WireObject, Hashable {
    package var generations: [GenerationDescription] = []

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("generations", &generations, "In ascending order of number.")
    }
  }
}
