// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// The subtrees closed last, which can be reopened (R13). The archive retains the texts of their states, by row.
///
/// Invariant: at most 16 subtrees, of 1 MiB together. Every row they name is retained.
package struct ClosedShelf: StoredFacts, Hashable {
  private static let subtreesMax = 16
  private static let bytesMax = 1 << 20
  /// Parents and children closed within this time count as closed together: windows are often closed object by object.
  private static let togetherMilliseconds: Int64 = 1_000

  /// Oldest first.
  package private(set) var subtrees: [Subtree] = []

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.stored("subtrees", &subtrees, unless: [])
  }

  package struct Subtree: StoredFacts, Hashable {
    /// Path of the first object when it was closed.
    package var path: IdentifierPath = []
    /// Milliseconds since 1970.
    package var closed: Int64 = 0
    /// It was retired as an orphan, not closed.
    package var isRetired = false
    /// The objects above it at that time, outermost first.
    package var ancestors: [Object] = []
    package var objects: [Object] = []

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.stored("path", &path)
      try members.stored("closed", count: &closed)
      try members.stored("retired", &isRetired, unless: false)
      try members.stored("ancestors", &ancestors, unless: [])
      try members.stored("objects", &objects)
    }

    package var rows: [StateRow] { objects.compactMap(\.row) }

    /// An object, or an ancestor, counts 1 KiB besides its state.
    package var bytes: Int { 1_024 * (ancestors.count + objects.count) + stateBytes }

    package var stateBytes: Int { objects.reduce(0) { $0 + Int($1.bytes) } }

    var fits: Bool { bytes <= ClosedShelf.bytesMax }

    /// Whether one of its objects had this path.
    func has(_ path: IdentifierPath) -> Bool {
      guard path.components.starts(with: self.path.components) else { return false }
      var node: NodeID? = objects.first?.node
      for component in path.components.dropFirst(self.path.components.count) {
        node = objects.first { $0.parent == node && $0.component == component }?.node
      }
      return node != nil
    }

    /// Merges a subtree that was below one of its objects; `nil` if it was not, or if there is too little room.
    fileprivate func taking(_ other: Subtree) -> Subtree? {
      guard let parent = other.ancestors.last?.node, objects.contains(where: { $0.node == parent }) else { return nil }
      var whole = self
      whole.closed = max(closed, other.closed)
      whole.objects += other.objects
      whole.objects[objects.count].parent = parent
      return whole.fits ? whole : nil
    }

    fileprivate func joined(with former: Subtree) -> Subtree? {
      guard abs(closed - former.closed) <= ClosedShelf.togetherMilliseconds, isRetired == former.isRetired else {
        return nil
      }
      return taking(former) ?? former.taking(self)
    }
  }

  package struct Object: StoredFacts, Hashable {
    package var node: Int64 = 0
    /// 0 for the topmost object.
    package var parent: Int64 = 0
    package var component = ""
    package var kind = ObjectKind.object
    package var classes: String?
    package var restorationClass: String?
    package var storyboard: String?
    package var keepsForever = false
    package var isConfidential = false
    /// Row of its state; 0 if it had none.
    package var sequence: Int64 = 0
    package var bytes: Int64 = 0

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.stored("node", count: &node)
      try members.stored("parent", someCount: &parent)
      try members.stored("component", &component)
      try members.stored("kind", &kind)
      try members.stored("classes", &classes)
      try members.stored("restorationClass", &restorationClass)
      try members.stored("storyboard", &storyboard)
      try members.stored("keep", &keepsForever, unless: false)
      try members.stored("confidential", &isConfidential, unless: false)
      try members.stored("sequence", someCount: &sequence)
      try members.stored("bytes", someCount: &bytes)
    }

    var row: StateRow? { sequence == 0 ? nil : StateRow(node: node, sequence: sequence) }

    init(_ node: Node, below parent: NodeID?) {
      let record = node.record
      (self.node, self.parent, component) = (node.id, parent ?? 0, record.component ?? "")
      (kind, classes, restorationClass) = (record.kind.wire, record.classes, record.restorationClass)
      (storyboard, keepsForever, isConfidential) = (record.storyboard, record.keepsForever, record.isConfidential)
      // A withheld state must not return by this detour (R35).
      guard let state = node.versions.confirmed ?? node.state, !node.versions.isWithheld(state) else { return }
      (sequence, bytes) = (state.sequence, Int64(state.bytes))
    }

    /// An ancestor of the closed objects. Its state is not closed with them.
    init(ancestor: Node, below parent: NodeID?) {
      self.init(ancestor, below: parent)
      (sequence, bytes) = (0, 0)
    }

    func record(below parent: NodeID?) -> NodeRecord {
      NodeRecord(
        node: node,
        parent: parent,
        component: component,
        kind: NodeKind(kind),
        classes: classes,
        restorationClass: restorationClass,
        storyboard: storyboard,
        keepsForever: keepsForever,
        isConfidential: isConfidential
      )
    }
  }

  package var rows: [StateRow] { subtrees.flatMap(\.rows) }

  /// The subtree closed last at the path, or at any path.
  package func last(at path: IdentifierPath?) -> Subtree? { subtrees.last { path == nil || $0.path == path } }

  /// - Returns: the subtrees that no longer fit, possibly including this one.
  package mutating func add(_ subtree: Subtree) -> [Subtree] {
    var subtree = subtree
    while let former = subtrees.last, let whole = subtree.joined(with: former) {
      subtrees.removeLast()
      subtree = whole
    }
    subtrees.append(subtree)
    var gone: [Subtree] = []
    while subtrees.count > Self.subtreesMax || subtrees.reduce(0, { $0 + $1.bytes }) > Self.bytesMax {
      gone.append(subtrees.removeFirst())
    }
    return gone
  }

  package mutating func remove(_ subtree: Subtree) { subtrees.removeAll { $0 == subtree } }
}
