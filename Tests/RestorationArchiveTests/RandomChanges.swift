// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import SeededRandom
internal import TestSupport

/// Makes changes such as a broker could make of an archive in the state of `model`.
struct RandomChanges {
  private var generator: SeededGenerator
  private var model = NaiveArchive()
  private static let letters = Array("{}[]\",:0123456789abcdefghijklmnopqrstuvwxyz".utf8)

  init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

  mutating func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &generator) }

  mutating func chance(_ percent: Int) -> Bool { number(1...100) <= percent }

  /// The changes of one transaction.
  mutating func transaction(on archive: NaiveArchive) -> [ArchiveChange] {
    model = archive
    var changes: [ArchiveChange] = []
    for _ in 0..<number(1...6) {
      let step = change()
      model.apply(step)
      changes += step
    }
    return changes
  }

  private mutating func change() -> [ArchiveChange] {
    let head = model.contents(at: .head).nodes
    let node = head.keys.sorted().randomElement(using: &generator)
    switch number(1...100) {
    case 1...14: return addNode()
    case 15...22: return node.map { [.node(record($0))] } ?? addNode()
    case 23...27: return remove(node)
    case 28...70: return node.map { [.state(state($0))] } ?? addNode()
    case 71...75: return [.removeState(node ?? 1)]
    case 76: return [.removeAll]
    case 77...82: return [.settle(head.keys.filter { _ in chance(50) }.sorted())]
    case 83: return [withhold()]
    case 84: return [.release(model.withheld.values.map(\.row).filter { _ in chance(50) })]
    case 85: return [.context(model.lastContext + 1, text: text(20))]
    case 86...88: return seal()
    case 89...90: return [.pin(generation: chance(30) ? nil : model.generations.last?.record.generation)]
    case 91...93: return drop()
    case 94...95: return [session()]
    case 96: return model.sessions.keys.min().map { [.forgetSessions([$0])] } ?? [session()]
    case 97...98: return node.map { [.claim(claim($0))] } ?? []
    default: return [.run(RunRecord(run: Int64(number(1...9)), restorations: 1, facts: text(9)))]
    }
  }

  /// An added node is claimed, whether it is new or was removed before.
  private mutating func addNode() -> [ArchiveChange] {
    let head = model.contents(at: .head).nodes
    let gone = (1...max(1, model.lastNode)).filter { head[$0] == nil }
    let node = chance(30) ? gone.randomElement(using: &generator) ?? model.lastNode + 1 : model.lastNode + 1
    return [.node(record(node)), .claim(claim(node))]
  }

  private mutating func remove(_ node: NodeID?) -> [ArchiveChange] {
    guard let node else { return [.removed(99)] }
    return [.removed(node, successor: chance(40) ? Int64(number(1...9)) : nil)]
  }

  private mutating func record(_ node: NodeID) -> NodeRecord {
    NodeRecord(
      node: node,
      // A parent that is not there would be damage; the store does not mind circles.
      parent: chance(50) ? nil : node,
      component: chance(10) ? nil : text(12),
      kind: NodeKind(rawValue: Int64(number(0...2))) ?? .object,
      classes: chance(50) ? nil : text(30),
      keepsForever: chance(10)
    )
  }

  private mutating func state(_ node: NodeID) -> StateRecord {
    StateRecord(
      node: node,
      context: model.contexts.keys.sorted().randomElement(using: &generator) ?? 0,
      session: Int64(number(0...9)),
      revision: Int64(number(0...99)),
      isEarly: chance(30),
      written: Int64(number(0...99)),
      text: Array(text(chance(3) ? 9000 : 60).utf8)[...],
      references: chance(20) ? text(10) : nil,
      elements: chance(20) ? text(10) : nil
    )
  }

  /// Some reachable rows, and one that does not exist.
  private mutating func withhold() -> ArchiveChange {
    let rows = model.reachableRows.filter { _ in chance(10) }
    return .withhold(rows + [StateRow(node: 1, sequence: 100_000)], since: Int64(number(1...99)))
  }

  private mutating func claim(_ node: NodeID) -> ClaimRecord {
    ClaimRecord(node: node, session: Int64(number(0...9)), handle: Int64(number(1...999)))
  }

  private mutating func session() -> ArchiveChange {
    .session(SessionRecord(session: Int64(number(1...9)), token: text(32), facts: text(20), ended: 3))
  }

  private mutating func seal() -> [ArchiveChange] {
    let record = GenerationRecord(
      generation: model.lastGeneration + Int64(number(1...2)),
      kind: "round",
      committed: 7,
      objects: number(0...9),
      bytes: 1,
      omitted: chance(50) ? [] : [1, 2]
    )
    return [.seal(record)]
  }

  private mutating func drop() -> [ArchiveChange] {
    guard model.generations.count > 2 || chance(20), let oldest = model.generations.randomElement(using: &generator)
    else { return [.dropGeneration(1000)] }
    return [.dropGeneration(oldest.record.generation)]
  }

  private mutating func text(_ length: Int) -> String {
    let bytes = (0..<number(0...length)).map { _ in Self.letters[number(0...Self.letters.count - 1)] }
    return String(decoding: bytes, as: UTF8.self)
  }
}
