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
  fileprivate(set) var sequence: SequenceNumber
  /// Whether any state is left out.
  private(set) var isRedacted = false
  package private(set) var entries: [Entry] = []
  /// By node.
  private(set) var paths = FormerPaths()
  /// The nodes whose states a generation does not hold (R4, R7); nil for the head.
  fileprivate let omitted: Set<NodeID>?
  private let reveals: Bool
  /// States that early ones hide.
  fileprivate var hidden: [SequenceNumber] = []
  /// What took the place of nodes that were gone by then, which states may refer to (R6).
  fileprivate var successors: [NodeID: NodeID] = [:]
  var lastUsed: Int64 = 0

  /// A plan of nothing yet.
  ///
  /// - Parameter omitted: nodes whose states a generation does not hold (R4, R7); nil for the head.
  package init(at sequence: SequenceNumber, omitting omitted: Set<NodeID>? = nil, reveals: Bool, for client: ClientID) {
    (self.client, self.sequence, self.omitted, self.reveals) = (client, sequence, omitted, reveals)
  }

  /// Adds objects, each after its parent.
  ///
  /// - Parameter places: where in the document those before are.
  fileprivate mutating func add(_ nodes: ArraySlice<Node>, _ places: inout [NodeID: Int], _ ancestry: inout Ancestry) {
    paths.add(nodes, &ancestry)
    for node in nodes {
      places[node.id] = entries.count
      let isKept = node.record.component != nil || node.record.kind == .application
      let state = isKept && omitted?.contains(node.id) != true ? node.state : nil
      let isHidden = node.record.isConfidential && !reveals && state != nil
      if isHidden { isRedacted = true }
      let isEarly = omitted == nil && state?.isEarly == true
      // The path determines the parent, unless it begins anew below it.
      let isTold = node.parent == nil || paths.continues(node.id)
      entries.append(
        Entry(
          record: node.record,
          parent: isTold ? nil : node.parent.flatMap { places[$0.id] },
          state: state,
          beforeClaim: isEarly ? node.beforeClaim : nil,
          isEarly: isEarly,
          isRedacted: isHidden
        )
      )
    }
  }

  /// The path of what a reference leads to; nil if the document has none.
  func path(ofTarget id: NodeID) -> IdentifierPath? { paths[successors.current(id)] }

  /// Sequences that must be readable until the last page: that of the export, and those of states hidden by early ones.
  var holds: [SequenceNumber] { [sequence] + hidden.suffix(ExportPlan.holdsMax) }
}

/// One page of an export: which entries it may hold.
package struct ExportPage: Sendable {
  /// The most objects of one page.
  static let objectsMax = 4_096

  /// Its export.
  package var export: Int
  /// The places of entries whose texts were requested.
  package var range: Range<Int>
  package var bytesMax: Int
  var call: LongCall
  /// Sequences that must stay readable for the next page.
  package var holds: [SequenceNumber]
}

/// An export that is being planned, in pieces: what the head or a generation holds at one moment is put in order.
package struct ExportPlanning {
  private enum Stage { case begun, gathered, linked, ordered, planned }

  /// How many objects are put in order at once.
  private static let pieceObjects = 2_048

  let bytesMax: Int
  let call: LongCall
  private(set) var plan: ExportPlan
  private var stage: Stage
  private var tree = NodeTree()
  private var order: ArraySlice<Node> = []
  private var places: [NodeID: Int] = [:]
  private var ancestry = Ancestry()

  init(_ plan: ExportPlan, bytesMax: Int, _ call: LongCall) {
    (self.plan, self.bytesMax, self.call) = (plan, bytesMax, call)
    stage = plan.omitted == nil ? .begun : .gathered
  }

  /// What comes first for the head; `nil` if all is planned.
  mutating func begin(with head: NodeTree, at sequence: SequenceNumber) -> StoreJob.Step? {
    isLarge(head) ? pause : take(head, at: sequence)
  }

  /// What comes after something was read, or after a pause; `nil` if all is planned.
  mutating func goOn(_ outcome: StoreJob.Outcome, _ head: NodeTree, at sequence: SequenceNumber) -> StoreJob.Step? {
    if case .nodes(let nodes) = outcome { return take(nodes) }
    return stage == .begun ? take(head, at: sequence) : goOn()
  }

  /// Takes in the head, which may change afterwards.
  private mutating func take(_ head: NodeTree, at sequence: SequenceNumber) -> StoreJob.Step? {
    (tree, plan.sequence, stage) = (head.copy, sequence, .gathered)
    plan.hidden = Set(tree.nodes.values.lazy.compactMap { $0.state?.isEarly == true ? $0.beforeClaim?.sequence : nil })
      .sorted()
    return isLarge(tree) ? pause : goOn()
  }

  /// Takes in nodes of a generation.
  private mutating func take(_ readings: [NodeReading]) -> StoreJob.Step? {
    tree.load(readings)
    return .nodes(following: readings, at: plan.sequence) ?? (isLarge(tree) ? pause : goOn())
  }

  private func isLarge(_ tree: NodeTree) -> Bool { tree.count > Self.pieceObjects }

  private var pause: StoreJob.Step { .pause(at: plan.sequence) }

  /// Plans the next piece.
  private mutating func goOn() -> StoreJob.Step? {
    while true {
      switch stage {
      case .begun, .planned: return nil
      case .gathered:
        tree.indexAll()
        plan.successors = tree.successors
        stage = .linked
      case .linked:
        order = tree.namedNodes(omitting: plan.omitted ?? [])[...]
        stage = .ordered
      case .ordered:
        plan.add(order.prefix(Self.pieceObjects), &places, &ancestry)
        order = order.dropFirst(Self.pieceObjects)
        if order.isEmpty { stage = .planned }
      }
      if isLarge(tree) { return pause }
    }
  }
}

extension NodeTree {
  /// Nodes as they are, with the states that everybody may read; not linked yet, as after `load`.
  fileprivate var copy: NodeTree {
    var copy = NodeTree()
    copy.reserve(nodes.count)
    for node in nodes.values {
      copy.load(node.record)
      guard let state = node.state, let copied = copy.nodes[node.id] else { continue }
      (copied.state, copied.beforeClaim) = (state, node.beforeClaim)
    }
    for (gone, successor) in successors { copy.load(.removal(of: gone, successor: successor)) }
    return copy
  }
}
