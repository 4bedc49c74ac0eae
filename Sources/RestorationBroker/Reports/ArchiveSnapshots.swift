// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Contents of an archive, for one report. Each piece lets others go first, and throws if the caller has left or
/// cancelled the call, or the archive was reopened.
///
/// It runs on the broker's event loop, so that the core can be asked between two pieces.
package actor ArchiveSnapshots {
  /// The most nodes of one piece.
  static let nodesMax = 1_024
  /// How many objects are looked at before others have their turn.
  private static let objectsMax = 2_048

  nonisolated package let unownedExecutor: UnownedSerialExecutor
  private let service: BrokerService
  private let store: any ArchiveStore
  private let id: ReportID
  private var call: LongCall
  /// How many were looked at in this piece.
  private var objects = 0

  init(for call: LongCall, _ id: ReportID, in store: any ArchiveStore, of service: BrokerService) {
    (self.call, self.id, self.store, self.service) = (call, id, store, service)
    unownedExecutor = service.unownedExecutor
  }

  /// Runs a report once a change is durable; returns `nil` if its caller was answered, or the core answers.
  func answer(to report: any Report, after sequence: SequenceNumber) async -> Answer? {
    do throws(ErrorObject) {
      try await service.awaitDurable(sequence, for: id)
      let result = try await report.run(self)
      return Task.isCancelled ? nil : result.map { Answer.result($0) }
    } catch {
      return Task.isCancelled ? nil : Answer.error(error)
    }
  }

  // MARK: Asking

  /// Asks the core, as it is now.
  func ask<Value: Sendable>(
    _ question: @Sendable (Application) throws(ErrorObject) -> Value
  ) async throws(ErrorObject) -> Value {
    try await service.ask(id.application, question)
  }

  /// Tells the caller how far the report has come, if that is due.
  func tell(_ done: Int, of total: Int, isLast: Bool = false) async throws(ErrorObject) {
    guard call.token != nil else { return }
    let now = try await ask { $0.turn.now }
    guard let progress = call.progress(done, of: total, isLast: isLast, at: now) else { return }
    try await ask { [call] in $0.tell(progress, of: call) }
  }

  /// How long ago the call came.
  func milliseconds() async throws(ErrorObject) -> Int64 {
    let now = try await ask { $0.turn.now }
    return call.milliseconds(at: now)
  }

  // MARK: Reading

  /// From now on the contents at a change stay readable, in place of those before. Returns when it is durable.
  func hold(_ sequence: SequenceNumber) async throws(ErrorObject) {
    await service.hold([sequence], for: id)
    try await service.awaitDurable(sequence, for: id)
  }

  /// The nodes that follow `node`, as many as a piece has, and the last of them if there are more.
  func nodes(
    after node: NodeID,
    at sequence: SequenceNumber
  ) async throws(ErrorObject) -> (nodes: [NodeReading], next: NodeID?) {
    let nodes = try await piece { lease throws(ArchiveError) in
      try await store.scan(after: node, limit: Self.nodesMax, at: .sequence(sequence), lease: lease)
    }
    return (nodes, nodes.count < Self.nodesMax ? nil : nodes.last?.node.node)
  }

  /// All nodes, which are not linked yet (`NodeTree.indexAll`).
  func tree(at sequence: SequenceNumber) async throws(ErrorObject) -> NodeTree {
    var tree = NodeTree()
    var next: NodeID? = 0
    while let last = next {
      let piece = try await nodes(after: last, at: sequence)
      tree.load(piece.nodes)
      next = piece.next
    }
    return tree
  }

  func states(in rows: [StateRequest.Row]) async throws(ErrorObject) -> [StateReading?] {
    try await piece { lease throws(ArchiveError) in try await store.states(in: rows, lease).get() }
  }

  /// The states in the rows of an answer, which the broker may have cached.
  func answeredStates(in rows: [StateRequest.Row]) async throws(ErrorObject) -> [StateReading?] {
    let bytes = rows.reduce(0) { $0 + $1.bytes }
    try await ask { [caller = call.caller] in $0.turn.ask(.expect(bytes, caller)) }
    if let states = await service.cached(rows, of: id.application) { return states }
    return try await states(in: rows)
  }

  /// Checks the next piece of the archive.
  func check(from position: VerificationPosition?) async throws(ErrorObject) -> VerificationPiece {
    try await piece { lease throws(ArchiveError) in try await store.verify(lease, from: position) }
  }

  /// Copies the archive, to a file or as its own backup copy; returns the bytes of the copy.
  func copy(to path: String?) async throws(ErrorObject) -> Int {
    let lease = try await service.lease(for: id)
    switch await store.copied(lease, to: path) {
    case .success(let bytes):
      try await endPiece()
      return bytes
    case .failure(.archive(let error)): throw try await failed(error)
    case .failure(.target(let message)):
      throw .invalidParameter(
        "/to",
        "the file cannot be made: \(message)",
        hint: "Name a file that does not exist yet, in a directory that the broker may write to."
      )
    }
  }

  /// `count` objects were looked at; others have their turn if the piece is full.
  func did(_ count: Int) async throws(ErrorObject) {
    objects += count
    if objects >= Self.objectsMax { _ = try await states(in: []) }
  }

  private func piece<Value: Sendable>(
    _ read: (ArchiveLease) async throws(ArchiveError) -> Value
  ) async throws(ErrorObject) -> Value {
    let lease = try await service.lease(for: id)
    let value: Value
    do throws(ArchiveError) {
      value = try await read(lease)
    } catch {
      throw try await failed(error)
    }
    try await endPiece()
    return value
  }

  private func endPiece() async throws(ErrorObject) {
    objects = 0
    try await service.endPiece(of: id, for: call.caller.client)
  }

  /// Why the report fails with a call of the store.
  private func failed(_ error: ArchiveError) async throws(ErrorObject) -> ErrorObject {
    try await service.endPiece(of: id, for: call.caller.client, error)
    return .storeError(error)
  }
}
