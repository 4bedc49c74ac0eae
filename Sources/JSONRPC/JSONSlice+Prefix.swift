// SPDX-License-Identifier: Apache-2.0

extension JSONSlice {
  /// The decoded name of the first member that begins with one of the prefixes; nil where none does, or for another
  /// kind than an object.
  package func firstMemberName(withAnyPrefix prefixes: [String]) -> String? {
    members?.first { member in prefixes.contains { member.name.hasPrefix($0) } }?.name
  }
}
