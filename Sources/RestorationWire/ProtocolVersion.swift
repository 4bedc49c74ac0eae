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
