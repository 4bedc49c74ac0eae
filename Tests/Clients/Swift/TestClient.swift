// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient

/// A client of the broker that executes commands from standard input, by the library: restoration-test-client SOCKET
///
/// One command a line, a JSON object with a member `do`; each is answered with one line. The commands are some of those
/// of `Tests/Clients/client.py`.
@main
struct TestClient {
  static func main() async throws {
    let arguments = CommandLine.arguments
    if arguments.count == 3, arguments[2] == "serving" { return try await serve(arguments[1]) }
    guard arguments.count == 2 else { return print("usage: restoration-test-client SOCKET [serving]") }
    var client = Commands(socket: CommandLine.arguments[1])
    try await client.connect()
    while let line = readLine() {
      let command = try JSONCodec.parse(Array(line.utf8))
      print(text(try await client.answer(to: command)))
      // Standard output is a socket, so output would stay in the buffer until that is full.
      Output.flush()
    }
  }

  /// Acts as a process that the broker calls.
  private static func serve(_ socket: String) async throws {
    let process = ServingProcess(socket: socket)
    while let line = readLine() {
      print(text(try await process.obey(try JSONCodec.parse(Array(line.utf8)))))
      Output.flush()
    }
  }

  static func text(_ value: JSONValue) -> String {
    String(decoding: JSONCodec.format(value, style: .compact, sortKeys: false), as: UTF8.self)
  }
}

/// The commands.
struct Commands {
  private let socket: String
  private var connection: BrokerConnection?
  private var pending: [Int64: Task<JSONValue, any Error>] = [:]
  private var lastID: Int64 = 0
  private var work: SessionWork?

  init(socket: String) { self.socket = socket }

  mutating func connect() async throws { connection = try await BrokerConnection.connect(to: socket) }

  mutating func answer(to command: JSONValue) async throws -> JSONValue {
    guard let connection else { return ["fault": "not connected"] }
    let method = command["method"]?.string ?? ""
    let parameters = command["params"].map(TestClient.text)
    switch command["do"]?.string {
    case "call":
      return try await Self.call(connection, method, parameters)
    case "request":
      lastID += 1
      pending[lastID] = Task { try await Self.call(connection, method, parameters) }
      return ["id": .integer(lastID)]
    case "answer":
      let task = command["id"]?.integer.flatMap { pending.removeValue(forKey: $0) }
      return try await task?.value ?? ["fault": "nothing was requested"]
    case "notification":
      for await notification in connection.notifications { return Self.value(of: notification) }
      return ["lost": "no notification"]
    case "connect":
      try await connect()
      return [:]
    case "disconnect":
      await connection.close()
      return [:]
    default:
      return try await answerAtWork(to: command)
    }
  }

  /// Commands for a process with a session that outlives the broker.
  private mutating func answerAtWork(to command: JSONValue) async throws -> JSONValue {
    if command["do"]?.string == "work" {
      let options = SessionOptions(
        application: command["application"]?.string ?? "",
        process: command["process"]?.string
      )
      let work = SessionWork(try await RestorationSession.start(options, socket: socket))
      try await work.begin(
        below: command["parent"]?.string ?? "",
        in: command["in"]?.string.map { [$0] },
        objects: Int(command["objects"]?.integer ?? 1)
      )
      self.work = work
      return ["working": true]
    }
    guard let work else { return ["fault": "not at work"] }
    switch command["do"]?.string {
    case "acknowledged":
      await work.acknowledged(more: command["more"]?.integer ?? 1)
      return await work.report()
    case "acknowledgedAll":
      await work.acknowledgedAll()
      return await work.report()
    case "recovered":
      return await work.recovered(after: command["after"]?.integer ?? 0)
    case "continued":
      return await work.continued(after: command["after"]?.integer ?? 0)
    case "report":
      return await work.report()
    case "stop":
      await work.stop()
      return await work.report()
    case "end":
      return ["confirmed": .bool(await work.end(.restart))]
    default:
      return ["fault": "no such command"]
    }
  }

  private static func call(
    _ connection: BrokerConnection,
    _ method: String,
    _ parameters: String?
  ) async throws -> JSONValue {
    do {
      return ["result": try JSONCodec.parse(Array(try await connection.call(method, parameters).utf8))]
    } catch let error as RestorationError {
      let data = try error.dataText.map { try JSONCodec.parse(Array($0.utf8)) }
      return [
        "error": [
          "code": .integer(Int64(error.code.rawValue)), "message": .string(error.message), "data": data ?? .null,
        ]
      ]
    } catch let error as BrokerConnectionError {
      return ["lost": .string(error.message)]
    }
  }

  private static func value(of notification: BrokerNotification) -> JSONValue {
    func path(_ path: IdentifierPath?) -> JSONValue { path.map { .array($0.components.map { .string($0) }) } ?? .null }
    switch notification {
    case .pathChanged(let facts):
      return ["method": "pathChanged", "params": ["object": .integer(facts.object), "path": path(facts.path)]]
    case .registrationReplaced(let facts):
      let by: JSONValue = ["process": facts.by.process.map { .string($0) } ?? .null, "pid": .integer(facts.by.pid)]
      let parameters: JSONValue = ["object": .integer(facts.object), "path": path(facts.path), "by": by]
      return ["method": "registrationReplaced", "params": parameters]
    case .applicationFinishedRestoringState(let facts):
      let parameters: JSONValue = ["objects": .array(facts.objects.map { .integer($0) })]
      return ["method": "applicationFinishedRestoringState", "params": parameters]
    case .applicationStateSaved(let facts):
      return ["method": "applicationStateSaved", "params": ["generation": .integer(facts.generation)]]
    case .headReplaced(let facts):
      return ["method": "headReplaced", "params": ["generation": .integer(facts.generation)]]
    case .stateWanted(let facts):
      return ["method": "stateWanted", "params": ["object": .integer(facts.object), "path": path(facts.path)]]
    case .encodeFailed(let facts): return ["method": "encodeFailed", "params": ["path": path(facts.path)]]
    case .archiveLost(let facts):
      let host: JSONValue = facts.host.map { .string($0) } ?? .null
      return ["method": "archiveLost", "params": ["host": host, "unshipped": .integer(facts.unshipped)]]
    case .missed(let count):
      return ["method": "missed", "params": ["count": .integer(Int64(count))]]
    }
  }
}
