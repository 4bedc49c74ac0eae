// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import TestSupport

/// A socket before the broker's own: a test acts just before a message of one client reaches the broker.
struct PassingSocket {
  let path: String
  private let listener: FileDescriptor

  init(_ path: String) throws {
    self.path = path
    listener = try FileDescriptor.listening(at: path, backlog: 1)
  }

  /// Passes everything on in both directions until the client closes its connection.
  ///
  /// - Parameter act: is called before each message in which the word is.
  func pass(to socket: String, before word: String, _ act: () throws -> Void) throws {
    guard listener.waitUntilReadable(Deadline()) else { throw TestFailure("nobody has connected to \(path)") }
    let client = FileDescriptor(owning: accept(listener.number, nil, nil))
    let broker = try FileDescriptor.connected(to: socket)
    while true {
      var entries = [client, broker].map { pollfd(fd: $0.number, events: Int16(POLLIN), revents: 0) }
      let count = poll(&entries, 2, 30_000)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw TestFailure("nothing comes from either side") }
      if entries[0].revents != 0 {
        let bytes = try client.read(Deadline())
        if bytes.isEmpty { return }
        if String(decoding: bytes, as: UTF8.self).contains(word) { try act() }
        try broker.write(bytes)
      }
      if entries[1].revents != 0 { try client.write(try broker.read(Deadline())) }
    }
  }
}
