// SPDX-License-Identifier: Apache-2.0

/// What a file system says of a name or an open file, as far as this module asks.
struct FileStatus: Hashable, Sendable {
  enum Kind: Hashable, Sendable {
    case directory, regular, socket, symbolicLink, other
  }

  let kind: Kind
  /// The owner's user id.
  let owner: UInt32
  /// Permission bits, 0 to 07777.
  let mode: UInt32
  /// Device and inode; together they name the file.
  let device: UInt64
  let inode: UInt64

  /// Whether somebody other than the owner may write.
  var isWritableByOthers: Bool { mode & 0o022 != 0 }

  /// Whether both are one and the same file.
  func isSameFile(as other: FileStatus) -> Bool { device == other.device && inode == other.inode }
}
