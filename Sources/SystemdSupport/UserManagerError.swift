// SPDX-License-Identifier: Apache-2.0

/// The user's service manager did not do what it was asked to.
package struct UserManagerError: Error, Hashable, CustomStringConvertible {
  package enum Kind: Hashable, Sendable {
    /// There is no manager to be reached, or it went away.
    case unavailable
    /// It did not answer, or a job was not done, in time.
    case timedOut
    /// It refused what was asked of it.
    case refused
    /// It did what was asked of it, in vain: the unit's start has failed.
    case failed
  }

  package let kind: Kind
  /// What happened and what to do.
  package let message: String

  package var description: String { message }

  init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }
}
