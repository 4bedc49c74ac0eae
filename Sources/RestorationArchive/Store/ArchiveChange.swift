// SPDX-License-Identifier: Apache-2.0

/// One change of an archive; each takes one sequence number.
package enum ArchiveChange: Hashable, Sendable {
  /// Appends the description of a node as it is from now on (registration, move, removal).
  case node(NodeRecord)
  case state(StateRecord)
  /// A replaced state that no reader can reach: has only its sequence number. An archive that follows its user has it
  /// on hosts that did not write the state.
  case superseded
  /// Appends the removal of a node's state.
  case removeState(NodeID)
  /// Empties the head in one row; generations keep their nodes and states (R30).
  case removeAll
  /// Removes the early mark of every state row these nodes have (R19).
  case settle([NodeID])
  /// Keeps these rows until release, even if newer ones replace them (R35); unreachable rows are ignored. `since`:
  /// milliseconds since 1970.
  case withhold([StateRow], since: Int64)
  /// Releases withheld rows; those that no reader can reach are then dead.
  case release([StateRow])
  /// Stores a context under an id that none has.
  case context(ContextID, text: String)
  /// Deletes contexts, except those that a row names.
  case forgetContexts([ContextID])
  /// Seals everything written before it as a numbered generation.
  case seal(GenerationRecord)
  /// Pins a generation instead of the pinned one; `nil` unpins it.
  case pin(generation: Int64?)
  /// Forgets a generation; its number is never used again.
  case dropGeneration(Int64)
  /// Writes the whole record of a session of this host, replacing an earlier one of the same id.
  case session(SessionRecord)
  /// Forgets sessions that are no longer named by a claim.
  case forgetSessions([SessionID])
  /// Replaces the node's claim.
  case claim(ClaimRecord)
  case run(RunRecord)
}

extension ArchiveChange {
  /// Whether it changes nodes or states.
  package var isContent: Bool {
    switch self {
    case .node, .state, .removeState, .removeAll: true
    case .superseded, .settle, .withhold, .release, .context, .forgetContexts, .seal, .pin, .dropGeneration, .session,
      .forgetSessions, .claim, .run:
      false
    }
  }

  /// Approximate bytes of memory while it waits for the disk.
  package var memory: Int {
    let content =
      switch self {
      case .state, .node, .context, .session, .run: textBytes
      case .forgetContexts(let contexts): contexts.count * MemoryLayout<ContextID>.size
      case .settle(let nodes): nodes.count * MemoryLayout<NodeID>.size
      case .forgetSessions(let sessions): sessions.count * MemoryLayout<SessionID>.size
      case .withhold(let rows, _), .release(let rows): rows.count * MemoryLayout<StateRow>.size
      case .seal(let record): record.omitted.count * MemoryLayout<NodeID>.size
      case .superseded, .removeState, .removeAll, .pin, .dropGeneration, .claim: 0
      }
    return content + Self.overhead
  }

  package var textBytes: Int {
    switch self {
    case .state(let record): record.bytes
    case .node(let record): record.textBytes
    case .context(_, let text): text.utf8.count
    case .session(let record): record.facts.utf8.count
    case .run(let record): record.facts.utf8.count
    case .superseded, .removeState, .removeAll, .settle, .withhold, .release, .forgetContexts, .seal, .pin,
      .dropGeneration, .forgetSessions, .claim:
      0
    }
  }

  /// The memory of a change besides its texts: its place in a list, and a buffer for the state.
  private static let overhead = MemoryLayout<Self>.stride + 64
}

package struct StateRow: Hashable, Sendable {
  package var node: NodeID
  package var sequence: SequenceNumber

  package init(node: NodeID, sequence: SequenceNumber) { (self.node, self.sequence) = (node, sequence) }
}

package struct NodeRecord: Hashable, Sendable {
  package var node: NodeID
  /// The restoration parent; `nil` for a root.
  package var parent: NodeID?
  /// `identifier` or `identifier#position`; `nil` if the identifier is null (R4).
  package var component: String?
  package var kind: NodeKind
  /// JSON array of the class and its superclasses as registered; `nil` if not given. Opaque to the store.
  package var classes: String?
  /// The restoration class that recreates the object; `nil` if not given.
  package var restorationClass: String?
  /// The storyboard unit whose process restores the object; `nil` if not given.
  package var storyboard: String?
  /// Kept forever even if it is not claimed (R13).
  package var keepsForever: Bool
  /// Its texts are redacted for people (`Protocol/README.md`, security).
  package var isConfidential: Bool
  /// The node is gone from here on; older generations still show it.
  package var isRemoved: Bool
  /// The node to which references to a removed node now lead; `nil` if they lead nowhere (R6).
  package var successor: NodeID?

  package init(
    node: NodeID,
    parent: NodeID?,
    component: String?,
    kind: NodeKind,
    classes: String? = nil,
    restorationClass: String? = nil,
    storyboard: String? = nil,
    keepsForever: Bool = false,
    isConfidential: Bool = false,
    isRemoved: Bool = false,
    successor: NodeID? = nil
  ) {
    (self.node, self.parent, self.component, self.kind, self.classes) = (node, parent, component, kind, classes)
    (self.restorationClass, self.storyboard, self.keepsForever) = (restorationClass, storyboard, keepsForever)
    (self.isConfidential, self.isRemoved, self.successor) = (isConfidential, isRemoved, successor)
  }
}

package enum NodeKind: Int64, Hashable, Sendable {
  case object = 0
  case viewController = 1
  case view = 2
  /// The application itself, for its own state; there is at most one, without component and parent.
  case application = 3
}

package struct StateRecord: Hashable, Sendable {
  package var node: NodeID
  package var context: ContextID
  /// The session that wrote it and its revision there; 0 if the write named no session (R15).
  package var session: SessionID
  package var revision: Int64
  /// Written by an owner that had not decoded the object although an older state existed (R19).
  package var isEarly: Bool
  /// Milliseconds since 1970, UTC, by the broker's clock; information only, order is by sequence.
  package var written: Int64
  /// JSON text of the state, UTF-8, with references as archive ids.
  package var text: ArraySlice<UInt8>
  /// JSON array of `[offset, length, node]` for each reference object in `text`; `nil` if there are no references.
  package var references: String?
  /// JSON array of the elements; `nil` if there are no elements.
  package var elements: String?

  package init(
    node: NodeID,
    context: ContextID,
    session: SessionID = 0,
    revision: Int64 = 0,
    isEarly: Bool = false,
    written: Int64,
    text: ArraySlice<UInt8>,
    references: String? = nil,
    elements: String? = nil
  ) {
    (self.node, self.context, self.session, self.revision) = (node, context, session, revision)
    (self.isEarly, self.written, self.text, self.references) = (isEarly, written, text, references)
    self.elements = elements
  }

  /// Bytes the archive limit counts for this state.
  package var bytes: Int { text.count + (references?.utf8.count ?? 0) + (elements?.utf8.count ?? 0) }
}

/// A sealed, numbered version of the archive (R16).
package struct GenerationRecord: Hashable, Sendable {
  /// 1, 2, 3 …; never reused.
  package var generation: Int64
  /// `startup` or `round`.
  package var kind: String
  /// Milliseconds since 1970, UTC.
  package var committed: Int64
  package var objects: Int
  package var bytes: Int
  /// Nodes left out although they have a state (R4, R7).
  package var omitted: [NodeID]

  package init(generation: Int64, kind: String, committed: Int64, objects: Int, bytes: Int, omitted: [NodeID] = []) {
    (self.generation, self.kind, self.committed, self.objects) = (generation, kind, committed, objects)
    (self.bytes, self.omitted) = (bytes, omitted)
  }
}

/// A client session, with facts that hold on this host only.
package struct SessionRecord: Hashable, Sendable {
  package var session: SessionID
  /// 128 random bits in hex; resumes the session.
  package var token: String
  /// JSON object with the `initialize` parameters and the process; opaque to the store.
  package var facts: String
  /// How it ended; `nil` while it lives.
  package var ending: String?
  /// Milliseconds since 1970 when it ended, and how many restorations had completed by then (R13).
  package var ended: Int64
  package var restorationsAtEnd: Int64

  package init(
    session: SessionID,
    token: String,
    facts: String,
    ending: String? = nil,
    ended: Int64 = 0,
    restorationsAtEnd: Int64 = 0
  ) {
    (self.session, self.token, self.facts, self.ending, self.ended) = (session, token, facts, ending, ended)
    self.restorationsAtEnd = restorationsAtEnd
  }
}

/// Which session claims, or last claimed, a node.
package struct ClaimRecord: Hashable, Sendable {
  package var node: NodeID
  package var session: SessionID
  /// The handle the session was given; positive, below 2^53.
  package var handle: Int64
  /// Milliseconds since 1970 when the owner released it while its session continued; 0 while it is claimed.
  package var released: Int64
  /// How many restorations had completed by then (R13); while it is claimed, the number of its `delivery`.
  package var restorationsAtRelease: Int64

  package init(node: NodeID, session: SessionID, handle: Int64, released: Int64 = 0, restorationsAtRelease: Int64 = 0) {
    (self.node, self.session, self.handle, self.released) = (node, session, handle, released)
    self.restorationsAtRelease = restorationsAtRelease
  }

  /// The delivery of the state that was saved when an object was claimed (R29).
  package enum Delivery: Int64 {
    /// There is nothing for the owner, or it has the state.
    case none = 0
    case due = 1
    /// The owner has the state, and must still be told that its restoration is over (R21).
    case given = 2
  }

  package init(node: NodeID, session: SessionID, handle: Int64, _ delivery: Delivery) {
    self.init(node: node, session: session, handle: handle, restorationsAtRelease: delivery.rawValue)
  }

  /// `none` once it is released.
  package var delivery: Delivery { released == 0 ? Delivery(rawValue: restorationsAtRelease) ?? .none : .none }
}

/// The record of the application's current or last run, which outlives a broker.
package struct RunRecord: Hashable, Sendable {
  package var run: Int64
  /// Restorations completed so far, over all runs (R13).
  package var restorations: Int64
  /// JSON object with outcomes by process role; opaque to the store.
  package var facts: String

  package init(run: Int64, restorations: Int64, facts: String) {
    (self.run, self.restorations, self.facts) = (run, restorations, facts)
  }
}
