// SPDX-License-Identifier: Apache-2.0

/// How far the threads of a store have come: from two of these follows whether one of them hangs.
package struct StoreProgress: Sendable {
  package struct Thread: Sendable {
    /// Jobs that it has ended, and steps that a long one has made.
    package var steps: UInt64
    package var isAtWork: Bool

    package init(steps: UInt64, isAtWork: Bool) { (self.steps, self.isAtWork) = (steps, isAtWork) }
  }

  /// In the order in which they started.
  package var threads: [Thread]

  package init(threads: [Thread] = []) { self.threads = threads }
}
