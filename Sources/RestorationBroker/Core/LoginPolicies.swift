// SPDX-License-Identifier: Apache-2.0

package import RestorationWire

/// Whether applications are brought back when their user logs in.
package struct LoginPolicies: Sendable, Hashable {
  private var policies: [String: LoginPolicy]

  /// - Parameter policies: by the application's name, by its name without instance, or `*` for all others.
  package init(_ policies: [String: LoginPolicy] = [:]) {
    self.policies = policies
  }

  package func policy(for application: ApplicationName) -> LoginPolicy {
    policies[application.description] ?? policies[application.base] ?? policies["*"] ?? .ask
  }
}
