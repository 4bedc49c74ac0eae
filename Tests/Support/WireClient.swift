// SPDX-License-Identifier: Apache-2.0

internal import Glibc
package import JSONRPC

/// A raw connection to a broker: bytes out, lines in, nothing in between that could hide a fault.
package final class WireClient: BrokerCaller {
  private let descriptor: FileDescriptor
  private let reader: LineReader
  private var lastID: Int64 = 0
  /// Notifications that came while an answer was waited for.
  private var notifications: [JSONValue] = []

  /// Connects; fails at once if nothing listens.
  package init(_ path: String) throws {
    descriptor = try FileDescriptor.connected(to: path)
    reader = LineReader(descriptor)
  }

  // MARK: Bytes and lines

  /// Sends text unchanged.
  package func send(_ text: String) throws { try descriptor.write(Array(text.utf8)) }

  package func send(bytes: [UInt8]) throws { try descriptor.write(bytes) }

  /// Sends as long as the broker reads; returns the number of bytes sent.
  package func sendWhilePossible(_ bytes: [UInt8], stall: Duration) -> Int {
    var sent = 0
    let step = 1 << 16
    while sent < bytes.count {
      let end = min(bytes.count, sent + step)
      guard (try? descriptor.write(bytes[sent..<end], Deadline(stall))) != nil else { return sent }
      sent = end
    }
    return sent
  }

  /// The next line; fails at the end of input and at the deadline.
  package func receive(_ deadline: Deadline = Deadline()) throws -> String {
    guard let line = try reader.next(deadline) else { throw TestFailure("the broker closed the connection") }
    return line
  }

  /// The next message.
  package func receiveMessage(_ deadline: Deadline = Deadline()) throws -> JSONValue {
    let line = try receive(deadline)
    do {
      return try JSONCodec.parse(Array(line.utf8))
    } catch {
      throw TestFailure("not JSON: \(line)")
    }
  }

  /// Ends the sending direction.
  package func halfClose() { shutdown(descriptor.number, Int32(SHUT_WR)) }

  /// All lines up to the end.
  package func receiveToEnd(_ deadline: Deadline = Deadline()) throws -> [String] {
    try reader.rest(deadline).split(separator: "\n", omittingEmptySubsequences: true).map(String.init)
  }

  /// Whether something can be read within `duration`.
  package func hasInput(within duration: Duration) -> Bool {
    reader.hasPending || descriptor.waitUntilReadable(Deadline(duration))
  }

  /// Sends text, then a ping; returns the lines before the ping's answer. So the absence of an answer is seen without
  /// waiting.
  package func exchange(_ text: String) throws -> [String] {
    try send(text + "\n" + #"{"jsonrpc":"2.0","id":"the end","method":"ping"}"# + "\n")
    var lines: [String] = []
    while true {
      let line = try receive()
      if line.hasPrefix(#"{"jsonrpc":"2.0","id":"the end""#) { return lines }
      lines.append(line)
    }
  }

  // MARK: Calls

  /// Sends a request and returns its id without waiting.
  @discardableResult
  package func request(_ method: String, _ parameters: JSONValue = .null) throws -> Int64 {
    lastID += 1
    try send(Self.message(method, parameters, id: .integer(lastID)))
    return lastID
  }

  /// Sends a notification.
  package func notify(_ method: String, _ parameters: JSONValue = .null) throws {
    try send(Self.message(method, parameters, id: nil))
  }

  /// The result of a call; an error of the broker is thrown as `CallError`.
  @discardableResult
  package func call(
    _ method: String,
    _ parameters: JSONValue = .null,
    _ deadline: Deadline = Deadline()
  ) throws -> JSONValue {
    try answer(to: try request(method, parameters), deadline)
  }

  /// The result of the call with this id; notifications that come before are kept.
  @discardableResult
  package func answer(to id: Int64, _ deadline: Deadline = Deadline()) throws -> JSONValue {
    while true {
      let message = try receiveMessage(deadline)
      guard message["method"] == nil else {
        notifications.append(message)
        continue
      }
      guard message["id"] == .integer(id) else { throw TestFailure("an answer to \(id) was due, not \(message.text)") }
      if let error = message["error"] { throw CallError(error) }
      guard let result = message["result"] else { throw TestFailure("no answer: \(message.text)") }
      return result
    }
  }

  /// The error of a call that must fail.
  package func failure(_ method: String, _ parameters: JSONValue = .null) throws -> CallError {
    do {
      let result = try call(method, parameters)
      throw TestFailure("\(method) did not fail: \(result.text)")
    } catch let error as CallError {
      return error
    }
  }

  /// The parameters of the next notification, which must have this name.
  package func notification(_ method: String, _ deadline: Deadline = Deadline()) throws -> JSONValue {
    let message = try notifications.isEmpty ? receiveMessage(deadline) : notifications.removeFirst()
    guard message["method"] == .string(method), message["id"] == nil else {
      throw TestFailure("a notification \(method) was due, not \(message.text)")
    }
    return message["params"] ?? .null
  }

  /// The parameters of the notifications of a name that came while answers were waited for; forgets all of them.
  package func takeNotifications(_ method: String) -> [JSONValue] {
    defer { notifications = [] }
    return notifications.filter { $0["method"] == .string(method) }.map { $0["params"] ?? .null }
  }

  package static func message(_ method: String, _ parameters: JSONValue, id: JSONValue?) -> String {
    var message: JSONObject = ["jsonrpc": "2.0"]
    message["id"] = id
    message["method"] = .string(method)
    if !parameters.isNull { message["params"] = parameters }
    return JSONValue.object(message).text + "\n"
  }
}

/// The error object of an answer.
package struct CallError: Error, CustomStringConvertible {
  package let object: JSONValue

  package init(_ object: JSONValue) { self.object = object }

  package var code: Int64? { object["code"]?.integer }
  package var kind: String? { object["data"]?["kind"]?.string }
  package var data: JSONValue { object["data"] ?? .null }
  package var description: String { object.text }
}

extension JSONValue {
  /// Compact text.
  package var text: String { String(decoding: JSONCodec.format(self, style: .compact, sortKeys: false), as: UTF8.self) }

  /// A path, as broker and tests write it.
  package static func path(_ components: String...) -> JSONValue { .array(components.map { .string($0) }) }
}
