// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import JSONRPC
internal import RestorationBroker

/// What came of a call.
enum Answer {
  case result(JSONValue)
  case error(kind: String)
  /// The connection ended first.
  case lost
}

/// A process of an application: makes calls, answers those of the broker, and keeps what it needs to come back.
final class SimulatedClient {
  let number: Int
  let application: String
  let checker: HistoryChecker
  private let world: World
  private(set) var process: MemoryProcess
  private(set) var connection: SimulatedConnection?
  private(set) var token: String?
  /// Handles of the objects that it believes it owns.
  private(set) var handles: [Path: Int64] = [:]
  private var pathsByHandle: [Int64: Path] = [:]
  /// Counts connections of all clients: what was sent over one of them is in order.
  private(set) var link = 0
  private var calls: [Int: (method: String, complete: (Answer) -> Void)] = [:]
  private var lastID = 0
  /// Does not answer what the broker asks.
  var isSilent = false
  /// It has sent what is no message: its calls need not be answered.
  private var isNoisy = false
  /// Answers with what it was not asked for.
  var isLying = false

  init(_ number: Int, of application: String, in world: World, checker: HistoryChecker) {
    (self.number, self.application, self.world, self.checker) = (number, application, world, checker)
    process = world.newProcess()
  }

  /// It has not noticed yet if the connection is gone.
  var hasConnection: Bool { connection != nil }
  var isConnected: Bool { connection?.isOpen ?? false }
  var unanswered: [String] { isNoisy ? [] : calls.keys.sorted().compactMap { calls[$0]?.method } }

  // MARK: Its life

  func connect(delegate: Bool) {
    guard !isConnected else { return }
    open()
    let session = token.map { #","session":"\#($0)""# } ?? ""
    let served = #""encodeRestorableStateWithCoder","decodeRestorableStateWithCoder","registrationReplaced""#
    let members = #""application":"\#(application)","process":"role\#(number)","serves":[\#(served)]\#(session)"#
    call("initialize", "{\(members)\(delegate ? #","delegate":true"# : "")}") { [weak self] answer in
      guard let self, case .result(let result) = answer else { return }
      if result["restoration"]?["damaged"] != nil { world.trace.fault("\(application) is reported damaged") }
      let token = result["session"]?.string
      if token != self.token { loseObjects() }
      self.token = token
    }
  }

  fileprivate func open() {
    (link, isNoisy) = (world.nextLink(), false)
    let connection = world.connect(process)
    connection.whenReceived = { [weak self] in self?.take($0, $1) }
    self.connection = connection
  }

  /// The connection is gone; the session goes on for a while.
  func disconnect() {
    connection?.close()
    connectionEnded()
  }

  private func connectionEnded() {
    connection = nil
    let lost = calls
    calls = [:]
    for id in lost.keys.sorted() { lost[id]?.complete(.lost) }
  }

  func kill(isCrash: Bool) {
    process.end(isCrash ? .signalled(signal: 9) : .exited(code: 0), isNoticed: true)
    disconnect()
    (token, isSilent, isLying) = (nil, false, false)
    loseObjects()
    process = world.newProcess()
  }

  func loseObjects() {
    for path in handles.keys { checker.ended(path, of: self) }
    (handles, pathsByHandle) = ([:], [:])
  }

  func noteEnds() { if connection != nil, !isConnected { connectionEnded() } }

  func register(_ path: Path, _ handle: Int64) {
    handles[path] = handle
    pathsByHandle[handle] = path
  }

  func lose(_ path: Path) {
    checker.ended(path, of: self)
    if let handle = handles.removeValue(forKey: path) { pathsByHandle[handle] = nil }
  }

  // MARK: Messages

  func call(_ method: String, _ parameters: String, _ complete: @escaping (Answer) -> Void = { _ in }) {
    guard let connection, connection.isOpen else { return complete(.lost) }
    lastID += 1
    calls[lastID] = (method, complete)
    world.trace.add("\(number) > \(lastID) \(method) \(parameters)")
    connection.send(#"{"jsonrpc":"2.0","id":\#(lastID),"method":"\#(method)","params":\#(parameters)}"# + "\n")
  }

  /// Bytes that may swallow the calls behind them.
  func send(_ text: String) {
    isNoisy = true
    world.trace.add("\(number) > \(text.prefix(100))")
    connection?.send(text)
  }

  private func take(_ message: JSONValue, _ text: String) {
    world.trace.add("\(number) < \(text)")
    if let method = message["method"]?.string {
      let parameters = message["params"] ?? .null
      if let id = message["id"]?.integer {
        serve(method, parameters, id)
      } else if method == "registrationReplaced", let handle = parameters["object"]?.integer,
        let path = pathsByHandle[handle]
      {
        lose(path)
      }
      return
    }
    guard let id = message["id"]?.integer else { return }
    guard let call = calls.removeValue(forKey: Int(id)) else {
      return world.trace.fault("call \(id) of client \(number) was answered twice")
    }
    if let result = message["result"] { return call.complete(.result(result)) }
    let error = message["error"]
    let kind = error?["data"]?["kind"]?.string ?? "?"
    if error?["code"]?.integer == -32603 { world.trace.fault("internal error: \(text.prefix(300))") }
    call.complete(.error(kind: kind))
  }

  private func serve(_ method: String, _ parameters: JSONValue, _ id: Int64) {
    guard !isSilent else { return }
    let objects = parameters["objects"]?.array ?? []
    switch method {
    case "encodeRestorableStateWithCoder":
      let states = objects.compactMap { object -> String? in
        guard let handle = object["object"]?.integer else { return nil }
        if isLying { return #"{"object":\#(handle &+ 1_000),"state":{"v":-1}}"# }
        guard let path = pathsByHandle[handle] else { return #"{"object":\#(handle),"error":"unknown"}"# }
        let push = checker.push(path, of: application, by: self, isInRound: true)
        return #"{"object":\#(handle),"state":\#(push.state)}"#
      }
      answer(id, #"{"states":[\#(states.joined(separator: ","))]}"#)
    case "decodeRestorableStateWithCoder":
      for object in objects {
        guard let path = object["path"].flatMap(Path.init), let state = object["state"], !state.isNull else { continue }
        checker.handed(path, of: application, state)
      }
      checker.order(objects.compactMap { $0["path"].flatMap(Path.init) })
      answer(id, "{}")
    default: answer(id, "null")
    }
  }

  private func answer(_ id: Int64, _ result: String) {
    world.trace.add("\(number) > answer \(id) \(result)")
    connection?.send(#"{"jsonrpc":"2.0","id":\#(id),"result":\#(result)}"# + "\n")
  }
}

/// A restoration path.
struct Path: Hashable, Comparable, CustomStringConvertible {
  let components: [String]

  init(_ components: String...) { self.components = components }

  init?(_ value: JSONValue) {
    guard let components = value.array?.compactMap(\.string), !components.isEmpty else { return nil }
    self.components = components
  }

  private init(_ components: [String]) { self.components = components }

  var parent: Path? { components.count > 1 ? Path(Array(components.dropLast())) : nil }
  var json: String { "[" + components.map { #""\#($0)""# }.joined(separator: ",") + "]" }
  var description: String { components.joined(separator: "/") }

  static func < (left: Path, right: Path) -> Bool { left.description < right.description }

  func isBelow(_ other: Path) -> Bool {
    components.count > other.components.count && components.starts(with: other.components)
  }
}

extension SimulatedClient {
  /// A connection as tools have it: each call names its application.
  func openWithoutSession() {
    guard !isConnected else { return }
    open()
  }
}
