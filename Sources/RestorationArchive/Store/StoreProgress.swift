// SPDX-License-Identifier: Apache-2.0

/// The progress of a store's threads; two of these tell whether one hangs.
package struct StoreProgress: Sendable {
  package struct Thread: Sendable {
    /// Ended jobs, and steps of long ones.
    package var steps: UInt64
    package var isAtWork: Bool

    package init(steps: UInt64, isAtWork: Bool) { (self.steps, self.isAtWork) = (steps, isAtWork) }
  }

  /// In the order in which they started.
  package var threads: [Thread]

  package init(threads: [Thread] = []) { self.threads = threads }
}
