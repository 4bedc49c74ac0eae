// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import SeededRandom
internal import TestSupport
internal import Testing

/// The power is cut under the real broker: what was acknowledged is on the disk (R15), if the disk keeps what it has
/// synced. Each check is also made with syncs that do nothing, and must fail then.
@Suite(.enabled(if: Faults.isUsable, Comment(rawValue: Faults.requirement)))
struct PowerCutTests {
  // MARK: A file system that loses what was not synced

  /// Cuts the power in the middle of work; what had been answered before is what was acknowledged.
  private static func cut(_ broker: BrokerFixture, _ disk: LoopDisk, _ workload: inout Workload) throws {
    try broker.start()
    let count = Int.random(in: 1...40)
    workload.run(broker.socket, count: count, leaving: Int.random(in: 0...3))
    #expect(workload.silence == nil && workload.refusals.isEmpty, "\(workload.silence ?? "") \(workload.refusals)")
    try disk.cutPower()
    try broker.kill()
    try disk.restorePower()
    let milliseconds = try broker.start()
    #expect(milliseconds <= 1_000, "ready after \(milliseconds) ms")
  }

  @Test(
    .broker(limits: ["openArchivesMax": 2]),
    .enabled(if: LoopDisk.isPossible, Comment(rawValue: LoopDisk.requirement))
  )
  func aCutOfThePowerLosesNothingAcknowledged() throws {
    try broker.kill()
    let disk = try LoopDisk(at: broker.archives)
    let cuts = Environment.isLong ? 200 : 5
    var workload = Workload(.everything)
    for number in 1...cuts {
      try Self.cut(broker, disk, &workload)
      do {
        try workload.check(broker.socket)
        try Workload.checkSoundness(broker.socket)
      } catch {
        throw TestFailure("cut \(number): \(error)")
      }
      try broker.kill()
    }
    print("\(cuts) cuts of the power of an ext4 file system, \(workload.sent.values.reduce(0, +)) changes sent")
    try broker.start()
    withExtendedLifetime(disk) {}
  }

  @Test(.broker, .enabled(if: LoopDisk.isPossible, Comment(rawValue: LoopDisk.requirement)))
  func aCutOfThePowerIsSeenToLoseWhatWasNotSynced() throws {
    try broker.kill()
    let disk = try LoopDisk(at: broker.archives)
    let faults = try Faults(in: broker.directory)
    broker.variables = faults.variables
    faults.arm(.fdatasync, .lie, from: 1)
    faults.arm(.fsync, .lie, from: 1)
    var workload = Workload()
    try broker.start()
    workload.run(broker.socket, count: 40)
    #expect(workload.isComplete)
    try disk.cutPower()
    try broker.kill()
    try disk.restorePower()
    broker.variables = [:]
    try broker.start()
    #expect(throws: (any Error).self) { try workload.check(broker.socket) }
    withExtendedLifetime(disk) {}
  }

  // MARK: Replays of the write log

  /// Archives of many disks side by side in one directory: each disk's have a name of their own.
  private struct Batch {
    let broker: BrokerFixture
    var works: [Workload] = []

    mutating func add(_ files: [String: [UInt8]], _ work: Workload) throws {
      for (name, bytes) in files where Workload.applications.contains(where: name.hasPrefix) {
        try Files.write(bytes, to: "\(broker.archives)/S\(works.count).\(name)")
      }
      works.append(work)
    }

    /// Opens each of them with the real broker, and compares; the faults found.
    mutating func check() throws -> [String] {
      try broker.start()
      var faults: [String] = []
      for (number, work) in works.enumerated() {
        do {
          try work.check(broker.socket) { "S\(number).\($0)" }
        } catch {
          faults.append("\(error)")
        }
      }
      do { try Workload.checkSoundness(broker.socket) } catch { faults.append("\(error)") }
      try broker.kill()
      Files.removeContents(of: broker.archives)
      works = []
      return faults
    }
  }

  /// Replays a log, and checks `count` different disks that a cut could leave; how many there were, and the faults.
  private static func replay(
    _ log: WriteLog,
    of workload: Workload,
    on broker: BrokerFixture,
    count: Int,
    isLying: Bool
  ) throws -> (states: Int, faults: [String]) {
    var generator = SeededGenerator(seed: 20_261_125)
    var batch = Batch(broker: broker)
    var seen: Set<Int> = []
    var faults: [String] = []
    // The long form takes further cuts at each place until there are enough different ones.
    let share = max(1, 2 * log.entries.count / count)
    for _ in 0..<20 where seen.count < count && faults.isEmpty {
      var disk = CrashDisk(isLying: isLying)
      var answers: [JSONValue] = []
      for entry in log.entries where seen.count < count {
        disk.take(entry)
        if case .answers(let new) = entry { answers += new }
        guard Int.random(in: 0..<share, using: &generator) == 0 else { continue }
        let cut = disk.isAtRisk ? CrashDisk.Cut.allCases.randomElement(using: &generator) : nil
        let files = disk.cut(cut ?? .nothing, &generator)
        var hasher = Hasher()
        for (name, bytes) in files.sorted(by: { $0.key < $1.key }) {
          hasher.combine(name)
          bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
        hasher.combine(answers.count)
        guard seen.insert(hasher.finalize()).inserted else { continue }
        try batch.add(files, workload.acknowledging(answers))
        if batch.works.count == 50 { faults += try batch.check() }
      }
    }
    faults += try batch.check()
    return (seen.count, faults)
  }

  @Test(.broker(limits: ["openArchivesMax": 2])) func noDiskThatACutCouldLeaveLacksWhatWasAcknowledged() throws {
    try broker.kill()
    Files.removeContents(of: broker.archives)
    let file = broker.directory.file("writes")
    let faults = try Faults(in: broker.directory, recording: broker.archives, into: file)
    broker.variables = faults.variables
    var workload = Workload(.everything)
    try broker.start()
    workload.run(broker.socket, count: Environment.isLong ? 400 : 44)
    #expect(workload.isComplete, "\(workload.refusals) \(workload.silence ?? "")")
    #expect(try broker.terminate() == .exit(0))
    broker.variables = [:]
    let log = try WriteLog(file, of: broker.archives)
    Files.removeContents(of: broker.archives)
    let count = Environment.isLong ? 12_000 : 150
    let result = try Self.replay(log, of: workload, on: broker, count: count, isLying: false)
    #expect(result.faults == [])
    #expect(result.states > count / 2)
    print("\(result.states) disks left by cuts in a log of \(log.entries.count) entries")
    let control = try Self.replay(log, of: workload, on: broker, count: 50, isLying: true)
    #expect(!control.faults.isEmpty, "without syncs, none of \(control.states) disks lacks anything")
    try broker.start()
  }
}
