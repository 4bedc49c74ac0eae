// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A connection to a server's Unix socket. What is read with it waits for at most ten seconds.
final class Socket {
  static let patience = 10

  let descriptor: Int32

  init(_ path: String) throws {
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw Failure.system("socket") }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
      throw Failure("the path of the socket is too long: \(path); give a shorter one")
    }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard result == 0 else { throw Failure.system(path) }
    var limit = timeval(tv_sec: Self.patience, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit { close(descriptor) }

  func send(_ bytes: [UInt8]) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let sent = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if sent < 0, errno == EINTR { continue }
      guard sent > 0 else { throw Failure.system("the server takes no more") }
      rest = rest.dropFirst(sent)
    }
  }
}

/// What was read from a socket and not used yet.
final class Input {
  private(set) var bytes: UnsafeMutablePointer<UInt8>
  private(set) var count = 0
  private var start = 0
  private var capacity = 1 << 17

  init() { bytes = .allocate(capacity: capacity) }

  deinit { bytes.deallocate() }

  /// The bytes that are not used yet.
  var unused: UnsafeMutablePointer<UInt8> { bytes + start }

  func use(_ used: Int) { (start, count) = (start + used, count - used) }

  /// Reads what is there; false if nothing is, and the flags do not let it wait.
  func read(_ socket: Socket, flags: Int32 = 0) throws -> Bool {
    if start > 0 {
      if count > 0 { memmove(bytes, bytes + start, count) }
      start = 0
    }
    if capacity - count < 1 << 16 {
      let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: 2 * capacity)
      larger.update(from: bytes, count: count)
      bytes.deallocate()
      (bytes, capacity) = (larger, 2 * capacity)
    }
    let got = recv(socket.descriptor, bytes + count, capacity - count, flags)
    if got > 0 {
      count += got
      return true
    }
    guard got < 0 else { throw Failure("the server closed a connection") }
    if errno == EINTR || (errno == EAGAIN && flags != 0) { return false }
    throw errno == EAGAIN ? Failure("no reply for \(Socket.patience) seconds") : Failure.system("recv")
  }
}
