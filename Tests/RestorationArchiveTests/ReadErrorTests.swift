// SPDX-License-Identifier: Apache-2.0

internal import CSQLite
internal import Glibc
internal import RestorationArchive
internal import TestSupport
internal import Testing

/// A disk that fails to read once while an archive is opened: nothing is replaced, nothing is lost (R20, R32).
@Suite struct ReadErrorTests {
  enum Condition: CaseIterable, Sendable {
    case closed, withLog, withBackup, inRecovery, withDamagedLog

    /// The files of an archive whose last state says "new", in this condition.
    func files() async throws -> [String: [UInt8]] {
      let fixture = try ArchiveFixture(.sqlite)
      var author = try await fixture.author("x")
      try await author.apply((1...9).map { .node($0, "n\($0)") })
      try await author.apply((1...9).map { .state($0, "old" + String(repeating: "x", count: 1_000)) })
      switch self {
      case .closed: break
      case .withLog, .withBackup, .inRecovery: try await author.store.backUp(author.lease, replacingFormer: false)
      case .withDamagedLog: try await author.maintain()
      }
      try await author.apply((1...9).map { .state($0, "new" + String(repeating: "x", count: 1_000)) })
      let isKilled = self != .closed && self != .withBackup
      if !isKilled { await author.store.close(author.lease) }
      var files: [String: [UInt8]] = [:]
      for name in fixture.directory.names { files[name] = try fixture.directory.read(name) }
      if isKilled { await author.store.close(author.lease) }
      if self == .inRecovery, let main = files["x.sqlite"] {
        // The main file is damaged, so that the backup is read, and what is sound beside it.
        files["x.sqlite"] = main[..<100] + main[100...].map { $0 ^ 0xa5 }
      }
      if self == .withDamagedLog { files["x.sqlite-wal"]?[20] ^= 1 }
      return files
    }

    /// Something is lost before any read fails, and the opening reports that.
    var isDamaged: Bool { self == .inRecovery || self == .withDamagedLog }
    /// A sound log beside a damaged file is read beside the backup.
    var state: String { self == .withDamagedLog ? "old" : "new" }
  }

  /// SQLite takes the first three for damage.
  private static let errors = [EIO, ENXIO, ERANGE, EACCES, ENOSPC, EDQUOT]

  /// Every call by which an archive is read while it is opened: `open`, `stat`, `lstat`, `fstat`, `pread` and listing
  /// the directory. The long form tries every error at each, once and lasting; the short form one.
  @Test(arguments: Condition.allCases)
  func anErrorOfReadingReplacesNothing(condition: Condition) async throws {
    let files = try await condition.files()
    var (calls, tried) = (0, 0)
    var hasFailed = true
    while hasFailed {
      for error in Environment.isLong ? Self.errors : [Self.errors[calls % Self.errors.count]] where hasFailed {
        for isLasting in Environment.isLong ? [false, true] : [false] where hasFailed {
          let fault = FaultingReads.Fault(error: error, after: calls, isLasting: isLasting)
          hasFailed = try await Self.check(files, condition, fault)
          if hasFailed { tried += 1 }
        }
      }
      if hasFailed { calls += 1 }
    }
    #expect(calls > 20)
    print("\(condition): \(tried) errors of \(calls) calls; none replaced anything that was sound")
  }

  /// Opens the files with a fault and again without; returns whether the fault has happened.
  private static func check(
    _ files: [String: [UInt8]],
    _ condition: Condition,
    _ fault: FaultingReads.Fault
  ) async throws -> Bool {
    let fixture = try ArchiveFixture(.sqlite) { FaultingReads($0) }
    let directory = fixture.directory
    for (name, bytes) in files { try directory.write(bytes, to: name) }
    let reads = FaultingReads(directory.path)
    reads.fail(fault)
    let kind = await failure { () async throws(ArchiveError) in
      let opening = try await fixture.store.open("x")
      await fixture.store.close(opening.lease)
    }
    let hasFailed = reads.heal()
    let comment: Comment = "\(fault): \(String(describing: kind))"
    if kind != nil, !condition.isDamaged {
      // SQLite may have made an empty log.
      #expect(directory.names.filter { $0 != "x.sqlite-wal" || files[$0] != nil } == files.keys.sorted(), comment)
      for (name, bytes) in files { #expect(try directory.read(name) == bytes, comment) }
    }
    let author = try await fixture.author("x")
    // An error while a damaged file is read may leave only the backup to be served; the file is set aside all the same.
    let states = condition == .inRecovery ? [condition.state, "old"] : [condition.state]
    let text = try await author.text(of: 9) ?? ""
    #expect(states.contains { text.hasPrefix($0) }, comment)
    // If an opening fails after it replaced the file, the next one still reports it.
    #expect((author.opening.damage != nil) == condition.isDamaged, comment)
    await author.store.close(author.lease)
    let aside = directory.names.filter { $0.contains("+damaged-") }
    #expect(aside == (condition.isDamaged ? ["x+damaged-1.sqlite", "x+damaged-1.sqlite-wal"] : []), comment)
    for name in aside {
      let original = name.replacing("+damaged-1", with: "")
      #expect(try directory.read(name) == files[original], "\(comment.rawValue): \(name)")
    }
    return hasFailed
  }

  /// What SQLite's system layer makes of EIO.
  private static let readError = SQLITE_IOERR | 33 << 8

  /// The log is unchanged: nothing is uncertain.
  @Test func aCheckpointThatCannotReadTheLogIsTriedAgain() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    let disk = FaultingDisk(fixture.directory.path)
    var author = try await fixture.author("x")
    // The first commit has a checkpoint of its own.
    try await author.apply(.state(1, "text 0"))
    try await author.maintain()
    for number in 1...3 {
      try await author.apply(.state(1, "text \(number)"))
      disk.fail(FaultingDisk.Fault(code: Self.readError, operations: [.read], isLasting: false))
      let kind = await failure { () async throws(ArchiveError) in try await author.maintain() }
      #expect(kind == .definite)
      #expect(disk.heal())
    }
    #expect(try await author.text(of: 1) == "text 3")
    try await author.maintain()
    await author.store.close(author.lease)
  }

  /// Memory or a controller fails once and reports no error.
  @Test func bytesReadWronglyOnceReplaceNothing() async throws {
    let files = try await Condition.withBackup.files()
    for count in 0... {
      let fixture = try ArchiveFixture(.sqlite)
      for (name, bytes) in files { try fixture.directory.write(bytes, to: name) }
      let disk = FaultingDisk(fixture.directory.path)
      disk.fail(
        FaultingDisk.Fault(code: SQLITE_OK, systemError: 0, operations: [.read], after: count, isLasting: false)
      )
      if let opening = try? await fixture.store.open("x") { await fixture.store.close(opening.lease) }
      let hasFailed = disk.heal()
      let author = try await fixture.author("x")
      #expect(author.opening.damage == nil, "read \(count)")
      #expect(try await author.text(of: 9)?.hasPrefix("new") == true, "read \(count)")
      await author.store.close(author.lease)
      if !hasFailed {
        #expect(count > 10)
        return
      }
    }
  }
}
