// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import TestSupport
internal import Testing

/// `systemd/package.sh` makes Debian packages. Only programs that need no Swift can be in one, so most of this is about
/// the release programs.
@Suite(.timeLimit(.minutes(20))) struct PackageTests {
  @Test(.scratch, .enabled(if: !Products.isOptimised, "is about programs that were not built to be installed"))
  func programsThatNeedSwiftAreNotPackaged() throws {
    let installer = try Installer(in: directory)
    let result = try installer.run("package", ["--from", installer.programs])
    #expect(result.end == .exit(1))
    #expect(result.errors.contains("restorationd needs Swift's libraries, which Debian does not have"))
    #expect(!Files.list(directory.path).contains { $0.hasSuffix(".deb") })
  }

  @Test(.enabled(if: Products.isOptimised, Packages.requirement)) func eachPackageIsMade() throws {
    #expect(try Packages.all.get().files.keys.sorted() == Packages.names)
  }

  @Test(
    .scratch,
    .enabled(if: Products.isOptimised && Environment.isLong, "makes the packages once more, in the long form")
  )
  func packagesAreTheSameByteForByte() throws {
    let again = try Packages(in: directory)
    for name in try Packages.all.get().files.keys.sorted() {
      #expect(try Files.read(Packages.file(name)) == Files.read(#require(again.files[name])), "\(name)")
    }
  }

  @Test(.scratch, .enabled(if: Products.isOptimised, Packages.requirement))
  func lintianFindsNothing() throws {
    // What is not compressed is all that a package of these tests lacks.
    let suppressed = "uses-no-compression-for-control-tarball,uses-no-compression-for-data-tarball"
    let root = geteuid() == 0 ? ["--allow-root"] : []
    let command = ["lintian", "--fail-on", "error,warning", "--suppress-tags", suppressed] + root
    let result = try ChildProcess.run(command + Packages.names.map(Packages.file), Deadline(.seconds(120)))
    #expect(result.end == .exit(0) && result.output == "", "\(result.output)\(result.errors)")
  }

  @Test(.scratch, .enabled(if: Products.isOptimised, Packages.requirement))
  func aPackageInstallsItsFilesEnablesTheSocketAndIsPurged() throws {
    let package = try Packages.file("restorationd")
    try Self.expectContents(of: package)
    let root = try directory.makeDirectory("root")
    try Packages.run(["mkdir", "-p", "\(root)/var/lib/dpkg"])
    // Who is not root is root in a namespace of their own.
    let asRoot = geteuid() == 0 ? [] : ["unshare", "--map-root-user"]
    let force = "--force-not-root,script-chrootless,depends"
    let dpkg = asRoot + ["dpkg", "--root=\(root)", force, "--log=\(directory.file("log"))"]
    let enabled = [
      "graphical-session.target.wants/restoration-login.service", "sockets.target.wants/restorationd.socket",
    ]
    let users = "\(root)/etc/systemd/user"
    try Packages.run(dpkg + ["--install", package])
    for program in ["restorationd", "restorationctl"] {
      #expect(try ChildProcess.run(["\(root)/usr/bin/\(program)", "--version"]).end == .exit(0))
    }
    #expect(Files.tree(users) == enabled)

    // Units that an administrator has disabled stay disabled.
    Files.remove("\(users)/\(enabled[1])")
    try Packages.run(dpkg + ["--install", package])
    #expect(Files.tree(users) == [enabled[0]])

    try Packages.run(dpkg + ["--purge", "restorationd"])
    #expect(Files.tree(root).filter { !$0.hasPrefix("var/lib/dpkg/") } == [])
  }

  private static func expectContents(of package: String) throws {
    let version = try ChildProcess.run([Products.broker, "--version"]).output.filter { $0 != "\n" }
    #expect(package.contains("/restorationd_\(version)_"))
    let depends = try Packages.run(["dpkg-deb", "-f", package, "Depends"])
    for library in ["libc6", "libjansson4", "libsqlite3-0", "libsystemd0"] {
      #expect(depends.contains("\(library) (>= "), "\(depends)")
    }
    let files = try Packages.run(["dpkg-deb", "-c", package]).split(separator: "\n")
    #expect(files.allSatisfy { $0.contains(" root/root ") })
    let names = files.compactMap { $0.split(separator: " ").last?.dropFirst() }.filter { !$0.hasSuffix("/") }
    let expected = [
      "bin/restorationctl", "bin/restorationd", "lib/systemd/catalog/restorationd.catalog",
      "lib/systemd/user/restoration-app@.service",
      "lib/systemd/user/restoration-login.service", "lib/systemd/user/restoration-metrics.service",
      "lib/systemd/user/restoration-metrics.timer", "lib/systemd/user/restoration-run-graphical@.service",
      "lib/systemd/user/restoration-run@.service", "lib/systemd/user/restorationd-forget-unused.service",
      "lib/systemd/user/restorationd-forget-unused.timer", "lib/systemd/user/restorationd.service",
      "lib/systemd/user/restorationd.socket", "share/bash-completion/completions/restorationctl",
      "share/bash-completion/completions/restorationd", "share/doc/restorationd/README.md",
      "share/doc/restorationd/changelog.gz", "share/doc/restorationd/copyright",
      "share/fish/vendor_completions.d/restorationctl.fish",
      "share/fish/vendor_completions.d/restorationd.fish",
      "share/lintian/overrides/restorationd", "share/man/man1/restorationctl.1.gz",
      "share/man/man1/restorationd.1.gz", "share/zsh/vendor-completions/_restorationctl",
      "share/zsh/vendor-completions/_restorationd",
    ]
    #expect(names.sorted() == expected.map { "/usr/\($0)" })
  }

  @Test(.scratch, .enabled(if: Products.isOptimised, Packages.requirement))
  func theGatewayIsAPackageOfItsOwnWhichEnablesNothing() throws {
    let root = try Packages.unpack("restoration-gateway", in: directory)
    #expect(try ChildProcess.run(["\(root)/usr/bin/restoration-gateway", "--version"]).end == .exit(0))
    let files = Files.tree(root).filter { !$0.hasPrefix("usr/share/doc/") }
      .map { String($0.split(separator: "/").last ?? "") }
    // Its settings for systemd-sysusers and for systemd-tmpfiles have the same name.
    let endings = ["", ".8.gz", ".conf", ".conf", ".service", ".socket"]
    #expect(files.sorted() == endings.map { "restoration-gateway\($0)" })
    let package = try Packages.file("restoration-gateway")
    let script = try Packages.run(["dpkg-deb", "-I", package, "postinst"])
    // Its units are enabled again if the administrator has enabled them. Those that run are restarted by an upgrade, and
    // not stopped before it: no script would start them again.
    #expect(script.contains("systemd-sysusers") && script.contains("debian-installed 'restoration-gateway.socket'"))
    #expect(script.matches(of: /deb-systemd-invoke ([a-z-]+)/).map(\.output.1) == ["try-restart"], "\(script)")
    #expect(try !Packages.run(["dpkg-deb", "-I", package]).contains(" preinst "))
  }

  /// The page, the header and the library have the same functions.
  @Test(.scratch, .enabled(if: Products.isOptimised, Packages.requirement))
  func theLibraryShowsTheFunctionsOfItsHeader() throws {
    let root = try Packages.unpack("librestoration1", "librestoration-dev", in: directory)
    let library = "\(try Packages.libraries(of: root))/librestoration.so"
    #expect(try Packages.run(["readelf", "--dynamic", library]).contains("Library soname: [librestoration.so.1]"))
    let symbols = try Packages.run(["nm", "--dynamic", "--defined-only", library])
      .matches(of: /\sT (\w+)@@LIBRESTORATION_1\n/)
    let header = try Files.text("\(root)/usr/include/restoration.h")
    let functions = Set(header.matches(of: /(?m)^[\w ]+[ *](restoration_\w+)\(/).map { String($0.1) })
      .subtracting(["restoration_answer", "restoration_handler"])
    #expect(functions.count > 40)
    #expect(Set(symbols.map { String($0.1) }) == functions)
    let page = try Files.text("\(Products.repository)/systemd/man/restoration.3")
    #expect(Set(page.matches(of: /(?m)^\.Fn (restoration_\w+) "/).map { String($0.1) }) == functions)
  }

  @Test(
    .broker,
    .enabled(if: Products.isOptimised, Packages.requirement),
    arguments: ["-lrestoration", "-l:librestoration.a"]
  )
  func aProgramInCIsCompiledWithTheDevelopmentPackage(_ library: String) throws {
    let root = try Packages.unpack("librestoration1", "librestoration-dev", in: broker.directory)
    let libraries = try Packages.libraries(of: root)
    // As if the root were that of the system.
    try Packages.run(["sed", "-i", "s|^prefix=/usr$|prefix=\(root)/usr|", "\(libraries)/pkgconfig/restoration.pc"])
    let flags = try ChildProcess.run(
      ["pkg-config", "--cflags", "--libs", "restoration"],
      environment: ["PKG_CONFIG_PATH": "\(libraries)/pkgconfig"]
    )
    #expect(flags.end == .exit(0), "\(flags.errors)")
    let words = flags.output.split(whereSeparator: \.isWhitespace).map { $0 == "-lrestoration" ? library : String($0) }
    let program = broker.directory.file("note")
    try Packages.run(["cc", "-std=c11", "-o", program, "\(Products.repository)/Protocol/examples/c/note.c"] + words)
    for line in ["new", "restored: hello"] {
      let process = try ChildProcess(
        [program, "Note"],
        environment: ["RESTORATIOND_SOCKET": broker.socket, "LD_LIBRARY_PATH": libraries]
      )
      #expect(try process.output?.next() == line)
      try process.write("hello\nquit\n")
      #expect(try process.waitForEnd() == .exit(0))
    }
  }

  @Test(.scratch, .enabled(if: Products.isOptimised, Packages.requirement))
  func theLibraryForGTKIsFoundByItsNamespaceAndByPkgConfig() throws {
    let names = ["librestoration-gtk1", "gir1.2-restorationgtk-1", "librestoration-gtk-dev"]
    let root = try directory.makeDirectory("root")
    for name in names { try Packages.run(["dpkg-deb", "-x", Packages.file(name), root]) }
    let libraries = try Packages.libraries(of: root)
    let program = """
      import gi
      gi.require_version("RestorationGtk", "1")
      from gi.repository import RestorationGtk
      print(RestorationGtk.Application.__gtype__.name)
      """
    let result = try ChildProcess.run(
      ["/usr/bin/python3", "-c", program],
      environment: ["LD_LIBRARY_PATH": libraries, "GI_TYPELIB_PATH": "\(libraries)/girepository-1.0"]
    )
    #expect(result.output == "RestorationGtkApplication\n", "\(result.errors)")
    let found = try ChildProcess.run(
      ["pkg-config", "--libs", "restoration-gtk"],
      environment: ["PKG_CONFIG_PATH": "\(libraries)/pkgconfig"]
    )
    #expect(found.output.contains("-lrestoration-gtk") && found.output.contains("-lgtk-4"), "\(found.errors)")
    let shown = try Packages.run(["readelf", "--dynamic", "\(libraries)/librestoration-gtk.so"])
    #expect(shown.contains("Library soname: [librestoration-gtk.so.1]"))
  }

  @Test(.scratch, .enabled(if: Products.isOptimised, Packages.requirement))
  func pythonFindsWhatPipWouldHaveInstalled() throws {
    let root = try Packages.unpack("python3-restorationd", in: directory)
    let program = """
      import importlib.metadata, restorationd, restorationd.loops
      assert restorationd.__file__.startswith("\(root)/")
      found = importlib.metadata.distribution("restorationd")
      print(found.version, [entry.value for entry in found.entry_points if entry.group == "pytest11"])
      """
    let result = try ChildProcess.run(
      ["python3", "-B", "-c", program],
      environment: ["PYTHONPATH": "\(root)/usr/lib/python3/dist-packages"]
    )
    #expect(result.end == .exit(0), "\(result.errors)")
    let version = try Packages.run(["dpkg-deb", "-f", Packages.file("python3-restorationd"), "Version"])
    #expect(result.output == "\(version.filter { $0 != "\n" }) ['restorationd.testing']\n")
  }

  @Test(.scratch, .enabled(if: Products.isOptimised, Packages.requirement))
  func theRestorersOfATerminalAreInAPackage() throws {
    let root = try Packages.unpack("restoration-terminal", in: directory)
    let place = "\(root)/usr/share/restorationd/restorers"
    let programs = ["bash", "zsh", "fish", "tmux", "vim", "neovim", "emacs"]
    let words = ["terminal", "install"] + programs + ["--dry-run", "--from", place]
    let home = try directory.makeDirectory("home")
    let result = try ChildProcess.run([Products.control] + words, environment: ["HOME": home])
    #expect(result.end == .exit(0) && result.output.contains("\(place)/terminal/tmux.py"), "\(result.errors)")
  }

  @Test(
    .scratch,
    .enabled(if: Products.isOptimised, Packages.requirement),
    .enabled(if: Editor.areInstalled, Comment(rawValue: Editor.requirement))
  )
  func vimAndNeovimLoadTheirPlugins() throws {
    let root = try Packages.unpack("vim-restorationd", in: directory)
    let vim = "set nocompatible packpath=\(root)/usr/share/vim/vimfiles"
    let command = "exists(':RestorationStatus'), execute('RestorationStatus')"
    let loaded = "call writefile([\(command)], '\(directory.file("vim"))')"
    let settings = try directory.write("\(vim)\nautocmd VimEnter * \(loaded) | qa!\n", to: "vimrc")
    let home = ["HOME": directory.path, "XDG_RUNTIME_DIR": directory.path, "TERM": "dumb"]
    let vimCommand = ["vim", "-u", settings, "-i", "NONE", "-n", "--not-a-term"]
    #expect(try ChildProcess.run(vimCommand, environment: home).end == .exit(0))
    #expect(try Files.text(directory.file("vim")).hasPrefix("2\n"))

    let data = home.merging(["XDG_DATA_DIRS": "\(root)/usr/share:/usr/share"]) { $1 }
    let write = "call writefile([exists(':RestorationStatus')], '\(directory.file("nvim"))')"
    let neovimCommand = ["nvim", "--headless", "-n", "-c", write, "-c", "RestorationStatus", "-c", "qa!"]
    #expect(try ChildProcess.run(neovimCommand, environment: data).end == .exit(0))
    #expect(try Files.text(directory.file("nvim")) == "2\n")
  }

  /// What an administrator does, in a root that has nothing but Debian's essential packages and apt.
  @Test(
    .scratch,
    .enabled(if: Products.isOptimised && Environment.isLong, "makes a Debian root, in the long form"),
    .enabled(if: Packages.canMakeDebian, "needs mmdebstrap and a mirror of Debian")
  )
  func aBareDebianTakesAllPackagesAndGivesThemBack() throws {
    let packages = try Packages.names.map(Packages.file)
    // As if of an earlier version: no file has moved to another package since.
    let old = directory.file("old")
    try Packages.run(["dpkg-deb", "-R", try Packages.file("restorationd"), old])
    try Packages.run(["sed", "-i", "s/^Version: .*/Version: 0.0.1/", "\(old)/DEBIAN/control"])
    try Packages.run(["dpkg-deb", "--root-owner-group", "--build", old, "\(old).deb"])
    let copied = (packages + ["\(old).deb"]).map { "'\($0)'" }.joined(separator: " ")
    let names = Packages.names.joined(separator: " ")
    let script = """
      set -eux; mkdir "$1/p"; cp \(copied) "$1/p"
      inside() { chroot "$1" env DEBIAN_FRONTEND=noninteractive sh -euxc "$2"; }
      inside "$1" 'apt-get install -y --no-install-recommends /p/old.deb; ls /etc/systemd/user/sockets.target.wants'
      inside "$1" 'rm /p/old.deb; apt-get install -y --no-install-recommends /p/*.deb python3-minimal'
      inside "$1" 'test -z "$(dpkg --audit)"; restorationctl --version; python3 -c "import restorationd"; ldconfig -p | grep restoration'
      inside "$1" 'apt-get purge -y \(names); ! find /etc /usr /var/lib/systemd -name "*restoration*" | grep .'
      """
    let hook = try directory.write(script, to: "hook")
    let made = try ChildProcess.run(
      ["mmdebstrap", "--variant=apt", "--customize-hook=sh '\(hook)' \"$1\"", "bookworm", "/dev/null"],
      Deadline(.seconds(900))
    )
    #expect(made.end == .exit(0), "\(made.output.suffix(2_000))\(made.errors.suffix(4_000))")
  }
}
