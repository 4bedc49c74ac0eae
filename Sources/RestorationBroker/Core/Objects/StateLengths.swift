// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive
package import RestorationWire

// Every client can read every state: with the paths of its references it fits into half of a frame. A state, or a move
// of its targets, that would exceed this is refused (R14).

extension NodeTree {
  /// Throws if a state would be too long to be read with new targets of references (R14).
  ///
  /// - Parameters:
  ///   - states: the states that are brought back.
  ///   - target: the node that a reference will name; `nil` if none.
  mutating func requireReadable(
    besides states: some Sequence<StateRecord>,
    _ limits: Limits,
    _ target: (NodeID) -> Node?
  ) throws(ErrorObject) {
    if let (node, bytes) = findLongStates(limits).tooLong(target) {
      throw .stateTooLong(bytes: bytes, limits, path: path(of: node))
    }
    try limits.requireReadable(states, in: self, target)
  }
}

/// States that may become too long to be read when their targets get other paths (R14).
package struct LongStates {
  private struct Entry {
    let node: NodeID
    let state: StateSummary
    /// Half of a frame. If a limit was lowered and the state is longer already, its present length.
    let bytesMax: Int
  }

  private var entries: [Entry] = []

  init() {}

  package init(in tree: NodeTree, _ limits: Limits) {
    let bytesMax = limits.frameBytesMax / 2
    var (ancestry, longest): (Ancestry, Int?) = (Ancestry(), nil)
    func note(_ state: StateSummary?, of node: Node) {
      guard let state, let table = state.references, !limits.canAllBeGivenOut(state.bytes, upTo: table) else { return }
      let pathBytes = longest ?? tree.longestPath(&ancestry)
      longest = pathBytes
      var bytes = bytesMax
      if state.bytesGivenOut(withPathsUpTo: pathBytes) > bytesMax {
        guard !limits.canAllBeGivenOut(state.bytes, table) else { return }
        bytes = max(bytes, state.bytesGivenOut(&ancestry) { tree.node($0) })
      }
      entries.append(Entry(node: node.id, state: state, bytesMax: bytes))
    }
    for node in tree.nodes.values {
      for state in node.versions.all { note(state, of: node) }
    }
    entries.sort { $0.node < $1.node }
  }

  package var count: Int { entries.count }
  var isEmpty: Bool { entries.isEmpty }

  /// The states that would be too long if each reference led to the longest path: few, if any.
  package func suspects(in tree: NodeTree) -> Self {
    guard !isEmpty else { return self }
    var ancestry = Ancestry()
    let longest = tree.longestPath(&ancestry)
    var suspects = LongStates()
    suspects.entries = entries.filter { $0.state.bytesGivenOut(withPathsUpTo: longest) > $0.bytesMax }
    return suspects
  }

  /// The first state that is too long, and its length in bytes.
  func tooLong(_ target: (NodeID) -> Node?) -> (node: NodeID, bytes: Int)? {
    var ancestry = Ancestry()
    for entry in entries {
      let bytes = entry.state.bytesGivenOut(&ancestry, target)
      if bytes > entry.bytesMax { return (entry.node, bytes) }
    }
    return nil
  }
}

extension ErrorObject {
  static func stateTooLong(bytes: Int, _ limits: Limits, path: IdentifierPath?) -> Self {
    let max = limits.frameBytesMax / 2
    let state = path.map { "the state of \($0)" } ?? "the state"
    return .restoration(
      .limitExceeded,
      "with the paths of its references \(state) would have \(bytes) bytes; half of frameBytesMax is \(max)",
      hint: "Refer to fewer objects, give them shorter paths, or raise frameBytesMax in the broker's configuration.",
      path: path,
      details: ["limit": "frameBytesMax", "max": .integer(Int64(max)), "value": .integer(Int64(bytes))]
    )
  }
}

extension Limits {
  /// Throws if the stored size of a state exceeds the limits.
  func requireSize(
    of record: StateRecord,
    in tree: @autoclosure () -> NodeTree,
    path: @autoclosure () -> IdentifierPath?
  ) throws(ErrorObject) {
    let (bytes, max) = (record.text.count + (record.elements?.utf8.count ?? 0), stateBytesMax)
    guard bytes <= max else { throw .limitExceeded("stateBytesMax", max: max, value: bytes, path: path()) }
    guard record.references != nil else { return }
    try requireReadable(CollectionOfOne(record), in: tree())
  }

  /// Throws if the state would be too long to be read with the paths of its references.
  ///
  /// - Parameter bytes: of its text and elements as stored.
  func requireReadable(
    _ bytes: Int,
    _ table: String,
    _ references: Int,
    in tree: NodeTree,
    path: @autoclosure () -> IdentifierPath?
  ) throws(ErrorObject) {
    // Paths may be much longer than the given references, but few states have enough of them to matter.
    guard !canAllBeGivenOut(bytes, references: references) else { return }
    var ancestry = Ancestry()
    let given = ArchiveReferences.bytes(ofText: bytes, table, &ancestry) { tree.node($0) }
    try requireReadable(bytes: given, path: path())
  }

  /// Throws if a state of this length, with its elements and the paths of its references, does not fit into half of a
  /// frame.
  func requireReadable(bytes: Int, path: @autoclosure () -> IdentifierPath?) throws(ErrorObject) {
    guard bytes <= frameBytesMax / 2 else { throw .stateTooLong(bytes: bytes, self, path: path()) }
  }

  /// Throws if a state would be too long to be read with the present paths of objects.
  func requireReadable(_ states: some Sequence<StateRecord>, in tree: NodeTree) throws(ErrorObject) {
    try requireReadable(suspects(among: states, in: tree), in: tree) { tree.node($0) }
  }

  /// The states whose references must be checked one by one: few, if any.
  package func suspects(among states: some Sequence<StateRecord>, in tree: NodeTree) -> [StateRecord] {
    var (ancestry, references, longest): (Ancestry, Int, Int?) = (Ancestry(), 0, nil)
    return states.filter { record in
      guard let table = record.references, !canAllBeGivenOut(record.bytes, upTo: table) else { return false }
      // The longest path costs as much as one reference for each object. With it nearly every state is decided at once.
      references += ArchiveReferences.countMax(inTable: table)
      if longest == nil, references > tree.count { longest = tree.longestPath(&ancestry) }
      return longest.map { record.bytesGivenOut(withPathsUpTo: $0) > frameBytesMax / 2 } ?? true
    }
  }

  /// Throws if a state would be too long to be read with new targets of references.
  func requireReadable(
    _ states: some Sequence<StateRecord>,
    in tree: NodeTree,
    _ target: (NodeID) -> Node?
  ) throws(ErrorObject) {
    var ancestry = Ancestry()
    for record in states where record.references.map({ !canAllBeGivenOut(record.bytes, $0) }) ?? false {
      let bytes = record.bytesGivenOut(&ancestry, target)
      try requireReadable(bytes: bytes, path: target(record.node).flatMap { tree.path(of: $0) })
    }
  }

  /// Whether a text can be read with any targets of its references.
  func canAllBeGivenOut(_ bytes: Int, references: Int) -> Bool {
    // A byte of a path takes at most 2.5 bytes of JSON: of each two, one is a quotation mark and one a separator.
    bytes + references * ArchiveReferences.bytes(pathBytes: 3 * pathBytesMax) <= frameBytesMax / 2
  }

  func canAllBeGivenOut(_ bytes: Int, _ table: String) -> Bool {
    canAllBeGivenOut(bytes, upTo: table)
      || canAllBeGivenOut(bytes, references: ArchiveReferences.targets(ofTable: table).count)
  }
}

extension Limits {
  /// Decides by the length of the table, because counting its references takes longer.
  fileprivate func canAllBeGivenOut(_ bytes: Int, upTo table: String) -> Bool {
    canAllBeGivenOut(bytes, references: ArchiveReferences.countMax(inTable: table))
  }
}

extension ArchiveReferences {
  /// Upper bound for the references of a table: each takes at least 8 bytes.
  fileprivate static func countMax(inTable table: String) -> Int { table.utf8.count / 8 }

  /// Upper bound for a row's length when read, if no path is longer than this as JSON text.
  fileprivate static func bytes(ofRow bytes: Int, _ table: String?, withPathsUpTo pathBytes: Int) -> Int {
    bytes + (table.map { countMax(inTable: $0) } ?? 0) * Self.bytes(pathBytes: pathBytes)
  }

  /// Upper bound for a reference's length when read, by the length of its target's path as JSON text.
  static func bytes(pathBytes: Int) -> Int { pathBytes + around }

  /// Upper bound for a text's length when read with these references.
  static func bytes(
    ofText bytes: Int,
    _ table: String,
    _ ancestry: inout Ancestry,
    _ target: (NodeID) -> Node?
  ) -> Int {
    let numbers = numbers(inTable: table)
    return stride(from: 0, to: numbers.count - 2, by: 3).reduce(bytes) { sum, index in
      let path = target(numbers[index + 2]).map { ancestry.jsonBytes(of: $0) } ?? 0
      // An imported file may name any length.
      return sum + Self.bytes(pathBytes: path) - min(Int(numbers[index + 1]), bytes)
    }
  }

  /// The same for a row, whose length includes its table.
  static func bytes(
    ofRow bytes: Int,
    _ table: String?,
    _ ancestry: inout Ancestry,
    _ target: (NodeID) -> Node?
  ) -> Int {
    table.map { Self.bytes(ofText: bytes - $0.utf8.count, $0, &ancestry, target) } ?? bytes
  }

  /// The text around the path, with the longest handle.
  private static let around = "{\"$restorable\":,\"object\":}".utf8.count + String(1 << 53).utf8.count
}

extension StateRecord {
  /// Upper bound for the length of its text and elements when read.
  func bytesGivenOut(_ ancestry: inout Ancestry, _ target: (NodeID) -> Node?) -> Int {
    ArchiveReferences.bytes(ofRow: bytes, references, &ancestry, target)
  }

  fileprivate func bytesGivenOut(withPathsUpTo pathBytes: Int) -> Int {
    ArchiveReferences.bytes(ofRow: bytes, references, withPathsUpTo: pathBytes)
  }
}

extension NodeTree {
  fileprivate func longestPath(_ ancestry: inout Ancestry) -> Int {
    nodes.values.reduce(0) { max($0, ancestry.jsonBytes(of: $1)) }
  }
}

extension StateSummary {
  fileprivate func bytesGivenOut(withPathsUpTo pathBytes: Int) -> Int {
    ArchiveReferences.bytes(ofRow: bytes, references, withPathsUpTo: pathBytes)
  }

  func bytesGivenOut(_ ancestry: inout Ancestry, _ target: (NodeID) -> Node?) -> Int {
    ArchiveReferences.bytes(ofRow: bytes, references, &ancestry, target)
  }
}
