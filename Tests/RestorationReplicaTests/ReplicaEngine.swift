// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import RestorationArchive
internal import RestorationReplica
internal import TestSupport

/// The replicas that pass one and the same suite.
enum ReplicaEngine: Sendable {
  case memory, postgres
  /// That in memory, by way of a gateway's socket.
  case gateway
  /// What is stored in a replica in memory is sealed.
  case sealed

  /// Those that can be tested here.
  static let allCases: [ReplicaEngine] =
    [.memory, .gateway] + (PostgresCluster.isUsable ? [.postgres] : []) + (Sealing.isUsable ? [.sealed] : [])
}

/// A replica with the means to do to it what happens to servers and networks.
protocol ReplicaWorld: Sendable {
  /// The way of a broker that has just been started on this host.
  func link(from host: String, term: LeaseTerm) -> any ArchiveReplica
  func advance(by milliseconds: Int64)
  /// Another server takes over, which lacks the last transactions, and all hosts get to know it.
  func failOver(losing transactions: Int) async throws
  /// Cuts a host off.
  func cut(_ host: String)
  func mend(_ host: String)
  /// The host's next call is carried out, but it is not told so.
  func loseAnswer(to host: String)
  /// Whether what is stored is on another server too.
  func setCovered(_ isCovered: Bool)
}

extension MemoryReplica: ReplicaWorld {
  func link(from host: String, term: LeaseTerm) -> any ArchiveReplica { link(from: host, term: term, attention: {}) }
  func failOver(losing transactions: Int) { promote(losing: transactions) }
}

struct ReplicaFixture {
  static let application = "org.example.Draw"
  /// Of all holders; milliseconds.
  static let term = LeaseTerm(milliseconds: 3_000)
  private let world: any ReplicaWorld
  /// `nil` if nothing is sealed.
  private let keys: ReplicaKeys?

  /// - Parameter failsOver: Its servers are the test's own, which has them fail.
  init(_ engine: ReplicaEngine, failsOver: Bool = false) throws {
    keys = engine == .sealed ? Sealing.keys : nil
    world =
      switch engine {
      case .memory, .sealed: MemoryReplica()
      case .gateway: try ServedGateway.starting()
      case .postgres: try PostgresWorld(failsOver: failsOver)
      }
  }

  /// A broker that has just been started on this host.
  func broker(on host: String) -> ReplicaBroker {
    var link = world.link(from: host, term: Self.term)
    if let keys { link = SealedReplica(around: link, keys: keys) }
    return ReplicaBroker(link: link, application: Self.application, world: world)
  }

  /// Returns when every host that asked before has seen this much time pass.
  func pass(_ milliseconds: Int64) async { world.advance(by: milliseconds) }

  /// Another server takes over, which lacks the last transactions.
  func failOver(losing transactions: Int = 0) async throws { try await world.failOver(losing: transactions) }

  func cut(_ host: String) async { world.cut(host) }
  func mend(_ host: String) async { world.mend(host) }
  func loseAnswer(to host: String) async { world.loseAnswer(to: host) }
  func setCovered(_ isCovered: Bool) async { world.setCovered(isCovered) }
}

/// A broker that asks for one archive.
struct ReplicaBroker {
  let link: any ArchiveReplica
  let application: String
  /// There as long as this broker.
  var world: (any ReplicaWorld)?

  func acquire(
    _ standing: ReplicaStanding? = nil,
    reader: Int = 1,
    wants: Bool = true,
    isForced: Bool = false
  ) async throws(ReplicaError) -> ReplicaGrant {
    let claim = ReplicaClaim(standing: standing, reader: reader, wants: wants, isForced: isForced)
    return try await link.acquire(application, as: claim)
  }

  /// Appends one transaction, whose change is named by its end.
  func append(
    _ after: SequenceNumber,
    _ upto: SequenceNumber,
    _ lease: ReplicaLease,
    change: UInt64? = nil
  ) async throws(ReplicaError) { try await link.append(.one(after, upto, change: change), lease) }

  /// Stores a snapshot in one part.
  func snapshot(_ sequence: SequenceNumber, _ lease: ReplicaLease, reader: Int = 1) async throws(ReplicaError) {
    let tip = ReplicaTip(sequence: sequence, change: .numbered(sequence))
    let part = SnapshotPart(attempt: sequence, tip: tip, reader: reader, number: 0, count: 1, bytes: [9])
    try await link.snapshot(part, lease)
  }

  /// Everything that pages say from this position on.
  func load(_ position: ReplicaPosition, _ lease: ReplicaLease) async throws(ReplicaError) -> ReplicaPage {
    var all = ReplicaPage()
    var next: ReplicaPosition? = position
    while let position = next {
      let page = try await link.load(lease, from: position)
      all.parts += page.parts
      all.batches += page.batches
      next = page.next
    }
    return all
  }
}

extension ReplicaGrant {
  /// What a host notes that uses the archive under this lease.
  var standing: ReplicaStanding {
    let all = reigns + [ReplicaReign(lease.id, end: ReplicaReign.everything)]
    return ReplicaStanding(history: history, reigns: all, phase: .held, archive: "copy")
  }
}

extension LeaseID {
  static func numbered(_ number: UInt64) -> LeaseID { LeaseID(ChangeID(high: 0, low: number)) }
}

extension ChangeID {
  static func numbered(_ sequence: SequenceNumber) -> ChangeID { ChangeID(high: 0, low: UInt64(sequence)) }
}

extension ReplicaBatch {
  /// A batch whose change is named by its end.
  static func one(_ after: SequenceNumber, _ upto: SequenceNumber, change: UInt64? = nil) -> ReplicaBatch {
    let change = change.map { ChangeID(high: 1, low: $0) } ?? .numbered(upto)
    return ReplicaBatch(after: after, upto: upto, change: change, body: [UInt8(upto)])
  }
}

/// How a call fails; `nil` if it succeeds.
func refusal(_ body: () async throws(ReplicaError) -> Void) async -> ReplicaError.Kind? {
  do throws(ReplicaError) {
    try await body()
    return nil
  } catch {
    return error.kind
  }
}
