// SPDX-License-Identifier: Apache-2.0

internal import CSQLite
internal import Glibc
internal import RestorationArchive
internal import TestSupport
internal import Testing

/// A disk that fails to read once while an archive is opened: nothing is replaced, nothing is lost (R20, R32).
@Suite struct ReadErrorTests {
  enum Condition: CaseIterable, Sendable {
    case closed, withLog, withBackup, inRecovery

    /// The files of an archive whose last state says "new", in this condition.
    func files() async throws -> [String: [UInt8]] {
      let fixture = try ArchiveFixture(.sqlite)
      var author = try await fixture.author("x")
      try await author.apply((1...9).map { .node($0, "n\($0)") })
      try await author.apply((1...9).map { .state($0, "old" + String(repeating: "x", count: 1_000)) })
      if self != .closed { try await author.store.backUp(author.lease) }
      try await author.apply((1...9).map { .state($0, "new" + String(repeating: "x", count: 1_000)) })
      let isKilled = self == .withLog || self == .inRecovery
      if !isKilled { await author.store.close(author.lease) }
      var files: [String: [UInt8]] = [:]
      for name in fixture.directory.names { files[name] = try fixture.directory.read(name) }
      if isKilled { await author.store.close(author.lease) }
      if self == .inRecovery, let main = files["x.sqlite"] {
        // The main file is damaged, so that the backup is read.
        files["x.sqlite"] = main[..<100] + main[100...].map { $0 ^ 0xa5 }
      }
      return files
    }

    var state: String { self == .inRecovery ? "old" : "new" }
  }

  /// What SQLite's system layer makes of a read error.
  private static func code(_ error: Int32) -> Int32 { SQLITE_IOERR | (error == EIO ? 33 << 8 : 1 << 8) }

  @Test(arguments: Condition.allCases, [EIO, EACCES, ENOSPC, EDQUOT])
  func oneErrorOfReadingReplacesNothing(condition: Condition, error: Int32) async throws {
    let files = try await condition.files()
    let names = files.keys.sorted()
    for count in 0... {
      let fixture = try ArchiveFixture(.sqlite)
      for (name, bytes) in files { try fixture.directory.write(bytes, to: name) }
      let disk = FaultingDisk(fixture.directory.path)
      disk.fail(
        FaultingDisk.Fault(
          code: Self.code(error),
          systemError: error,
          operations: [.read],
          after: count,
          isLasting: false
        )
      )
      let kind = await failure { () async throws(ArchiveError) in
        let opening = try await fixture.store.open("x")
        await fixture.store.close(opening.lease)
      }
      let hasFailed = disk.heal()
      if kind != nil, condition != .inRecovery {
        // SQLite may have made an empty log.
        let now = fixture.directory.names.filter { $0 != "x.sqlite-wal" || names.contains($0) }
        #expect(now == names, "read \(count)")
      }
      let author = try await fixture.author("x")
      let text = try await author.text(of: 9)
      #expect(text?.hasPrefix(condition.state) == true, "read \(count), \(String(describing: kind))")
      #expect(!fixture.directory.names.contains("x+damaged-2.sqlite"), "read \(count)")
      // If an opening fails after it replaced the file, the next one still reports it.
      #expect((author.opening.damage != nil) == (condition == .inRecovery), "read \(count)")
      #expect(fixture.directory.names.contains("x+damaged-1.sqlite") == (condition == .inRecovery), "read \(count)")
      await author.store.close(author.lease)
      if !hasFailed {
        #expect(count > 10)
        return
      }
    }
  }

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
      disk.fail(FaultingDisk.Fault(code: Self.code(EIO), operations: [.read], isLasting: false))
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
