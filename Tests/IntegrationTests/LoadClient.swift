// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// `Tests/Clients/manager/load.py`: clients of many kinds in one process, which notice whatever goes wrong.
final class LoadClient {
  static let application = "org.example.Load"

  private let process: ChildProcess

  /// Starts it, with this many clients of each kind; all work afterwards.
  init(_ manager: UserManager, _ kinds: [String: Int64]) throws {
    let program = "\(try manager.added("Tests/Clients"))/manager/load.py"
    process = try manager.start(["python3", "-u", program, manager.socket])
    var counts = JSONObject()
    for (kind, count) in kinds.sorted(by: { $0.key < $1.key }) { counts[kind] = .integer(count) }
    try tell("start", ["application": .string(Self.application), "kinds": .object(counts)])
  }

  /// Tells it what to do; that anything went wrong is a failure.
  @discardableResult
  func tell(_ what: String, _ members: JSONObject = [:]) throws -> JSONValue {
    var command: JSONObject = ["do": .string(what)]
    for (name, value) in members.members { command[name] = value }
    try process.write(JSONValue.object(command).text + "\n")
    guard let line = try process.output?.next(Deadline(.seconds(150))) else { throw TestFailure("load.py has ended") }
    let answer = try JSONCodec.parse(Array(line.utf8))
    if let failure = answer["failure"]?.string { throw TestFailure("\(what): \(failure): \(answer.text)") }
    return answer
  }

  /// Ends all of them, and reads back their stored states.
  func finish(_ manager: UserManager) throws -> JSONValue {
    let report = try tell("stop")
    #expect(report["faults"] == [])
    #expect(report["refused"] == 0)
    let reader = try manager.client(.python)
    for (name, record) in report["objects"]?.object?.members ?? [] where !name.hasPrefix("idleSubscriber") {
      let state = try reader.decode(name, of: Self.application)["state"]
      guard let sent = record["sent"]?.integer, let acknowledged = record["acknowledged"]?.integer else { continue }
      let number = state?["n"]?.integer ?? 0
      #expect((acknowledged...sent).contains(number), "\(name): \(number) is stored, of \(record.text)")
      let length = Int64(state?["pad"]?.string?.utf8.count ?? 0)
      #expect(number == 0 || state?["sum"] == .integer(number * 31 + length), "\(name): half a state")
    }
    process.closeInput()
    try process.waitForEnd()
    return report
  }
}

/// The content of an archive of numbered work: `Tests/Clients/manager/load.py`, `SessionWork`.
enum WorkArchive {
  /// Looks for states that are stored twice or out of order; the broker must not be running. Gives how many there are.
  ///
  /// - Parameter repeats: the work itself encodes a number several times, with a new revision each.
  static func check(_ file: String, repeats: Bool = false) throws -> Int64 {
    let scratch = try ScratchDirectory()
    defer { scratch.remove() }
    let copy = scratch.file("archive")
    for suffix in ["", "-wal"] where Files.exists(file + suffix) {
      _ = try ChildProcess.run(["cp", file + suffix, copy + suffix])
    }
    let number = "json_extract(text, '$.n')"
    let queries = [
      "SELECT count(*) FROM state WHERE \(number) IS NOT NULL",
      "SELECT count(*) FROM (SELECT 1 FROM state WHERE revision > 0 GROUP BY node, session, revision "
        + "HAVING count(*) > 1)",
      "SELECT count(*) FROM (SELECT 1 FROM state WHERE \(number) IS NOT NULL AND revision > 0 GROUP BY node, \(number) "
        + "HAVING count(*) > 1)",
      "SELECT count(*) FROM (SELECT \(number) AS n, lag(\(number)) OVER (PARTITION BY node ORDER BY sequence) "
        + "AS before FROM state WHERE revision > 0) WHERE n < before",
    ]
    let result = try ChildProcess.run(["sqlite3", copy, queries.joined(separator: "; ")])
    guard result.end == .exit(0) else { throw TestFailure("sqlite3: \(result.errors)") }
    let counts = result.output.split(separator: "\n").compactMap { Int64($0) }
    guard counts.count == 4 else { throw TestFailure("not four counts: \(result.output)") }
    #expect(counts[1] == 0, "a revision is stored twice")
    #expect(repeats || counts[2] == 0, "a state is stored twice")
    #expect(counts[3] == 0, "an older state is stored after a newer one")
    return counts[0]
  }
}

extension UserManager {
  /// Whether a test of the real service can run.
  static let condition = Comment(rawValue: UserManager.requirement)

  /// Waits until the unit is in that state.
  func waitUntil(_ state: String, _ unit: String = UserManager.service) throws {
    try Wait.until("\(unit) is \(state)") { try property("ActiveState", of: unit) == state }
  }

  /// Waits until another process than this one serves, and gives it.
  @discardableResult
  func waitForSuccessor(of pid: Int32, _ deadline: Deadline = Deadline()) throws -> Int32 {
    var successor: Int32 = 0
    try Wait.until("the broker \(pid) has a successor", deadline) {
      successor = try mainPID
      guard successor != 0, successor != pid else { return false }
      return try property("ActiveState") == "active"
    }
    return successor
  }

  /// Connections younger than 50 ms end with a broker that is killed. The ledger is stored as well.
  func waitUntilStored(connections count: Int) throws {
    try Wait.until("\(count) connections are stored") { try property("NFileDescriptorStore") == "\(count + 1)" }
  }

  /// Kills the broker, and nothing else of its unit.
  func killBroker() throws { try systemctl("kill", "--signal=KILL", "--kill-whom=main", Self.service) }

  /// Restarts by hand as often as a test wants to.
  func allowManyRestarts() throws { try dropIn("many", "[Unit]\nStartLimitIntervalSec=0\n") }

  /// Settings of `[Service]`.
  func dropIn(_ name: String, service settings: String...) throws {
    try dropIn(name, "[Service]\n\(settings.joined(separator: "\n"))\n")
  }

  func dropIn(_ name: String, _ text: String) throws { try dropIn(UserManager.service, name, text) }
}
