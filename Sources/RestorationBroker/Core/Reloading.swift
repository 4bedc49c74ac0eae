// SPDX-License-Identifier: Apache-2.0

package import RestorationWire

extension Limits {
  /// Limits that are checked only when something is added. The others were reported to clients, or set at their
  /// connections.
  package static let changeable: Set<String> = [
    "subscriptionsMax", "connectionsPerApplicationMax", "sessionsPerApplicationMax", "objectsPerApplicationMax",
    "applicationSocketsMax", "archiveBytesMax", "openArchivesMax", "roundQuietMilliseconds",
    "roundIntervalMilliseconds", "sessionsPerProcessMax", "stopRoundMilliseconds",
  ]

  /// Takes over those of the others that can change. What already exceeds one stays.
  package mutating func change(to limits: Limits) {
    for limit in Limit.all where Self.changeable.contains(limit.name) {
      self[keyPath: limit.keyPath] = limits[keyPath: limit.keyPath]
    }
  }
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
