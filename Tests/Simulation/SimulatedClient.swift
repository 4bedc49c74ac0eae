// SPDX-License-Identifier: Apache-2.0

internal import Histories
internal import InMemory
internal import JSONRPC
internal import NIOCore
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
  /// What it had when it was killed last.
  private(set) var formerPaths: [Path] = []
  /// Counts connections of all clients: what was sent over one of them is in order.
  private(set) var link = 0
  private var calls: [Int: (method: String, complete: (Answer) -> Void)] = [:]
  private var lastID = 0
  /// The beginning of a line.
  private var input: [UInt8] = []
  /// Does not answer what the broker asks.
  var isSilent = false
  /// It has sent what is no message: its calls need not be answered.
  private var isNoisy = false
  /// It may know of its own application only.
  private var isConfined = false
  /// Answers with what it was not asked for.
  var isLying = false

  init(_ number: Int, of application: String, in world: World, checker: HistoryChecker) {
    (self.number, self.application, self.world, self.checker) = (number, application, world, checker)
    process = world.newProcess(unit: "role\(number).service")
  }

  /// The unit that starts it again.
  var unit: String { "role\(number).service" }

  /// It has not noticed yet if the connection is gone.
  var hasConnection: Bool { connection != nil }
  var isConnected: Bool { connection?.isOpen ?? false }
  var unanswered: [String] { isNoisy ? [] : calls.keys.sorted().compactMap { calls[$0]?.method } }

  // MARK: Its life

  func connect(delegate: Bool) {
    guard !isConnected else { return }
    noteEnds()
    open()
    let session = token.map { #","session":"\#($0)""# } ?? ""
    let asked = #""encodeRestorableStateWithCoder","decodeRestorableStateWithCoder""#
    let rows = #""modelIdentifierForElementAtIndexPath","indexPathForElementWithModelIdentifier""#
    let served = asked + "," + rows + #","registrationReplaced","pathChanged""#
    let role = #""process":"role\#(number)","storyboard":{"unit":"\#(unit)"}"#
    let members = #""application":"\#(application)",\#(role),"serves":[\#(served)]\#(session)"#
    call("initialize", "{\(members)\(delegate ? #","delegate":true"# : "")}") { [weak self] answer in
      guard let self, case .result(let result) = answer else { return }
      if result["restoration"]?["damaged"] != nil { world.trace.fault("\(application) is reported damaged") }
      let token = result["session"]?.string
      if token != self.token { loseObjects() }
      self.token = token
    }
  }

  fileprivate func open(confinedTo confinement: String? = nil) {
    (link, isNoisy) = (world.nextLink(), false)
    input = []
    isConfined = confinement != nil
    connection = world.connect(process, confinedTo: confinement)
    connection?.user = self
  }

  /// The connection is gone; the session goes on for a while.
  func disconnect() {
    connection?.close()
    forgetConnection()
  }

  private func forgetConnection() {
    connection = nil
    let lost = calls
    calls = [:]
    for id in lost.keys.sorted() { lost[id]?.complete(.lost) }
  }

  func kill(isCrash: Bool) {
    process.end(isCrash ? .signalled(signal: 11) : .exited(code: 0), isNoticed: true)
    disconnect()
    formerPaths = handles.keys.sorted()
    (token, isSilent, isLying) = (nil, false, false)
    loseObjects()
    process = world.newProcess(unit: unit)
  }

  func loseObjects() {
    for path in handles.keys { checker.ended(path, of: application, ownedBy: number) }
    (handles, pathsByHandle) = ([:], [:])
  }

  func noteEnds() { if connection != nil, !isConnected { forgetConnection() } }

  func register(_ path: Path, _ handle: Int64) {
    handles[path] = handle
    pathsByHandle[handle] = path
  }

  /// An object of its own has another path.
  func moved(_ path: Path, to target: Path) {
    guard let handle = handles[path] else { return }
    moved(handle, to: target)
  }

  private func moved(_ handle: Int64, to target: Path) {
    // Its former path may be that of another object by now.
    if let path = pathsByHandle[handle], handles[path] == handle { handles[path] = nil }
    register(target, handle)
  }

  func lose(_ path: Path) {
    checker.ended(path, of: application, ownedBy: number)
    if let handle = handles.removeValue(forKey: path) { pathsByHandle[handle] = nil }
  }

  // MARK: Messages

  func call(_ method: String, _ parameters: String, _ complete: @escaping (Answer) -> Void = { _ in }) {
    guard let connection, connection.isOpen else { return complete(.lost) }
    lastID += 1
    calls[lastID] = (method, complete)
    world.trace.add("\(number) > \(lastID) \(method) \(parameters)")
    let message = #"{"jsonrpc":"2.0","id":\#(lastID),"method":"\#(method)","params":\#(parameters)}"#
    connection.send(ByteBuffer(string: message + "\n"))
  }

  /// Bytes that may swallow the calls behind them.
  func send(_ text: String) {
    isNoisy = true
    world.trace.add("\(number) > \(text.prefix(100))")
    connection?.send(ByteBuffer(string: text))
  }

  private func take(_ message: JSONValue, _ text: String) {
    world.trace.add("\(number) < \(text)")
    if isConfined, History.applications.contains(where: { $0 != application && text.contains("\($0)/") }) {
      world.trace.fault("a client confined to \(application) is told \(text.prefix(300))")
    }
    if let method = message["method"]?.string {
      let parameters = message["params"] ?? .null
      if let id = message["id"]?.integer {
        serve(method, parameters, id)
      } else if let handle = parameters["object"]?.integer, let path = pathsByHandle[handle] {
        if method == "registrationReplaced", handles[path] == handle { lose(path) }
        if method == "pathChanged", let target = parameters["path"].flatMap(Path.init) {
          moved(handle, to: target)
        }
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
        let push = checker.push(path, of: application, over: link, hasRows: true)
        return #"{"object":\#(handle),"state":\#(push.state)\#(push.elements)}"#
      }
      answer(id, #"{"states":[\#(states.joined(separator: ","))]}"#)
    case "decodeRestorableStateWithCoder":
      for object in objects {
        guard let path = object["path"].flatMap(Path.init), let state = object["state"], !state.isNull else { continue }
        checker.giving(path, of: application, until: world.whileGiving())
        checker.handed(path, of: application, state)
        checker.elements(object["elements"], of: state, "a restoration")
      }
      checker.order(objects.compactMap { $0["path"].flatMap(Path.init) }, of: application)
      answer(id, "{}")
    case "modelIdentifierForElementAtIndexPath":
      let indexPath = parameters["indexPath"]?.array?.compactMap(\.integer) ?? []
      answer(id, #""\#(DataSource.identifier(indexPath))""#)
    case "indexPathForElementWithModelIdentifier":
      let indexPath = parameters["identifier"]?.string.flatMap(DataSource.current)
      answer(id, indexPath.map { "[\($0[0]),\($0[1])]" } ?? "null")
    default: answer(id, "null")
    }
  }

  private func answer(_ id: Int64, _ result: String) {
    world.trace.add("\(number) > answer \(id) \(result)")
    connection?.send(ByteBuffer(string: #"{"jsonrpc":"2.0","id":\#(id),"result":\#(result)}"# + "\n"))
  }
}

extension SimulatedClient: ConnectionUser {
  func received(_ bytes: ByteBuffer) {
    input += bytes.readableBytesView
    while let end = input.firstIndex(of: UInt8(ascii: "\n")) {
      let line = Array(input[..<end])
      input.removeSubrange(...end)
      let text = String(decoding: line, as: UTF8.self)
      if let value = try? JSONCodec.parse(line) {
        take(value, text)
      } else {
        world.trace.fault("not JSON: \(text.prefix(200))")
      }
    }
  }

  /// It notices when it looks (`noteEnds`).
  func connectionEnded() {}

  /// It sends at once.
  func sendOutput() -> Bool { false }
}

extension SimulatedClient {
  /// A connection as tools have it: each call names its application.
  func openWithoutSession() {
    guard !isConnected else { return }
    open()
  }

  /// The same out of a sandbox, which is for this application.
  func openConfined() { open(confinedTo: application) }

  /// Imports a document whose parts these are, in place of what is there.
  func upload(_ parts: ArraySlice<JSONValue>, _ upload: String? = nil, _ complete: @escaping (Answer) -> Void) {
    guard let part = parts.first else { return }
    let further = upload.map { #","upload":"\#($0)""# } ?? ""
    let more = parts.count > 1 ? #","more":true"# : ""
    let text = String(decoding: JSONCodec.format(part, style: .compact, sortKeys: false), as: UTF8.self)
    let members = #""application":"\#(application)","part":\#(text)\#(further)\#(more)"#
    call("importArchive", "{\(members),\"force\":true}") { answer in
      guard case .result(let result) = answer, let next = result["upload"]?.string else { return complete(answer) }
      self.upload(parts.dropFirst(), next, complete)
    }
  }
}
