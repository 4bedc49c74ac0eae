// SPDX-License-Identifier: Apache-2.0

package import RestorationWire

extension Limits {
  /// Limits that are checked only when something is added. Clients or connections were set up with the others.
  package static let changeable: Set<String> = [
    "subscriptionsMax", "connectionsPerApplicationMax", "sessionsPerApplicationMax", "objectsPerApplicationMax",
    "applicationSocketsMax", "archiveBytesMax", "openArchivesMax", "roundQuietMilliseconds",
    "roundIntervalMilliseconds", "sessionsPerProcessMax", "stopRoundMilliseconds",
  ]

  /// Adopts the changeable limits. Existing excess stays.
  package mutating func change(to limits: Limits) {
    for limit in Limit.all where Self.changeable.contains(limit.name) {
      self[keyPath: limit.keyPath] = limits[keyPath: limit.keyPath]
    }
  }
}

package struct LoginPolicies: Sendable, Hashable {
  private var policies: [String: LoginPolicy]

  /// - Parameter policies: by name of the application, by name without instance, or `*` for all others.
  package init(_ policies: [String: LoginPolicy] = [:]) { self.policies = policies }

  package func policy(for application: ApplicationName) -> LoginPolicy {
    policies[application.description] ?? policies[application.base] ?? policies["*"] ?? .ask
  }
}
