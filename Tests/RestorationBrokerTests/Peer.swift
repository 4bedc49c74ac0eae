// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationTransport
internal import RestorationWire
internal import Testing

/// One client of a `MemoryBroker`: sends JSON text, and collects what comes.
final class Peer {
  let connection: MemoryConnection
  /// Its messages are lines, else requests over HTTP.
  private let canBeCalled: Bool
  private var answers: [Int: JSONSlice] = [:]
  private var lastID = 0
  /// Nothing longer may come unasked.
  private var pushBytesMax = 65_536
  /// Ids in the order in which their answers came.
  private(set) var answered: [Int] = []
  private(set) var notifications: [(method: String, parameters: JSONValue)] = []
  /// Calls of the broker, answered or not, in the order in which they came.
  private(set) var calls: [BrokerCall] = []
  /// Automatic answers to calls of the broker: the result as JSON text, `nil` for not yet.
  var serves: [String: (JSONValue) -> String?] = [:]
  /// Calls whose answers are just being made.
  private var answering: Set<Int> = []

  struct BrokerCall: Equatable {
    let id: Int
    let method: String
    let parameters: JSONValue
    var isAnswered = false
  }

  init(_ connection: MemoryConnection, canBeCalled: Bool) {
    (self.connection, self.canBeCalled) = (connection, canBeCalled)
    connection.whenReceived = { self.take($0) }
    connection.whenTaken = { self.answerCalls() }
  }

  var id: ClientID { connection.connection.id.value }
  var isConnected: Bool { connection.isOpen }

  // MARK: Sending

  /// Sends a call and returns its id; the answer may come later.
  @discardableResult
  func start(_ method: String, _ parameters: String = "{}") -> Int {
    lastID += 1
    // Answers that `serves` gives meanwhile may make calls of their own.
    let id = lastID
    if method == "initialize" { pushBytesMax = Self.messageBytesMax(parameters) }
    transmit(#"{"jsonrpc":"2.0","id":\#(id),"method":"\#(method)","params":\#(parameters)}"#)
    return id
  }

  private static func messageBytesMax(_ parameters: String) -> Int {
    let value = try? JSONCodec.parse(Array(parameters.utf8))
    return value?["messageBytesMax"]?.integer.map { Int($0) } ?? 65_536
  }

  func notify(_ method: String, _ parameters: String) {
    transmit(#"{"jsonrpc":"2.0","method":"\#(method)","params":\#(parameters)}"#)
  }

  /// If the text is invalid JSON, reading resumes at the next line.
  private func transmit(_ text: String) {
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(text.utf8.count)\r\n\r\n"
    precondition(isConnected, "the connection is gone")
    connection.send(bytes: Array((canBeCalled ? text + "\n" : head + text).utf8))
  }

  // MARK: Being called

  private func answerCalls() -> Bool {
    var hasAnswered = false
    // Answering may bring further calls, and this function again.
    var next = 0
    while next < calls.count {
      let call = calls[next]
      next += 1
      guard isOpen(call), answering.insert(call.id).inserted else { continue }
      let result = serves[call.method]?(call.parameters)
      answering.remove(call.id)
      guard let result, isConnected else { continue }
      answer(call.id, result)
      hasAnswered = true
    }
    return hasAnswered
  }

  /// Answers a call of the broker with a result in JSON.
  func answer(_ callID: Int, _ result: String) { reply(callID, #""result":\#(result)"#) }

  func answer(_ callID: Int, errorCode code: Int, _ message: String) {
    reply(callID, #""error":{"code":\#(code),"message":"\#(message)"}"#)
  }

  private func reply(_ callID: Int, _ member: String) {
    if let index = calls.firstIndex(where: { $0.id == callID }) { calls[index].isAnswered = true }
    transmit(#"{"jsonrpc":"2.0","id":\#(callID),\#(member)}"#)
  }

  /// The broker still wants the answer, as its own connection has it: nothing tells a client when it gives a call up.
  private func isOpen(_ call: BrokerCall) -> Bool {
    !call.isAnswered && isConnected && connection.connection.awaitsAnswer(to: call.id)
  }

  /// Calls of a method that are not answered yet.
  func openCalls(_ method: String) -> [BrokerCall] { calls.filter { $0.method == method && isOpen($0) } }

  // MARK: Receiving

  private func take(_ frame: String) {
    let scanned = try? JSONSlice.scan(Array(frame.utf8), vocabulary: EncodedState.vocabulary, limits: FrameLimits())
    guard let slice = scanned else { return _ = Issue.record("not JSON: \(frame)") }
    if let method = slice["method"]?.string() {
      if !canBeCalled { Issue.record("\(method) came over a connection that cannot be called") }
      if frame.utf8.count > pushBytesMax { Issue.record("so much was sent unasked: \(frame.prefix(200))") }
      let parameters = (try? slice["params"]?.value()) ?? .null
      if let id = slice["id"]?.integer() {
        calls.append(BrokerCall(id: Int(id), method: method, parameters: parameters))
      } else {
        notifications.append((method, parameters))
      }
    } else if let id = slice["id"]?.integer() {
      if answers.updateValue(slice, forKey: Int(id)) != nil { Issue.record("call \(id) was answered twice") }
      answered.append(Int(id))
    }
  }

  /// Forgets the notifications so far and returns those of a method.
  func takeNotifications(_ method: String) -> [JSONValue] {
    defer { notifications = [] }
    return notifications.filter { $0.method == method }.map(\.parameters)
  }

  /// Calls without an answer so far.
  var unanswered: [Int] { (1...max(1, lastID)).filter { $0 <= lastID && answers[$0] == nil } }

  func hasAnswer(_ id: Int) -> Bool { answers[id] != nil }

  /// The answer's whole text.
  func text(_ id: Int) throws -> String { try #require(answers[id], "call \(id) has no answer").description }

  func result(of id: Int) throws -> JSONValue {
    let answer = try #require(answers[id], "call \(id) has no answer")
    let result = try #require(answer["result"], "call \(id) failed: \(answer)")
    return try result.value()
  }

  /// The result; `nil` while there is none or if the call failed.
  func resultIfAny(of id: Int) -> JSONValue? { answers[id]?["result"].flatMap { try? $0.value() } }

  func failure(of id: Int) throws -> Failure {
    let answer = try #require(answers[id], "call \(id) has no answer")
    let error = try #require(answer["error"], "call \(id) did not fail: \(answer)")
    let value = try error.value()
    let hint = value["data"]?["hint"]?.string ?? ""
    if hint.isEmpty { Issue.record("an error without a hint: \(error)") }
    return Failure(
      code: Int(value["code"]?.integer ?? 0),
      kind: value["data"]?["kind"]?.string ?? "",
      message: value["message"]?.string ?? "",
      data: value["data"] ?? .null
    )
  }

  struct Failure: Equatable {
    let code: Int
    let kind: String
    let message: String
    let data: JSONValue
  }

  // MARK: Calls that are answered at once

  @discardableResult
  func call(_ method: String, _ parameters: String = "{}") throws -> JSONValue {
    try result(of: start(method, parameters))
  }

  func fail(_ method: String, _ parameters: String = "{}") throws -> Failure {
    try failure(of: start(method, parameters))
  }

  /// - Parameter more: further members, such as `"delegate":true`.
  @discardableResult
  func initialize(_ application: String = "App", _ more: String = "") throws -> JSONValue {
    try call("initialize", members(#""application":"\#(application)""#, more))
  }

  /// - Parameters:
  ///   - parent: handle or path as JSON text.
  ///   - more: further members.
  /// - Returns: the handle.
  @discardableResult
  func register(_ identifier: String?, below parent: String? = nil, _ more: String = "") throws -> Int64 {
    let result = try call("registerObjectForStateRestoration", registration(identifier, below: parent, more))
    return try #require(result["object"]?.integer)
  }

  func registration(_ identifier: String?, below parent: String? = nil, _ more: String = "") -> String {
    let name = identifier.map { JSONText(.string($0)).string } ?? "null"
    return members(#""restorationIdentifier":\#(name)"#, parent.map { #""restorationParent":\#($0)"# } ?? "", more)
  }

  @discardableResult
  func encode(_ object: String, _ state: String, _ more: String = "") throws -> JSONValue {
    try call("encodeRestorableState", encoding(object, state, more))
  }

  func encoding(_ object: String, _ state: String, _ more: String = "") -> String {
    members(#""object":\#(object),"state":\#(state)"#, more)
  }

  /// The whole answer.
  func decode(_ object: String, _ more: String = "") throws -> JSONValue {
    try call("decodeRestorableState", members(#""object":\#(object)"#, more))
  }

  /// The state, `nil` unless there is one.
  func state(_ object: String) throws -> JSONValue? {
    let state = try decode(object)["state"]
    return state?.isNull == true ? nil : state
  }

  func goodbye(_ reason: String) throws { try call("goodbye", #"{"reason":"\#(reason)"}"#) }

  /// Paths and more of all objects, as `describeApplication` lists them.
  func objects(_ more: String = "") throws -> [JSONValue] {
    try #require(try call("describeApplication", members(more))["objects"]?.array)
  }

  /// Joined paths of all objects that have one, sorted.
  func paths(_ more: String = "") throws -> [String] { try objects(more).compactMap { $0["path"]?.joined }.sorted() }

  private func members(_ members: String...) -> String {
    "{" + members.filter { !$0.isEmpty }.joined(separator: ",") + "}"
  }
}

extension JSONValue {
  /// A path's components, joined by `/`; `nil` for null.
  var joined: String? { array?.compactMap(\.string).joined(separator: "/") }
}
