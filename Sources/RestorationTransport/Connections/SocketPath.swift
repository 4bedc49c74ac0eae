// SPDX-License-Identifier: Apache-2.0

/// Where the broker's socket is: a path short enough for a Unix socket's address.
package struct SocketPath: Hashable, Sendable {
  /// The address field has 108 bytes, the last of them NUL.
  package static let bytesMax = 107

  package let path: String
  /// Whether the directory is the broker's own or one somebody named.
  package let directoryUse: PrivateDirectory.Use

  /// Takes a path given by the user. Throws `invalidPath` when it is empty, ends in a slash or is too long.
  package init(_ path: String) throws(TransportError) { try self.init(path, directoryUse: .named) }

  private init(_ path: String, directoryUse: PrivateDirectory.Use) throws(TransportError) {
    guard !path.isEmpty, !path.utf8.contains(0), !path.hasSuffix("/") else {
      throw TransportError(.invalidPath, "\"\(path)\" does not name a socket; give --socket PATH a file's path")
    }
    let length = path.utf8.count
    guard length <= Self.bytesMax else {
      throw TransportError(
        .invalidPath,
        "the socket path has \(length) bytes and a Unix socket's has at most \(Self.bytesMax); "
          + "give a shorter one with --socket PATH: \(path)"
      )
    }
    (self.path, self.directoryUse) = (path, directoryUse)
  }

  /// The path to use: the flag's, else `$RESTORATIOND_SOCKET`, else `$XDG_RUNTIME_DIR/restorationd/broker.sock`.
  ///
  /// Empty values count as absent. Throws `noRuntimeDirectory` when nothing is left, or `invalidPath`.
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

  /// The directory the socket lies in.
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
