// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A connection to the broker that reads line by line.
final class LineConnection {
  let socket: Socket
  private let input = Input()
  private var used = 0

  init(_ path: String) throws { socket = try Socket(path) }

  func send(_ text: String) throws { try socket.send(Array("\(text)\n".utf8)) }

  /// The next line, with a zero at its end; `nil` if it is not complete and need not be awaited. It is valid until the
  /// next call.
  func line(waiting: Bool = true) throws -> UnsafePointer<CChar>? {
    input.use(used)
    used = 0
    while true {
      if let newline = memchr(input.unused, 10, input.count) {
        let end = newline.assumingMemoryBound(to: UInt8.self)
        end.pointee = 0
        used = end - input.unused + 1
        return UnsafeRawPointer(input.unused).assumingMemoryBound(to: CChar.self)
      }
      guard try input.read(socket, flags: waiting ? 0 : Int32(MSG_DONTWAIT)) || waiting else { return nil }
    }
  }

  /// Calls a method, and drops what comes before its answer.
  ///
  /// - Throws: if the answer is an error.
  @discardableResult
  func call(_ method: String, _ parameters: String) throws -> String {
    try send(#"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(parameters)}"#)
    return try answer()
  }

  func answer() throws -> String {
    while let line = try line().map({ String(cString: $0) }) {
      if line.contains(#""result":"#) { return line }
      if line.contains(#""error":"#) { throw Failure("the broker refused: \(line.prefix(300))") }
    }
    throw Failure("the broker gave no answer")
  }

  /// The number behind a name in a text.
  static func number(_ name: String, in text: UnsafePointer<CChar>) -> Int? {
    strstr(text, "\"\(name)\":").map { strtol($0 + name.utf8.count + 3, nil, 10) }
  }
}
