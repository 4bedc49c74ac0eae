// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Checks that nodes from an archive form a tree.
struct TreeCheck {
  struct Fault {
    var kind: ArchiveProblem.Kind
    var node: NodeID?
    var message: String
  }

  private(set) var faults: [Fault] = []
  private(set) var tree = NodeTree()

  var objects: Int { tree.count }

  /// Adds nodes, and checks each by itself. `missing`: their contexts that the archive lacks.
  mutating func take(_ readings: [NodeReading], missing: Set<ContextID>) {
    for reading in readings {
      tree.load(reading.node)
      if !reading.node.isRemoved { check(reading, missing) }
    }
  }

  /// Checks the tree after the last node was added.
  mutating func finish() {
    for node in tree.indexAll().sorted() {
      faults.append(Fault(kind: .tree, node: node, message: "the object is its own ancestor"))
    }
    let strays = tree.nodes.values.filter { node in node.record.parent.map { tree.node($0) == nil } ?? false }
    for node in strays.map(\.id).sorted() {
      faults.append(Fault(kind: .tree, node: node, message: "the object's parent is missing"))
    }
    if !tree.hasDistinctPaths { findEqualPaths() }
  }

  private mutating func check(_ reading: NodeReading, _ missing: Set<ContextID>) {
    let record = reading.node
    func note(_ kind: ArchiveProblem.Kind, _ message: String) {
      faults.append(Fault(kind: kind, node: record.node, message: message))
    }
    if let component = record.component {
      if RestorationIdentifier.split(component) == nil { note(.object, "the object's identifier is invalid") }
    } else if record.kind == .object {
      note(.object, "a plain object has no identifier")
    }
    if let classes = record.classes, StateOrigin.classes(inText: classes).isEmpty {
      note(.object, "the object's classes are not a list of names")
    }
    if let state = reading.state, missing.contains(state.context) {
      note(.object, "the record of the state's writer is missing")
    }
  }

  /// Compares paths by their last step: the object above and the component.
  private mutating func findEqualPaths() {
    struct Step: Hashable {
      let above: NodeID?
      let component: IdentifierPath
    }
    var (seen, ancestry): (Set<Step>, Ancestry) = ([], Ancestry())
    for node in tree.nodes.values.sorted(by: { $0.id < $1.id }) {
      guard let component = node.record.component else { continue }
      let step = Step(above: ancestry.pathParent(of: node)?.id, component: [component])
      if seen.insert(step).inserted { continue }
      faults.append(Fault(kind: .tree, node: node.id, message: "another object has the same path"))
    }
  }
}
