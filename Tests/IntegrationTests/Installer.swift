// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import TestSupport

/// `systemd/install.sh` and its like, run on a directory of a test.
struct Installer {
  typealias Result = (end: ChildProcess.End, output: String, errors: String)

  let directory: ScratchDirectory
  let prefix: String
  /// Has the programs under test.
  let programs: String

  init(in directory: ScratchDirectory, prefix: String = "prefix") throws {
    self.directory = directory
    self.prefix = directory.file(prefix)
    programs = try directory.makeDirectory("programs")
    _ = try directory.makeDirectory("home")
    let all = [Products.broker, Products.control, Products.gateway]
    for (program, name) in zip(all, ["restorationd", "restorationctl", "restoration-gateway"]) {
      guard symlink(program, "\(programs)/\(name)") == 0 else { throw TestFailure("symlink: \(errno)") }
    }
  }

  /// Runs one of the scripts in a home that is the test's own.
  func run(
    _ script: String,
    _ arguments: [String],
    home: String? = nil,
    _ deadline: Deadline = Deadline(.seconds(120))
  ) throws -> Result {
    try ChildProcess.run(
      ["\(Products.repository)/systemd/\(script).sh"] + arguments,
      environment: [
        "HOME": home ?? directory.file("home"),
        "XDG_RUNTIME_DIR": nil, "XDG_STATE_HOME": nil, "DBUS_SESSION_BUS_ADDRESS": nil,
        // A package need not be small here, and this machine may have no name that mail reaches.
        "DEBFULLNAME": "The authors of restorationd", "DEBEMAIL": "restorationd@example.org",
        "DPKG_DEB_COMPRESSOR_TYPE": "none",
      ],
      directory: directory.path,
      deadline
    )
  }

  func install(_ arguments: String...) throws -> Result {
    try run("install", ["--prefix", prefix, "--from", programs, "--no-enable"] + arguments)
  }

  func uninstall(_ arguments: String...) throws -> Result { try run("uninstall", ["--prefix", prefix] + arguments) }

  func text(_ file: String) throws -> String { try Files.text("\(prefix)/\(file)") }

  /// Everything below a directory, with what tells that a file was written again.
  static func files(below path: String) throws -> [String] {
    let result = try ChildProcess.run(["find", path, "-printf", "%P %y %m %i %T@\n"])
    return result.output.split(separator: "\n").map(String.init).sorted()
  }
}
