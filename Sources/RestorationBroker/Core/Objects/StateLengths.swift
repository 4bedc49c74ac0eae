// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive
package import RestorationWire

// Every state can be read by every client, whatever its references lead to: with their paths it fits into half of a
// frame. What would make it longer is refused, be it the state itself or a move of its targets (R14).

extension NodeTree {
  /// Passes if states can be given out when some references lead to other nodes than today (R14).
  ///
  /// - Parameters:
  ///   - states: what is brought back.
  ///   - target: the node that a reference will name; nil for none.
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

/// States that may become too long to be given out when their targets get other paths (R14).
package struct LongStates {
  private struct Entry {
    let node: NodeID
    let state: StateSummary
    /// What it may have: one that is too long already, because a limit was lowered, must not grow.
    let bytesMax: Int
  }

  private var entries: [Entry] = []

  /// There are none.
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
      note(node.state, of: node)
      note(node.beforeClaim, of: node)
    }
    entries.sort { $0.node < $1.node }
  }

  package var count: Int { entries.count }
  var isEmpty: Bool { entries.isEmpty }

  /// Those that would be too long if each reference led to the longest path: few, if any.
  package func suspects(in tree: NodeTree) -> Self {
    guard !isEmpty else { return self }
    var ancestry = Ancestry()
    let longest = tree.longestPath(&ancestry)
    var suspects = LongStates()
    suspects.entries = entries.filter { $0.state.bytesGivenOut(withPathsUpTo: longest) > $0.bytesMax }
    return suspects
  }

  /// The first state that has become too long, and its bytes.
  ///
  /// - Parameter target: the node that a reference names from now on; nil for none.
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
  /// Passes if a state has a size within the limits as it is to be stored.
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

  /// Passes if a state can be given out with the paths of its references.
  ///
  /// - Parameter bytes: of its text and elements as they are to be stored.
  func requireReadable(
    _ bytes: Int,
    _ table: String,
    _ references: Int,
    in tree: NodeTree,
    path: @autoclosure () -> IdentifierPath?
  ) throws(ErrorObject) {
    // Paths may take far more room than the references that were given; hardly a state has so many that they could.
    guard !canAllBeGivenOut(bytes, references: references) else { return }
    var ancestry = Ancestry()
    let given = ArchiveReferences.bytes(ofText: bytes, table, &ancestry) { tree.node($0) }
    try requireReadable(bytes: given, path: path())
  }

  /// Passes if a state and its elements can be read when the state is given out with the paths of its references: in a
  /// frame of its own at least.
  func requireReadable(bytes: Int, path: @autoclosure () -> IdentifierPath?) throws(ErrorObject) {
    guard bytes <= frameBytesMax / 2 else { throw .stateTooLong(bytes: bytes, self, path: path()) }
  }

  /// Passes if states can be given out with the paths that objects have.
  func requireReadable(_ states: some Sequence<StateRecord>, in tree: NodeTree) throws(ErrorObject) {
    try requireReadable(suspects(among: states, in: tree), in: tree) { tree.node($0) }
  }

  /// The states that have to be looked at reference by reference: of many, hardly any.
  package func suspects(among states: some Sequence<StateRecord>, in tree: NodeTree) -> [StateRecord] {
    var (ancestry, references, longest): (Ancestry, Int, Int?) = (Ancestry(), 0, nil)
    return states.filter { record in
      guard let table = record.references, !canAllBeGivenOut(record.bytes, upTo: table) else { return false }
      // To find the longest path takes as long as to look at one reference for each object, and then says it of nearly
      // every state at once.
      references += ArchiveReferences.countMax(inTable: table)
      if longest == nil, references > tree.count { longest = tree.longestPath(&ancestry) }
      return longest.map { record.bytesGivenOut(withPathsUpTo: $0) > frameBytesMax / 2 } ?? true
    }
  }

  /// Passes if what is brought back can be given out with the paths that its references get.
  ///
  /// - Parameter target: the node that a reference will name; nil for none.
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

  /// Whether a text can be given out wherever its references lead.
  func canAllBeGivenOut(_ bytes: Int, references: Int) -> Bool {
    // A byte of a path is at most 2.5 bytes of JSON: one of each two is a quotation mark, the other one a separator.
    bytes + references * ArchiveReferences.bytes(pathBytes: 3 * pathBytesMax) <= frameBytesMax / 2
  }

  /// - Parameter table: of its references.
  func canAllBeGivenOut(_ bytes: Int, _ table: String) -> Bool {
    canAllBeGivenOut(bytes, upTo: table)
      || canAllBeGivenOut(bytes, references: ArchiveReferences.targets(ofTable: table).count)
  }
}

extension Limits {
  /// The same by the length of the table alone: to count its references takes longer.
  fileprivate func canAllBeGivenOut(_ bytes: Int, upTo table: String) -> Bool {
    canAllBeGivenOut(bytes, references: ArchiveReferences.countMax(inTable: table))
  }
}

extension ArchiveReferences {
  /// How many references a table may have: each takes 8 bytes at least.
  fileprivate static func countMax(inTable table: String) -> Int { table.utf8.count / 8 }

  /// The bytes of a row as it is given out, at most, if no path has more bytes as JSON text than this.
  fileprivate static func bytes(ofRow bytes: Int, _ table: String?, withPathsUpTo pathBytes: Int) -> Int {
    bytes + (table.map { countMax(inTable: $0) } ?? 0) * Self.bytes(pathBytes: pathBytes)
  }

  /// The bytes of a reference as it is given out, at most.
  ///
  /// - Parameter pathBytes: of its target's path as JSON text.
  static func bytes(pathBytes: Int) -> Int { pathBytes + around }

  /// The bytes of a text with these references as it is given out, at most.
  static func bytes(
    ofText bytes: Int,
    _ table: String,
    _ ancestry: inout Ancestry,
    _ target: (NodeID) -> Node?
  ) -> Int {
    let numbers = numbers(inTable: table)
    return stride(from: 0, to: numbers.count - 2, by: 3).reduce(bytes) { sum, index in
      let path = target(numbers[index + 2]).map { ancestry.jsonBytes(of: $0) } ?? 0
      // A foreign file may name any length.
      return sum + Self.bytes(pathBytes: path) - min(Int(numbers[index + 1]), bytes)
    }
  }

  /// The same of a row, which counts its table as well.
  static func bytes(
    ofRow bytes: Int,
    _ table: String?,
    _ ancestry: inout Ancestry,
    _ target: (NodeID) -> Node?
  ) -> Int {
    table.map { Self.bytes(ofText: bytes - $0.utf8.count, $0, &ancestry, target) } ?? bytes
  }

  /// What stands around the path, with the longest handle.
  private static let around = "{\"$restorable\":,\"object\":}".utf8.count + String(1 << 53).utf8.count
}

extension StateRecord {
  /// The bytes of its text and elements as given out, at most.
  ///
  /// - Parameter target: the node that a reference names; nil for none.
  func bytesGivenOut(_ ancestry: inout Ancestry, _ target: (NodeID) -> Node?) -> Int {
    ArchiveReferences.bytes(ofRow: bytes, references, &ancestry, target)
  }

  fileprivate func bytesGivenOut(withPathsUpTo pathBytes: Int) -> Int {
    ArchiveReferences.bytes(ofRow: bytes, references, withPathsUpTo: pathBytes)
  }
}

extension NodeTree {
  /// Bytes of the longest path as JSON text.
  fileprivate func longestPath(_ ancestry: inout Ancestry) -> Int {
    nodes.values.reduce(0) { max($0, ancestry.jsonBytes(of: $1)) }
  }
}

extension StateSummary {
  fileprivate func bytesGivenOut(withPathsUpTo pathBytes: Int) -> Int {
    ArchiveReferences.bytes(ofRow: bytes, references, withPathsUpTo: pathBytes)
  }

  /// As of the record.
  func bytesGivenOut(_ ancestry: inout Ancestry, _ target: (NodeID) -> Node?) -> Int {
    ArchiveReferences.bytes(ofRow: bytes, references, &ancestry, target)
  }
}
