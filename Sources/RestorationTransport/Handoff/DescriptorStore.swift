// SPDX-License-Identifier: Apache-2.0

/// Keeps descriptors under names beyond the end of this process, for the one that comes after it.
///
/// Neither call waits. What is stored is a duplicate, so the caller's descriptor stays the caller's.
package protocol DescriptorStore: Sendable {
  func store(_ descriptor: Int32, as name: String)
  /// Lets go of what is stored under that name, if anything is.
  func remove(_ name: String)
}
