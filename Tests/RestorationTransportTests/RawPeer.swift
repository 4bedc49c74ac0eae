// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import NIOPosix
internal import Synchronization
internal import TestSupport

/// The client's end of a connection as bare bytes, blocking, with a limit so that a failing test does not hang.
final class RawPeer: Sendable {
  private let owned: FileDescriptor
  private let unread = Mutex<ArraySlice<UInt8>>([])

  var descriptor: Int32 { owned.number }

  /// Takes over a connected descriptor.
  init(descriptor: Int32) {
    owned = FileDescriptor(owning: descriptor)
    limitWaiting(seconds: 20)
  }

  /// Connects to a socket.
  init(connectingTo path: String) throws {
    owned = try FileDescriptor.connected(to: path)
    limitWaiting(seconds: 20)
  }

  private func limitWaiting(seconds: Int) {
    var limit = timeval(tv_sec: seconds, tv_usec: 0)
    let size = socklen_t(MemoryLayout<timeval>.size)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
  }

  func send(_ text: String) throws { try send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if count < 0 { throw TestFailure("send: \(SystemError.current)") }
      rest.removeFirst(count)
    }
  }

  /// Sends what the kernel takes now; returns the number of bytes.
  func sendWithoutWaiting(_ bytes: [UInt8]) -> Int {
    let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
    return max(0, bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, flags) })
  }

  /// Reads up to and with the next line feed; `nil` at the end of the stream.
  func readLine() throws -> String? {
    var searched = 0
    while true {
      let line = unread.withLock { unread -> ArraySlice<UInt8>? in
        guard let end = Self.lineEnd(in: unread, from: searched) else {
          searched = unread.count
          return nil
        }
        defer { unread.removeFirst(end) }
        return unread.prefix(end)
      }
      if let line { return String(decoding: line, as: UTF8.self) }
      guard try readMore() else { return nil }
    }
  }

  /// How many bytes the first line has; in C, because a loop over megabytes takes its time in a debug build.
  private static func lineEnd(in bytes: ArraySlice<UInt8>, from start: Int) -> Int? {
    bytes.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress, start < bytes.count else { return nil }
      return memchr(base + start, 10, bytes.count - start).map { UnsafeRawPointer($0) - base + 1 }
    }
  }

  /// Reads lines until there are `count` of them, or the stream ends.
  func readLines(_ count: Int) throws -> [String] {
    var lines: [String] = []
    while lines.count < count, let line = try readLine() { lines.append(line) }
    return lines
  }

  /// Reads to the end of the stream; a connection that was cut counts as ended.
  func readToEnd() throws -> String {
    while try readMore() {}
    return unread.withLock { unread in
      defer { unread = [] }
      return String(decoding: unread, as: UTF8.self)
    }
  }

  /// False at the end of the stream.
  private func readMore() throws -> Bool {
    var chunk = [UInt8](repeating: 0, count: 1 << 18)
    let count = Glibc.read(descriptor, &chunk, chunk.count)
    if count == 0 || count < 0 && errno == ECONNRESET { return false }
    if count < 0 { throw TestFailure("read: \(SystemError.current)") }
    unread.withLock { $0 += chunk[..<count] }
    return true
  }

  /// Runs blocking work on a thread that no other test waits for.
  static func inBackground<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await NIOThreadPool.singleton.runIfActive(body)
  }

  func endOutput() { shutdown(descriptor, Int32(SHUT_WR)) }
}
