// SPDX-License-Identifier: Apache-2.0

/// The files of a store, except for SQLite's own access to an archive. A test may replace them.
///
/// Paths are absolute. No method follows a symbolic link at the end of a path. Only `syncDirectory` opens what is not a
/// regular file.
package protocol FileSystem: Sendable {
  /// The name under which SQLite finds the same files; `nil` for its default.
  var sqliteName: String? { get }

  /// Creates a directory for its owner only, and missing ones above it. Checks owner, type and mode of an existing one.
  func prepareDirectory(_ path: String) throws(SystemError)
  func entry(_ path: String) throws(SystemError) -> FileEntry
  /// False for a symbolic link to a directory.
  func isDirectory(_ path: String) -> Bool
  func isSameDirectory(_ path: String, as other: String) throws(SystemError) -> Bool
  func names(in directory: String) throws(SystemError) -> [String]

  func open(_ path: String, _ access: FileAccess) throws(SystemError) -> any OpenFile
  /// Fails if there is nothing to remove.
  func remove(_ path: String) throws(SystemError)
  /// Replaces an existing file.
  func rename(_ path: String, to target: String) throws(SystemError)
  /// Gives a file a second name; fails if there is one of that name.
  func link(_ path: String, to target: String) throws(SystemError)
  /// Makes creations, renamings and removals in a directory durable.
  func syncDirectory(_ path: String) throws(SystemError)
  /// Why nothing can be made or removed in a directory; `nil` unless it is read-only.
  func refusal(toWriteIn directory: String) -> SystemError?
  /// Bytes that can still be written to the file system of a directory; `nil` if that is unknown.
  func freeBytes(of directory: String) -> Int?
  /// Bits for the identifier of a new archive.
  func random() -> (UInt64, UInt64)
}

extension FileSystem {
  /// Where there are no links.
  package func isDirectory(_ path: String) -> Bool { true }

  package func refusal(toWriteIn directory: String) -> SystemError? { nil }
}

package enum FileAccess: Sendable {
  case reading
  case writing
  /// Creates the file, which only its owner can read; fails if there is one.
  case creating
  /// The same, or takes the one that is there.
  case creatingOrWriting
}

/// Closed when it is released.
package protocol OpenFile: AnyObject {
  /// Returns how many bytes were read: 0 at the end.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int
  /// Writes all of the bytes.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError)
  func truncate(to bytes: Int) throws(SystemError)
  func allocate(bytes: Int) throws(SystemError)
  func sync() throws(SystemError)
}

extension OpenFile {
  func write(_ text: String, at offset: Int) throws(SystemError) {
    var text = text
    try text.withUTF8 { bytes in
      Result { () throws(SystemError) in try write(UnsafeRawBufferPointer(bytes), at: offset) }
    }.get()
  }
}

package enum FileEntry: Equatable, Sendable {
  case absent
  /// Size in bytes, the time of the last change in nanoseconds since 1970, and which file it is.
  case file(size: Int, changed: Int, identity: FileIdentity)
  /// A symbolic link, a directory, …: no store makes one.
  case other

  /// 0 if it is not a file.
  var bytes: Int { if case .file(let size, _, _) = self { size } else { 0 } }
}

/// Tells a file from another that got its name.
package struct FileIdentity: Equatable, Sendable {
  let device: UInt64
  let inode: UInt64

  package init(device: UInt64, inode: UInt64) { (self.device, self.inode) = (device, inode) }
}
