// SPDX-License-Identifier: Apache-2.0

/// An existing directory of this user that no other user may write to: fit for the socket and for archives.
package struct PrivateDirectory: Hashable, Sendable {
  /// Decides how strict its mode must be.
  package enum Use: Hashable, Sendable {
    /// Ours alone: other users' permissions to read it are removed.
    case dedicated
    /// Named by the user, who may share it with other programs: accepted as it is if only the owner may write.
    case named
  }

  /// The path without slashes at its end.
  package let path: String

  /// Creates the directory and its missing ancestors (mode 0700, independent of the umask), or checks the existing one.
  ///
  /// Throws if it is a symbolic link, another user's, or writable by others.
  package init(preparing path: String, use: Use) throws(TransportError) {
    let path = Self.withoutClosingSlashes(path)
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw TransportError(.invalidPath, "invalid directory path: it is empty or contains a NUL; give another one")
    }
    self.path = path
    let purpose = "cannot use directory \(path) (fix it, or name another one)"
    let isNew = try TransportError.reporting(purpose, calling: try Self.createIfMissing(path))
    let directory = try TransportError.reporting(purpose, calling: try SystemCalls.openName(path))
    let number = directory.number
    let status = try TransportError.reporting(purpose, calling: try SystemCalls.status(of: number))
    try check(status)
    if isNew || use == .dedicated {
      try TransportError.reporting(purpose, calling: try Self.makePrivate(number, status))
    }
  }

  private func check(_ status: FileStatus) throws(TransportError) {
    guard status.kind == .directory else {
      let what = status.kind == .symbolicLink ? "a symbolic link" : "not a directory"
      throw TransportError(.notADirectory, "\(path) is \(what); use a directory of your own")
    }
    let user = SystemCalls.userID
    guard status.owner == user else {
      throw TransportError(
        .foreignOwner,
        "\(path) belongs to user \(status.owner), not to user \(user); use a directory of your own"
      )
    }
    guard !status.isWritableByOthers else {
      throw TransportError(.writableByOthers, "others may write to \(path); run: chmod go-w '\(path)'")
    }
  }

  /// Creates the missing directories of a path; false if the last one exists.
  private static func createIfMissing(_ path: String) throws(SystemCallError) -> Bool {
    do throws(SystemCallError) {
      return try create(path)
    } catch {
      guard error.number == SystemCallError.notFound, let parent = parent(of: path) else { throw error }
      if try createIfMissing(parent) {
        // The umask may have cleared the owner's own bits.
        let directory = try SystemCalls.openName(parent)
        try makePrivate(directory.number, SystemCalls.status(of: directory.number))
      }
      // Tried only once more: below a dangling link or in /proc, every try fails.
      return try create(path)
    }
  }

  /// Creates the last directory of a path; false if it exists.
  private static func create(_ path: String) throws(SystemCallError) -> Bool {
    do throws(SystemCallError) {
      try SystemCalls.createDirectory(path)
      return true
    } catch {
      guard error.number == SystemCallError.exists else { throw error }
      return false
    }
  }

  /// Sets mode 0700 by the descriptor, so that the name cannot be exchanged in between.
  private static func makePrivate(_ descriptor: Int32, _ status: FileStatus) throws(SystemCallError) {
    guard status.mode & 0o777 != 0o700 else { return }
    // fchmod refuses descriptors opened with O_PATH; chmod of their name in /proc works.
    try SystemCalls.changeMode(of: "/proc/self/fd/\(descriptor)", to: 0o700)
  }

  /// The directory that contains a path; `nil` for `/` and for a name in the current directory.
  private static func parent(of path: String) -> String? {
    guard let slash = path.lastIndex(of: "/") else { return nil }
    let parent = withoutClosingSlashes(String(path[..<slash]))
    return parent.isEmpty ? nil : parent
  }

  private static func withoutClosingSlashes(_ path: String) -> String {
    var end = path.endIndex
    while end > path.startIndex, path[path.index(before: end)] == "/" { end = path.index(before: end) }
    return end == path.startIndex && !path.isEmpty ? "/" : String(path[..<end])
  }
}
