// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import TestSupport
internal import Testing

/// `systemd/package.sh` makes a Debian package. Only programs that need no Swift can be in one, so most of this is
/// about the release programs.
@Suite(.scratch, .timeLimit(.minutes(10))) struct PackageTests {
  /// Makes the package; its path.
  private static func build(_ installer: Installer, in name: String = "out") throws -> String {
    let output = try installer.directory.makeDirectory(name)
    let result = try installer.run("package", ["--from", installer.programs, "--output", output])
    #expect(result.end == .exit(0), "\(result.errors)")
    let package = try #require(Files.list(output).first)
    #expect(result.output.hasSuffix("\(output)/\(package)\n"))
    return "\(output)/\(package)"
  }

  private static func dpkg(_ arguments: [String]) throws -> String {
    let result = try ChildProcess.run(arguments, Deadline(.seconds(120)))
    #expect(result.end == .exit(0), "\(arguments.joined(separator: " ")): \(result.errors)")
    return result.output
  }

  @Test(.enabled(if: !Products.isOptimised, "is about programs that were not built to be installed"))
  func programsThatNeedSwiftAreNotPackaged() throws {
    let installer = try Installer(in: directory)
    let result = try installer.run("package", ["--from", installer.programs])
    #expect(result.end == .exit(1))
    #expect(result.errors.contains("restorationd needs Swift's libraries, which Debian does not have"))
    #expect(!Files.list(directory.path).contains { $0.hasSuffix(".deb") })
  }

  @Test(.enabled(if: Products.isOptimised, "is about the release programs of Tests/run.sh"))
  func aPackageInstallsItsFilesEnablesTheSocketAndIsPurged() throws {
    let installer = try Installer(in: directory)
    let package = try Self.build(installer)
    #expect(try Files.read(package) == Files.read(try Self.build(installer, in: "again")))
    try Self.expectContents(of: package)
    let root = try directory.makeDirectory("root")
    _ = try Self.dpkg(["mkdir", "-p", "\(root)/var/lib/dpkg"])
    // Who is not root is root in a namespace of their own.
    let asRoot = geteuid() == 0 ? [] : ["unshare", "--map-root-user"]
    let force = "--force-not-root,script-chrootless,depends"
    let dpkg = asRoot + ["dpkg", "--root=\(root)", force, "--log=\(directory.file("log"))"]
    let enabled = [
      "graphical-session.target.wants/restoration-login.service", "sockets.target.wants/restorationd.socket",
    ]
    let users = "\(root)/etc/systemd/user"
    _ = try Self.dpkg(dpkg + ["--install", package])
    for program in ["restorationd", "restorationctl"] {
      #expect(try ChildProcess.run(["\(root)/usr/bin/\(program)", "--version"]).end == .exit(0))
    }
    #expect(Files.tree(users) == enabled)

    // Units that an administrator has disabled stay disabled.
    Files.remove("\(users)/\(enabled[1])")
    _ = try Self.dpkg(dpkg + ["--install", package])
    #expect(Files.tree(users) == [enabled[0]])

    _ = try Self.dpkg(dpkg + ["--purge", "restorationd"])
    #expect(Files.tree(root).filter { !$0.hasPrefix("var/lib/dpkg/") } == [])
  }

  private static func expectContents(of package: String) throws {
    let version = try ChildProcess.run([Products.broker, "--version"]).output.filter { $0 != "\n" }
    #expect(package.contains("/restorationd_\(version)_"))
    let depends = try dpkg(["dpkg-deb", "-f", package, "Depends"])
    for library in ["libc6", "libjansson4", "libsqlite3-0", "libsystemd0"] {
      #expect(depends.contains("\(library) (>= "), "\(depends)")
    }
    let files = try dpkg(["dpkg-deb", "-c", package]).split(separator: "\n")
    #expect(files.allSatisfy { $0.contains(" root/root ") })
    let names = files.compactMap { $0.split(separator: " ").last?.dropFirst() }.filter { !$0.hasSuffix("/") }
    let expected = [
      "bin/restorationctl", "bin/restorationd", "lib/systemd/user/restoration-app@.service",
      "lib/systemd/user/restoration-login.service", "lib/systemd/user/restoration-metrics.service",
      "lib/systemd/user/restoration-metrics.timer", "lib/systemd/user/restoration-run-graphical@.service",
      "lib/systemd/user/restoration-run@.service", "lib/systemd/user/restorationd.service",
      "lib/systemd/user/restorationd.socket", "share/bash-completion/completions/restorationctl",
      "share/bash-completion/completions/restorationd", "share/doc/restorationd/changelog.gz",
      "share/doc/restorationd/copyright", "share/fish/vendor_completions.d/restorationctl.fish",
      "share/fish/vendor_completions.d/restorationd.fish", "share/man/man1/restorationctl.1.gz",
      "share/man/man1/restorationd.1.gz", "share/zsh/vendor-completions/_restorationctl",
      "share/zsh/vendor-completions/_restorationd",
    ]
    #expect(names.sorted() == expected.map { "/usr/\($0)" })
  }
}
