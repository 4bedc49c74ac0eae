// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RestorationArchive
internal import TestSupport
internal import Testing

/// Real full and read-only disks; only root can make them.
@Suite(.passesTurnstile) struct FullDiskTests {
  /// A small file system of one test's own.
  final class SmallDisk: Sendable {
    private let scratch: ScratchDirectory
    var path: String { scratch.path }

    init(bytes: Int) throws {
      scratch = try ScratchDirectory()
      guard mount("archive-tests", scratch.path, "tmpfs", 0, "size=\(bytes)") == 0 else {
        throw TestFailure("mount: \(String(cString: strerror(errno)))")
      }
    }

    deinit {
      umount2(scratch.path, Int32(MNT_DETACH))
      scratch.remove()
    }

    func makeReadOnly() throws {
      let flags = UInt(MS_REMOUNT | MS_RDONLY)
      guard mount("archive-tests", path, "tmpfs", flags, nil) == 0 else {
        throw TestFailure("remount: \(String(cString: strerror(errno)))")
      }
    }

    /// Takes all the space that is left.
    func fill() throws {
      let descriptor = open("\(path)/filling", O_WRONLY | O_CREAT | O_APPEND, 0o600)
      guard descriptor >= 0 else { throw TestFailure("fill") }
      defer { close(descriptor) }
      let bytes = [UInt8](repeating: 0, count: 4096)
      while write(descriptor, bytes, bytes.count) > 0 {}
    }

    func empty() { unlink("\(path)/filling") }
  }

  private static let isRoot = geteuid() == 0

  @Test(.enabled(if: isRoot, "only root can mount"))
  func aFullDiskTakesDeletionsAndRecovers() async throws {
    let disk = try SmallDisk(bytes: 8 << 20)
    let fixture = try ArchiveFixture(.sqlite)
    let store = try SQLiteArchiveStore(directory: disk.path)
    #expect(Files.exists("\(disk.path)/+ballast"))
    var author = ArchiveAuthor(store: store, opening: try await store.open("x"), directory: fixture.directory)
    try await author.apply((1...100).map { .node($0, "n\($0)") })
    try await author.apply((1...100).map { .state($0, String(repeating: "x", count: 20_000)) })
    try disk.fill()
    var kind: ArchiveError.Kind?
    for round in 0..<500 where kind == nil {
      kind = await failure { [author] () async throws(ArchiveError) in
        var author = author
        try await author.apply(.state(1, "\(round)" + String(repeating: "y", count: 60_000)))
      }
      author = ArchiveAuthor(store: store, opening: try await store.open("x"), directory: fixture.directory)
    }
    #expect(kind == .full)
    #expect(try await author.text(of: 100)?.utf8.count == 20_000)
    // Deleting still works.
    try await author.apply(.removeAll)
    #expect(author.reachableBytes == 0)
    try await author.maintain()
    #expect(Files.size("\(disk.path)/x.sqlite") < 2 << 20)
    try await author.apply(.node(1, "again"), .state(1, String(repeating: "z", count: 60_000)))
    disk.empty()
    try await author.maintain()
    #expect(Files.exists("\(disk.path)/+ballast"))
    await store.close(author.lease)
    let opening = try await store.open("x")
    #expect(opening.damage == nil)
    #expect(opening.nodes.map(\.node.component) == ["again"])
  }

  @Test(.enabled(if: isRoot, "only root can mount"))
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

  @Test(.enabled(if: isRoot, "only root can mount"))
  func aReadOnlyDirectoryIsUnreadableAndNotDamaged() async throws {
    let disk = try SmallDisk(bytes: 4 << 20)
    let store = try SQLiteArchiveStore(directory: disk.path)
    let lease = try await store.open("x").lease
    await store.close(lease)
    try disk.makeReadOnly()
    let names = Files.list(disk.path)
    for name in ["x", "new"] {
      let kind = await failure { () async throws(ArchiveError) in _ = try await store.open(name) }
      #expect(kind == .unreadable)
    }
    let fresh = try SQLiteArchiveStore(directory: disk.path)
    #expect(try await fresh.list().map(\.state) == [.available])
    #expect(Files.list(disk.path) == names)
  }
}
