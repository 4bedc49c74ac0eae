// SPDX-License-Identifier: Apache-2.0

/// The size of users' contents in the database, as far as this process knows: the database's answers plus its own
/// additions. Times in milliseconds.
package struct UsageBook: Sendable {
  private struct Usage: Sendable {
    var bytes: Int64
    let asked: Int64
  }

  /// After this time the database is asked again.
  package static let validity: Int64 = 60_000
  /// Beyond this number all users are asked for again.
  private static let usersMax = 10_000

  private var users: [String: Usage] = [:]

  package init() {}

  /// `nil` if the database must be asked.
  package func bytes(of user: String, at now: Int64) -> Int64? {
    users[user].flatMap { now - $0.asked < Self.validity ? $0.bytes : nil }
  }

  package mutating func learn(_ bytes: Int64, of user: String, at now: Int64) {
    if users.count >= Self.usersMax { users = [:] }
    users[user] = Usage(bytes: bytes, asked: now)
  }

  package mutating func add(_ bytes: Int, to user: String) { users[user]?.bytes += Int64(bytes) }

  /// Call when a snapshot has replaced the contents.
  package mutating func forget(_ user: String) { users[user] = nil }
}
