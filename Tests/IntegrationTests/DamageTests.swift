// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// Archives whose files are not as the broker left them, and disks that do not read (R20, R32): the real broker neither
/// crashes nor hangs, loses nothing that can be read, and reports its findings.
@Suite(.broker) struct DamageTests {
  private static let application: JSONValue = "org.example.Work"
  private static let main = "org.example.Work.sqlite"

  private static func copy(_ folder: String, to target: String) throws {
    #expect(try ChildProcess.run(["cp", "-aT", folder, target]).end == .exit(0))
  }

  // MARK: Errors of reading

  enum Condition: CaseIterable, Sendable {
    case closed, withLog, withBackup, inRecovery

    /// Makes an archive in this condition; its newest states are those of the workload.
    func prepare() throws -> Workload {
      var workload = Workload()
      workload.run(broker.socket, count: 30)
      if self == .withBackup || self == .inRecovery {
        try broker.connect().call("backupArchive", ["application": DamageTests.application])
      }
      if self == .withLog || self == .inRecovery { try broker.kill() } else { _ = try broker.terminate() }
      if self == .inRecovery {
        let path = broker.archives + "/" + DamageTests.main
        try Files.write(Array("no archive".utf8), to: path)
        Files.remove(path + "-wal")
        Files.remove(broker.archives + "/org.example.Work+mark")
      }
      return workload
    }
  }

  /// Every position at which the archive is read while it is opened, and every errno; the short form takes a few.
  @Test(.enabled(if: Strace.isUsable, Comment(rawValue: Strace.requirement)), arguments: Condition.allCases)
  func oneErrorOfReadingLosesNothing(condition: Condition) throws {
    let workload = try condition.prepare()
    let kept = broker.directory.file("kept")
    try Self.copy(broker.archives, to: kept)
    let trace = broker.directory.file("trace")
    broker.wrapper = Strace.watching(["pread64"], into: trace)
    try broker.start()
    try workload.check(broker.socket)
    try broker.kill()
    let positions = try Strace.counts(in: trace)["pread64"] ?? 0
    #expect(positions > 8)
    let errors = ["EIO", "EACCES", "ENOSPC", "EDQUOT"]
    var (tried, refused) = (0, 0)
    for number in stride(from: 1, through: positions, by: Environment.isLong ? 1 : max(1, positions / 6)) {
      for error in Environment.isLong ? errors : [errors[number % errors.count]] {
        Files.removeContents(of: broker.archives)
        try Self.copy(kept, to: broker.archives)
        broker.wrapper = Strace.failing("pread64", with: error, from: number, onlyOnce: true)
        // The first positions are also those of the dynamic linker, without which no broker starts.
        guard (try? broker.start()) != nil else { continue }
        // Calls that meet the error may be refused; the next one tries again. strace counts the reads of each thread by
        // itself, so that each thread that reads archives may meet it once.
        let failures = Self.failures(of: workload)
        if !failures.isEmpty { refused += 1 }
        guard failures.count <= Self.archiveThreads else {
          throw TestFailure("\(condition), read \(number) of \(positions): \(failures)\n\(broker.log.suffix(2_000))")
        }
        let names = Files.list(broker.archives)
        let allowed = condition == .inRecovery ? 1 : 0
        #expect(names.count { $0.contains("+damaged-") && $0.hasSuffix(".sqlite") } == allowed, "\(names)")
        let list = try broker.connect().call("listApplications")["applications"]?.array ?? []
        #expect(list.contains { $0["damaged"] != nil } == (condition == .inRecovery), "\(list)")
        try broker.kill()
        tried += 1
      }
    }
    #expect(tried >= 2 && refused >= 1)
    print("\(condition): \(tried) errors at \(positions) positions, \(refused) met by the first call")
    broker.wrapper = []
    try broker.start()
  }

  /// How many threads of a broker read archives at most.
  private static let archiveThreads = 8

  /// What is wrong with what the broker answers, each time until nothing is.
  private static func failures(of workload: Workload) -> [String] {
    var failures: [String] = []
    while failures.count <= archiveThreads {
      do {
        try workload.check(broker.socket)
        return failures
      } catch {
        failures.append("\(error)")
      }
    }
    return failures
  }

  // MARK: Other faults

  /// A disk that never answers delays the end for half a minute, not forever.
  @Test(.enabled(if: Environment.isLong, "takes half a minute; run Tests/run.sh --long"))
  func aBrokerWhoseDiskNeverAnswersEndsAllTheSame() throws {
    _ = try broker.terminate()
    let faults = try Faults(in: broker.directory)
    faults.arm(.fdatasync, .hang, from: 5)
    broker.variables = faults.variables
    try broker.start()
    let client = try broker.connect()
    for number in 0..<9 {
      let parameters: JSONValue = ["application": "a", "object": .path("A"), "state": ["n": .integer(Int64(number))]]
      _ = try client.request("encodeRestorableState", parameters)
    }
    _ = client.hasInput(within: .seconds(1))
    Glibc.kill(try broker.pid, SIGTERM)
    #expect(try broker.waitForEnd(Deadline(.seconds(60))) == .exit(1))
    #expect(broker.log.contains("could not be closed"))
    broker.variables = [:]
    try broker.start()
  }

  /// The finding of the opening is reported until a run has ended, even after a restart of the broker.
  @Test func aDamageIsToldUntilARunHasEnded() throws {
    var workload = Workload()
    workload.run(broker.socket, count: 30)
    try broker.kill()
    Files.remove(broker.archives + "/\(Self.main)-wal")
    try broker.start()
    _ = try broker.connect().call("describeApplication", ["application": Self.application])
    #expect(broker.log.contains("is missing"))
    try broker.crashAndRestart()
    let status = try ControlTool.run(["status"])
    #expect(status.output.contains("Damage:"), "\(status.output)")
    // Nothing is left to do.
    let findings = try ControlTool.run(["doctor", "-j"]).json["findings"]?.array
    let archives = try #require(findings?.first { $0["subject"] == "archives" }, "\(String(describing: findings))")
    #expect(archives["verdict"] == "note" && archives["message"]?.string?.contains("missing") == true, "\(archives)")
    let list = try broker.connect().call("listApplications")
    #expect(list["applications"]?.array?.first?["damaged"]?.string?.contains("missing") == true, "\(list.text)")
    let session = try broker.connect()
    let situation = try session.call("initialize", ["application": Self.application])["restoration"]
    #expect(situation?["reason"] == "recover", "\(String(describing: situation?.text))")
    #expect(situation?["damaged"]?.string?.contains("missing") == true)
    try session.call("goodbye", ["reason": "closed"])
    let again = try broker.connect().call("initialize", ["application": Self.application])["restoration"]
    #expect(again?["damaged"] == nil)
    #expect(try !ControlTool.run(["status"]).output.contains("Damage:"))
  }
}
