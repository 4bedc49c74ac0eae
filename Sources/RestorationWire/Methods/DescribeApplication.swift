// SPDX-License-Identifier: Apache-2.0

/// Describes one application: its sessions and its objects, without their states.
package struct DescribeApplication: RestorationMethod {
  package static let method = "describeApplication"
  package static let summary = "Lists sessions and objects."
  package static let errors: [ErrorDescription] = [.unknownApplication, .archiveUnreadable, .invalidParams]

  package var cursor: String?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("cursor", &cursor, .name, "From the page before.")
  }

  package struct Reply: WireObject, Hashable {
    package var application = ApplicationName.blank
    package var archive: String?
    package var generation: Int64?
    package var sequence: Int64 = 0
    package var sessions: [SessionDescription] = []
    package var objects: [ObjectDescription] = []
    package var cursor: String?

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("application", &application, "Its name, with the instance where there is one.")
      try members.nullable("archive", &archive, .uuid, "UUID of the archive.")
      try members.nullable("generation", &generation, .generation, "The newest.")
      try members.required("sequence", &sequence, .count, "Number of the newest write.")
      try members.required("sessions", &sessions, "Its live sessions.")
      try members.required("objects", &objects, "In the order in which they were first registered.")
      try members.optional("cursor", &cursor, .name, "For the next page; absent after the last one.")
    }
  }
}
