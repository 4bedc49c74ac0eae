// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// What the host and its system say of themselves.
package enum Host {
  /// This process's number.
  package static var processID: Int64 { Int64(getpid()) }

  /// Milliseconds since 1970, UTC, by the system's clock, which people may set.
  package static var wallMilliseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// Milliseconds of a clock that never goes back.
  package static var monotonicMilliseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
  }

  package static func environment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
  }

  /// `PRETTY_NAME` of os-release; nil where the system has none.
  package static var systemVersion: String? {
    for path in ["/etc/os-release", "/usr/lib/os-release"] {
      guard let text = try? readFile(path) else { continue }
      for line in text.split(separator: "\n") where line.hasPrefix("PRETTY_NAME=") {
        let value = line.dropFirst("PRETTY_NAME=".count)
        return String(value.hasPrefix("\"") ? value.dropFirst().dropLast() : value)
      }
    }
    return nil
  }

  /// The text of a small file; nil where there is none.
  package static func readFile(_ path: String, bytesMax: Int = 1 << 20) throws(TransportError) -> String? {
    guard access(path, F_OK) == 0 else { return nil }
    let bytes = try TransportError.reporting("cannot read \(path)") { () throws(SystemCallError) in
      let descriptor = try SystemCalls.openForReading(path)
      var bytes: [UInt8] = []
      while bytes.count <= bytesMax {
        let next = try SystemCalls.read(descriptor.number, count: 1 << 16)
        if next.isEmpty { break }
        bytes += next
      }
      return bytes
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// A number in a file that only ever counts up, also over crashes and power cuts.
package struct CounterFile: Sendable {
  package let path: String

  package init(path: String) {
    self.path = path
  }

  /// Adds one and makes that durable before it returns.
  ///
  /// The number is written in place and in one piece of fixed width, so that a cut leaves the old or the new one.
  package func increment() throws(TransportError) -> Int64 {
    let path = path
    return try TransportError.reporting("cannot count in \(path)") { () throws(SystemCallError) in
      let descriptor = try SystemCalls.openOrCreate(path)
      let number = descriptor.number
      let text = String(decoding: try SystemCalls.read(number, count: 32), as: UTF8.self)
      let next = (Int64(text.prefix { $0.isNumber }) ?? 0) + 1
      let digits = String(next)
      let line = Array((String(repeating: "0", count: 20 - digits.count) + digits + "\n").utf8)
      guard pwrite(number, line, line.count, 0) == line.count, fsync(number) == 0 else {
        throw SystemCallError(call: "fsync", number: errno)
      }
      let directory = try SystemCalls.openForReading(Self.directory(of: path))
      guard fsync(directory.number) == 0 else { throw SystemCallError(call: "fsync", number: errno) }
      return next
    }
  }

  private static func directory(of path: String) -> String {
    path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
  }
}
