// SPDX-License-Identifier: Apache-2.0

struct FileStatus: Hashable, Sendable {
  enum Kind: Hashable, Sendable {
    case directory, regular, socket, symbolicLink, other
  }

  let kind: Kind
  let owner: UInt32
  /// Permission bits, 0 to 07777.
  let mode: UInt32
  /// Device and inode; together they name the file.
  let device: UInt64
  let inode: UInt64

  var isWritableByOthers: Bool { mode & 0o022 != 0 }

  func isSameFile(as other: FileStatus) -> Bool { device == other.device && inode == other.inode }
}
