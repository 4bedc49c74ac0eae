// SPDX-License-Identifier: Apache-2.0

/// Describes one application: its sessions and its objects, without their states.
package struct DescribeApplication: RestorationMethod {
  package static let method = "describeApplication"
  package static let summary = "Lists sessions and objects."
  package static let errors: [ErrorDescription] = [.unknownApplication, .archiveUnreadable, .invalidParams]

  package typealias Reply = ApplicationDescription

  package var cursor: String?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("cursor", &cursor, .name, "From the page before.")
  }
}
