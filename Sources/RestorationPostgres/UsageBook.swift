// SPDX-License-Identifier: Apache-2.0

/// How many bytes of contents users have in the database, as one process knows it: what the database has said, and what
/// this process has added since. Times are in milliseconds.
package struct UsageBook: Sendable {
  private struct Usage: Sendable {
    var bytes: Int64
    let asked: Int64
  }

  /// After this time the database is asked again.
  package static let validity: Int64 = 60_000
  /// Above that all users are asked for anew.
  private static let usersMax = 10_000

  private var users: [String: Usage] = [:]

  package init() {}

  /// `nil` if the database has to be asked.
  package func bytes(of user: String, at now: Int64) -> Int64? {
    users[user].flatMap { now - $0.asked < Self.validity ? $0.bytes : nil }
  }

  package mutating func learn(_ bytes: Int64, of user: String, at now: Int64) {
    if users.count >= Self.usersMax { users = [:] }
    users[user] = Usage(bytes: bytes, asked: now)
  }

  package mutating func add(_ bytes: Int, to user: String) { users[user]?.bytes += Int64(bytes) }

  /// A snapshot has taken the place of what was there.
  package mutating func forget(_ user: String) { users[user] = nil }
}
