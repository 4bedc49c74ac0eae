// SPDX-License-Identifier: Apache-2.0

internal import CLinux
package import Glibc

/// An open descriptor, closed with its object.
package final class FileDescriptor: Sendable {
  package let number: Int32

  package init(owning number: Int32) { self.number = number }

  deinit {
    close(number)
  }

  /// Two connected stream sockets, closed on exec.
  static func socketPair() throws -> (FileDescriptor, FileDescriptor) {
    var pair: [Int32] = [-1, -1]
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, type, 0, &pair) == 0 else { throw TestFailure("socketpair: \(SystemError.current)") }
    return (FileDescriptor(owning: pair[0]), FileDescriptor(owning: pair[1]))
  }

  /// A connection to a Unix socket; fails at once if nothing listens.
  package static func connected(to path: String) throws -> FileDescriptor {
    let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard number >= 0 else { throw TestFailure("socket: \(SystemError.current)") }
    let descriptor = FileDescriptor(owning: number)
    let result = withAddress(of: path) { Glibc.connect(number, $0, $1) }
    guard result == 0 else { throw TestFailure("connect \(path): \(SystemError.current)") }
    return descriptor
  }

  /// A Unix socket at a path that accepts connections.
  package static func listening(at path: String, backlog: Int32 = 16) throws -> FileDescriptor {
    let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard number >= 0 else { throw TestFailure("socket: \(SystemError.current)") }
    let listener = FileDescriptor(owning: number)
    let bound = withAddress(of: path) { bind(number, $0, $1) }
    guard bound == 0, listen(number, backlog) == 0 else { throw TestFailure("listen \(path): \(SystemError.current)") }
    return listener
  }

  /// A connection to an IPv4 address and a port of this machine; `nil` if nothing listens there.
  package static func connected(to host: String, port: UInt16) throws -> FileDescriptor? {
    let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard number >= 0 else { throw TestFailure("socket: \(SystemError.current)") }
    let descriptor = FileDescriptor(owning: number)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr(host)
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    if result == 0 { return descriptor }
    guard errno == ECONNREFUSED else { throw TestFailure("connect to \(host):\(port): \(SystemError.current)") }
    return nil
  }

  /// The address of the Unix socket at a path, and its length.
  package static func withAddress<Result>(
    of path: String,
    _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { field in
      for (offset, byte) in path.utf8.prefix(field.count - 1).enumerated() { field[offset] = byte }
    }
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
  }

  /// A file created or appended to, for a process's output.
  static func appending(to path: String) throws -> FileDescriptor {
    let number = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard number >= 0 else { throw TestFailure("open \(path): \(SystemError.current)") }
    return FileDescriptor(owning: number)
  }

  /// A pidfd: readable once the process has ended.
  package static func process(_ pid: Int32) throws -> FileDescriptor {
    let number = clinux_pidfd_open(pid)
    guard number >= 0 else { throw TestFailure("pidfd_open \(pid): \(SystemError.current)") }
    return FileDescriptor(owning: number)
  }

  /// Waits until the descriptor can be read (or the other end is gone); false when the deadline came first.
  package func waitUntilReadable(_ deadline: Deadline) -> Bool { wait(for: Int16(POLLIN), deadline) != 0 }

  /// Waits for one of the events of `poll`; 0 when the deadline came first.
  func wait(for events: Int16, _ deadline: Deadline) -> Int16 {
    var entry = pollfd(fd: number, events: events, revents: 0)
    while true {
      let count = poll(&entry, 1, deadline.milliseconds)
      if count > 0 { return entry.revents }
      if count == 0 || errno != EINTR { return 0 }
    }
  }

  /// Reads the available bytes, waiting for the first one; empty at the end.
  package func read(_ deadline: Deadline, upTo count: Int = 1 << 16) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    while true {
      guard waitUntilReadable(deadline) else { throw TestFailure("nothing came within the deadline") }
      let length = Glibc.read(number, &bytes, count)
      if length >= 0 {
        bytes.removeLast(count - length)
        return bytes
      }
      // A peer that closed with our bytes unread resets the connection: that is its end, too.
      if errno == ECONNRESET { return [] }
      guard errno == EINTR || errno == EAGAIN else { throw TestFailure("read: \(SystemError.current)") }
    }
  }

  /// Writes everything, waiting for room until the deadline.
  package func write(_ bytes: some Collection<UInt8>, _ deadline: Deadline = Deadline()) throws {
    var rest = Array(bytes)[...]
    while !rest.isEmpty {
      guard wait(for: Int16(POLLOUT), deadline) != 0 else {
        throw TestFailure("\(rest.count) bytes could not be written within the deadline")
      }
      let length = rest.withUnsafeBytes { send(number, $0.baseAddress, $0.count, Self.sendFlags) }
      if length >= 0 {
        rest = rest.dropFirst(length)
      } else if errno != EINTR && errno != EAGAIN {
        throw TestFailure("write: \(SystemError.current)")
      }
    }
  }

  private static let sendFlags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
}

/// What `errno` says.
package enum SystemError {
  package static var current: String { String(cString: strerror(errno)) }
}
