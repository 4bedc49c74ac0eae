// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import TestSupport
internal import Testing

/// Real full disks; only root can make them.
@Suite(.passesTurnstile) struct FullDiskTests {
  /// - Parameter logBytesMax: in the first case the log is just about to be moved into a main file that has no room.
  @Test(.enabled(if: SmallDisk.isPossible, "only root can mount"), arguments: [2 << 20, 32 << 20])
  func aFullDiskTakesDeletionsAndRecovers(logBytesMax: Int) async throws {
    let disk = try SmallDisk(bytes: 8 << 20)
    let fixture = try ArchiveFixture(.sqlite)
    let store = try SQLiteArchiveStore(directory: disk.path, upkeep: ArchiveUpkeep(logBytesMax: logBytesMax))
    #expect(Files.exists("\(disk.path)/+ballast"))
    var author = ArchiveAuthor(store: store, opening: try await store.open("x"), directory: fixture.directory)
    try await author.apply((1...100).map { .node($0, "n\($0)") })
    try await author.apply((1...100).map { .state($0, String(repeating: "x", count: 20_000)) })
    try disk.fill()
    var kind: ArchiveError.Kind?
    for round in 0..<500 where kind == nil {
      kind = await failure { [author] () async throws(ArchiveError) in
        var author = author
        try await author.apply(.state(NodeID(round % 100 + 1), String(repeating: "y", count: 60_000)))
      }
      author = ArchiveAuthor(store: store, opening: try await store.open("x"), directory: fixture.directory)
    }
    #expect(kind == .full)
    #expect(try await author.text(of: 100)?.utf8.count == 20_000)
    // Deleting still works, also if objects stay.
    for _ in 1...100 { try await author.apply([.removeAll] + (1...50).map { .node($0, "n\($0)") }) }
    let names = (1...50).reduce(0) { $0 + "n\($1)".utf8.count }
    #expect(author.reachableBytes == names)
    try await author.maintain()
    #expect(Files.size("\(disk.path)/x.sqlite") < 2 << 20)
    try await author.apply(.removeAll, .node(1, "again"), .state(1, String(repeating: "z", count: 60_000)))
    disk.empty()
    try await author.maintain()
    #expect(Files.exists("\(disk.path)/+ballast"))
    await store.close(author.lease)
    let opening = try await store.open("x")
    #expect(opening.damage == nil)
    #expect(opening.nodes.map(\.node.component) == ["again"])
  }

  /// Bytes of a disk, of what fills it besides the archive, and of a state.
  private static let spaces: [(disk: Int, others: Int, state: Int)] = [
    (1_048_576, 0, 1_000), (1_572_864, 0, 9_000), (2_097_152, 0, 4_000), (2_097_152, 0, 60_000), (6_291_456, 0, 9_000),
    (6_291_456, 0, 60_000), (6_291_456, 4_800_000, 9_000), (16_777_216, 0, 60_000),
  ]

  /// However soon the writer has come back, however small the disk is, and whether objects go one by one or together.
  @Test(.enabled(if: SmallDisk.isPossible, "only root can mount"), arguments: spaces)
  func whateverIsDiscardedMakesRoomForTheNextWriter(_ space: (disk: Int, others: Int, state: Int)) async throws {
    let disk = try SmallDisk(bytes: space.disk)
    let fixture = try ArchiveFixture(.sqlite)
    try Files.write([UInt8](repeating: 0, count: space.others), to: "\(disk.path)/filling")
    let store = try SQLiteArchiveStore(directory: disk.path)
    var author = ArchiveAuthor(store: store, opening: try await store.open("x"), directory: fixture.directory)
    let text = String(repeating: "x", count: space.state)
    /// Writes objects until one is refused, and returns how many were stored.
    func fill() async throws -> NodeID {
      for node in 1...10_000 as ClosedRange<NodeID> {
        do throws(ArchiveError) {
          try await author.apply(.node(node, "n"), .state(node, text))
        } catch {
          #expect(error.kind == .full && error.message.contains("free some space"), "\(error.message)")
          author = ArchiveAuthor(store: store, opening: try await store.open("x"), directory: fixture.directory)
          return node - 1
        }
      }
      return .max
    }
    let most = try await fill()
    #expect(most > 0 && most < 10_000)
    for round in 1...4 {
      let stored = try await fill()
      #expect(stored < 10_000 && author.opening.nodes.count >= stored)
      if round % 2 == 0 {
        for reading in author.opening.nodes { try await author.apply(.removed(reading.node.node)) }
      } else {
        try await author.apply(.removeAll)
      }
      let count = try await fill()
      #expect(count >= most * 3 / 4, "\(count) instead of \(most) in round \(round)")
    }
    await store.close(author.lease)
    let opening = try await store.open("x")
    #expect(opening.damage == nil && opening.nodes.count == author.opening.nodes.count)
    withExtendedLifetime(disk) {}
  }

  /// What it holds has its place in the main file already.
  @Test(.enabled(if: SmallDisk.isPossible, "only root can mount"))
  func aLogThatHasFilledTheDiskIsMovedIntoTheMainFile() async throws {
    let disk = try SmallDisk(bytes: 8 << 20)
    let fixture = try ArchiveFixture(.sqlite)
    let upkeep = ArchiveUpkeep(freeBytesMax: 8 << 20, ballastBytes: 0)
    let store = try SQLiteArchiveStore(directory: disk.path, upkeep: upkeep)
    var author = ArchiveAuthor(store: store, opening: try await store.open("x"), directory: fixture.directory)
    try await author.apply((1...50).map { .node($0, "n\($0)") })
    try await author.apply((1...50).map { .state($0, String(repeating: "x", count: 40_000)) })
    try await author.apply(.removeAll)
    try await author.maintain()
    try Files.write([UInt8](repeating: 0, count: 5 << 20), to: "\(disk.path)/filling")
    try await author.apply(.node(1, "again"))
    var failures: [ArchiveError.Kind] = []
    for round in 1...40 {
      let kind = await failure { [author] () async throws(ArchiveError) in
        var author = author
        try await author.apply(.state(1, "\(round)" + String(repeating: "y", count: 40_000)))
      }
      if let kind { failures.append(kind) }
      author = ArchiveAuthor(store: store, opening: try await store.open("x"), directory: fixture.directory)
    }
    #expect(failures.isEmpty)
    await store.close(author.lease)
    disk.empty()
  }

  @Test(.enabled(if: SmallDisk.isPossible, "only root can mount"))
  func anArchiveOpensOnACompletelyFullDisk() async throws {
    let disk = try SmallDisk(bytes: 4 << 20)
    let fixture = try ArchiveFixture(.sqlite)
    var store = try SQLiteArchiveStore(directory: disk.path)
    var author = ArchiveAuthor(store: store, opening: try await store.open("x"), directory: fixture.directory)
    try await author.apply(.node(1, "a"), .state(1, "one"))
    await store.close(author.lease)
    try disk.fill()
    store = try SQLiteArchiveStore(directory: disk.path)
    author = ArchiveAuthor(store: store, opening: try await store.open("x"), directory: fixture.directory)
    #expect(try await author.text(of: 1) == "one")
    let kind = await failure { [store] () async throws(ArchiveError) in _ = try await store.open("new") }
    #expect(kind == .full)
    disk.empty()
    _ = try await store.open("new")
  }

  /// A copy of a while ago is worth less than the room for what is written now.
  @Test(.enabled(if: SmallDisk.isPossible, "only root can mount"))
  func aDailyCopyIsMadeOnlyIfItLeavesRoom() async throws {
    let disk = try SmallDisk(bytes: 8 << 20)
    let fixture = try ArchiveFixture(.sqlite)
    let store = try SQLiteArchiveStore(directory: disk.path, upkeep: ArchiveUpkeep(ballastBytes: 0))
    var author = ArchiveAuthor(store: store, opening: try await store.open("x"), directory: fixture.directory)
    try await author.apply((1...40).map { .state($0, String(repeating: "x", count: 30_000)) })
    try await author.maintain()
    try Files.write([UInt8](repeating: 0, count: 3 << 20), to: "\(disk.path)/filling")
    let (names, lease) = (Files.list(disk.path), author.lease)
    let kind = await failure { () async throws(ArchiveError) in
      _ = try await store.backUp(lease, replacingFormer: false, leavingRoom: true)
    }
    #expect(kind == .full)
    #expect(Files.list(disk.path) == names)
    disk.empty()
    _ = try await store.backUp(lease, replacingFormer: false, leavingRoom: true)
    #expect(Files.exists("\(disk.path)/x+backup.sqlite"))
    await store.close(lease)
  }
}
