// SPDX-License-Identifier: Apache-2.0

/// The path of the broker's socket, short enough for a Unix socket's address.
package struct SocketPath: Hashable, Sendable {
  /// The address field has 108 bytes, the last of them NUL.
  package static let bytesMax = 107

  package let path: String
  package let directoryUse: PrivateDirectory.Use

  /// A path given by the user. Throws `invalidPath` if it is empty, ends in a slash or is too long.
  package init(_ path: String) throws(TransportError) { try self.init(path, directoryUse: .named) }

  private init(_ path: String, directoryUse: PrivateDirectory.Use) throws(TransportError) {
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
    (self.path, self.directoryUse) = (path, directoryUse)
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

  package var directory: String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// The lock beside the socket: `broker.lock` for `broker.sock`.
  package var lockPath: String {
    let suffix = ".sock"
    let stem = path.hasSuffix(suffix) && !path.hasSuffix("/" + suffix) ? String(path.dropLast(suffix.count)) : path
    return stem + ".lock"
  }
}
