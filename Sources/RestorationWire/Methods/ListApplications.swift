// SPDX-License-Identifier: Apache-2.0

/// Lists the applications that have live sessions or an archive.
package struct ListApplications: RestorationMethod {
  package static let method = "listApplications"
  package static let summary = "Lists applications."
  package static let isScoped = false

  package init() {}

  package struct Reply: WireObject, Hashable {
    package var applications: [ApplicationOverview] = []

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("applications", &applications, "In ascending order of name.")
    }
  }
}
