// SPDX-License-Identifier: Apache-2.0

/// The purpose of an opening; each includes those before it.
package enum ArchivePurpose: Int, Comparable, Sendable {
  /// It must exist.
  case reading
  /// Resumes a session; creates the archive if it does not exist.
  case resuming
  /// Asks another host that has it to leave.
  case writing
  /// Takes it from another host at once.
  case taking

  package var creates: Bool { self >= .resuming }
  package var wants: Bool { self >= .writing }

  package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
}

/// An archive as opened: the data for the broker's decisions, without the text of any state.
package struct ArchiveOpening: Sendable {
  package var lease: ArchiveLease
  /// Names the archive for ever; numbers cached elsewhere are compared together with it.
  package var archive: String
  package var sequence: SequenceNumber
  /// The newest change of a node or a state; tells whether the head changed since a generation.
  package var contentSequence: SequenceNumber
  package var reachableBytes: Int
  /// How a damaged file was handled, for logs and people; `nil` if nothing was wrong (R32).
  package var damage: String?
  /// Whether a copy in an earlier format is kept, from before the archive was migrated.
  package var hasFormer = false
  /// Why writes are lost when the archive is closed; `nil` if they are kept.
  package var readOnly: String?
  /// Nodes at the head with their states at the head, in ascending order of id, removed ones with a successor included.
  package var nodes: [NodeReading]
  package var contexts: [ContextID: String]
  /// Contexts that only unreachable rows name. Held sequences can still read them. No new row may name them, because
  /// another host may have deleted them.
  package var buriedContexts: Set<ContextID>
  /// Kept generations in ascending order, with the sequence each one seals.
  package var generations: [SealedGeneration]
  /// The highest generation number and ids ever given, so that no number is given again.
  package var lastGeneration: Int64
  package var lastNode: NodeID
  package var lastContext: ContextID
  package var lastSession: SessionID
  package var sessions: [SessionRecord]
  package var claims: [ClaimRecord]
  package var run: RunRecord?
  /// Rows kept by `ArchiveChange.withhold`, in ascending order of sequence.
  package var withheld: [WithheldRow]

  package init(
    lease: ArchiveLease,
    archive: String,
    sequence: SequenceNumber,
    contentSequence: SequenceNumber = 0,
    reachableBytes: Int,
    damage: String? = nil,
    nodes: [NodeReading] = [],
    contexts: [ContextID: String] = [:],
    buriedContexts: Set<ContextID> = [],
    generations: [SealedGeneration] = [],
    lastGeneration: Int64 = 0,
    lastNode: NodeID = 0,
    lastContext: ContextID = 0,
    lastSession: SessionID = 0,
    sessions: [SessionRecord] = [],
    claims: [ClaimRecord] = [],
    run: RunRecord? = nil,
    withheld: [WithheldRow] = []
  ) {
    (self.lease, self.archive, self.sequence) = (lease, archive, sequence)
    (self.contentSequence, self.reachableBytes, self.damage) = (contentSequence, reachableBytes, damage)
    (self.nodes, self.contexts, self.buriedContexts) = (nodes, contexts, buriedContexts)
    self.generations = generations
    (self.lastGeneration, self.lastNode, self.lastContext) = (lastGeneration, lastNode, lastContext)
    (self.lastSession, self.sessions, self.claims, self.run) = (lastSession, sessions, claims, run)
    self.withheld = withheld
  }
}

package struct SealedGeneration: Hashable, Sendable {
  package var record: GenerationRecord
  /// Reading at this sequence shows the generation.
  package var sequence: SequenceNumber
  package var isPinned: Bool

  package init(record: GenerationRecord, sequence: SequenceNumber, isPinned: Bool) {
    (self.record, self.sequence, self.isPinned) = (record, sequence, isPinned)
  }
}

/// A state row that is kept until it is released (R35).
package struct WithheldRow: Hashable, Sendable {
  package var row: StateRow
  /// Milliseconds since 1970.
  package var since: Int64
  /// As in `StateRecord.bytes`.
  package var bytes: Int

  package init(row: StateRow, since: Int64, bytes: Int) { (self.row, self.since, self.bytes) = (row, since, bytes) }
}

/// A node and the summary of its state, without the text.
package struct NodeReading: Hashable, Sendable {
  package var node: NodeRecord
  /// The node's newest state as seen at the point asked for; `nil` if it has no state.
  package var state: StateSummary?
  /// Its newest state that is not early, if that is another row (R19).
  package var beforeClaim: StateSummary?

  package init(node: NodeRecord, state: StateSummary?, beforeClaim: StateSummary? = nil) {
    (self.node, self.state, self.beforeClaim) = (node, state, beforeClaim)
  }
}

package struct StateSummary: Hashable, Sendable {
  package var sequence: SequenceNumber
  package var context: ContextID
  package var session: SessionID
  package var revision: Int64
  package var written: Int64
  /// As in `StateRecord.references`: a generation holds what included states refer to (R7).
  package var references: String?
  /// 32 bits are enough for every row, and an open archive holds a summary of each.
  let size: UInt32
  package var isEarly: Bool

  package var bytes: Int { Int(size) }

  package init(
    sequence: SequenceNumber,
    context: ContextID,
    session: SessionID,
    revision: Int64,
    isEarly: Bool,
    written: Int64,
    bytes: Int,
    references: String? = nil
  ) {
    (self.sequence, self.context, self.session, self.revision) = (sequence, context, session, revision)
    (self.isEarly, self.written) = (isEarly, written)
    self.size = UInt32(clamping: bytes)
    self.references = references
  }

  package init(_ record: StateRecord, at sequence: SequenceNumber) {
    self.init(
      sequence: sequence,
      context: record.context,
      session: record.session,
      revision: record.revision,
      isEarly: record.isEarly,
      written: record.written,
      bytes: record.bytes,
      references: record.references
    )
  }
}

package enum StateReading: Hashable, Sendable {
  case state(StateRecord, sequence: SequenceNumber)
  /// The row is there and its checksum or text is bad (R32).
  case unreadable(sequence: SequenceNumber)
}

/// The summary of an archive, read without opening it for writing.
package struct ArchiveSummary: Hashable, Sendable {
  package enum State: Hashable, Sendable {
    case available
    case unreadable(String)
  }

  package var application: String
  package var state: State
  package var objects = 0
  package var generation: Int64 = 0
  /// Size of the archive at rest, in bytes.
  package var bytes = 0
  /// Milliseconds since 1970 of the newest write; 0 if nothing was written.
  package var modified: Int64 = 0
  package var run: RunRecord?
  /// Another host that has it, if that was asked for.
  package var holder: ReplicaHolder?
  /// This host has a copy.
  package var isHere = true

  package init(
    application: String,
    state: State,
    objects: Int = 0,
    generation: Int64 = 0,
    bytes: Int = 0,
    modified: Int64 = 0,
    run: RunRecord? = nil
  ) {
    (self.application, self.state, self.objects) = (application, state, objects)
    (self.generation, self.bytes, self.modified, self.run) = (generation, bytes, modified, run)
  }

  package var isElsewhere: Bool { holder != nil }
}
