// SPDX-License-Identifier: Apache-2.0

/// A failed request to the user's service manager.
package struct UserManagerError: Error, Hashable, CustomStringConvertible {
  package enum Kind: Hashable, Sendable {
    /// The manager cannot be reached, or its connection was lost.
    case unavailable
    /// The answer or the end of a job did not come in time.
    case timedOut
    case refused
    /// The manager carried out the request, but the unit failed to start.
    case failed
  }

  package let kind: Kind
  /// The event and the next step, for people.
  package let message: String

  package var description: String { message }

  init(_ kind: Kind, _ message: String) { (self.kind, self.message) = (kind, message) }
}
