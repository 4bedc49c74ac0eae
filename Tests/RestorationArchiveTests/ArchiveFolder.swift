// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import TestSupport

/// An archives directory of one test's own, gone with its last reference.
///
/// Files are read and written here behind the store's back; a connection of this process that has one of them open
/// loses its locks by that.
final class ArchiveFolder: Sendable {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  deinit { scratch.remove() }

  var path: String { scratch.path }

  /// Names of the files in it, sorted.
  var names: [String] { Files.list(path) }

  func file(_ name: String) -> String { scratch.file(name) }

  func read(_ name: String) throws -> [UInt8] { try Files.read(file(name)) }

  func write(_ bytes: [UInt8], to name: String) throws { try Files.write(bytes, to: file(name)) }

  func rename(_ name: String, to target: String) throws { try Files.rename(file(name), to: file(target)) }

  func remove(_ name: String) { Files.remove(file(name)) }

  func link(_ target: String, from name: String) { symlink(target, file(name)) }

  /// Makes a file look as if it was written when the clock began, in 1970.
  func setOld(_ name: String) {
    let times = [timespec(tv_sec: 0, tv_nsec: 0), timespec(tv_sec: 0, tv_nsec: 0)]
    utimensat(AT_FDCWD, file(name), times, 0)
  }

  /// Permission bits of a file, or of the directory itself.
  func mode(_ name: String = ".") -> UInt32 { Files.mode(file(name)) }

  func setMode(_ mode: UInt32) { chmod(path, mode) }
}
