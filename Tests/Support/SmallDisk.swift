// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A small file system of one test's own; only root can make one.
package final class SmallDisk: Sendable {
  package static let isPossible = geteuid() == 0

  private let scratch: ScratchDirectory?
  package let path: String

  /// - Parameter path: where it is mounted; nil for a directory of its own.
  package init(bytes: Int, at path: String? = nil) throws {
    scratch = path == nil ? try ScratchDirectory() : nil
    self.path = path ?? scratch?.path ?? ""
    guard mount("small-disk", self.path, "tmpfs", 0, "size=\(bytes),mode=700") == 0 else {
      throw TestFailure("mount: \(SystemError.current)")
    }
  }

  deinit {
    umount2(path, Int32(MNT_DETACH))
    scratch?.remove()
  }

  package func makeReadOnly() throws { try remount(MS_RDONLY, nil) }

  package func grow(to bytes: Int) throws { try remount(0, "size=\(bytes)") }

  private func remount(_ flags: Int, _ options: String?) throws {
    // A process that another test is just starting has our open files until it becomes its program.
    try Wait.until("no file of the disk is being written") {
      if mount("small-disk", path, "tmpfs", UInt(MS_REMOUNT | flags), options) == 0 { return true }
      guard errno == EBUSY else { throw TestFailure("remount: \(SystemError.current)") }
      return false
    }
  }

  /// Takes all the space that is left.
  package func fill() throws {
    let descriptor = open("\(path)/filling", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw TestFailure("fill: \(SystemError.current)") }
    defer { close(descriptor) }
    let bytes = [UInt8](repeating: 0, count: 4096)
    while write(descriptor, bytes, bytes.count) > 0 {}
  }

  /// A file that is removed takes space as long as a process has it open, as one has that another test is just starting.
  package func empty() {
    truncate("\(path)/filling", 0)
    unlink("\(path)/filling")
  }
}
