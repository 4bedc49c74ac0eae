// SPDX-License-Identifier: Apache-2.0

/// The path of the broker's socket, short enough for a Unix socket's address.
package struct SocketPath: Hashable, Sendable {
  /// The address field has 108 bytes, the last of them NUL.
  package static let bytesMax = 107

  /// The default path of the gateway's socket (`Protocol/gateway.md`), for the gateway and for brokers.
  package static let gateway = "/run/restoration-gateway/gateway.sock"

  package let path: String
  package let directoryUse: PrivateDirectory.Use
  /// The lock, by default beside the socket: `broker.lock` for `broker.sock`.
  package let lockPath: String

  /// A path given by the user. Throws `invalidPath` if it is empty, ends in a slash or is too long.
  package init(_ path: String) throws(TransportError) { try self.init(path, directoryUse: .named) }

  private init(_ path: String, directoryUse: PrivateDirectory.Use, lock: String? = nil) throws(TransportError) {
    guard !path.isEmpty, !path.utf8.contains(0), !path.hasSuffix("/") else {
      throw TransportError(.invalidPath, "invalid socket path \"\(path)\"; give --socket the path of a file")
    }
    let length = path.utf8.count
    guard length <= Self.bytesMax else {
      throw TransportError(
        .invalidPath,
        "the socket path \(path) has \(length) bytes, and at most \(Self.bytesMax) are possible; "
          + "give --socket a shorter path"
      )
    }
    (self.path, self.directoryUse, lockPath) = (path, directoryUse, lock ?? Self.lockPath(of: path))
  }

  /// The flag's path, otherwise `$RESTORATIOND_SOCKET`, otherwise `$XDG_RUNTIME_DIR/restorationd/broker.sock`. Empty
  /// variables count as unset.
  ///
  /// Throws `noRuntimeDirectory` if none is set, or `invalidPath`.
  package static func resolve(flag: String?, environment: (String) -> String?) throws(TransportError) -> SocketPath {
    if let path = flag { return try SocketPath(path) }
    if let path = environment("RESTORATIOND_SOCKET"), !path.isEmpty { return try SocketPath(path) }
    guard let directory = environment("XDG_RUNTIME_DIR"), directory.hasPrefix("/") else {
      throw TransportError(
        .noRuntimeDirectory,
        "XDG_RUNTIME_DIR is not set to an absolute path; give --socket PATH or set RESTORATIOND_SOCKET"
      )
    }
    return try SocketPath("\(directory)/restorationd/broker.sock", directoryUse: .dedicated)
  }

  /// The path of a socket for one application, in a directory that can be mounted into a sandbox. It depends on the
  /// name only: the directory has that name, or a prefix and a hash of it if the path would be too long. The lock is
  /// outside, because it names the broker's process.
  package static func ofApplication(_ name: String, below directory: String) throws(TransportError) -> SocketPath {
    let file = "broker.sock"
    let room = bytesMax - directory.utf8.count - file.utf8.count - 2
    var folder = name
    if name.utf8.count > room {
      // FNV-1a. No name of an application has a '+'.
      let hash = name.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
      let mark = "+" + String(hash, radix: 16)
      folder = name.prefix(max(0, room - mark.utf8.count)) + mark
    }
    let lock = "\(directory)/\(folder)+lock"
    return try SocketPath("\(directory)/\(folder)/\(file)", directoryUse: .dedicated, lock: lock)
  }

  /// Whether a socket of this user exists there.
  package var hasSocket: Bool {
    guard let status = try? SystemCalls.status(of: path) else { return false }
    return status.kind == .socket && status.owner == SystemCalls.userID
  }

  package var directory: String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  private static func lockPath(of path: String) -> String {
    let suffix = ".sock"
    let stem = path.hasSuffix(suffix) && !path.hasSuffix("/" + suffix) ? String(path.dropLast(suffix.count)) : path
    return stem + ".lock"
  }
}
