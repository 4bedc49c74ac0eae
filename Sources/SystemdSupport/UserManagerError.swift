// SPDX-License-Identifier: Apache-2.0

/// A request to the user's service manager failed.
package struct UserManagerError: Error, Hashable, CustomStringConvertible {
  package enum Kind: Hashable, Sendable {
    /// The manager cannot be reached, or went away.
    case unavailable
    /// It did not answer, or a job was not done, in time.
    case timedOut
    /// The manager refused the request.
    case refused
    /// The manager carried out the request, but the unit failed to start.
    case failed
  }

  package let kind: Kind
  /// What happened and what to do.
  package let message: String

  package var description: String { message }

  init(_ kind: Kind, _ message: String) { (self.kind, self.message) = (kind, message) }
}
