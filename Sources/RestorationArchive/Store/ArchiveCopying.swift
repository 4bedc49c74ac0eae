// SPDX-License-Identifier: Apache-2.0

/// Copies an archive to a file. Not in `ArchiveStore`, which knows no paths.
package protocol ArchiveCopying: Sendable {
  /// Copies everything committed to a new file for its owner only; it gets its name when it is complete and synced.
  ///
  /// - Parameter path: absolute; nothing may be there.
  /// - Returns: bytes of the copy.
  nonisolated(nonsending) func copy(_ lease: ArchiveLease, to path: String) async throws(ArchiveCopyError) -> Int
}

/// Why an archive was not copied; it is unchanged, and there is no new file.
package enum ArchiveCopyError: Error, Hashable, Sendable {
  case target(String)
  case archive(ArchiveError)
}

extension SQLiteArchiveStore: ArchiveCopying {
  nonisolated(nonsending) package func copy(
    _ lease: ArchiveLease,
    to path: String
  ) async throws(ArchiveCopyError) -> Int {
    let archive: ApplicationArchive
    do throws(ArchiveError) {
      archive = try self.archive(lease)
    } catch {
      throw .archive(error)
    }
    return try await archive.copy(lease, to: path)
  }
}

extension ApplicationArchive {
  fileprivate func copy(_ lease: ArchiveLease, to path: String) throws(ArchiveCopyError) -> Int {
    let archive: OpenArchive<SQLiteArchive>
    do throws(ArchiveError) {
      archive = try self.archive(lease)
    } catch {
      throw .archive(error)
    }
    guard let slash = path.lastIndex(of: "/") else { throw .target("\(path) is not an absolute path") }
    let name = String(path[path.index(after: slash)...])
    let parent = slash == path.startIndex ? "/" : String(path[..<slash])
    let folder = ArchiveDirectory(existing: parent, of: directory.system)
    let isOwn: Bool
    do throws(SystemError) {
      isOwn = try folder.isSame(as: directory)
    } catch {
      throw Self.failure(SystemError("create", path, code: error.code), path)
    }
    // There it would be another application's archive.
    guard !isOwn else { throw .target("\(path) is in the directory of the archives; choose another one") }
    let draft = ".\(SQLiteArchive.newUUID(of: directory.system)).part"
    do throws(SystemError) {
      guard try folder.entry(name) == .absent else { throw SystemError("create", path, code: SystemError.exists) }
      try folder.createEmpty(draft)
    } catch {
      throw Self.failure(error, path)
    }
    do throws(ArchiveCopyError) {
      try fill(folder.pathname(draft), from: archive)
      do throws(SystemError) {
        try folder.syncFile(draft)
        try folder.move(draft, to: name)
        try folder.sync()
        return try folder.entry(name).bytes
      } catch {
        throw Self.failure(error, path)
      }
    } catch {
      for suffix in ["", ArchiveFiles.logSuffix, ArchiveFiles.journalSuffix] { try? folder.remove(draft + suffix) }
      throw error
    }
  }

  /// Names the file that was asked for, not the draft.
  private static func failure(_ error: SystemError, _ path: String) -> ArchiveCopyError {
    let message = SystemError(error.operation, path, code: error.code).message
    return error.isFull ? .archive(ArchiveError(.full, message)) : .target(message)
  }

  private func fill(_ path: String, from archive: OpenArchive<SQLiteArchive>) throws(ArchiveCopyError) {
    do throws(SQLiteFailure) {
      try archive.rows.copy(to: path)
    } catch {
      throw .archive(ArchiveError(error.isFull ? .full : .definite, "copy: \(error)"))
    }
  }
}
