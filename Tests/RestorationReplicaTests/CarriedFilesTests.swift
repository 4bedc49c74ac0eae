// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import RestorationArchive
internal import RestorationReplica
internal import TestSupport
internal import Testing

/// The files of archives that follow their user.
@Suite struct CarriedFilesTests {
  private let fleet = ReplicaFleet()
  private let folderA: HostFolder
  private let folderB: HostFolder

  init() throws { (folderA, folderB) = (try HostFolder(), try HostFolder()) }

  private func files(_ folder: HostFolder) throws -> SQLiteArchiveStore {
    try SQLiteArchiveStore(directory: folder.path, on: fleet.loop, upkeep: ArchiveUpkeep(ballastBytes: 0))
  }

  private func broker(_ host: String, _ folder: HostFolder) throws -> FleetBroker {
    try fleet.broker(on: host, files(folder))
  }

  private static let name = ReplicaFleet.application
  private static let session = SessionRecord(session: 1, token: "a secret token", facts: #"{"process":7}"#)
  private static let content: [ArchiveChange] = [
    .context(1, text: "{}"),
    .node(NodeRecord(node: 1, parent: nil, component: "window", kind: .object)),
    .state(StateRecord(node: 1, context: 1, written: 5, text: Array(#"{"x":1}"#.utf8)[...])),
    .session(session),
  ]

  private func text(_ broker: FleetBroker) throws -> String? {
    let lease = try #require(broker.lease)
    let readings = broker.call { store async throws(ArchiveError) in try await store.read([1], at: .head, lease: lease)
    }
    guard case .state(let record, _)?? = readings.value?.first else { return nil }
    return String(decoding: record.text, as: UTF8.self)
  }

  /// As from before there was a replica: then it gets a snapshot.
  private func writeWithoutReplica() throws {
    let former = try files(folderA)
    let written = fleet.loop.call { () async throws(ArchiveError) in
      let lease = try await former.open(Self.name, for: .writing).lease
      let change = ChangeID(high: 1, low: 1)
      _ = try await former.apply(Self.content, lease: lease, expecting: 0, changeID: change)
      await former.close(lease)
    }
    fleet.pass()
    #expect(written.value != nil)
  }

  @Test func aHostWithoutACopyBuildsTheFileAndIsToldNoTokens() throws {
    try writeWithoutReplica()
    let a = try broker("A", folderA)
    #expect(a.open()?.sequence == 4)
    #expect(fleet.snapshotParts == 1)
    let snapshot = fleet.replica.contents(of: Self.name).parts.flatMap(\.self)
    #expect(!snapshot.isEmpty)
    #expect(!String(decoding: snapshot, as: UTF8.self).contains(Self.session.token))
    _ = a.write("1")
    _ = a.close()
    let b = try broker("B", folderB)
    let opening = try #require(b.open())
    #expect(opening.sequence == 5)
    #expect(opening.sessions.map(\.token) == [""])
    #expect(opening.sessions.map(\.facts) == ["{}"])
    #expect(opening.run?.facts == "1")
    #expect(opening.damage == nil)
    #expect(try text(b) == #"{"x":1}"#)
    #expect(folderB.names.contains("\(Self.name)+replica"))
    #expect(!folderB.names.contains { $0.contains("+incoming") })
    // The host that wrote it resumes its sessions.
    _ = b.close()
    #expect(a.open()?.sessions.map(\.token) == [Self.session.token])
  }

  /// A host whose archive another one has continued; what only it had is set aside.
  private func conflicting() throws -> FleetBroker {
    let (a, b) = (try broker("A", folderA), try broker("B", folderB))
    a.open()
    _ = a.write(Self.content)
    fleet.pass(50)
    fleet.replica.cut("A")
    _ = a.write("mine")
    #expect(b.open(takingOver: true)?.sequence == 4)
    _ = b.write("theirs")
    _ = b.close()
    fleet.replica.mend("A")
    fleet.pass(5_000)
    _ = a.close()
    #expect(a.open()?.run?.facts == "theirs")
    return a
  }

  private static let copy = "\(name)+conflict-1"

  @Test func aCopyThatWasSetAsideIsReadAsItIsAndRemovedAlone() throws {
    let a = try conflicting()
    let (bytes, stored) = (try folderA.read("\(Self.copy).sqlite"), fleet.stored)
    let opening = a.call { store async throws(ArchiveError) in
      let opening = try await store.open(Self.copy, for: .reading)
      let (batch, change) = (ArchiveBatch([.forgetContexts([])]), ChangeID(high: 1, low: 1))
      let (lease, end) = (opening.lease, opening.sequence)
      _ = try await store.apply(batch, lease: lease, expecting: end, changeID: change, holding: [])
      await store.close(lease)
      return opening
    }
    #expect(opening.value?.run?.facts == "mine" && opening.value?.readOnly != nil)
    #expect(opening.value?.sessions == [], "they are those of the application")
    #expect(try folderA.read("\(Self.copy).sqlite") == bytes && fleet.stored == stored)
    let listed = a.call { store async throws(ArchiveError) in await store.states(of: Self.name).states }
    #expect(listed.value?.map { Array($0.conflicts.keys) } == [[Self.copy]])
    let names = folderA.names
    let removal = a.call { store async throws(ArchiveError) in try await store.remove(Self.copy, damaged: false) }
    #expect(removal.result != nil && removal.failure == nil)
    #expect(Set(names).subtracting(folderA.names) == ["\(Self.copy).sqlite"])
    let again = a.call { store async throws(ArchiveError) in try await store.open(Self.copy, for: .reading) }
    #expect(again.failure == .absent)
  }

  @Test func aConflictIsKeptAsAnArchiveBesideTheOneThatReplacesIt() throws {
    let a = try conflicting()
    let file = "\(Self.copy).sqlite"
    let conflict = ArchiveConflict(host: nil, changes: 1, file: file)
    #expect(a.events.last == .conflict(application: Self.name, conflict))
    let other = try HostFolder()
    try other.write(folderA.read(file), to: "\(Self.name).sqlite")
    let kept = try files(other)
    let opening = fleet.loop.call { () async throws(ArchiveError) in try await kept.open(Self.name) }
    fleet.pass()
    #expect(opening.value?.run?.facts == "mine")
    _ = a.close()
    let removal = a.call { store async throws(ArchiveError) in
      try await store.remove(Self.name, damaged: true)
      return true
    }
    #expect(removal.value == true)
    #expect(folderA.names.filter { $0.hasPrefix(Self.name) }.isEmpty)
  }

  @Test func aCopyThatIsInstalledTwiceIsTwoArchives() throws {
    try writeWithoutReplica()
    let (a, b) = (try broker("A", folderA), try broker("B", folderB))
    a.open()
    _ = a.close()
    #expect(fleet.snapshotParts == 1)
    let first = try #require(b.open())
    _ = b.close()
    folderB.remove("\(Self.name).sqlite")
    let second = try #require(try broker("B", folderB).open())
    #expect([first.sequence, second.sequence] == [4, 4])
    #expect(first.archive != second.archive)
  }

  @Test func aCopyThatIsMissingIsToldWhenItMayHaveHadMore() throws {
    let a = try broker("A", folderA)
    a.open()
    _ = a.write(Self.content)
    fleet.pass(50)
    for name in folderA.names where !name.hasSuffix("+replica") { folderA.remove(name) }
    let next = try broker("A", folderA)
    let opening = try #require(next.open())
    #expect(opening.sequence == 4)
    #expect(opening.damage?.contains("missing") == true)
  }

  /// Whatever is written meanwhile, the replica does not have.
  @Test func withoutAReplicaWhatWasNotedOfItIsForgotten() throws {
    let a = try broker("A", folderA)
    a.open()
    _ = a.write(Self.content)
    _ = a.close()
    #expect(try files(folderA).forgetReplica() == [Self.name])
    #expect(try files(folderA).forgetReplica() == [])
    let again = try broker("A", folderA)
    #expect(again.open()?.sequence == 4)
    #expect(folderA.names.contains { $0.contains("+conflict-") }, "it may have more")
  }

  /// Everything else here runs on the loop of the test.
  @Test func hostsWithThreadsOfTheirOwnDoTheSame() async throws {
    let replica = MemoryReplica()
    func store(_ host: String, _ folder: HostFolder) throws -> ReplicatedStore {
      try ReplicatedStore(
        around: SQLiteArchiveStore(directory: folder.path, upkeep: ArchiveUpkeep(ballastBytes: 0)),
        ReplicaSettings(host: host, term: LeaseTerm(milliseconds: 15_000), promise: .replica),
        clock: ReplicaClock(now: { 0 }, wake: { _, _ in }),
        sharing: { $0 },
        replica: { replica.link(from: host, attention: $0) }
      )
    }
    let a = try store("A", folderA)
    let lease = try await a.open(Self.name, for: .writing).lease
    let change = ChangeID(high: 1, low: 1)
    let receipt = try await a.apply(Self.content, lease: lease, expecting: 0, changeID: change)
    #expect(replica.contents(of: Self.name).batches.map(\.upto) == [receipt.sequence])
    await a.close(lease)
    let b = try store("B", folderB)
    let opening = try await b.open(Self.name, for: .writing)
    #expect(opening.sequence == receipt.sequence)
    #expect(opening.sessions == [Self.session])
    await b.close(opening.lease)
    try await b.migrate(Self.name, milliseconds: 1_000).get()
    #expect(replica.contents(of: Self.name).batches.isEmpty, "a snapshot has taken their place")
  }

  @Test func aNoteIsReadAsItWasWritten() {
    let lease = ChangeID(high: 1, low: 2).text
    let reigns = [ReplicaReign(LeaseID(ChangeID(high: .max, low: 0)), end: 7), ReplicaReign(LeaseID(lease)!, end: 0)]
    let standing = ReplicaStanding(history: "h", reigns: reigns, phase: .catchingUp, archive: "a")
    for note in [ReplicaNote(), ReplicaNote(standing: standing), ReplicaNote(standing: standing, incoming: standing)] {
      #expect(ReplicaNote(note.text) == note)
      #expect(ReplicaNote(String(note.text.dropLast())) == nil)
    }
    #expect(ReplicaNote("restorationd replica 1\n") == nil)
    let longest = Array(repeating: ReplicaReign(LeaseID(lease)!, end: 1 << 53), count: ReplicaReign.max)
    let long = ReplicaStanding(history: lease, reigns: longest, phase: .catchingUp, archive: lease)
    #expect(ReplicaNote(standing: long, incoming: long).text.utf8.count <= ArchiveFiles.noteBytesMax)
    func note(_ reigns: String) -> ReplicaNote? { ReplicaNote("restorationd replica 2\ncopy\th\theld\ta\t\(reigns)\n") }
    #expect(note("\(lease) 0,\(lease) 7") != nil)
    for reigns in [
      "", ",", lease, "\(lease) ", "\(lease) -", "\(lease) -1", "\(lease) 9223372036854775808", "\(lease) 1,", "1 1",
      Array(repeating: "\(lease) 1", count: ReplicaReign.max + 1).joined(separator: ","),
    ] { #expect(note(reigns) == nil, "\(reigns)") }
    #expect(ReplicaNote("restorationd replica 2\ncopy\th\theld\ta\n") == nil)
  }
}

/// The directory of a host's archives, gone with its last reference.
private final class HostFolder: Sendable {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  deinit { scratch.remove() }

  var path: String { scratch.path }
  var names: [String] { Files.list(path) }

  func read(_ name: String) throws -> [UInt8] { try Files.read(scratch.file(name)) }

  func write(_ bytes: [UInt8], to name: String) throws { try Files.write(bytes, to: scratch.file(name)) }

  func remove(_ name: String) { Files.remove(scratch.file(name)) }
}
