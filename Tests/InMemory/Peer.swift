// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationBroker
internal import RestorationTransport
internal import RestorationWire

/// One client of a `MemoryBroker`: sends JSON text, and collects what comes.
package final class Peer {
  package let connection: MemoryConnection
  /// Its messages are lines, else requests over HTTP.
  private let canBeCalled: Bool
  package private(set) var answers: [Int: JSONSlice] = [:]
  private var lastID = 0
  /// Nothing longer may come unasked.
  private var pushBytesMax = 65_536
  /// Ids in the order in which their answers came.
  package private(set) var answered: [Int] = []
  package private(set) var notifications: [(method: String, parameters: JSONValue)] = []
  /// Calls of the broker, answered or not, in the order in which they came.
  package private(set) var calls: [BrokerCall] = []
  /// Automatic answers to calls of the broker: the result as JSON text, `nil` for not yet.
  package var serves: [String: (JSONValue) -> String?] = [:]
  /// Calls whose answers are just being made.
  private var answering: Set<Int> = []
  private let record: (String) -> Void

  package struct BrokerCall: Equatable {
    package let id: Int
    package let method: String
    package let parameters: JSONValue
    package var isAnswered = false
  }

  init(_ connection: MemoryConnection, canBeCalled: Bool, record: @escaping (String) -> Void) {
    (self.connection, self.canBeCalled, self.record) = (connection, canBeCalled, record)
    connection.whenReceived = { self.take($0) }
    connection.whenTaken = { self.answerCalls() }
  }

  package var id: ClientID { connection.connection.id.value }
  package var isConnected: Bool { connection.isOpen }

  // MARK: Sending

  /// Sends a call and returns its id; the answer may come later.
  @discardableResult
  package func start(_ method: String, _ parameters: String = "{}") -> Int {
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

  package func notify(_ method: String, _ parameters: String) {
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
  package func answer(_ callID: Int, _ result: String) { reply(callID, #""result":\#(result)"#) }

  package func answer(_ callID: Int, errorCode code: Int, _ message: String) {
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
  package func openCalls(_ method: String) -> [BrokerCall] { calls.filter { $0.method == method && isOpen($0) } }

  // MARK: Receiving

  private func take(_ frame: String) {
    let scanned = try? JSONSlice.scan(Array(frame.utf8), vocabulary: EncodedState.vocabulary, limits: FrameLimits())
    guard let slice = scanned else { return record("not JSON: \(frame)") }
    if let method = slice["method"]?.string() {
      if !canBeCalled { record("\(method) came over a connection that cannot be called") }
      if frame.utf8.count > pushBytesMax { record("so much was sent unasked: \(frame.prefix(200))") }
      let parameters = (try? slice["params"]?.value()) ?? .null
      if let id = slice["id"]?.integer() {
        calls.append(BrokerCall(id: Int(id), method: method, parameters: parameters))
      } else {
        notifications.append((method, parameters))
      }
    } else if let id = slice["id"]?.integer() {
      if answers.updateValue(slice, forKey: Int(id)) != nil { record("call \(id) was answered twice") }
      answered.append(Int(id))
    }
  }

  /// Forgets the notifications so far and returns those of a method.
  package func takeNotifications(_ method: String) -> [JSONValue] {
    defer { notifications = [] }
    return notifications.filter { $0.method == method }.map(\.parameters)
  }

  /// Calls without an answer so far.
  package var unanswered: [Int] { (1...max(1, lastID)).filter { $0 <= lastID && answers[$0] == nil } }

  package func hasAnswer(_ id: Int) -> Bool { answers[id] != nil }

  /// The result; `nil` while there is none or if the call failed.
  package func resultIfAny(of id: Int) -> JSONValue? { answers[id]?["result"].flatMap { try? $0.value() } }

  /// The error; `nil` while there is no answer or if the call succeeded.
  package func failureIfAny(of id: Int) -> Failure? {
    guard let error = answers[id]?["error"], let value = try? error.value() else { return nil }
    let hint = value["data"]?["hint"]?.string ?? ""
    if hint.isEmpty { record("an error without a hint: \(error)") }
    return Failure(
      code: Int(value["code"]?.integer ?? 0),
      kind: value["data"]?["kind"]?.string ?? "",
      message: value["message"]?.string ?? "",
      data: value["data"] ?? .null
    )
  }

  package struct Failure: Equatable {
    package let code: Int
    package let kind: String
    package let message: String
    package let data: JSONValue
  }
}

extension JSONValue {
  /// A path's components, joined by `/`; `nil` for null.
  package var joined: String? { array?.compactMap(\.string).joined(separator: "/") }
}
