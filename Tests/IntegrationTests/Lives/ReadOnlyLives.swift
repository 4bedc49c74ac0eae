// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// Somebody's disk has become read-only: it fails, and the system has mounted it so, or a live system always does.
@Suite(.broker, .enabled(if: SmallDisk.isPossible, "only root can mount"), .timeLimit(.minutes(5)))
struct ReadOnlyLives {
  private static let note = "org.example.Note"

  /// A disk on which an hour of work is saved, and a broker that has begun after it became read-only.
  ///
  /// - Parameter isKilled: whether the broker that saved it could not end in order.
  private func readOnlyDisk(isKilled: Bool) throws -> SmallDisk {
    _ = try broker.terminate()
    let disk = try SmallDisk(bytes: 8 << 20, at: broker.archives)
    try broker.start()
    try ControlTool.run(["put", "-q", "-r", Self.note, "Note", "/value", "--", "an hour of work"], status: 0)
    if isKilled { try broker.kill() } else { _ = try broker.terminate() }
    try disk.makeReadOnly()
    try broker.start()
    return disk
  }

  private static func files(of disk: SmallDisk) throws -> [String: [UInt8]] {
    Dictionary(uniqueKeysWithValues: try Files.list(disk.path).map { ($0, try Files.read("\(disk.path)/\($0)")) })
  }

  @Test(arguments: [true, false])
  func aPersonSeesWhatIsSavedAndIsToldThatNothingMoreCanBe(isKilled: Bool) throws {
    let disk = try readOnlyDisk(isKilled: isKilled)
    let before = try Self.files(of: disk)
    #expect(try ControlTool.run(["get", "-r", Self.note, "Note", "/value"], status: 0).output == "an hour of work\n")
    #expect(try ControlTool.run(["tree", Self.note], status: 0).output.contains("Note"))
    #expect(try ControlTool.run(["list"], status: 0).output.contains(Self.note))
    #expect(try ControlTool.run(["export", Self.note, "--reveal"], status: 0).output.contains("an hour of work"))
    #expect(try ControlTool.run(["status"], status: 0).output.contains("Read-only:"))
    #expect(try ControlTool.run(["status", "-j"], status: 0).json["readOnly"] == true)
    for command in [["put", "-r", Self.note, "Note", "/value", "--", "more"], ["discard", "--yes", Self.note]] {
      let refused = try ControlTool.run(command)
      #expect(refused.end != .exit(0))
      #expect(refused.errors.contains("read-only") && refused.errors.contains("restart the broker"), "\(refused)")
    }
    #expect(try Self.files(of: disk) == before)
  }

  @Test(arguments: [true, false])
  func aProgramStartsWithItsSavedStateAndIsToldThatNothingCanBeSaved(isKilled: Bool) throws {
    let disk = try readOnlyDisk(isKilled: isKilled)
    let before = try Self.files(of: disk)
    for application in [Self.note, "org.example.New"] {
      let program = try broker.session(application, process: "main")
      try program.register("Note")
      try program.register("Window", with: ["kind": "viewController"])
      let saved = try program.decode("Note")["state"]
      #expect(saved == (application == Self.note ? ["value": "an hour of work"] : .null))
      let path: JSONValue = .path("Note")
      let refused = try program.failure("encodeRestorableState", ["object": path, "state": ["value": "more"]])
      #expect(refused.kind == "storeFailed" && refused.data["indeterminate"] == false)
      #expect(refused.data["hint"]?.string?.contains("writable") == true, "\(refused)")
      #expect(try program.failure("saveApplicationState").kind == "storeFailed")
      try program.call("goodbye", ["reason": "restart"])
    }
    #expect(try Self.files(of: disk) == before)
  }

  /// The disk was mended, and the broker started again, as the hint says.
  @Test func whatIsSavedOnceTheDiskIsWritableComesBack() throws {
    let disk = try readOnlyDisk(isKilled: true)
    _ = try broker.terminate()
    try disk.grow(to: 16 << 20)
    try broker.start()
    try ControlTool.run(["put", "-q", "-r", Self.note, "Note", "/value", "--", "more"], status: 0)
    try broker.crashAndRestart()
    #expect(try ControlTool.run(["get", "-r", Self.note, "Note", "/value"], status: 0).output == "more\n")
    #expect(try ControlTool.run(["status", "-j"], status: 0).json["readOnly"] == false)
    withExtendedLifetime(disk) {}
  }
}
