// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive
package import RestorationWire

/// One page of `readArchive`: where it begins and what it may hold.
package struct ArchivePage: Sendable {
  /// `nil` for the head.
  package var generation: Int64?
  /// Fixed by the first page, so that all pages show one moment.
  package var sequence: SequenceNumber
  package var after: NodeID
  package var reveals: Bool
  package var bytesMax: Int
  /// Set once the nodes are known: everything but the texts.
  package var objects: [ArchivedObject] = []
  /// The paths of what a generation's states refer to, at that time.
  var targets: [NodeID: IdentifierPath] = [:]
  package var next: NodeID?
}

extension ArchivePage {
  /// - Parameter sequence: of the head.
  init(_ request: ReadArchive, upTo sequence: SequenceNumber, bytesMax: Int) throws(ErrorObject) {
    self.init(
      generation: request.generation,
      sequence: sequence,
      after: 0,
      reveals: request.reveal,
      bytesMax: bytesMax
    )
    guard let cursor = request.cursor else { return }
    let numbers = cursor.split(separator: ".", omittingEmptySubsequences: false).map { Int64($0) }
    guard numbers.count == 3, let generation = numbers[0], let fixed = numbers[1], let after = numbers[2],
      (0...sequence).contains(fixed), generation == request.generation ?? generation
    else { throw .invalidCursor() }
    self.generation = generation == 0 ? nil : generation
    (self.sequence, self.after) = (fixed, after)
  }

  /// Of the next page.
  var cursor: String? { next.map { "\(generation ?? 0).\(sequence).\($0)" } }
}

/// A page whose nodes are being read. As long as the tree of today shows the page's moment, it needs no nodes but its
/// own; otherwise the place of every node is read as well, and nothing else of it.
package struct PageReading {
  let page: ArchivePage
  let caller: Caller
  /// What the generation does not hold (R4, R7).
  private let omitted: Set<NodeID>
  /// The tree of that moment, without states; `nil` for that of today.
  private var past: NodeTree?
  /// Nodes that may be on the page.
  private var candidates: [NodeReading] = []
  private var bytes = 0
  /// Nodes follow the candidates that are on the next page.
  private var isMore = false

  init(_ page: ArchivePage, omitting omitted: [NodeID], isToday: Bool, for caller: Caller) {
    (self.page, self.caller, self.omitted) = (page, caller, Set(omitted))
    if !isToday { past = NodeTree() }
  }

  var first: StoreJob.Step { .nodes(after: past == nil ? page.after : 0, at: page.sequence) }

  /// The least that an object adds to a page, besides its path.
  private static func bytes(of reading: NodeReading) -> Int { (reading.state?.bytes ?? 0) + 400 }

  /// Whether the page may show the node. One without an identifier has no path (R4).
  private func isCandidate(_ node: NodeRecord) -> Bool {
    node.node > page.after && !node.isRemoved && node.component != nil && !omitted.contains(node.node)
  }

  /// Adds nodes.
  ///
  /// - Parameter isToday: whether the tree of today still shows that moment.
  /// - Returns: what must be read next; `nil` if that was all.
  mutating func take(_ nodes: [NodeReading], isToday: Bool) -> StoreJob.Step? {
    if past == nil, !isToday {
      (past, candidates, bytes, isMore) = (NodeTree(), [], 0, false)
      return first
    }
    for reading in nodes {
      past?.load(reading.node.place)
      guard !isMore, isCandidate(reading.node) else { continue }
      bytes += Self.bytes(of: reading)
      isMore = bytes > page.bytesMax && !candidates.isEmpty
      if !isMore { candidates.append(reading) }
    }
    if past != nil || !isMore, let next = StoreJob.Step.nodes(following: nodes, at: page.sequence) { return next }
    past?.indexAll()
    return nil
  }

  /// The objects that fit, with their paths at that moment. Notes where the next page begins, and the paths of what a
  /// generation's states refer to.
  func choose(for page: inout ArchivePage, today: NodeTree) -> [(object: NodeReading, path: IdentifierPath)] {
    let tree = past ?? today
    var chosen: [(object: NodeReading, path: IdentifierPath)] = []
    var bytes = 0
    page.next = isMore ? candidates.last?.node.node : nil
    for (index, object) in candidates.enumerated() {
      let number = object.node.node
      guard let node = tree.nodes[number], let path = tree.path(of: node) else { continue }
      bytes += Self.bytes(of: object) + path.bytes + path.pageBytes
      if bytes > page.bytesMax, !chosen.isEmpty {
        page.next = candidates[index - 1].node.node
        break
      }
      chosen.append((object, path))
      guard page.generation != nil, let state = object.state else { continue }
      for target in state.referencedNodes { page.targets[target] = tree.path(of: target) }
    }
    return chosen
  }
}

extension IdentifierPath {
  /// What a page counts of it besides its bytes: a long path takes its time.
  var pageBytes: Int { 16 * components.count }
}

extension NodeRecord {
  /// Only what its path, and those of others, depend on.
  fileprivate var place: NodeRecord {
    var record = self
    (record.classes, record.restorationClass, record.storyboard) = (nil, nil, nil)
    return record
  }
}
