// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import RestorationWire

/// The contents of an export in the order of the document, fixed at its beginning; texts are read page by page.
package struct ExportPlan: Sendable {
  package struct Entry: Sendable {
    let record: NodeRecord
    /// The parent's place, if the path does not determine it.
    let parent: Int?
    /// The state that every reader sees; if it is provisional, also the confirmed one for an owner that decodes (R19).
    let state: StateSummary?
    let beforeClaim: StateSummary?
    let isEarly: Bool
    let isRedacted: Bool
  }

  /// How long a cursor is valid after its last use.
  package static let idleMilliseconds: Int64 = 60_000
  /// The most exports of one application that wait for their next page; beyond it the longest idle one is dropped.
  static let countMax = 8

  let client: ClientID
  let sequence: SequenceNumber
  /// The nodes whose states a generation does not hold (R4, R7); nil for the head.
  let omitted: Set<NodeID>?
  private let reveals: Bool
  /// Whether any state is left out.
  private(set) var isRedacted = false
  package private(set) var entries: [Entry] = []
  /// By node.
  private(set) var paths = FormerPaths()
  /// Sequences that must be readable until the last page.
  var sequences: [SequenceNumber]
  /// Successors of the gone nodes that states may refer to (R6).
  var successors: [NodeID: NodeID] = [:]
  var lastUsed: Int64 = 0

  package init(at sequence: SequenceNumber, omitting omitted: Set<NodeID>? = nil, reveals: Bool, for client: ClientID) {
    (self.client, self.sequence, self.omitted, self.reveals) = (client, sequence, omitted, reveals)
    sequences = [sequence]
  }

  /// Adds objects, each after its parent; `places` are those of earlier objects in the document.
  mutating func add(_ nodes: ArraySlice<Node>, _ places: inout [NodeID: Int], _ ancestry: inout Ancestry) {
    paths.add(nodes, &ancestry)
    for node in nodes {
      places[node.id] = entries.count
      let isKept = node.record.component != nil || node.record.kind == .application
      let state = isKept && omitted?.contains(node.id) != true ? node.state : nil
      let isHidden = node.record.isConfidential && !reveals && state != nil
      if isHidden { isRedacted = true }
      let isEarly = omitted == nil && state?.isEarly == true
      // The path determines the parent, unless it starts again below it.
      let isTold = node.parent == nil || paths.continues(node.id)
      entries.append(
        Entry(
          record: node.record,
          parent: isTold ? nil : node.parent.flatMap { places[$0.id] },
          state: state,
          beforeClaim: isEarly ? node.versions.hidden : nil,
          isEarly: isEarly,
          isRedacted: isHidden
        )
      )
    }
  }

  /// The path of a reference's target; nil if the document has none.
  func path(ofTarget id: NodeID) -> IdentifierPath? { paths[successors.current(id)] }
}
