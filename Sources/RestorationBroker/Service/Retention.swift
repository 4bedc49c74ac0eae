// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// How long an application must have been unused before the broker forgets it.
///
/// Only days on which a broker ran count, so that nothing is lost while the computer is off. They are days of UTC: a
/// journey makes none.
package struct Retention: Hashable, Sendable {
  /// With fewer, what was used yesterday would go before it can be used today.
  package static let range = 2...3_650

  /// On how many of these days an application may be unused.
  package let limit: Int
  /// The last days on which a broker ran, in ascending order; after `note` no more than `limit`.
  private var days: [String] = []

  package init(limit: Int) { self.limit = limit }

  /// Reads what `text` wrote under any limit; `nil` if it is something else.
  package init?(limit: Int, _ text: String) {
    self.init(limit: limit)
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    guard lines.count > 1, lines.last == "" else { return nil }
    days = lines.dropLast().map { String($0) }
    guard days.allSatisfy({ Self.start(of: $0) != nil }), zip(days, days.dropFirst()).allSatisfy({ $0 < $1 }) else {
      return nil
    }
  }

  /// One date a line.
  package var text: String { days.map { "\($0)\n" }.joined() }

  /// A broker runs at this time, in milliseconds since 1970; returns whether that changes the days.
  package mutating func note(_ wall: Int64) -> Bool {
    let (former, today) = (days, String(Timestamp(milliseconds: wall).description.prefix(10)))
    // If the clock was ahead, what it said then does not count.
    days.removeAll { $0 >= today }
    days = Array((days + [today]).suffix(limit))
    return days != former
  }

  /// What was not written since this time, in milliseconds since 1970, is unused; `nil` while nothing is.
  package var cutoff: Int64? {
    guard days.count == limit, let first = days.first else { return nil }
    return Self.start(of: first)
  }

  private static func start(of day: String) -> Int64? { Timestamp("\(day)T00:00:00.000Z")?.milliseconds }
}
