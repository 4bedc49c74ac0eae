// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import RestorationArchive
internal import RestorationReplica
internal import Synchronization

/// Hosts that share a replica, in a time that the test owns.
final class ReplicaFleet {
  static let application = "org.example.Draw"
  let loop = TestEventLoop()
  let replica = MemoryReplica()

  /// A broker that starts on the host that has this disk.
  func broker(
    on disk: CarriedDisk,
    _ promise: ReplicaPromise = .disk,
    wrapping: (any ArchiveReplica) -> any ArchiveReplica = { $0 }
  ) throws -> FleetBroker { try broker(on: disk.host, disk.connect(loop), promise, wrapping: wrapping) }

  /// A broker that starts on a host, over these archives.
  func broker(
    on host: String,
    _ base: any ArchiveCarrying,
    _ promise: ReplicaPromise = .disk,
    wrapping: (any ArchiveReplica) -> any ArchiveReplica = { $0 }
  ) throws -> FleetBroker {
    let term = LeaseTerm(milliseconds: 15_000)
    var settings = ReplicaSettings(host: host, term: term, promise: promise)
    settings.contentsBytesMax = 16 << 20
    let store = try ReplicatedStore(
      around: base,
      settings,
      clock: loop.replicaClock,
      on: loop,
      sharing: { record in
        var record = record
        (record.token, record.facts) = ("", "{}")
        return record
      },
      replica: { [replica] in wrapping(replica.link(from: host, term: term, attention: $0)) }
    )
    return FleetBroker(store, self)
  }

  func pass(_ milliseconds: Int64 = 0) { loop.pass(milliseconds, at: replica) }

  /// The texts of the runs that the replica's batches have written.
  var batches: [String] {
    replica.contents(of: Self.application).batches.flatMap { batch in
      FleetBroker.texts((try? ChangeBatch(decoding: batch.body))?.transactions.flatMap(\.changes) ?? [])
    }
  }

  /// The texts of the runs in all of the replica's contents.
  var stored: [String] {
    let parts = replica.contents(of: Self.application).parts.flatMap(\.self)
    let snapshot = parts.isEmpty ? [] : (try? ChangeBatch(decoding: parts))?.transactions.flatMap(\.changes) ?? []
    return FleetBroker.texts(snapshot) + batches
  }

  var snapshotParts: Int { replica.contents(of: Self.application).parts.count }
}

extension CarriedDisk {
  /// The texts of the runs in the archive of a `ReplicaFleet`, and in each copy of it that was set aside.
  var texts: [String] { state.withLock { $0.archives[ReplicaFleet.application]?.texts ?? [] } }
  var textsSetAside: [[String]] { state.withLock { $0.conflicts.values.map(\.texts) } }
}

extension CarriedDisk.Archive {
  fileprivate var texts: [String] { FleetBroker.texts(transactions.flatMap(\.changes)) }
}

/// A broker of a `ReplicaFleet` and what it has heard.
final class FleetBroker {
  let store: ReplicatedStore
  private(set) var lease: ArchiveLease?
  private(set) var sequence: SequenceNumber = 0
  private let fleet: ReplicaFleet
  private let heard = Heard()
  private var lastChange: UInt64 = 0

  fileprivate init(_ store: ReplicatedStore, _ fleet: ReplicaFleet) {
    (self.store, self.fleet) = (store, fleet)
    store.observe { [heard] event in heard.events.withLock { $0.append(event) } }
  }

  private final class Heard: Sendable { let events = Mutex<[ArchiveRoamingEvent]>([]) }

  var events: [ArchiveRoamingEvent] { heard.events.withLock { $0 } }

  static func texts(_ changes: [ArchiveChange]) -> [String] {
    changes.compactMap { if case .run(let record) = $0 { record.facts } else { nil } }
  }

  func call<Value: Sendable>(
    _ body: @escaping @Sendable (ReplicatedStore) async throws(ArchiveError) -> Value
  ) -> PendingCall<Value> {
    let store = store
    let call = fleet.loop.call { () async throws(ArchiveError) in try await body(store) }
    fleet.pass()
    return call
  }

  /// Opens the archive, which takes no time; `nil` if it fails or waits.
  @discardableResult
  func open(_ application: String = ReplicaFleet.application, takingOver: Bool = false) -> ArchiveOpening? {
    if takingOver { store.takeOver(application) }
    let opening = call { store async throws(ArchiveError) in try await store.open(application, for: .writing) }.value
    if let opening { take(opening) }
    return opening
  }

  /// Opens the archive again beside the next call, so many turns of the loop later.
  func reopen(after turns: Int) -> PendingCall<ArchiveOpening> {
    let (store, turn) = (store, LoopTurn(of: fleet.loop))
    return fleet.loop.call { () async throws(ArchiveError) in
      for _ in 0..<turns { await turn.pass() }
      return try await store.open(ReplicaFleet.application, for: .writing)
    }
  }

  func take(_ opening: ArchiveOpening) { (lease, sequence) = (opening.lease, opening.sequence) }

  /// The broker notes the outcome when it is asked for the next transaction.
  func write(_ text: String) -> PendingCall<ArchiveReceipt> {
    write([.run(RunRecord(run: 1, restorations: 0, facts: text))])
  }

  func write(_ changes: [ArchiveChange]) -> PendingCall<ArchiveReceipt> {
    let (lease, expecting) = (lease ?? ArchiveLease(application: ReplicaFleet.application, epoch: 0), sequence)
    lastChange += 1
    let change = ChangeID(high: UInt64(bitPattern: Int64(ObjectIdentifier(self).hashValue)), low: lastChange)
    let call = call { store async throws(ArchiveError) in
      try await store.apply(changes, lease: lease, expecting: expecting, changeID: change)
    }
    // What is not confirmed is on the disk all the same.
    if call.failure == nil { sequence += SequenceNumber(changes.count) }
    return call
  }

  func close() -> PendingCall<Bool> {
    let lease = lease
    self.lease = nil
    return call { store in
      if let lease { await store.close(lease) }
      return true
    }
  }
}

/// Each call takes a turn of the loop.
private actor LoopTurn {
  private let loop: TestEventLoop

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  init(of loop: TestEventLoop) { self.loop = loop }

  func pass() {}
}
