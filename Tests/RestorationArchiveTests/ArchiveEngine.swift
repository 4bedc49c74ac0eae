// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

/// The engines that pass one and the same suite.
enum ArchiveEngine: CaseIterable, Sendable {
  case memory
  case sqlite
}

/// A store of either engine, with the means to make another one over the same archives.
struct ArchiveFixture {
  let engine: ArchiveEngine
  let directory: ArchiveFolder
  let quota: ArchiveQuota
  let upkeep: ArchiveUpkeep
  private let system: any FileSystem
  private(set) var store: any ArchiveStore

  init(
    _ engine: ArchiveEngine,
    quota: ArchiveQuota = ArchiveQuota(),
    upkeep: ArchiveUpkeep = ArchiveUpkeep(ballastBytes: 0),
    in system: (_ directory: String) -> any FileSystem = { _ in SystemFiles() }
  ) throws {
    self.engine = engine
    self.quota = quota
    self.upkeep = upkeep
    directory = try ArchiveFolder()
    self.system = system(directory.path)
    switch engine {
    case .memory: store = try MemoryArchiveStore(quota: quota, upkeep: upkeep)
    case .sqlite:
      store = try SQLiteArchiveStore(directory: directory.path, of: self.system, quota: quota, upkeep: upkeep)
    }
  }

  /// Closes an archive, and for files takes a new store, as if the broker had been started again.
  mutating func restart(_ author: ArchiveAuthor) async throws {
    await store.close(author.lease)
    guard engine == .sqlite else { return }
    store = try SQLiteArchiveStore(directory: directory.path, of: system, quota: quota, upkeep: upkeep)
  }

  /// Opens an application's archive for writing.
  func author(_ application: String = "org.example.Notes") async throws -> ArchiveAuthor {
    ArchiveAuthor(store: store, opening: try await store.open(application), directory: directory)
  }
}

extension ArchiveFixture {
  /// Returns when no more files are open than may be: other archives do not wait for those that close theirs.
  func waitForParking() async { await store.setOpenArchivesMax(quota.openArchivesMax) }
}

/// Writes an archive under one lease and keeps count.
struct ArchiveAuthor {
  let store: any ArchiveStore
  let opening: ArchiveOpening
  /// Keeps the files from being removed while they are written.
  private let directory: ArchiveFolder
  private(set) var sequence: SequenceNumber
  private(set) var reachableBytes: Int
  /// Contexts that no row named after the last transaction.
  private(set) var unnamedContexts: [ContextID] = []

  var lease: ArchiveLease { opening.lease }

  init(store: any ArchiveStore, opening: ArchiveOpening, directory: ArchiveFolder) {
    self.directory = directory
    self.store = store
    self.opening = opening
    sequence = opening.sequence
    reachableBytes = opening.reachableBytes
  }

  @discardableResult
  mutating func apply(
    _ changes: ArchiveChange...,
    holding: [SequenceNumber] = []
  ) async throws(ArchiveError) -> ArchiveReceipt {
    try await apply(changes, holding: holding)
  }

  @discardableResult
  mutating func apply(
    _ changes: [ArchiveChange],
    changeID: ChangeID = .random(),
    holding: [SequenceNumber] = []
  ) async throws(ArchiveError) -> ArchiveReceipt {
    let receipt = try await store.apply(
      changes,
      lease: lease,
      expecting: sequence,
      changeID: changeID,
      holding: holding
    )
    sequence = receipt.sequence
    reachableBytes = receipt.reachableBytes
    unnamedContexts = receipt.unnamedContexts
    return receipt
  }

  /// The text of a node's state, or what there is instead of it.
  func text(of node: NodeID, at point: ArchivePoint = .head) async throws(ArchiveError) -> String? {
    switch try await store.read([node], at: point, lease: lease)[0] {
    case .state(let record, _): String(decoding: record.text, as: UTF8.self)
    case .unreadable: "unreadable"
    case nil: nil
    }
  }

  func scan(at point: ArchivePoint = .head) async throws(ArchiveError) -> [NodeReading] {
    try await store.scan(after: nil, limit: .max, at: point, lease: lease)
  }

  /// Runs upkeep until nothing is left to do; returns how many portions it took.
  @discardableResult
  func maintain(holding: [SequenceNumber] = []) async throws(ArchiveError) -> Int {
    var portions = 1
    while try await store.maintain(lease, holding: holding) { portions += 1 }
    return portions
  }
}

/// How an operation fails; `nil` if it succeeds.
func failure(_ body: () async throws(ArchiveError) -> Void) async -> ArchiveError.Kind? {
  do throws(ArchiveError) {
    try await body()
    return nil
  } catch {
    return error.kind
  }
}

extension ArchiveChange {
  /// A node of the simplest kind.
  static func node(_ node: NodeID, _ component: String?, parent: NodeID? = nil) -> ArchiveChange {
    .node(NodeRecord(node: node, parent: parent, component: component, kind: .object))
  }

  /// The end of a node.
  static func removed(_ node: NodeID, successor: NodeID? = nil) -> ArchiveChange {
    .node(NodeRecord(node: node, parent: nil, component: nil, kind: .object, isRemoved: true, successor: successor))
  }

  /// A state of the simplest kind.
  static func state(_ node: NodeID, _ text: String, early: Bool = false) -> ArchiveChange {
    .state(StateRecord(node: node, context: 0, isEarly: early, written: 0, text: Array(text.utf8)[...]))
  }

  static func seal(_ generation: Int64) -> ArchiveChange {
    .seal(GenerationRecord(generation: generation, kind: "round", committed: 0, objects: 0, bytes: 0))
  }
}
