// SPDX-License-Identifier: Apache-2.0

package import RestorationWire

extension BrokerCore {
  /// Limits that are looked at only when something is added. The others have been told to clients, or were given to
  /// their connections.
  package static let changeableLimits: Set<String> = [
    "subscriptionsMax", "connectionsPerApplicationMax", "sessionsPerApplicationMax", "objectsPerApplicationMax",
    "archiveBytesMax", "openArchivesMax", "roundQuietMilliseconds", "roundIntervalMilliseconds",
    "stopRoundMilliseconds",
  ]

  /// Holds clients to these limits from now on, as far as limits can change. What is beyond one already stays.
  package mutating func change(to limits: Limits) {
    for limit in Limit.all where Self.changeableLimits.contains(limit.name) {
      context.limits[keyPath: limit.keyPath] = limits[keyPath: limit.keyPath]
    }
  }

  /// Whom to bring back at login is another thing from now on.
  package mutating func configure(_ policies: LoginPolicies) { context.settings.loginPolicies = policies }
}

/// Whether applications are brought back when their user logs in.
package struct LoginPolicies: Sendable, Hashable {
  private var policies: [String: LoginPolicy]

  /// - Parameter policies: by the application's name, by its name without instance, or `*` for all others.
  package init(_ policies: [String: LoginPolicy] = [:]) { self.policies = policies }

  package func policy(for application: ApplicationName) -> LoginPolicy {
    policies[application.description] ?? policies[application.base] ?? policies["*"] ?? .ask
  }
}
