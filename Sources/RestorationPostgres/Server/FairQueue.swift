// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

/// What waits for a connection: in order for each user, and the users take turns.
package struct FairQueue<Element> {
  /// How many of one user may wait.
  private let max: Int
  private var waiting: [String: Deque<Element>] = [:]
  /// The users for whom something waits, each once; the first one is next.
  private var turns: Deque<String> = []

  package init(max: Int) { self.max = max }

  /// False if too many of this user wait.
  package mutating func append(_ element: Element, for user: String) -> Bool {
    let count = waiting[user]?.count ?? 0
    guard count < max else { return false }
    waiting[user, default: []].append(element)
    if count == 0 { turns.append(user) }
    return true
  }

  package mutating func popFirst() -> Element? {
    guard let user = turns.popFirst(), let element = waiting[user]?.popFirst() else { return nil }
    if waiting[user]?.isEmpty == true { waiting[user] = nil } else { turns.append(user) }
    return element
  }
}
