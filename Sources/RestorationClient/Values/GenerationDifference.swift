// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// What `rollBack` made.
public struct RolledBackArchive: Hashable, Sendable {
  /// The generation that the head now equals.
  public let generation: Int64
  /// The generation that keeps what was there before; nil where nothing was.
  public let formerGeneration: Int64?
  /// Objects whose states in the old generation are damaged: they have come back without (R32).
  public let unreadable: [[String]]

  init(_ reply: RollBack.Reply) {
    generation = reply.generation
    formerGeneration = reply.former
    unreadable = reply.unreadable.map(\.components)
  }
}

/// What differs between two generations, or a generation and the head.
public struct GenerationDifference: Hashable, Sendable {
  /// Objects that only the later one has, in order of their paths.
  public private(set) var added: [[String]] = []
  /// Objects that only the earlier one has.
  public private(set) var removed: [[String]] = []
  /// Objects whose states differ.
  public private(set) var changed: [Change] = []

  /// How the state of one object differs.
  public struct Change: Hashable, Sendable {
    /// Its path.
    public let path: [String]
    /// Top-level keys that only one side has, or whose values differ.
    public let keys: [String]
    /// Whether the elements differ.
    public let elements: Bool
    /// Keys are not told, because the object is confidential.
    public let redacted: Bool
    /// Keys are not known, because a state is damaged (R32).
    public let unreadable: Bool
  }

  /// Whether nothing differs.
  public var isEmpty: Bool { added.isEmpty && removed.isEmpty && changed.isEmpty }

  init() {}

  mutating func add(_ page: DiffGenerations.Reply) {
    added += page.added.map(\.components)
    removed += page.removed.map(\.components)
    changed += page.changed.map { change in
      Change(
        path: change.path.components,
        keys: change.keys,
        elements: change.elements,
        redacted: change.redacted,
        unreadable: change.unreadable
      )
    }
  }
}
