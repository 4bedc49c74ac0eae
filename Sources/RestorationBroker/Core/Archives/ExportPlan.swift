// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import RestorationWire

/// The contents of an export in the order of the document, fixed at its beginning; texts are read page by page.
package struct ExportPlan {
  package struct Entry {
    let record: NodeRecord
    /// The parent's place, if the path does not determine it.
    let parent: Int?
    /// The state that every reader sees; if it is early, also the state for an owner that decodes (R19).
    let state: StateSummary?
    let beforeClaim: StateSummary?
    let isEarly: Bool
    let isRedacted: Bool
  }

  /// How long a cursor is valid after its last use.
  package static let idleMilliseconds: Int64 = 60_000
  /// The most exports of one application that wait for their next page; beyond it the longest idle one is dropped.
  static let countMax = 8
  /// Rows before early ones that upkeep must keep.
  private static let holdsMax = 64

  let client: ClientID
  let sequence: SequenceNumber
  /// Whether any state is left out.
  let isRedacted: Bool
  package let entries: [Entry]
  /// By node.
  let paths: FormerPaths
  /// What took the place of nodes that were gone by then, which states may refer to (R6).
  private let successors: [NodeID: NodeID]
  var lastUsed: Int64 = 0

  /// - Parameters:
  ///   - tree: nodes with their states.
  ///   - omitted: nodes whose states a generation does not hold (R4, R7).
  ///   - showsEarly: whether the tree shows the states that early ones hide.
  package init(
    _ tree: NodeTree,
    at sequence: SequenceNumber,
    omitting omitted: Set<NodeID> = [],
    showsEarly: Bool,
    reveals: Bool,
    for client: ClientID
  ) {
    let order = tree.namedNodes(omitting: omitted)
    var places: [NodeID: Int] = [:]
    for (place, node) in order.enumerated() { places[node.id] = place }
    var isRedacted = false
    let paths = FormerPaths(of: order)
    entries = order.map { node in
      let hasPath = node.record.component != nil
      let isKept = hasPath || node.record.kind == .application
      let state = !isKept || omitted.contains(node.id) ? nil : node.shared
      let isHidden = node.record.isConfidential && !reveals && state != nil
      if isHidden { isRedacted = true }
      // The path determines the parent, unless it begins anew below it.
      let isTold = paths.continues(node.id) || node.parent == nil
      return Entry(
        record: node.record,
        parent: isTold ? nil : node.parent.flatMap { places[$0.id] },
        state: state,
        beforeClaim: showsEarly && state?.isEarly == true ? node.beforeClaim : nil,
        isEarly: showsEarly && state?.isEarly == true,
        isRedacted: isHidden
      )
    }
    (self.client, self.sequence, self.isRedacted) = (client, sequence, isRedacted)
    (self.paths, successors) = (paths, tree.successors)
  }

  /// The path of what a reference leads to; nil if the document has none.
  func path(ofTarget id: NodeID) -> IdentifierPath? { paths[successors.current(id)] }

  /// Sequences that must be readable until the last page: that of the export, and those of states hidden by early ones.
  var holds: [SequenceNumber] {
    let hidden = Set(entries.compactMap { $0.beforeClaim?.sequence })
    return [sequence] + hidden.sorted().suffix(ExportPlan.holdsMax)
  }
}

/// One page of an export: which entries it may hold.
package struct ExportPage: Sendable {
  /// Its export.
  package var export: Int
  /// The places of entries whose texts were requested.
  package var range: Range<Int>
  package var bytesMax: Int
  var call: LongCall
  /// Sequences that must stay readable for the next page.
  package var holds: [SequenceNumber]
}

/// An export of a generation whose nodes are being read.
package struct ExportPlanning {
  let request: ExportArchive
  let generation: SealedGeneration
  let bytesMax: Int
  let call: LongCall
  var readings: [NodeReading] = []
}
