// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
package import RestorationArchive

/// Archives in memory that outlive their brokers, and whose calls a test holds back or has fail.
package final class MemoryDisk {
  /// Answers to `open` instead of the archive, by application.
  package var openingFailures: [String: ArchiveError] = [:]
  /// Damage that is found when an archive is opened, by application.
  package var openingDamage: [String: String] = [:]
  /// Why reads and pieces of long work fail until the archive is opened anew, by application.
  package var readFailures: [String: ArchiveError] = [:]
  /// Why copies to these files fail.
  package var copyFailures: [String: ArchiveCopyError] = ["/dev/null": .target("File exists")]
  /// Changes are not made durable until `commit()`.
  package var holdsCommits = false
  /// Changes are stored, but nobody is told so until `answerFirst()`: as if a replica had to have them too.
  package var holdsReceipts = false
  /// Archives are not opened until `openHeld()`.
  package var holdsOpenings = false
  package var holdsListings = false
  /// Who closes an archive is not told so until `closeHeld()`.
  package var holdsClosings = false
  /// What a test does before each piece of long work.
  package var betweenPieces: (() -> Void)?
  /// Every change that was ever committed; the one with sequence n is at n − 1.
  package private(set) var logs: [String: [ArchiveChange]] = [:]
  /// What was committed since the last `forgetWritten`.
  package var written: [ArchiveChange] = []
  /// Archives that were ever made.
  package private(set) var names: Set<String> = []
  package private(set) var damaged: [String: Set<SequenceNumber>] = [:]
  package private(set) var backups = 0
  package private(set) var openings: [ArchivePurpose] = []
  /// Openings for which nobody waited any longer.
  package private(set) var givenUp = 0
  /// What was computed on the archives' lanes and not on the broker's loop.
  package private(set) var computedCount = 0
  package private(set) var jobCount = 0
  package private(set) var upkeepCount = 0
  package private(set) var closed: [String] = []
  package private(set) var removed: [String] = []
  /// Archives of the user that this host does not hold, and those that were taken over from them.
  package var others: [ArchiveSummary] = []
  package var isReplicaAway = false
  package private(set) var takenOver: [String] = []
  /// Something is being sent that nobody waits for.
  package var isShipping = false
  /// By application, of the last opening.
  package private(set) var leases: [String: ArchiveLease] = [:]
  /// Is told what becomes of archives without the broker's doing.
  package private(set) var tellBroker: @Sendable (ArchiveRoamingEvent) -> Void = { _ in }
  private let loop: TestEventLoop
  private let newIdentifier: @Sendable () -> String
  private var archives: MemoryArchiveStore
  private var held: [Held] = []
  /// Counts brokers; only the last one is heard.
  private var broker = 0

  private enum Call { case commit, receipt, open, close, list, piece }

  private struct Held {
    let call: Call
    let application: String
    let waiting: HeldCall<ArchiveError>
  }

  package init(on loop: TestEventLoop, newIdentifier: @escaping @Sendable () -> String) throws {
    (self.loop, self.newIdentifier) = (loop, newIdentifier)
    archives = try MemoryArchiveStore(on: loop, newIdentifier: newIdentifier)
  }

  // MARK: What a test does and sees

  /// The store of a broker that starts now; the one before gets nothing more done.
  package func connect() -> any ArchiveStore {
    disconnect()
    return Store(of: NIOLoopBound(self, eventLoop: loop), on: loop, broker)
  }

  package func disconnect() {
    broker += 1
    resume { _ in Self.disconnected }
  }

  fileprivate static let disconnected = ArchiveError(.fenced, "the process of this store has ended")

  /// What a broker would find; nil if there is no such archive.
  package func archive(_ name: String) -> ArchiveOpening? { archives.assumeIsolated { $0.contents(of: name) } }

  package func forgetWritten() { written = [] }

  /// Pieces of long work that a test has not let go yet.
  package var heldPieces: Int { held.count { $0.call == .piece } }

  /// Sequences of the states that were ever written to a node.
  package func rows(of node: NodeID, in name: String = "App") -> [SequenceNumber] {
    (logs[name] ?? []).enumerated().compactMap { index, change in
      if case .state(let record) = change, record.node == node { SequenceNumber(index + 1) } else { nil }
    }
  }

  /// Makes the states written as these sequences unreadable.
  package func damage(_ name: String, _ rows: some Sequence<SequenceNumber>) {
    damaged[name, default: []].formUnion(rows)
  }

  /// Makes the archives anew, one of them with another past. A broker that has one open does not survive it.
  package func tamper(_ name: String, _ change: (inout [ArchiveChange]) -> Void) throws {
    change(&logs[name, default: []])
    let (archives, logs) = (try MemoryArchiveStore(on: loop, newIdentifier: newIdentifier), logs)
    archives.assumeIsolated { archives in
      _ = Task {
        for (name, changes) in logs {
          let opening = try await archives.open(name, for: .writing)
          let change = ChangeID(high: 0, low: 0)
          let batch = ArchiveBatch(changes)
          _ = try await archives.apply(batch, lease: opening.lease, expecting: 0, changeID: change, holding: [])
          await archives.close(opening.lease)
        }
      }
    }
    loop.run()
    self.archives = archives
  }

  /// Lets the calls go that are held back no longer; returns whether there was one.
  func letGo() -> Bool {
    guard let index = held.firstIndex(where: { $0.call == .piece || !holds($0.call) }) else { return false }
    let call = held.remove(at: index)
    if call.call == .piece { betweenPieces?() }
    call.waiting.letGo()
    return true
  }

  /// From now on nothing fails or is held back.
  func holdNothing() {
    (holdsCommits, holdsReceipts, betweenPieces) = (false, false, nil)
    (holdsOpenings, holdsListings, holdsClosings) = (false, false, false)
    (openingFailures, readFailures, copyFailures) = ([:], [:], [:])
    resume { _ in nil }
  }

  /// Lets the held commits go, once.
  package func commit() { resume(.commit) { _ in nil } }

  /// The held commits of an application fail, and nothing of them is stored.
  package func failCommit(_ name: String, as error: ArchiveError = ArchiveError(.full, "the disk is full")) {
    resume(.commit) { $0 == name ? error : nil }
  }

  /// The held openings of an application fail.
  package func failOpening(_ name: String, as error: ArchiveError) { resume(.open) { $0 == name ? error : nil } }

  /// Answers the first transaction whose receipt is held.
  package func answerFirst(_ error: ArchiveError? = nil) {
    guard let index = held.firstIndex(where: { $0.call == .receipt }) else { return }
    held.remove(at: index).waiting.letGo(error)
  }

  private func resume(_ kind: Call? = nil, with error: (String) -> ArchiveError?) {
    let resumed = held.filter { kind == nil || $0.call == kind }
    held.removeAll { kind == nil || $0.call == kind }
    for call in resumed { call.waiting.letGo(error(call.application)) }
  }

  // MARK: What the broker does

  private func holds(_ call: Call) -> Bool {
    switch call {
    case .commit: holdsCommits
    case .receipt: holdsReceipts
    case .open: holdsOpenings
    case .close: holdsClosings
    case .list: holdsListings
    case .piece: betweenPieces != nil
    }
  }

  /// The archives as one broker has them.
  private actor Store: ArchiveStore, ArchiveCopying, ArchiveRoaming {
    private let loop: TestEventLoop
    private let bound: NIOLoopBound<MemoryDisk>
    private let broker: Int
    nonisolated let sizes: ArchiveSizes

    init(of disk: NIOLoopBound<MemoryDisk>, on loop: TestEventLoop, _ broker: Int) {
      (bound, self.loop, self.broker) = (disk, loop, broker)
      sizes = disk.value.archives.sizes
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private var disk: MemoryDisk { bound.value }

    /// Returns when the call may go on.
    private func pass(_ call: Call? = nil, _ application: String = "") async throws(ArchiveError) {
      if let call, disk.holds(call) {
        let held = Held(call: call, application: application, waiting: HeldCall(on: disk.loop))
        disk.held.append(held)
        if let error = await held.waiting.wait() { throw error }
      }
      guard broker == disk.broker else { throw MemoryDisk.disconnected }
    }

    private func piece(of lease: ArchiveLease) async throws(ArchiveError) {
      disk.jobCount += 1
      try await pass(.piece, lease.application)
      if let failure = disk.readFailures[lease.application] { throw failure }
    }

    /// As a reader sees it.
    private func seen(_ reading: StateReading, _ lease: ArchiveLease) -> StateReading {
      guard case .state(_, let sequence) = reading, disk.damaged[lease.application]?.contains(sequence) == true
      else { return reading }
      return .unreadable(sequence: sequence)
    }

    func open(_ application: String, for purpose: ArchivePurpose) async throws(ArchiveError) -> ArchiveOpening {
      disk.openings.append(purpose)
      try await pass(.open, application)
      if Task.isCancelled {
        disk.givenUp += 1
        throw ArchiveError(.definite, "nobody waits for \(application)")
      }
      let failure = disk.openingFailures[application]
      if let failure, purpose.creates || disk.archive(application) != nil { throw failure }
      var opening = try await disk.archives.open(application, for: purpose)
      opening.damage = disk.openingDamage[application]
      disk.readFailures[application] = nil
      disk.names.insert(application)
      disk.leases[application] = opening.lease
      return opening
    }

    func compute<Value>(for application: String, _ work: @Sendable () -> sending Value) async -> sending Value {
      disk.computedCount += 1
      return work()
    }

    func apply(
      _ batch: ArchiveBatch,
      lease: ArchiveLease,
      expecting: SequenceNumber,
      changeID: ChangeID,
      holding: [SequenceNumber]
    ) async throws(ArchiveError) -> ArchiveReceipt {
      try await pass(.commit, lease.application)
      let changes = batch.take()
      let receipt = try await disk.archives.apply(
        ArchiveBatch(changes),
        lease: lease,
        expecting: expecting,
        changeID: changeID,
        holding: holding
      )
      disk.logs[lease.application, default: []] += changes
      disk.written += changes
      try await pass(.receipt, lease.application)
      return receipt
    }

    func read(
      _ nodes: [NodeID],
      at point: ArchivePoint,
      lease: ArchiveLease
    ) async throws(ArchiveError) -> [StateReading?] {
      try await piece(of: lease)
      return try await disk.archives.read(nodes, at: point, lease: lease).map { $0.map { seen($0, lease) } }
    }

    func scan(
      after node: NodeID?,
      limit: Int,
      at point: ArchivePoint,
      lease: ArchiveLease
    ) async throws(ArchiveError) -> [NodeReading] {
      try await piece(of: lease)
      return try await disk.archives.scan(after: node, limit: limit, at: point, lease: lease)
    }

    func verify(
      _ lease: ArchiveLease,
      from position: VerificationPosition?
    ) async throws(ArchiveError) -> VerificationPiece {
      try await piece(of: lease)
      var piece = try await disk.archives.verify(lease, from: position)
      for index in piece.rows.indices { piece.rows[index].reading = seen(piece.rows[index].reading, lease) }
      return piece
    }

    func maintain(_ lease: ArchiveLease, holding: [SequenceNumber]) async throws(ArchiveError) -> Bool {
      try await pass()
      disk.upkeepCount += 1
      return try await disk.archives.maintain(lease, holding: holding)
    }

    func backUp(_ lease: ArchiveLease, replacingFormer: Bool, leavingRoom: Bool) async throws(ArchiveError) -> Int {
      try await piece(of: lease)
      disk.backups += 1
      _ = try await disk.archives.backUp(lease, replacingFormer: false)
      return 4_096
    }

    func copy(_ lease: ArchiveLease, to path: String) async throws(ArchiveCopyError) -> Int {
      if let failure = disk.copyFailures[path] { throw failure }
      return 4_096
    }

    func close(_ lease: ArchiveLease) async {
      guard broker == disk.broker else { return }
      disk.closed.append(lease.application)
      await disk.archives.close(lease)
      try? await pass(.close, lease.application)
    }

    func remove(_ application: String, damaged: Bool) async throws(ArchiveError) {
      guard broker == disk.broker else { return }
      disk.removed.append(application + (damaged ? " with damaged files" : ""))
      await disk.archives.remove(application, damaged: damaged)
      disk.logs[application] = nil
    }

    nonisolated func takeOver(_ application: String) {
      bound.value.takenOver.append(application)
      bound.value.openingFailures[application] = nil
    }

    nonisolated func observe(_ observer: @escaping @Sendable (ArchiveRoamingEvent) -> Void) {
      bound.value.tellBroker = observer
    }

    func others(within milliseconds: Int64?) async -> (archives: [ArchiveSummary], isComplete: Bool) {
      (disk.others, !disk.isReplicaAway)
    }

    nonisolated var isShipping: Bool { bound.value.isShipping }

    func comeRound() async -> UInt64 { await disk.archives.comeRound() }

    nonisolated var progress: StoreProgress { StoreProgress() }

    func list() async throws(ArchiveError) -> [ArchiveSummary] {
      try await pass(.list)
      return try await disk.archives.list()
    }
  }
}
