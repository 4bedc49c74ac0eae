// SPDX-License-Identifier: Apache-2.0

/// What is saved was replaced as a whole by this generation; objects may be restored anew.
public struct HeadReplaced: RestorationNotification {
  package static let method = ServedMethod.headReplaced
  package static let summary = "What is saved was replaced as a whole."

  public package(set) var generation: Int64 = 0

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("generation", &generation, .generation, "Number of the generation that the head equals now.")
  }
}
