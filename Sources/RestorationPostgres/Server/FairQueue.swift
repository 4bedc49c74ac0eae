// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

/// A queue for connections: in order for each user, and users take turns.
package struct FairQueue<Element> {
  /// How many entries of one user may wait.
  private let max: Int
  private var waiting: [String: Deque<Element>] = [:]
  /// The users with entries, each once; the first one is next.
  private var turns: Deque<String> = []
  package private(set) var count = 0

  package init(max: Int) { self.max = max }

  /// False if too many entries of this user wait.
  package mutating func append(_ element: Element, for user: String) -> Bool {
    let own = waiting[user]?.count ?? 0
    guard own < max else { return false }
    waiting[user, default: []].append(element)
    if own == 0 { turns.append(user) }
    count += 1
    return true
  }

  /// `nil` also if the first one is not wanted.
  package mutating func popFirst(if isWanted: (Element) -> Bool) -> Element? {
    guard let user = turns.first, let element = waiting[user]?.first, isWanted(element) else { return nil }
    return popFirst()
  }

  package mutating func popFirst() -> Element? {
    guard let user = turns.popFirst(), let element = waiting[user]?.popFirst() else { return nil }
    count -= 1
    if waiting[user]?.isEmpty == true { waiting[user] = nil } else { turns.append(user) }
    return element
  }
}
