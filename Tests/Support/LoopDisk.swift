// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// An ext4 file system in an image, whose power can be cut: what was not synced is gone. Only root can make one.
package final class LoopDisk {
  package static let isPossible: Bool = {
    guard geteuid() == 0, let disk = try? LoopDisk(at: nil) else { return false }
    return (try? disk.cutPower()) != nil
  }()

  /// The name of the skip if it is not.
  package static let requirement =
    "needs root and a loop device: without them only the replay of the write log stands in for cuts of the power"

  private let scratch: ScratchDirectory
  private let path: String
  private let image: String

  /// - Parameter path: where it is mounted; nil for a directory of its own.
  package init(at path: String?) throws {
    scratch = try ScratchDirectory()
    self.path = try path ?? scratch.makeDirectory("mount")
    image = scratch.file("image")
    try Self.run(["truncate", "-s", "48M", image])
    try Self.run(["mkfs.ext4", "-q", "-F", image])
    try mount()
  }

  deinit {
    umount2(path, Int32(MNT_DETACH))
    scratch.remove()
  }

  private static func run(_ command: [String]) throws {
    let result = try ChildProcess.run(command)
    guard result.end == .exit(0) else { throw TestFailure("\(command): \(result.errors)") }
  }

  private func mount() throws { try Self.run(["mount", "-o", "loop", image, path]) }

  /// Nothing reaches the disk from now on, not even the file system's own log (`EXT4_IOC_SHUTDOWN`, without flushing).
  package func cutPower() throws {
    let program =
      "import fcntl, os, struct, sys; "
      + "fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack('I', 2))"
    try Self.run(["python3", "-c", program, path])
  }

  /// Mounts again what is on the disk. No process may have a file of it open.
  package func restorePower() throws {
    guard umount2(path, 0) == 0 else { throw TestFailure("umount: \(SystemError.current)") }
    // A mount namespace that another test has made meanwhile may still have the old disk mounted. Then `mount` would take
    // its loop device for the same file again, which nothing reaches.
    let copy = scratch.file("copy")
    try Self.run(["cp", "--sparse=always", image, copy])
    try Files.rename(copy, to: image)
    try mount()
  }
}
