// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport

/// Work for a broker, with a record of what was sent and acknowledged.
///
/// What is written counts versions: a *register* is a place of which every change makes the next version. Whatever
/// becomes of the broker, each register must then show one version, whole: none before the last that was acknowledged,
/// and none after the last that was sent.
struct Workload {
  enum Register: Hashable, Sendable {
    /// A state that is pushed.
    case object(Int)
    /// States that a round asks for.
    case round
    /// An object with a child, which gets another identifier.
    case move
    /// An application that is discarded after each state that it gets: every second version is nothing.
    case discard
    /// An application that is imported.
    case importing
  }

  /// What is done in turn; nil is a backup copy.
  enum Kind: Sendable {
    case encodes
    /// In four applications, one of them with a session.
    case everything

    fileprivate var turns: [Register?] {
      switch self {
      case .encodes: [.object(0)]
      case .everything:
        [
          .object(0), .round, .object(0), .move, .discard, .object(0), .importing, .discard, .object(0), .round, nil,
        ]
      }
    }
  }

  private(set) var sent: [Register: Int] = [:]
  private(set) var acknowledged: [Register: Int] = [:]
  /// Everything the last run was to send was acknowledged.
  private(set) var isComplete = false
  /// Calls of the last run that were answered with an error.
  private(set) var refusals: [CallError] = []
  /// What the last run waited for in vain, although the connection was open.
  private(set) var silence: String?
  private let kind: Kind
  /// The operations by the ids of their calls, which are unique over all runs.
  private var operations: [Int64: (register: Register, version: Int)?] = [:]
  /// Calls without an answer, in order, and whether they are on the session's connection.
  private var pending: [(call: Int64, isOfSession: Bool)] = []
  /// Above the ids of a `WireClient`'s own calls.
  private var lastID: Int64 = 1_000
  private var steps = 0
  private var encodes = 0
  private var token: JSONValue?
  private var mover: JSONValue = .null

  static let application: JSONValue = "org.example.Work"
  /// The connections of a run: one with a session, and one that may be about any application.
  private struct Connections {
    let session: WireClient
    let other: WireClient

    init(_ socket: String) throws { (session, other) = (try WireClient(socket), try WireClient(socket)) }
  }

  private static let session = "org.example.Session"
  private static let discarded = "org.example.Discarded"
  private static let imported = "org.example.Imported"
  static let applications = ["org.example.Work", session, discarded, imported]
  private static let objectsOfRounds = 3
  private static let objectsOfImports = 12

  init(_ kind: Kind = .encodes) { self.kind = kind }

  static func state(_ number: Int) -> JSONValue {
    let size = [1, 200, 5_000][number % 3]
    let pad = String(repeating: "x", count: size)
    return ["n": .integer(Int64(number)), "pad": .string(pad), "sum": .integer(Int64(number * 31 + size))]
  }

  /// The same with only what these answers acknowledge.
  func acknowledging(_ answers: [JSONValue]) -> Workload {
    var copy = self
    copy.acknowledged = [:]
    for answer in answers { copy.acknowledge(answer) }
    return copy
  }

  private mutating func acknowledge(_ answer: JSONValue) {
    guard let id = answer["id"]?.integer, let result = answer["result"], Self.promises(result),
      case .some(.some(let (register, version))) = operations[id]
    else { return }
    acknowledged[register] = max(version, acknowledged[register] ?? 0)
  }

  // MARK: Running

  /// Takes `count` steps, four at a time, until the broker is gone.
  ///
  /// - Parameter leaving: so many calls at the end are not waited for.
  mutating func run(_ socket: String, count: Int, leaving rest: Int = 0) {
    (isComplete, refusals, silence) = (false, [], nil)
    pending = []
    guard let connections = try? Connections(socket) else { return }
    do {
      if kind == .everything { try openSession(connections) }
      for _ in 1...count {
        try step(connections)
        while pending.count > 3 { _ = try takeMessage(connections) }
      }
      while pending.count > rest { _ = try takeMessage(connections) }
      isComplete = refusals.isEmpty
    } catch {
      // The setting up was refused, or the broker is gone: pending changes may be stored or not.
    }
  }

  private mutating func openSession(_ connections: Connections) throws {
    var parameters: JSONObject = [
      "application": .string(Self.session), "process": "worker", "serves": ["encodeRestorableStateWithCoder"],
    ]
    parameters["session"] = token
    token = try wait(connections, for: try send(connections, "initialize", parameters))["session"]
    let paths = try Self.states(connections.other, Self.session).keys
    let name = paths.first { $0[0].hasPrefix("M") }?[0] ?? "M0"
    for path in [[name], [name, "Leaf"]] + (0..<Self.objectsOfRounds).map({ ["R\($0)"] }) {
      var parameters: JSONObject = ["restorationIdentifier": .string(path.last ?? "")]
      if path.count > 1 { parameters["restorationParent"] = .array(path.dropLast().map { .string($0) }) }
      let call = try send(connections, "registerObjectForStateRestoration", parameters)
      let object = try wait(connections, for: call)["object"]
      if path == [name] { mover = object ?? .null }
    }
    guard name == "M0" else { return }
    for (path, number) in [([name], 1), ([name, "Leaf"], 2)] {
      let parameters: JSONObject = ["object": .array(path.map { .string($0) }), "state": Self.state(number)]
      _ = try wait(connections, for: try send(connections, "encodeRestorableState", parameters))
    }
  }

  /// Sends the next change.
  private mutating func step(_ connections: Connections) throws {
    defer { steps += 1 }
    switch kind.turns[steps % kind.turns.count] {
    case .object?:
      encodes += 1
      let parameters: JSONObject = [
        "application": Self.application, "object": .path("Root", "O\(encodes % 7)"), "state": Self.state(encodes),
      ]
      try send(connections, "encodeRestorableState", parameters, .object(encodes % 7), encodes)
    case .round?:
      // A round that joins another one would get the states of that one.
      while pending.contains(where: { operations[$0.call]??.register == .round }) { _ = try takeMessage(connections) }
      try send(connections, "saveApplicationState", ["deadlineMilliseconds": 15_000], .round, next(.round))
    case .move?:
      let parameters: JSONObject = ["object": mover, "restorationIdentifier": .string("M\(next(.move))")]
      try send(connections, "setRestorationIdentifier", parameters, .move, next(.move))
    case .discard?:
      let version = next(.discard)
      let parameters: JSONObject = ["application": .string(Self.discarded)]
      if version.isMultiple(of: 2) {
        try send(connections, "discardApplicationState", parameters, .discard, version)
      } else {
        let object: JSONObject = ["application": .string(Self.discarded), "object": .path("D")]
        try send(connections, "encodeRestorableState", object.with("state", Self.state(version)), .discard, version)
      }
    case .importing?:
      let version = next(.importing)
      try send(connections, "importArchive", Self.importing(version), .importing, version)
    case nil: try send(connections, "backupArchive", ["application": .string(Self.session)])
    }
  }

  private func next(_ register: Register) -> Int { (sent[register] ?? 0) + 1 }

  private static func importing(_ version: Int) -> JSONObject {
    let objects = (0..<objectsOfImports).map { index -> JSONValue in
      [
        "path": .path("I\(index)"), "kind": "object", "state": state(version),
        "writer": ["written": "2026-02-28T09:05:00.042Z"],
      ]
    }
    let document: JSONValue = ["format": "restorationd.archive", "version": 1, "objects": .array(objects)]
    return ["application": .string(imported), "force": true, "document": document]
  }

  @discardableResult
  private mutating func send(
    _ connections: Connections,
    _ method: String,
    _ parameters: JSONObject,
    _ register: Register? = nil,
    _ version: Int = 0
  ) throws -> Int64 {
    lastID += 1
    operations[lastID] = .some(register.map { ($0, version) })
    if let register { sent[register] = version }
    let isOfSession = parameters["application"] == nil || method == "initialize"
    pending.append((lastID, isOfSession))
    let client = isOfSession ? connections.session : connections.other
    try client.send(WireClient.message(method, .object(parameters), id: .integer(lastID)))
    return lastID
  }

  // MARK: Answers

  private mutating func wait(_ connections: Connections, for call: Int64) throws -> JSONValue {
    while true {
      let message = try takeMessage(connections)
      guard message["id"]?.integer == call, message["method"] == nil else { continue }
      if let error = message["error"] { throw CallError(error) }
      return message["result"] ?? .null
    }
  }

  /// Takes one message of the connection that has waited longest; the broker's calls are answered.
  private mutating func takeMessage(_ connections: Connections) throws -> JSONValue {
    let client = pending.first?.isOfSession == true ? connections.session : connections.other
    let message: JSONValue
    do {
      message = try client.receiveMessage()
    } catch {
      let hasEnded = (try? client.receiveToEnd(Deadline(.zero))) != nil
      if !hasEnded { silence = "\(error), with \(pending.count) calls pending" }
      throw error
    }
    guard message["method"] == nil else {
      if let id = message["id"] { try serve(client, message, id) }
      return message
    }
    pending.removeAll { $0.call == message["id"]?.integer }
    if let error = message["error"] { refusals.append(CallError(error)) }
    acknowledge(message)
    return message
  }

  /// Whether a result says that all of the change is stored.
  private static func promises(_ result: JSONValue) -> Bool {
    if let durability = result["durability"] { return durability == "disk" }
    guard let isSaved = result["saved"] else { return true }
    return isSaved == true && result["stale"] == []
  }

  private func serve(_ client: WireClient, _ call: JSONValue, _ id: JSONValue) throws {
    let states = (call["params"]?["objects"]?.array ?? []).map { object -> JSONValue in
      let path = object.strings("path")
      let number = path.first?.hasPrefix("R") == true ? sent[.round] ?? 0 : path.count
      return ["object": object["object"] ?? .null, "state": Self.state(number)]
    }
    let answer: JSONValue = ["jsonrpc": "2.0", "id": id, "result": ["states": .array(states)]]
    try client.send(answer.text + "\n")
  }

  // MARK: Checking

  /// Nothing that was acknowledged is lost, nothing is half (R15).
  ///
  /// - Parameter name: what the archive of an application is called now.
  func check(_ socket: String, naming name: (String) -> String = { $0 }) throws {
    let client = try WireClient(socket)
    let work = try Self.states(client, name("org.example.Work"))
    for number in 0..<7 {
      try check(.object(number), try Self.version(of: [work[["Root", "O\(number)"]]]))
    }
    guard kind == .everything else { return }
    let session = try Self.states(client, name(Self.session))
    try check(.round, try Self.versionOfRounds(session))
    try check(.move, try versionOfMoves(session))
    let discarded = try Self.version(of: [Self.states(client, name(Self.discarded))[["D"]]])
    // Nothing is the version of every second change.
    let least = acknowledged[.discard] ?? 0
    try check(.discard, discarded == 0 ? least + least % 2 : discarded)
    let imported = try Self.states(client, name(Self.imported))
    try check(.importing, try Self.version(of: (0..<Self.objectsOfImports).map { imported[["I\($0)"]] }))
    try checkGenerations(client, name(Self.session))
  }

  /// No damage was found, and every row is sound.
  static func checkSoundness(_ socket: String) throws {
    let client = try WireClient(socket)
    let list = try client.call("listApplications")["applications"]?.array ?? []
    for application in list {
      if let damage = application["damaged"] { throw TestFailure("damaged: \(damage.text)") }
      do {
        let report = try client.call("verifyArchive", ["application": application["application"] ?? .null])
        guard report["sound"] == true else { throw TestFailure("not sound: \(report.text)") }
      } catch let error as CallError where error.kind == "unknownApplication" {
        // An archive that was made for a change which was never stored goes as soon as it is not in use.
      }
    }
  }

  /// The states by path; none if the application is unknown.
  private static func states(_ client: WireClient, _ application: String) throws -> [[String]: JSONValue] {
    do {
      return try client.states(of: application)
    } catch let error as CallError where error.kind == "unknownApplication" {
      return [:]
    }
  }

  private func check(_ register: Register, _ found: Int) throws {
    let (least, last) = (acknowledged[register] ?? 0, sent[register] ?? 0)
    guard (least...last).contains(found) else {
      throw TestFailure("\(register): \(found) came back, \(least) was acknowledged, \(last) was sent")
    }
  }

  /// Generations hold whole rounds.
  private func checkGenerations(_ client: WireClient, _ application: String) throws {
    let list: JSONValue
    do {
      list = try client.call("listGenerations", ["application": .string(application)])
    } catch let error as CallError where error.kind == "unknownApplication" {
      return
    }
    for generation in list["generations"]?.array ?? [] {
      let states = try client.states(of: application, in: generation["generation"])
      guard try Self.versionOfRounds(states) <= sent[.round] ?? 0 else { throw TestFailure("a round of the future") }
    }
  }

  private static func versionOfRounds(_ states: [[String]: JSONValue]) throws -> Int {
    try version(of: (0..<objectsOfRounds).map { states[["R\($0)"]] })
  }

  private func versionOfMoves(_ states: [[String]: JSONValue]) throws -> Int {
    let paths = states.keys.filter { $0[0].hasPrefix("M") }
    let names = Set(paths.map { $0[0] })
    // Until both states are stored there is no move.
    guard let name = names.first, names.count == 1, paths.count == 2 || name == "M0" else {
      guard names.isEmpty, acknowledged[.move] ?? 0 == 0 else { throw TestFailure("half a move: \(paths)") }
      return 0
    }
    for path in paths where states[path] != Self.state(path.count) { throw TestFailure("half a state of \(path)") }
    return Int(name.dropFirst()) ?? -1
  }

  /// The one version that all of these states have; 0 if there is none of them.
  private static func version(of states: [JSONValue?]) throws -> Int {
    let versions = Set(states.map { $0?["n"]?.integer.map { Int($0) } ?? 0 })
    guard versions.count == 1, let version = versions.first else { throw TestFailure("half a change: \(versions)") }
    for case let state? in states where state != Self.state(version) {
      throw TestFailure("half a state: \(state.text.prefix(200))")
    }
    return version
  }
}

extension JSONObject {
  fileprivate func with(_ name: String, _ value: JSONValue) -> JSONObject {
    var copy = self
    copy[name] = value
    return copy
  }
}
