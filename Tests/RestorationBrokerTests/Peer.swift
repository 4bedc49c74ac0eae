// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// One client of a `CoreDriver`: sends JSON text through the real framing, and collects the output.
final class Peer {
  let id: ClientID
  let process: ClientProcess
  let canBeCalled: Bool
  var isConnected = true
  private unowned let driver: CoreDriver
  private var decoder = FrameDecoder(limits: FrameLimits(), vocabulary: EncodedState.vocabulary)
  private var conversation = Conversation(limits: ConversationLimits())
  private var input = FrameDecoder(limits: FrameLimits(), vocabulary: EncodedState.vocabulary)
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
    var isForgotten = false
  }

  init(id: ClientID, process: ClientProcess, canBeCalled: Bool, driver: CoreDriver) {
    self.id = id
    self.process = process
    self.canBeCalled = canBeCalled
    self.driver = driver
  }

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

  private func transmit(_ text: String) {
    precondition(isConnected, "the connection is gone")
    Array(text.utf8).withUnsafeBytes { decoder.append($0) }
    while let event = decoder.next() {
      var output: [UInt8] = []
      let deliveries = conversation.receive(event, into: &output)
      collect(output)
      for delivery in deliveries { handle(delivery) }
    }
  }

  private func handle(_ delivery: Conversation.Delivery) {
    switch delivery {
    case .request(let call, let request):
      let caller = Caller(client: id, call: call)
      let message = IncomingMessage(
        caller: caller,
        method: request.method,
        parameters: request.parameters,
        canBeCalled: canBeCalled
      )
      driver.deliver(message)
    case .notification(let notification):
      let caller = Caller(client: id, call: nil)
      let message = IncomingMessage(
        caller: caller,
        method: notification.method,
        parameters: notification.parameters,
        canBeCalled: canBeCalled
      )
      if let id = CancelRequest(notification.parameters)?.id, notification.method == CancelRequest.method {
        if let call = conversation.pendingCall(withID: id) { driver.cancel(Caller(client: self.id, call: call)) }
      } else if let fault = notification.fault {
        driver.refuse(message, fault)
      } else {
        driver.deliver(message)
      }
    case .response(let callID, let outcome):
      driver.answered(callID, CallAnswer(outcome), by: id)
    case .brokenAnswer(let callID, let code, let reason):
      driver.answered(callID, .error(code: code, message: "the answer is \(reason)"), by: id)
    case .closeAfterOutput:
      break
    }
  }

  // MARK: Being called

  /// The broker calls: to be answered by `answer`, or by what `serves` has for it.
  func receiveCall(_ method: String, _ parameters: JSONText) -> Int {
    if !canBeCalled { Issue.record("\(method) was called over a connection that cannot be called") }
    var output: [UInt8] = []
    let callID = conversation.call(method: method, parameters: parameters, into: &output)
    checkLength(output)
    collect(output)
    return callID
  }

  /// The broker no longer wants the answer.
  func forget(_ callID: Int) {
    conversation.forget(callID)
    if let index = calls.firstIndex(where: { $0.id == callID }) { calls[index].isForgotten = true }
  }

  func answerCalls() {
    // Answering may bring further calls, and this function again.
    var next = 0
    while next < calls.count {
      let call = calls[next]
      next += 1
      guard !call.isAnswered, !call.isForgotten, isConnected, answering.insert(call.id).inserted else { continue }
      let result = serves[call.method]?(call.parameters)
      answering.remove(call.id)
      if let result, isConnected { answer(call.id, result) }
    }
  }

  /// Answers a call of the broker with a result in JSON.
  func answer(_ callID: Int, _ result: String) {
    reply(callID, #""result":\#(result)"#)
  }

  func answer(_ callID: Int, errorCode code: Int, _ message: String) {
    reply(callID, #""error":{"code":\#(code),"message":"\#(message)"}"#)
  }

  private func reply(_ callID: Int, _ member: String) {
    if let index = calls.firstIndex(where: { $0.id == callID }) { calls[index].isAnswered = true }
    // If the member is invalid JSON, reading resumes at the next line.
    transmit(#"{"jsonrpc":"2.0","id":\#(callID),\#(member)}"# + "\n")
  }

  /// Calls of a method that are not answered yet.
  func openCalls(_ method: String) -> [BrokerCall] {
    calls.filter { $0.method == method && !$0.isAnswered && !$0.isForgotten }
  }

  // MARK: Receiving

  func take(_ answer: Answer, for caller: Caller) {
    guard let call = caller.call else { return }
    var output: [UInt8] = []
    switch answer {
    case .result(let result):
      var writer = JSONWriter()
      result.writeJSON(to: &writer)
      conversation.respond(to: call, with: .result(JSONText(validated: writer.bytes)), into: &output)
    case .error(let error):
      conversation.respond(to: call, with: .error(error), into: &output)
    }
    collect(output)
  }

  func notify(_ method: String, _ parameters: JSONText) {
    // Such a connection drops unrequested messages.
    guard canBeCalled else { return }
    var output: [UInt8] = []
    conversation.notify(method: method, parameters: parameters, into: &output)
    checkLength(output)
    collect(output)
  }

  func park(_ caller: Caller) {
    guard let call = caller.call else { return }
    try? conversation.park(call)
  }

  func unpark(_ caller: Caller) {
    if let call = caller.call { conversation.unpark(call) }
  }

  private func checkLength(_ output: [UInt8]) {
    guard output.count - 1 > pushBytesMax else { return }
    Issue.record("\(output.count - 1) bytes were sent unasked: \(String(decoding: output.prefix(200), as: UTF8.self))")
  }

  private func collect(_ output: [UInt8]) {
    for line in output.split(separator: UInt8(ascii: "\n")) {
      let scanned = try? JSONSlice.scan(Array(line), vocabulary: EncodedState.vocabulary, limits: FrameLimits())
      guard let slice = scanned else {
        Issue.record("not JSON: \(String(decoding: line, as: UTF8.self))")
        continue
      }
      if let method = slice["method"]?.string(), let id = slice["id"]?.integer() {
        let parameters = (try? slice["params"]?.value()) ?? .null
        calls.append(BrokerCall(id: Int(id), method: method, parameters: parameters))
      } else if let method = slice["method"]?.string() {
        notifications.append((method, (try? slice["params"]?.value()) ?? .null))
      } else if let id = slice["id"]?.integer() {
        if answers.updateValue(slice, forKey: Int(id)) != nil { Issue.record("call \(id) was answered twice") }
        answered.append(Int(id))
      }
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
  func text(_ id: Int) throws -> String {
    try #require(answers[id], "call \(id) has no answer").description
  }

  func result(of id: Int) throws -> JSONValue {
    let answer = try #require(answers[id], "call \(id) has no answer")
    let result = try #require(answer["result"], "call \(id) failed: \(answer)")
    return try result.value()
  }

  /// The result; `nil` while there is none or if the call failed.
  func resultIfAny(of id: Int) -> JSONValue? {
    answers[id]?["result"].flatMap { try? $0.value() }
  }

  func failure(of id: Int) throws -> Failure {
    let answer = try #require(answers[id], "call \(id) has no answer")
    let error = try #require(answer["error"], "call \(id) did not fail: \(answer)")
    let value = try error.value()
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

  func goodbye(_ reason: String) throws {
    try call("goodbye", #"{"reason":"\#(reason)"}"#)
  }

  /// Paths and more of all objects, as `describeApplication` lists them.
  func objects(_ more: String = "") throws -> [JSONValue] {
    try #require(try call("describeApplication", members(more))["objects"]?.array)
  }

  /// Joined paths of all objects that have one, sorted.
  func paths(_ more: String = "") throws -> [String] {
    try objects(more).compactMap { $0["path"]?.joined }.sorted()
  }

  private func members(_ members: String...) -> String {
    "{" + members.filter { !$0.isEmpty }.joined(separator: ",") + "}"
  }
}

extension JSONValue {
  /// A path's components, joined by `/`; `nil` for null.
  var joined: String? {
    array?.compactMap(\.string).joined(separator: "/")
  }
}
