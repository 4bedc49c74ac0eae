// SPDX-License-Identifier: Apache-2.0

/// A history, played by the model and by the service side by side.
struct ReferenceHistory {
  private(set) var operations: [ReferenceOperation] = []
  private(set) var model: ReferenceModel
  private let player: ReferencePlayer

  /// What the model and the service see differently.
  struct Difference: Error, CustomStringConvertible {
    let operations: [ReferenceOperation]
    let isDeveloperMode: Bool
    let model: [String]
    let service: [String]

    var description: String {
      let lines = operations.map { "  \($0.source),\n" }.joined()
      return """
        developer mode \(isDeveloperMode)
        [
        \(lines)]
        model:   \(model.joined(separator: "\n         "))
        service: \(service.joined(separator: "\n         "))
        """
    }
  }

  /// - Parameter record: told what the service must never do.
  init(isDeveloperMode: Bool, record: @escaping (String) -> Void) {
    model = ReferenceModel(isDeveloperMode: isDeveloperMode)
    player = ReferencePlayer(isDeveloperMode: isDeveloperMode, record: record)
  }

  /// A history of at least 40 operations, three sessions, a process that is killed and a restoration.
  static func random(seed: UInt64, record: @escaping (String) -> Void) throws(Difference) -> ReferenceHistory {
    var generator = ReferenceGenerator(seed: seed)
    var history = ReferenceHistory(isDeveloperMode: seed % 4 != 0, record: record)
    var tries = 0
    while !history.isComplete {
      for operation in generator.next(history.model) { try history.play(operation) }
      tries += 1
      // A way into what the rules do not say.
      if tries % 300 == 0 { history = ReferenceHistory(isDeveloperMode: seed % 4 != 0, record: record) }
    }
    try history.compare(history.model.head(), history.player.head())
    return history
  }

  private var isComplete: Bool {
    operations.count >= 48 && model.sessions.count >= 3 && model.counts["R30 crash"] != nil
      && operations.contains { if case .restore = $0 { true } else { false } }
  }

  /// Plays it in both, if the rules say what happens.
  mutating func play(_ operation: ReferenceOperation) throws(Difference) {
    guard let expected = model.perform(operation) else { return model.events = [] }
    operations.append(operation)
    let actual = player.perform(operation)
    let (events, seen) = (model.events, player.takeEvents())
    model.events = []
    try compare([expected] + events.map(\.text).sorted(), [actual] + seen.sorted())
    try compare([], Self.disorder(seen, events))
    guard expected.hasPrefix("saved") else { return }
    try compare(model.generationStates(), player.generationStates())
  }

  private func compare(_ one: [String], _ two: [String]) throws(Difference) {
    guard one != two else { return }
    let isDeveloperMode = model.isDeveloperMode
    throw Difference(operations: operations, isDeveloperMode: isDeveloperMode, model: one, service: two)
  }

  /// Pairs of events that came in the wrong order: by stage, by rank in a session, or children before parents.
  private static func disorder(_ seen: [String], _ events: [ReferenceModel.Event]) -> [String] {
    let facts = Dictionary(events.map { ($0.text, $0) }, uniquingKeysWith: { first, _ in first })
    let calls = seen.compactMap { facts[$0] }.filter { $0.stage < 4 }
    var disorder: [String] = []
    for (index, later) in calls.enumerated() {
      let words = later.text.split(separator: " ")
      for earlier in calls[..<index] where earlier.stage >= later.stage {
        let others = earlier.text.split(separator: " ")
        let isBelow =
          words.count > 2 && ["make", "decode"].contains(words[1]) && others.count > 2 && others[1] == words[1]
          && others[2].hasPrefix(words[2] + "/")
        if earlier.stage > later.stage || words[0] == others[0] && earlier.rank > later.rank || isBelow {
          disorder.append("\(earlier.text) < \(later.text)")
        }
      }
    }
    return disorder
  }

  /// The shortest history with a difference that leaving out operations finds.
  static func shrink(_ difference: Difference) -> Difference {
    var (best, size) = (difference, max(1, difference.operations.count / 2))
    while true {
      var (index, isShorter) = (0, false)
      while index < best.operations.count {
        var shorter = ReferenceHistory(isDeveloperMode: best.isDeveloperMode) { _ in }
        var operations = best.operations
        operations.removeSubrange(index..<min(index + size, operations.count))
        do throws(Difference) {
          for operation in operations { try shorter.play(operation) }
          try shorter.compare(shorter.model.head(), shorter.player.head())
          index += size
        } catch {
          (best, isShorter) = (error, true)
        }
      }
      if size == 1, !isShorter { return best }
      size = max(1, size / 2)
    }
  }
}

extension ReferenceModel {
  /// All objects that have a path: path, kind, owner, inclusion and newest state.
  func head() -> [String] {
    nodes.compactMap { id, node in
      guard let path = path(of: id) else { return nil }
      let owner = node.claim.map { "\($0.session)" } ?? "-"
      return "\(path) \(node.kind.rawValue) \(owner) \(isIncluded(id)) \(words(node.saved, isMarked: false))"
    }.sorted()
  }

  func generationStates() -> [String] {
    generation.states.compactMap { id, state in path(of: id).map { "\($0) \(words(state, isMarked: false))" } }.sorted()
  }
}
