// SPDX-License-Identifier: Apache-2.0

internal import Glibc
package import JSONRPC

/// A raw connection that speaks one of the framings and checks the output strictly.
package final class FramedClient: BrokerCaller {
  package enum Framing: String, CaseIterable, Sendable {
    case jsonStream
    case contentLength
    case http

    /// Whether the broker can send unrequested messages.
    package var canBeCalled: Bool { self != .http }

    /// The bytes of one frame.
    package func frame(_ text: String) -> [UInt8] {
      let count = text.utf8.count
      switch self {
      case .jsonStream: return Array((text + "\n").utf8)
      case .contentLength: return Array("Content-Length: \(count)\r\n\r\n\(text)".utf8)
      case .http: return Array("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(count)\r\n\r\n\(text)".utf8)
      }
    }
  }

  /// A frame of the broker. The status is HTTP's.
  package struct Reply: Equatable {
    package var status = 200
    package var headers: [String: String] = [:]
    package var text = ""

    package init(status: Int = 200) { self.status = status }
  }

  package let framing: Framing
  private let descriptor: FileDescriptor
  private var buffer: [UInt8] = []
  private var lastID: Int64 = 0

  package init(_ path: String, _ framing: Framing) throws {
    self.framing = framing
    descriptor = try FileDescriptor.connected(to: path)
  }

  package func send(_ text: String) throws { try send(bytes: framing.frame(text)) }

  package func send(bytes: some Collection<UInt8>) throws { try descriptor.write(bytes) }

  /// Ends the sending direction.
  package func halfClose() { shutdown(descriptor.number, Int32(SHUT_WR)) }

  /// The result of a call; an error of the broker is thrown as `CallError`.
  @discardableResult
  package func call(
    _ method: String,
    _ parameters: JSONValue = .null,
    _ deadline: Deadline = Deadline()
  ) throws -> JSONValue {
    lastID += 1
    try send(WireClient.message(method, parameters, id: .integer(lastID)))
    while true {
      let message = try receiveMessage(deadline)
      guard message["id"] == .integer(lastID), message["method"] == nil else { continue }
      if let error = message["error"] { throw CallError(error) }
      guard let result = message["result"] else { throw TestFailure("no answer: \(message)") }
      return result
    }
  }

  package func receiveMessage(_ deadline: Deadline = Deadline()) throws -> JSONValue {
    guard let reply = try receive(deadline) else { throw TestFailure("the broker closed the connection") }
    do {
      return try JSONCodec.parse(Array(reply.text.utf8))
    } catch {
      throw TestFailure("not JSON: \(reply)")
    }
  }

  /// All replies up to the end.
  package func receiveToEnd() throws -> [Reply] {
    var replies: [Reply] = []
    while let reply = try receive() { replies.append(reply) }
    return replies
  }

  /// The next reply; `nil` at the end of input.
  package func receive(_ deadline: Deadline = Deadline()) throws -> Reply? {
    while true {
      if let reply = try takeReply() { return reply }
      let bytes = try descriptor.read(deadline)
      guard bytes.isEmpty else {
        buffer += bytes
        continue
      }
      guard buffer.isEmpty else {
        throw TestFailure("the last frame is unfinished: \(String(decoding: buffer, as: UTF8.self))")
      }
      return nil
    }
  }

  private func takeReply() throws -> Reply? {
    guard framing != .jsonStream else {
      guard let end = buffer.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
      var reply = Reply()
      reply.text = take(end + 1, dropping: 1)
      return reply
    }
    guard let end = buffer.firstRange(of: "\r\n\r\n".utf8) else { return nil }
    var lines = String(decoding: buffer[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n").map(String.init)[
      ...
    ]
    var reply = Reply()
    if framing == .http {
      let status = lines.removeFirst().split(separator: " ")
      guard status.count > 2, status[0] == "HTTP/1.1", let code = Int(status[1]) else {
        throw TestFailure("not a status: \(status)")
      }
      reply.status = code
    }
    for line in lines {
      guard let colon = line.firstRange(of: ": ") else { throw TestFailure("not a header: \(line)") }
      reply.headers[String(line[..<colon.lowerBound])] = String(line[colon.upperBound...])
    }
    if framing == .contentLength, Array(reply.headers.keys) != ["Content-Length"] {
      throw TestFailure("more than a length: \(reply.headers)")
    }
    let count = reply.headers["Content-Length"].flatMap { Int($0) } ?? 0
    guard buffer.count >= end.upperBound + count else { return nil }
    buffer.removeSubrange(..<end.upperBound)
    reply.text = take(count, dropping: 0)
    return reply
  }

  private func take(_ count: Int, dropping end: Int) -> String {
    defer { buffer.removeSubrange(..<count) }
    return String(decoding: buffer[..<(count - end)], as: UTF8.self)
  }
}
