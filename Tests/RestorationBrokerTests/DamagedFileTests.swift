// SPDX-License-Identifier: Apache-2.0

internal import CSQLite
internal import JSONRPC
internal import RestorationArchive
internal import SeededRandom
internal import TestSupport
internal import Testing

/// Archives whose rows or bytes are not as the broker left them (R20, R32): the real service over the real store neither
/// traps nor hangs, and serves no state that was not written there. What it sets aside it reports, and keeps as it was.
@Suite struct DamagedFileTests {
  private static let columns = [
    "tip": ["sequence", "changeHigh", "lastNode", "lastContext", "lastSession", "lastGeneration", "pinned", "content"],
    "state": ["sequence", "node", "context", "session", "revision", "written", "bytes", "checksum", "links", "text"],
    "node": [
      "sequence", "node", "parent", "kind", "isRemoved", "successor", "bytes", "component", "classes",
      "restorationClass", "storyboard", "checksum",
    ],
    "session": ["session", "ended", "restorationsAtEnd", "token", "ending", "facts"],
    "claim": ["node", "session", "handle", "released", "restorationsAtRelease"],
    "generation": ["sequence", "generation", "committed", "objects", "bytes", "kind", "omitted"],
    "run": ["run", "restorations", "facts"], "context": ["context", "text", "checksum"], "early": ["sequence"],
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

  /// Damages the main file; returns how.
  private static func damage(_ path: String, _ number: Int, _ generator: inout SeededGenerator) throws -> String {
    guard number % 5 != 0 else {
      try strike(path, &generator)
      return "\(number): bytes"
    }
    let changes = (0..<Int.random(in: 1...3, using: &generator)).map { _ in change(&generator) }
    var connection: OpaquePointer?
    defer { sqlite3_close_v2(connection) }
    guard sqlite3_open_v2(path, &connection, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK else {
      throw TestFailure("\(path) does not open")
    }
    // A change that is refused leaves less damage.
    for change in changes { sqlite3_exec(connection, change, nil, nil, nil) }
    return "\(number): \(changes.joined(separator: "; "))"
  }

  private static func start(in directory: ScratchDirectory) -> MemoryBroker {
    let path = directory.path
    return MemoryBroker { loop in
      do {
        return try SQLiteArchiveStore(directory: path, on: loop, upkeep: ArchiveUpkeep(ballastBytes: 0))
      } catch {
        preconditionFailure("no store: \(error)")
      }
    }
  }

  private static func end(_ broker: MemoryBroker, _ comment: Comment) {
    broker.saveBeforeEnd()
    broker.advance(milliseconds: 60_000)
    #expect(broker.isPreparedToStop, comment)
    broker.stop()
    broker.advance(milliseconds: 60_000)
    #expect(broker.isStopped, comment)
  }

  /// The files of a closed archive with something in most tables; each state names its object.
  private static func files() throws -> [String: [UInt8]] {
    let directory = try ScratchDirectory()
    defer { directory.remove() }
    let broker = start(in: directory)
    let session = broker.connect()
    try session.initialize("App", #""process":"main""#)
    try session.register("Main", #""kind":"viewController""#)
    for name in ["Editor", "List"] {
      try session.register(name, below: #"["Main"]"#, #""kind":"viewController""#)
    }
    for number in 0..<6 {
      for (path, name) in [(#"["Main"]"#, "Main"), (#"["Main","Editor"]"#, "Editor")] {
        try session.encode(path, #"{"of":"\#(name)","n":\#(number),"to":{"$restorable":["Main","List"]}}"#)
      }
      if number == 3 { try session.call("completeStateRestoration") }
    }
    try session.call("saveApplicationState")
    try session.goodbye("restart")
    end(broker, "not damaged")
    let names = Files.list(directory.path)
    return Dictionary(uniqueKeysWithValues: try names.map { ($0, try Files.read(directory.file($0))) })
  }

  /// Calls over damaged files, each of which must be answered, with a result or an error that gives a hint.
  private final class Exercise {
    let broker: MemoryBroker
    private let damage: String
    private var calls: [(peer: Peer, id: Int, method: String)] = []

    init(_ broker: MemoryBroker, _ damage: String) { (self.broker, self.damage) = (broker, damage) }

    @discardableResult
    func attempt(_ peer: Peer, _ method: String, _ parameters: String = "{}") -> JSONValue? {
      guard peer.isConnected else {
        Issue.record("\(damage): before \(method) the broker closed the connection")
        return nil
      }
      let id = peer.start(method, parameters)
      calls.append((peer, id, method))
      return peer.resultIfAny(of: id)
    }

    /// An object's own state, or none.
    func decode(_ peer: Peer, _ path: String, of name: String) {
      guard let state = attempt(peer, "decodeRestorableState", #"{"object":\#(path)}"#)?["state"], !state.isNull else {
        return
      }
      let isWritten = state["of"]?.string == name && (0...7).contains(state["n"]?.integer ?? -1)
      #expect(isWritten, "\(damage): \(name) has \(state)")
    }

    func finish() {
      broker.advance(milliseconds: 60_000)
      for (peer, id, method) in calls where peer.resultIfAny(of: id) == nil {
        do {
          _ = try peer.failure(of: id)
        } catch {
          Issue.record("\(damage): \(method): \(error)")
        }
      }
      #expect(!broker.logged.contains { $0.hasPrefix("fatal") }, "\(damage): \(broker.logged)")
    }
  }

  /// Uses the archive in all kinds of ways; returns whether it was set aside.
  private static func use(_ exercise: Exercise, _ damage: String, in directory: ScratchDirectory) throws -> Bool {
    let found = try Files.read(directory.file("App.sqlite"))
    let client = exercise.broker.connect(pid: 1)
    exercise.attempt(client, "listApplications")
    for method in ["describeApplication", "listGenerations", "readArchive", "exportArchive", "verifyArchive"] {
      exercise.attempt(client, method, #"{"application":"App"}"#)
    }
    let list = exercise.attempt(client, "listApplications")?["applications"]?.array
    let aside = directory.file("App+damaged-1.sqlite")
    let isAside = Files.exists(aside)
    if isAside {
      let report = list?.first { $0["application"] == "App" }?["damaged"]?.string
      #expect(report?.contains(aside) == true, "\(damage): \(report ?? "no report")")
      #expect(try Files.read(aside) == found, "\(damage)")
    }
    let session = exercise.broker.connect()
    exercise.attempt(session, "initialize", #"{"application":"App","process":"main"}"#)
    let objects = [
      (#"["Main"]"#, "Main"), (#"["Main","Editor"]"#, "Editor"), (#"["Main","List"]"#, "List"), (#"["New"]"#, "New"),
    ]
    for (path, name) in objects {
      exercise.decode(session, path, of: name)
      exercise.attempt(session, "explainRestoration", #"{"object":\#(path)}"#)
    }
    let registration = #"{"restorationIdentifier":"Main","kind":"viewController"}"#
    exercise.attempt(session, "registerObjectForStateRestoration", registration)
    exercise.decode(session, #"["Main"]"#, of: "Main")
    exercise.attempt(session, "encodeRestorableState", #"{"object":["Main"],"state":{"of":"Main","n":7}}"#)
    for method in ["restoreApplicationState", "completeStateRestoration", "saveApplicationState"] {
      exercise.attempt(session, method)
    }
    exercise.attempt(session, "goodbye", #"{"reason":"closed"}"#)
    let neighbour = #"{"application":"Other","object":["A"],"state":{"n":1}}"#
    let written = exercise.attempt(client, "encodeRestorableState", neighbour)
    #expect(written != nil, "\(damage): another application cannot write")
    exercise.finish()
    return isAside
  }

  @Test func damageNeitherTrapsNorHangsTheBroker() throws {
    let count = Environment.isLong ? 10_000 : 150
    let files = try Self.files()
    var generator = SeededGenerator(seed: 20_261_122)
    var aside = 0
    for number in 0..<count {
      let directory = try ScratchDirectory()
      defer { directory.remove() }
      for (name, bytes) in files { try Files.write(bytes, to: directory.file(name)) }
      let damage = try Self.damage(directory.file("App.sqlite"), number, &generator)
      let broker = Self.start(in: directory)
      if try Self.use(Exercise(broker, damage), damage, in: directory) { aside += 1 }
      Self.end(broker, "\(damage)")
    }
    #expect(aside > count / 10)
    print("\(count) damages: \(aside) set aside and reported, no trap, no hang, no foreign state served")
  }
}
