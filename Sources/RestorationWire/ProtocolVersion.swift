// SPDX-License-Identifier: Apache-2.0

/// Versions of the protocol this code speaks; within one, only additions are made.
package enum ProtocolVersion {
  /// Of the programs and libraries of this repository.
  package static let program = "0.1.0"

  package static let first: Int64 = 1
  package static let current: Int64 = 1

  /// In ascending order; `data.supported` of `unsupportedProtocolVersion`.
  package static let supported: [Int64] = [1]
}

/// Name and version of the broker's program.
package struct BrokerVersion: WireObject, Hashable {
  package static let sharedName: String? = "BrokerVersion"

  package var name = ""
  package var version = ""

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("name", &name, "Of the broker's program.")
    try members.required("version", &version, "Of the broker's program.")
  }
}
