// SPDX-License-Identifier: Apache-2.0

package import RestorationWire

extension BrokerCore {
  /// Limits that are checked only when something is added. The others were reported to clients, or set at their
  /// connections.
  package static let changeableLimits: Set<String> = [
    "subscriptionsMax", "connectionsPerApplicationMax", "sessionsPerApplicationMax", "objectsPerApplicationMax",
    "applicationSocketsMax", "archiveBytesMax", "openArchivesMax", "roundQuietMilliseconds",
    "roundIntervalMilliseconds", "sessionsPerProcessMax", "stopRoundMilliseconds",
  ]

  /// Applies these limits from now on, if they can change. What already exceeds one stays.
  package mutating func change(to limits: Limits) {
    for limit in Limit.all where Self.changeableLimits.contains(limit.name) {
      context.limits[keyPath: limit.keyPath] = limits[keyPath: limit.keyPath]
    }
  }

  /// Changes which applications are restored at login.
  package mutating func configure(_ policies: LoginPolicies) { context.settings.loginPolicies = policies }
}

/// Whether applications are restored when their user logs in.
package struct LoginPolicies: Sendable, Hashable {
  private var policies: [String: LoginPolicy]

  /// - Parameter policies: by the application's name, by its name without instance, or `*` for all others.
  package init(_ policies: [String: LoginPolicy] = [:]) { self.policies = policies }

  package func policy(for application: ApplicationName) -> LoginPolicy {
    policies[application.description] ?? policies[application.base] ?? policies["*"] ?? .ask
  }
}
