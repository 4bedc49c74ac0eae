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
        // The call that meets the error may be refused; the next one tries again.
        if (try? workload.check(broker.socket)) == nil { refused += 1 }
        do {
          try workload.check(broker.socket)
        } catch {
          throw TestFailure("\(condition), read \(number) of \(positions): \(error)\n\(broker.log.suffix(2_000))")
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

  // MARK: Random damage

  private static let columns = [
    "tip": ["sequence", "changeHigh", "lastNode", "lastContext", "lastSession", "lastGeneration", "pinned", "content"],
    "state": ["sequence", "node", "context", "session", "revision", "written", "bytes", "checksum", "links", "text"],
    "node": [
      "sequence", "node", "parent", "kind", "isRemoved", "successor", "bytes", "component", "classes",
      "restorationClass", "storyboard",
    ],
    "session": ["session", "ended", "restorationsAtEnd", "token", "ending", "facts"],
    "claim": ["node", "session", "handle", "released", "restorationsAtRelease"],
    "generation": ["sequence", "generation", "committed", "objects", "bytes", "kind", "omitted"],
    "run": ["run", "restorations", "facts"], "context": ["context", "text"], "early": ["sequence"],
    "withheld": ["sequence", "node", "since"], "emptied": ["sequence"], "archive": ["uuid", "keyId", "format"],
    "unclosed": ["id"], "damage": ["text"],
  ]
  private static let values = [
    "9223372036854775807", "-9223372036854775808", "-1", "0", "1", "3", "9007199254740993", "1e300", "NULL", "''",
    "'x'", "x'ff00fe'", "'{\"backedUp\":-9223372036854775808,\"units\":[{\"unit\":\"\",\"run\":9223372036854775807}]}'",
    "'[[0,99999,1],[-5,2,9223372036854775807]]'", "'{\"strikes\":9223372036854775807}'", "randomblob(40)",
    "'{\"messageBytesMax\":-1,\"process\":{\"pid\":-9223372036854775808,\"startTicks\":-1}}'",
  ]

  /// One random change of rows, in SQL.
  private static func change(_ generator: inout SeededGenerator) -> String {
    let (table, names) = columns.sorted { $0.key < $1.key }.randomElement(using: &generator) ?? ("tip", ["sequence"])
    let column = names.randomElement(using: &generator) ?? ""
    let value = values.randomElement(using: &generator) ?? "0"
    let place = Bool.random(using: &generator) ? "" : " WHERE rowid = (SELECT max(rowid) FROM \(table))"
    switch Int.random(in: 0..<8, using: &generator) {
    case 0: return "DELETE FROM \(table)\(place)"
    case 1: return "DROP TABLE \(table)"
    default: return "UPDATE OR REPLACE \(table) SET \(column) = \(value)\(place)"
    }
  }

  /// Damages some bytes of a file.
  private static func strike(_ path: String, _ generator: inout SeededGenerator) throws {
    var bytes = try Files.read(path)
    guard !bytes.isEmpty else { return }
    let start = Int.random(in: 0..<bytes.count, using: &generator)
    switch Int.random(in: 0..<3, using: &generator) {
    case 0: bytes.removeLast(bytes.count - start)
    case 1: bytes[start] ^= 1 << Int.random(in: 0..<8, using: &generator)
    default:
      for index in start..<min(bytes.count, start + 300) { bytes[index] = .random(in: 0...255, using: &generator) }
    }
    try Files.write(bytes, to: path)
  }

  /// An archive with something in every table.
  private static func fill() throws {
    let session = try broker.session("org.example.Work", process: "main")
    for (name, parent) in [("Main", nil), ("Editor", "Main"), ("List", "Main")] as [(String, String?)] {
      var parameters: JSONObject = ["restorationIdentifier": .string(name), "kind": "viewController"]
      if let parent { parameters["restorationParent"] = .path(parent) }
      try session.call("registerObjectForStateRestoration", .object(parameters))
    }
    for number in 0..<6 {
      let state: JSONValue = ["n": .integer(Int64(number)), "to": ["$restorable": .path("Main", "List")]]
      for path in [["Main"], ["Main", "Editor"]] as [[JSONValue]] {
        try session.call("encodeRestorableState", ["object": .array(path), "state": state])
      }
      if number == 3 { try session.call("completeStateRestoration", [:]) }
    }
    try session.call("saveApplicationState")
    try session.call("goodbye", ["reason": "restart"])
  }

  /// Makes all kinds of calls; each must be answered, with a result or an error.
  private static func exercise() throws {
    let client = try broker.connect()
    func attempt(_ method: String, _ parameters: JSONObject = [:], on client: WireClient) throws {
      do {
        try client.call(method, .object(parameters))
      } catch is CallError {
        // Damage may be told; it must be told.
      }
    }
    try attempt("listApplications", on: client)
    for method in ["describeApplication", "listGenerations", "readArchive", "exportArchive", "verifyArchive"] {
      try attempt(method, ["application": application], on: client)
    }
    let session = try broker.connect()
    try attempt("initialize", ["application": application, "process": "main"], on: session)
    for path in [["Main"], ["Main", "Editor"], ["Main", "List"], ["New"]] as [[JSONValue]] {
      let object: JSONObject = ["object": .array(path)]
      try attempt("decodeRestorableState", object, on: session)
      try attempt("explainRestoration", object, on: session)
    }
    let registration: JSONObject = ["restorationIdentifier": "Main", "kind": "viewController"]
    try attempt("registerObjectForStateRestoration", registration, on: session)
    try attempt("decodeRestorableState", ["object": .path("Main")], on: session)
    try attempt("encodeRestorableState", ["object": .path("Main"), "state": ["n": 7]], on: session)
    try attempt("restoreApplicationState", on: session)
    try attempt("completeStateRestoration", on: session)
    try attempt("saveApplicationState", on: session)
    try attempt("goodbye", ["reason": "closed"], on: session)
    let parameters: JSONObject = ["application": "org.example.Other", "object": .path("A"), "state": ["n": 1]]
    try client.call("encodeRestorableState", .object(parameters))
  }

  /// Rows and bytes changed at random: no trap, no hang, and the broker ends on request.
  @Test func randomDamageNeitherTrapsNorHangsTheBroker() throws {
    let count = Environment.isLong ? 500 : 40
    try Self.fill()
    _ = try broker.terminate()
    let kept = broker.directory.file("kept")
    try Self.copy(broker.archives, to: kept)
    var generator = SeededGenerator(seed: 20_261_122)
    var slowest: Int64 = 0
    for number in 0..<count {
      Files.removeContents(of: broker.archives)
      try Self.copy(kept, to: broker.archives)
      let path = broker.archives + "/" + Self.main
      var damage = "bytes"
      if number % 5 == 0 {
        try Self.strike(path, &generator)
      } else {
        let changes = (0..<Int.random(in: 1...3, using: &generator)).map { _ in Self.change(&generator) }
        damage = changes.joined(separator: "; ")
        _ = try ChildProcess.run(["sqlite3", path, damage])
      }
      do {
        try broker.start()
        try Self.exercise()
        let begin = Deadline.now
        let end = try broker.terminate()
        #expect(end == .exit(0), "\(number): \(damage)")
        slowest = max(slowest, Deadline.now - begin)
      } catch {
        throw TestFailure("\(number): \(damage): \(error)")
      }
    }
    print("\(count) random damages; the slowest end took \(slowest) ms")
    try broker.start()
  }

  /// A disk that never answers delays the end for half a minute, not forever.
  @Test(.enabled(if: Environment.isLong, "takes half a minute; run Tests/run.sh --long"))
  func aBrokerWhoseDiskNeverAnswersEndsAllTheSame() throws {
    _ = try broker.terminate()
    let library = broker.directory.file("hanging.so")
    let source = try broker.directory.write(
      """
      #include <stdatomic.h>
      #include <unistd.h>
      static atomic_int calls;
      int fdatasync(int file) {
        while (atomic_fetch_add(&calls, 1) >= 4) pause();
        return fsync(file);
      }
      """,
      to: "hanging.c"
    )
    #expect(try ChildProcess.run(["gcc", "-shared", "-fPIC", "-o", library, source]).end == .exit(0))
    broker.wrapper = ["sh", "-c", #"LD_PRELOAD=\#(library) "$@"; exit $?"#, "sh"]
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
    broker.wrapper = []
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
