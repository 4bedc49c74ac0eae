// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// One page of `readArchive`. It reads only its own nodes while today's tree shows the page's moment, otherwise the
/// place of every node as well. It is quick, and cannot be cancelled.
struct ArchivePage: Report {
  /// `nil` for the head.
  let generation: Int64?
  /// Fixed by the first page, so that all pages show one moment.
  var sequence: SequenceNumber
  /// Nodes that the generation does not hold (R4, R7).
  var omitted: Set<NodeID> = []
  private let after: NodeID
  let reveals: Bool
  private let bytesMax: Int

  /// The objects that fit, with their paths at that moment.
  struct Found: Sendable {
    fileprivate(set) var objects: [(reading: NodeReading, path: IdentifierPath)] = []
    /// The paths of what a generation's states refer to, at that time.
    fileprivate var targets: [NodeID: IdentifierPath] = [:]
    /// The last node of the page, if others follow.
    fileprivate var last: NodeID?
  }

  /// - Parameter sequence: of the head.
  init(_ request: ReadArchive, upTo sequence: SequenceNumber, bytesMax: Int) throws(ErrorObject) {
    (reveals, self.bytesMax) = (request.reveal, bytesMax)
    guard let cursor = request.cursor else {
      (generation, self.sequence, after) = (request.generation, sequence, 0)
      return
    }
    let numbers = cursor.split(separator: ".", omittingEmptySubsequences: false).map { Int64($0) }
    guard numbers.count == 3, let generation = numbers[0], let fixed = numbers[1], let after = numbers[2],
      (0...sequence).contains(fixed), generation == request.generation ?? generation
    else { throw .invalidCursor() }
    self.generation = generation == 0 ? nil : generation
    (self.sequence, self.after) = (fixed, after)
  }

  var sequences: [SequenceNumber] { [sequence] }
  var isCancellable: Bool { false }

  func run(_ archive: isolated ArchiveSnapshots) async throws(ErrorObject) -> (any JSONWritable & Sendable)? {
    let found = try await find(archive)
    let objects = try await archive.ask { $0.archivedObjects(found, on: self) }
    let rows = found.objects.compactMap { object in
      object.reading.state.map {
        StateRequest.Row(node: object.reading.node.node, sequence: $0.sequence, bytes: $0.bytes)
      }
    }
    let readings = try await archive.answeredStates(in: rows)
    let targets = generation == nil ? nil : found.targets
    let complete = try await archive.ask { $0.add(readings, to: objects, targets) }
    return ReadArchive.Reply().with {
      ($0.generation, $0.objects) = (generation, complete)
      $0.cursor = found.last.map { "\(generation ?? 0).\(sequence).\($0)" }
    }
  }

  // MARK: Finding

  private func find(_ archive: isolated ArchiveSnapshots) async throws(ErrorObject) -> Found {
    var past: NodeTree?
    if try await archive.ask({ $0.shows(self) }) {
      let candidates = try await self.candidates(archive, &past)
      let found: Found? = try await archive.ask { $0.shows(self) ? choose(candidates, in: $0.tree) : nil }
      if let found { return found }
    }
    past = NodeTree()
    let candidates = try await self.candidates(archive, &past)
    return choose(candidates, in: past ?? NodeTree())
  }

  /// Nodes that may be on the page, and whether others follow them.
  private struct Candidates: Sendable {
    var nodes: [NodeReading] = []
    var bytes = 0
    var isMore = false
  }

  /// - Parameter past: becomes the tree of that moment, without states; `nil` if that of today shows it.
  private func candidates(
    _ archive: isolated ArchiveSnapshots,
    _ past: inout NodeTree?
  ) async throws(ErrorObject) -> Candidates {
    var found = Candidates()
    var next: NodeID? = past == nil ? after : 0
    while let last = next {
      let piece = try await archive.nodes(after: last, at: sequence)
      for reading in piece.nodes {
        past?.load(reading.node.place)
        guard !found.isMore, isCandidate(reading.node) else { continue }
        found.bytes += Self.bytes(of: reading)
        found.isMore = found.bytes > bytesMax && !found.nodes.isEmpty
        if !found.isMore { found.nodes.append(reading) }
      }
      next = past == nil && found.isMore ? nil : piece.next
    }
    past?.indexAll()
    return found
  }

  /// Whether the page may show the node. One without an identifier has no path (R4).
  private func isCandidate(_ node: NodeRecord) -> Bool {
    node.node > after && !node.isRemoved && node.component != nil && !omitted.contains(node.node)
  }

  /// The least that an object adds to a page, besides its path.
  private static func bytes(of reading: NodeReading) -> Int { (reading.state?.bytes ?? 0) + 400 }

  /// Chooses the objects that fit.
  private func choose(_ candidates: Candidates, in tree: NodeTree) -> Found {
    var found = Found()
    var bytes = 0
    found.last = candidates.isMore ? candidates.nodes.last?.node.node : nil
    for (index, object) in candidates.nodes.enumerated() {
      guard let node = tree.nodes[object.node.node], let path = tree.path(of: node) else { continue }
      bytes += Self.bytes(of: object) + path.bytes + path.pageBytes
      if bytes > bytesMax, !found.objects.isEmpty {
        found.last = candidates.nodes[index - 1].node.node
        break
      }
      found.objects.append((object, path))
      guard generation != nil, let state = object.state else { continue }
      for target in state.referencedNodes { found.targets[target] = tree.path(of: target) }
    }
    return found
  }
}

extension IdentifierPath {
  /// Its cost on a page besides its bytes: a long path takes time.
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
