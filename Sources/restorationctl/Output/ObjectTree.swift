// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient

/// The objects of an application as a tree, in the broker's order.
///
/// The broker lists objects page by page, and they may move meanwhile: an object without a parent in the list becomes a
/// root, and a cycle is cut. Every object appears exactly once.
struct ObjectTree {
  typealias Object = ObjectDescription

  struct Visit {
    let object: Object
    /// For each ancestor from the root on, and last for the object itself: whether a sibling follows.
    let branches: [Bool]
  }

  let objects: [Object]
  private var roots: [Int] = []
  private var children: [[Int]]

  init(_ objects: [Object]) {
    self.objects = objects
    children = Array(repeating: [], count: objects.count)
    var places: [Int64: Int] = [:]
    for (index, object) in objects.enumerated() { places[object.node] = index }
    let parents = objects.map { object in object.parent.flatMap { places[$0] } }
    for (index, parent) in parents.enumerated() {
      if let parent {
        children[parent].append(index)
      } else {
        roots.append(index)
      }
    }
    openCircles(parents)
  }

  /// Makes one object of each cycle a root.
  private mutating func openCircles(_ parents: [Int?]) {
    var isReached = Array(repeating: false, count: objects.count)
    func reach(_ index: Int) {
      var open = [index]
      while let next = open.popLast() {
        isReached[next] = true
        open += children[next].filter { !isReached[$0] }
      }
    }
    for root in roots { reach(root) }
    for index in objects.indices where !isReached[index] {
      if let parent = parents[index] { children[parent].removeAll { $0 == index } }
      roots.append(index)
      reach(index)
    }
  }

  /// Visits all objects, parents first. Not recursive, because a tree may be as deep as it has objects.
  func walk(_ body: (Visit) -> Void) {
    var levels = [roots[...]]
    var branches: [Bool] = []
    while let level = levels.last {
      guard let index = level.first else {
        levels.removeLast()
        _ = branches.popLast()
        continue
      }
      levels[levels.count - 1].removeFirst()
      branches.append(level.count > 1)
      body(Visit(object: objects[index], branches: branches))
      if children[index].isEmpty {
        branches.removeLast()
      } else {
        levels.append(children[index][...])
      }
    }
  }
}

extension ObjectDescription {
  var isVacant: Bool { object == nil }

  var hasState: Bool { modified != nil }

  /// The identifier, and the position if there is one.
  var component: String? { path?.components.last }
}
