// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Glibc
internal import Synchronization

/// A socket with a thread behind it that says what a script says. For each request it sends lines of the script up to
/// the next answer:
///
///     R…   the rest is the result        E…   the rest is the error
///     x    the connection ends           …    any other line is sent as it is
///
/// When there is no line left, connections end at their first request. They also end if the client waits: for an answer
/// of which only a part was sent it would wait for ever, as the library promises.
final class ScriptedBroker: Sendable {
  private let path = "\(NSTemporaryDirectory())/restoration-fuzz-\(getpid()).sock"
  private let script = Mutex<[[UInt8]]>([])

  init() {
    unlink(path)
    let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let name = Array(path.utf8)
    demand(name.count < 108, "the path is too long: \(path)")
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let isBound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, size) == 0 }
    }
    demand(isBound && listen(listener, 64) == 0, "no socket at \(path)")
    Thread.detachNewThread { [self] in
      while true {
        let connection = accept(listener, nil, nil)
        serve(connection)
        close(connection)
      }
    }
  }

  /// Gives the socket's path.
  func play(_ input: ArraySlice<UInt8>) -> String {
    script.withLock { $0 = input.split(separator: UInt8(ascii: "\n")).reversed().map { Array($0) } }
    return path
  }

  private func serve(_ connection: Int32) {
    var patience = timeval(tv_sec: 0, tv_usec: 100_000)
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    var input: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(connection, &buffer, buffer.count, 0)
      guard count > 0 else { return }
      input += buffer[..<count]
      while let end = input.firstIndex(of: UInt8(ascii: "\n")) {
        let line = String(decoding: input[..<end], as: UTF8.self)
        input.removeSubrange(...end)
        guard line.contains(#""method""#), let id = Self.id(in: line) else { continue }
        guard answer(id, over: connection) else { return }
      }
    }
  }

  private static func id(in line: String) -> Substring? {
    line.firstMatch(of: /"id":(\d+)/).map { $0.output.1 }
  }

  /// False if the connection is to end.
  private func answer(_ id: Substring, over connection: Int32) -> Bool {
    while let line = script.withLock({ $0.popLast() }) {
      let member =
        switch line.first {
        case UInt8(ascii: "R"): "result"
        case UInt8(ascii: "E"): "error"
        default: ""
        }
      if line == Array("x".utf8) { return false }
      var text = line + [10]
      if !member.isEmpty {
        text = Array(#"{"jsonrpc":"2.0","id":\#(id),"\#(member)":"#.utf8) + line.dropFirst() + Array("}\n".utf8)
      }
      while !text.isEmpty {
        let count = send(connection, text, text.count, Int32(MSG_NOSIGNAL))
        guard count > 0 else { return false }
        text.removeFirst(count)
      }
      if !member.isEmpty { return true }
    }
    return false
  }
}
