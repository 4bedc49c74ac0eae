// SPDX-License-Identifier: Apache-2.0

/// A save round was committed as this generation (R11).
public struct ApplicationStateSaved: RestorationNotification {
  package static let method = ServedMethod.applicationStateSaved
  package static let summary = "A save round was committed (R11)."

  public package(set) var generation: Int64 = 0

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("generation", &generation, .generation, "The generation it made.")
  }
}
