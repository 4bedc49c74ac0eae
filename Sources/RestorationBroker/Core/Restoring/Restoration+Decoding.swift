// SPDX-License-Identifier: Apache-2.0

internal import HeapModule
internal import RestorationArchive
internal import RestorationWire

/// States on their way to the owners of objects (R21, R31).
extension Restoration {
  /// Hands the session the next states, parents first, if it is free.
  mutating func fill(_ session: SessionID, _ facts: some RestorationFacts) {
    guard lines[session]?.isFree == true, var line = lines.removeValue(forKey: session) else { return }
    let max = facts.batchBytesMax(of: session)
    var later: [Int] = []
    var batch = Batch()
    var isOnTrial = false
    var former: Int?
    while !batch.isFull, let number = line.located.popMin() {
      // It may have lost an object and registered it again since.
      guard number != former, items[number].place == .located(session) else { continue }
      former = number
      guard isReady(number, in: batch) else {
        later.append(number)
        continue
      }
      guard !items[number].isAncestor else {
        put(number, .settled(.restored))
        wakeChildren(of: number)
        continue
      }
      switch facts.handing(of: items[number].node) {
      case .nothing(let step): settle(number, .restored, because: step)
      case .skip(let reason, let step): settle(number, .skipped(reason), because: step)
      case .state(let bytes, let deferred) where batch.add(number, bytes, deferred, max, alone: false): break
      case .alone(let bytes) where batch.add(number, bytes, 0, max, alone: true): note(number, .suspected)
      case .afterTrials:
        later.append(number)
        isOnTrial = true
      case .later, .state, .alone: later.append(number)
      }
    }
    line.located.insert(contentsOf: later)
    line.batch = batch.entries.map(\.number)
    lines[session] = line
    if isOnTrial { actions.append(.watchTrials) }
    guard !batch.entries.isEmpty else { return }
    for entry in batch.entries { put(entry.number, .handed(session)) }
    let handouts = batch.entries.map { Handout(node: items[$0.number].node, isDeferred: $0.isDeferred) }
    actions.append(.handOut(session, handouts))
  }

  /// Whether everything above it was dealt with, or is in the batch. Once the hold is over, missing objects are passed
  /// over.
  private func isReady(_ number: Int, in batch: Batch) -> Bool {
    var above = items[number].parent
    while let parent = above {
      switch items[parent].place {
      case .settled: break
      case .waiting, .asked, .awaited: guard isHoldOver else { return false }
      case .located, .handed: return batch.numbers.contains(parent)
      }
      above = items[parent].parent
    }
    return true
  }

  mutating func take(_ handled: Handled, of session: SessionID) {
    guard let batch = lines[session]?.batch else { return }
    lines[session]?.batch = []
    ready.insert(session)
    if handled == .lost { lose(session) }
    for number in batch where items[number].place == .handed(session) {
      switch handled {
      case .done: settle(number, .restored)
      case .failed: settle(number, .skipped(.failed))
      case .lost:
        put(number, .located(session))
        lines[session]?.located.insert(number)
      }
    }
  }
}
