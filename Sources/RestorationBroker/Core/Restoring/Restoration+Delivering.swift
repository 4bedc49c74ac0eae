// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

/// When the state of an object that is located may be delivered: parents first (R21).
extension Restoration {
  /// Delivers the state of an object as soon as its ancestors allow that, then those below it.
  mutating func deliver(_ first: Int) {
    guard phase == .delivering else { return }
    var next = [first]
    while let number = next.popLast() {
      guard case .located(let owner) = items[number].place, isFree(number, for: owner) else { continue }
      if items[number].isAncestor {
        put(number, .settled(.restored))
        deliverChildren(of: number)
      } else {
        put(number, .delivering(owner))
        actions.append(.deliver(items[number].node, to: owner))
        next += items[number].children.reversed()
      }
    }
  }

  /// Whether all above it is settled, or delivered to the same session; after the hold, missing objects do not count.
  private func isFree(_ number: Int, for owner: SessionID) -> Bool {
    var above = items[number].parent
    while let parent = above {
      switch items[parent].place {
      case .settled: break
      case .waiting, .asked, .awaited: guard isHoldOver else { return false }
      case .located: return false
      case .delivering(let session): return session == owner
      }
      above = items[parent].parent
    }
    return true
  }

  /// Delivers the located objects below this one.
  mutating func deliverChildren(of number: Int) {
    guard phase == .delivering else { return }
    for child in items[number].children {
      switch items[child].place {
      case .located: deliver(child)
      case .delivering: break
      case .waiting, .asked, .awaited: if isHoldOver { deliverChildren(of: child) }
      case .settled: deliverChildren(of: child)
      }
    }
  }
}
