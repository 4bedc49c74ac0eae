// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The library's session outlives the broker: two processes encode all the time, and the broker is killed repeatedly.
/// Nothing acknowledged is lost, nothing is stored twice, every call is answered, and work resumes within a second
/// (R15). `RESTORATIOND_LONG=1` kills 100 times.
@Suite struct SessionSurvivalTests {
  private static let application = "org.example.Survivor"
  private static let processes = 2
  private static let objects = 6

  /// The content of an archive: number, revision and sequence of the newest state of each object, by parent and name.
  private typealias Archive = [String: (number: Int64, revision: Int64, sequence: Int64)]
  /// Number and sequence of states, by name.
  private typealias Unanswered = [String: (number: Int64, sequence: Int64)]

  /// Reads a copy of the archive of a broker that is not running; opening it would change it.
  private static func archive() throws -> Archive {
    let copy = broker.directory.file("copy.sqlite")
    for suffix in ["", "-wal"] {
      let file = "\(broker.archives)/\(application).sqlite\(suffix)"
      _ = try ChildProcess.run(["rm", "-f", copy + suffix, copy + "-shm"])
      if Files.exists(file) { _ = try ChildProcess.run(["cp", file, copy + suffix]) }
    }
    let double =
      "SELECT count(*) FROM (SELECT 1 FROM state WHERE revision > 0 GROUP BY node, session, revision "
      + "HAVING count(*) > 1)"
    let number = "json_extract(text, '$.n')"
    let backwards =
      "SELECT count(*) FROM (SELECT \(number) AS n, lag(\(number)) OVER (PARTITION BY node, session "
      + "ORDER BY revision) AS before FROM state WHERE revision > 0) WHERE n < before"
    let heads =
      "WITH now AS (SELECT node, parent, component, max(sequence) FROM node GROUP BY node) "
      + "SELECT p.component, c.component, json_extract(text, '$.n'), revision, json_extract(text, '$.sum'), "
      + "length(json_extract(text, '$.pad')), max(s.sequence) FROM state s JOIN now c USING (node) "
      + "JOIN now p ON p.node = c.parent GROUP BY s.node"
    let result = try ChildProcess.run(["sqlite3", copy, "\(double); \(backwards); \(heads)"])
    guard result.end == .exit(0) else { throw TestFailure("sqlite3: \(result.errors)") }
    var lines = result.output.split(separator: "\n")
    guard lines.count >= 2 else { throw TestFailure("not a count: \(result.output)") }
    guard lines.removeFirst() == "0" else { throw TestFailure("a revision is stored twice") }
    guard lines.removeFirst() == "0" else { throw TestFailure("an older number has a newer revision") }
    var archive: Archive = [:]
    for line in lines {
      let columns = line.split(separator: "|")
      guard columns.count == 7, let number = Int64(columns[2]), let revision = Int64(columns[3]),
        let sum = Int64(columns[4]), let pad = Int64(columns[5]), let sequence = Int64(columns[6])
      else { throw TestFailure("not a state of the work: \(line)") }
      guard sum == number * 31 + pad else { throw TestFailure("half a state: \(line)") }
      archive["\(columns[0])/\(columns[1])"] = (number, revision, sequence)
    }
    return archive
  }

  /// Compares a process's records with the archive; returns the stored states that were not acknowledged.
  private static func check(_ archive: Archive, _ parent: String, _ report: JSONValue) throws -> Unanswered {
    guard report["faults"] == [] else { throw TestFailure("\(parent): \(report["faults"]?.text ?? report.text)") }
    var unanswered: Unanswered = [:]
    for (name, record) in report["objects"]?.object?.members ?? [] {
      guard let sent = record["sent"]?.integer, let acknowledged = record["acknowledged"]?.integer else { continue }
      guard let (number, revision, sequence) = archive["\(parent)/\(name)"] else {
        guard acknowledged == 0 else { throw TestFailure("\(parent)/\(name): \(acknowledged) is lost") }
        continue
      }
      guard (acknowledged...sent).contains(number) else {
        throw TestFailure("\(parent)/\(name): \(number) is stored, \(acknowledged) acknowledged, \(sent) sent")
      }
      guard name.hasPrefix("One") else { continue }
      guard number <= revision else { throw TestFailure("\(parent)/\(name): \(number) has revision \(revision)") }
      if number > acknowledged { unanswered[name] = (number, sequence) }
    }
    return unanswered
  }

  /// A resent state is answered as superseded exactly if it had been stored. An answer of the broker that was killed may
  /// have come as well, and been read after the report: it has the sequence that is in the archive.
  private static func check(_ unanswered: Unanswered, _ parent: String, _ report: JSONValue) throws {
    guard report["faults"] == [] else { throw TestFailure("\(parent): \(report["faults"]?.text ?? report.text)") }
    for (name, answer) in report["answers"]?.object?.members ?? [] {
      let stored = unanswered[name].flatMap { $0.number == answer["n"]?.integer ? $0.sequence : nil }
      guard let sequence = answer["sequence"]?.integer else {
        guard stored == nil else { continue }
        throw TestFailure("\(parent)/\(name): superseded without having been stored: \(answer.text)")
      }
      guard stored ?? sequence == sequence else {
        throw TestFailure("\(parent)/\(name): stored at \(stored ?? 0), and again: \(answer.text)")
      }
    }
  }

  /// Kills the broker and checks the archive: for each process, the stored states that were not acknowledged.
  private static func kill(_ broker: BrokerFixture, under clients: [ProcessClient]) throws -> [Unanswered] {
    try broker.kill()
    let archive = try archive()
    return try clients.enumerated().map { index, client in
      try check(archive, "P\(index)", try client.tell("report"))
    }
  }

  private struct Figures {
    var kills = 0
    var resent = 0
    var slowest: Int64 = 0
    var slowestResumption: Int64 = 0
    var slowestStart: Int64 = 0
  }

  /// Kills the broker while all work, starts it again, and checks that all of them resume.
  private static func round(_ clients: [ProcessClient], _ figures: inout Figures) throws {
    var unanswered = try kill(broker, under: clients)
    figures.kills += 1
    if figures.kills % 5 == 0 {
      // The next one is killed while the sessions are being resumed.
      try broker.start()
      unanswered = try kill(broker, under: clients)
      figures.kills += 1
    }
    figures.resent += unanswered.reduce(0) { $0 + $1.count }
    let before = Deadline.now
    figures.slowestStart = max(figures.slowestStart, try broker.start())
    let accepting = Deadline.now
    for (index, client) in clients.enumerated() {
      let recovery = try client.tell("recovered", ["after": .integer(before)])
      let acknowledged = try #require(recovery["acknowledged"]?.integer, "kill \(figures.kills): \(recovery.text)")
      figures.slowest = max(figures.slowest, acknowledged - accepting)
      figures.slowestResumption = max(figures.slowestResumption, (recovery["connected"]?.integer ?? 0) - accepting)
      #expect(acknowledged - accepting <= 1_000, "kill \(figures.kills), process \(index): \(recovery.text)")
      // Every object continues, and has got its pending answers.
      try check(unanswered[index], "P\(index)", try client.tell("acknowledgedAll"))
    }
  }

  private static func begin(_ client: ProcessClient, _ index: Int, in parent: String? = nil) throws {
    var work: JSONObject = [
      "application": .string(application), "process": .string("p\(index)"),
      "parent": .string("P\(index)"), "objects": .integer(Int64(objects)),
    ]
    if let parent { work["in"] = .string(parent) }
    let answer = try client.tell("work", work)
    guard answer["working"] == true else { throw TestFailure("it does not work: \(answer.text)") }
  }

  /// The broker restarts without its archives: it knows no token. Each process registers its objects again, even below
  /// an object of the other process, and continues.
  @Test(.broker) func aSessionIsBuiltUpAgainWhereTheBrokerHasLostEverything() throws {
    let clients = try (0..<2).map { _ in try broker.client(.swift) }
    try Self.begin(clients[0], 0)
    try Self.begin(clients[1], 1, in: "P0")
    for _ in 1...3 {
      for client in clients { _ = try client.tell("acknowledged", ["more": 20]) }
      try broker.kill()
      Files.removeContents(of: broker.archives)
      let before = Deadline.now
      try broker.start()
      for client in clients {
        _ = try client.tell("recovered", ["after": .integer(before)])
        let report = try client.tell("acknowledgedAll")
        #expect(report["faults"] == [])
      }
      let reader = try broker.session(Self.application)
      for (path, client) in zip([["P0"], ["P0", "P1"]], clients) {
        let before = try client.tell("report")["objects"]
        for (name, record) in before?.object?.members ?? [] {
          let number = try #require(
            try reader.call("decodeRestorableState", ["object": .array((path + [name]).map { .string($0) })])["state"]?[
              "n"
            ]?.integer
          )
          #expect(number >= record["acknowledged"]?.integer ?? 0)
        }
      }
      let owners = try reader.call("describeApplication")["objects"]?.array?.compactMap { $0["pid"]?.integer } ?? []
      #expect(owners.count == 2 * (Self.objects + 1))
      #expect(Set(owners) == Set(clients.map { Int64($0.pid) }))
    }
    for client in clients {
      #expect(try client.tell("stop")["faults"] == [])
      #expect(try client.tell("end")["confirmed"] == true)
    }
  }

  @Test(.broker(alone: true)) func aSessionOutlivesTheBrokerAgainAndAgain() throws {
    let kills = Environment.isLong ? 100 : 10
    var generator = SystemRandomNumberGenerator()
    let clients = try (0..<Self.processes).map { _ in try broker.client(.swift) }
    for (index, client) in clients.enumerated() { try Self.begin(client, index) }
    var figures = Figures()
    while figures.kills < kills {
      let more = Int64.random(in: 1...200, using: &generator)
      _ = try clients[figures.kills % clients.count].tell("acknowledged", ["more": .integer(more)])
      try Self.round(clients, &figures)
    }
    var total: Int64 = 0
    let reader = try broker.session(Self.application)
    for (index, client) in clients.enumerated() {
      let report = try client.tell("stop")
      #expect(report["faults"] == [])
      total += report["total"]?.integer ?? 0
      for (name, record) in report["objects"]?.object?.members ?? [] {
        let state = try reader.decode("P\(index)", name)["state"]
        let number = try #require(state?["n"]?.integer)
        let range = try #require(record["acknowledged"]?.integer)...(try #require(record["sent"]?.integer))
        #expect(range.contains(number))
      }
      #expect(try client.tell("end")["confirmed"] == true)
    }
    try broker.kill()
    _ = try Self.archive()
    try broker.start()
    print(
      "\(figures.kills) kills, \(total) acknowledged encodes, \(figures.resent) of them stored before a kill and "
        + "answered after it; after the broker accepted the session was resumed within \(figures.slowestResumption) ms "
        + "and an encode acknowledged within \(figures.slowest) ms; to accept it took \(figures.slowestStart) ms"
    )
  }
}
