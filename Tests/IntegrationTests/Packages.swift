// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import TestSupport
internal import Testing

/// Debian packages as `systemd/package.sh` makes them of the programs under test.
struct Packages {
  static let requirement = Comment(rawValue: "is about the release programs of Tests/run.sh")

  static let names = [
    "gir1.2-restorationgtk-1", "librestoration-dev", "librestoration-gtk-dev", "librestoration-gtk1", "librestoration1",
    "python3-restorationd", "restoration-gateway", "restoration-terminal", "restorationd", "restorationd-doc",
    "vim-restorationd",
  ]

  /// Whether a root of Debian can be made here; in CI it must.
  static let canMakeDebian: Bool = {
    // Without root, mmdebstrap could not read what is in a private directory.
    guard geteuid() == 0 else { return false }
    guard Environment.isLong && !Environment.isCI else { return true }
    let command = ["mmdebstrap", "--simulate", "--variant=apt", "bookworm", "/dev/null"]
    return (try? ChildProcess.run(command, Deadline(.seconds(60))))?.end == .exit(0)
  }()

  /// Made once for all tests.
  static let all = Result {
    let output = "\(Products.repository)/.build/packages"
    if !Files.exists(output) { try Files.makeDirectory(output) }
    Files.removeContents(of: output)
    let directory = try ScratchDirectory()
    defer { directory.remove() }
    return try Packages(in: directory, output: output)
  }

  /// Paths by the packages' names.
  let files: [String: String]

  /// - Parameter output: otherwise a directory in `directory`.
  init(in directory: ScratchDirectory, output: String? = nil) throws {
    let output = try output ?? directory.makeDirectory("packages")
    let installer = try Installer(in: directory)
    let result = try installer.run("package", ["--from", installer.programs, "--output", output])
    guard result.end == .exit(0) else { throw TestFailure("no packages were made: \(result.errors)") }
    let paths = result.output.split(separator: "\n").map(String.init)
    guard paths == Files.list(output).map({ "\(output)/\($0)" }) else {
      throw TestFailure("\(output) has other packages than were printed: \(result.output)")
    }
    let names = paths.map { String($0.dropFirst(output.count + 1).prefix { $0 != "_" }) }
    files = Dictionary(uniqueKeysWithValues: zip(names, paths))
  }

  /// The path of a package.
  static func file(_ name: String) throws -> String {
    guard let file = try all.get().files[name] else { throw TestFailure("there is no package \(name)") }
    return file
  }

  /// A root with the files of packages, in a directory.
  static func unpack(_ names: String..., in directory: ScratchDirectory) throws -> String {
    let root = try directory.makeDirectory("root")
    for name in names { try run(["dpkg-deb", "-x", file(name), root]) }
    return root
  }

  /// Where the libraries of an unpacked root are.
  static func libraries(of root: String) throws -> String {
    let architecture = try run(["dpkg-architecture", "-q", "DEB_HOST_MULTIARCH"]).filter { $0 != "\n" }
    return "\(root)/usr/lib/\(architecture)"
  }

  /// Output of a command that succeeds.
  @discardableResult
  static func run(_ arguments: [String]) throws -> String {
    let result = try ChildProcess.run(arguments, Deadline(.seconds(120)))
    guard result.end == .exit(0) else {
      throw TestFailure("\(arguments.joined(separator: " ")): \(result.end): \(result.errors)")
    }
    return result.output
  }
}
