// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import TestSupport
internal import Testing

/// `systemd/install.sh` installs files, and `systemd/uninstall.sh` removes them.
@Suite struct InstallTests {
  private static let units = [
    "restoration-app@.service", "restoration-login.service", "restoration-metrics.service", "restoration-metrics.timer",
    "restoration-run-graphical@.service", "restoration-run@.service", "restorationd-forget-unused.service",
    "restorationd-forget-unused.timer", "restorationd.service", "restorationd.socket",
  ]

  @Test(.scratch) func installedProgramsRunAndTheUnitsNameThem() throws {
    let installer = try Installer(in: directory)
    let result = try installer.install()
    #expect(result.end == .exit(0), "\(result.errors)")
    #expect(result.output.contains("Installed restorationd "))
    #expect(result.output.contains("systemctl --user enable --now restorationd.socket"))
    for program in ["restorationd", "restorationctl"] {
      let file = "\(installer.prefix)/bin/\(program)"
      #expect(Files.mode(file) == 0o755)
      #expect(try ChildProcess.run([file, "--version"]).end == .exit(0))
      #expect(try installer.text("share/man/man1/\(program).1").contains(".Nm \(program)"))
      let completion = "\(installer.prefix)/share/bash-completion/completions/\(program)"
      let loaded = try ChildProcess.run(["bash", "-c", "source \(completion) && complete -p \(program)"])
      #expect(loaded.output.hasSuffix(" \(program)\n"), "\(loaded.errors)")
      #expect(try installer.text("share/zsh/site-functions/_\(program)").hasPrefix("#compdef \(program)\n"))
      let fish = try installer.text("share/fish/vendor_completions.d/\(program).fish")
      #expect(fish.contains("complete -c \(program) ") || fish.contains("complete -c '\(program)' "))
    }
    let restorers = "\(installer.prefix)/share/restorationd/restorers"
    let tool = ["\(installer.prefix)/bin/restorationctl", "terminal", "install", "--dry-run"]
    let shown = try ChildProcess.run(
      tool + ["bash", "zsh", "fish", "tmux", "vim", "neovim", "emacs"],
      environment: ["HOME": directory.path, "XDG_CONFIG_HOME": nil, "XDG_DATA_HOME": nil, "ZDOTDIR": nil]
    )
    #expect(shown.end == .exit(0), "\(shown.errors)")
    let shells = ["bash", "zsh", "fish"].map { "terminal/shell.\($0)'" }
    for place in shells + ["terminal/tmux.py'", "vim.", "neovim.", "emacs\""] {
      #expect(shown.output.contains("\(restorers)/\(place)"), "\(shown.output)")
    }
    #expect(Files.mode("\(restorers)/terminal/tmux.py") == 0o755)
    #expect(Files.list("\(installer.prefix)/share/systemd/user") == Self.units)
    let service = try installer.text("share/systemd/user/restorationd.service")
    #expect(service.contains("\nExecStart=\(installer.prefix)/bin/restorationd\n"))
    for unit in Self.units { #expect(try !installer.text("share/systemd/user/\(unit)").contains("/usr/bin/")) }
  }

  @Test(.scratch) func librariesOfAReleaseAreInstalledBesideItsProgramsAndRemovedWithThem() throws {
    let installer = try Installer(in: directory)
    for folder in ["lib", "lib/restorationd"] { _ = try directory.makeDirectory(folder) }
    try directory.write("jansson", to: "lib/restorationd/libjansson.so.4")
    #expect(try installer.install().end == .exit(0))
    #expect(try installer.text("lib/restorationd/libjansson.so.4") == "jansson")
    #expect(try installer.uninstall().end == .exit(0))
    #expect(!Files.exists("\(installer.prefix)/lib"))
  }

  @Test(.scratch) func installingAgainChangesNothingAndSaysSo() throws {
    let installer = try Installer(in: directory)
    #expect(try installer.install().end == .exit(0))
    let before = try Installer.files(below: installer.prefix)
    let result = try installer.install()
    #expect(result.end == .exit(0), "\(result.errors)")
    #expect(result.output.contains(" is installed in \(installer.prefix) already; no file has changed.\n"))
    #expect(try Installer.files(below: installer.prefix) == before)
  }

  @Test(.scratch) func anUpgradeReplacesWhatIsDifferentAndRemovesWhatIsNoLongerPartOfIt() throws {
    let installer = try Installer(in: directory)
    #expect(try installer.install().end == .exit(0))
    let broker = "\(installer.prefix)/bin/restorationd"
    let list = "\(installer.prefix)/share/restorationd/installed"
    let good = try Files.read(broker)
    // It runs, so it cannot be written; an upgrade puts another file in its place.
    let socket = directory.file("broker.sock")
    let running = try ChildProcess([broker, "--socket", socket, "--archives", directory.file("archives")])
    try Wait.until("the broker listens") { Files.exists(socket) }
    try Files.rename(broker, to: "\(broker).old")
    try Files.write(good + [0], to: broker)
    chmod(broker, 0o755)
    try Files.write(Array("an earlier one".utf8), to: "\(installer.prefix)/bin/restoration-old")
    try Files.write(Array("bin/restoration-old\n".utf8) + (try Files.read(list)), to: list)

    let result = try installer.install()
    #expect(result.end == .exit(0), "\(result.errors)")
    #expect(result.output.contains("\n  bin/restorationd\n"))
    #expect(result.output.contains("\n  bin/restoration-old is gone\n"))
    #expect(!result.output.contains("\n  bin/restorationctl\n"))
    #expect(try Files.read(broker) == good)
    #expect(!Files.exists("\(installer.prefix)/bin/restoration-old"))
    #expect(running.isRunning)
    try running.kill()
  }

  @Test(.scratch) func uninstallingRemovesWhatWasInstalledAndNothingElse() throws {
    let installer = try Installer(in: directory)
    // Files of other packages, and the user's archives.
    let others = ["prefix/bin", "prefix/share/man/man1", "home/.local/state/restorationd"]
    for path in others { _ = try ChildProcess.run(["mkdir", "-p", directory.file(path)]) }
    for path in others { try directory.write("theirs", to: "\(path)/org.example.Notes.sqlite") }
    func everything() throws -> [String] {
      try ChildProcess.run(["find", directory.path, "-printf", "%P %y %m\n"]).output.split(separator: "\n")
        .map(String.init).sorted()
    }
    let before = try everything()
    #expect(try installer.install().end == .exit(0))
    #expect(try installer.install().end == .exit(0))
    #expect(try everything() != before)
    let result = try installer.uninstall()
    #expect(result.end == .exit(0), "\(result.errors)")
    #expect(result.output.contains("Archives are kept"))
    #expect(result.output.contains("/.local/state/restorationd"))
    #expect(try everything() == before)

    let again = try installer.uninstall()
    #expect(again.end == .exit(1))
    #expect(again.errors.contains("uninstall.sh: nothing is installed in \(installer.prefix) "))
  }

  @Test(.scratch) func aPrefixThatWasMadeIsRemovedAgain() throws {
    let installer = try Installer(in: directory, prefix: "some/where")
    #expect(try installer.install().end == .exit(0))
    #expect(try installer.uninstall().end == .exit(0))
    #expect(!Files.exists(installer.prefix))
  }

  @Test(.scratch) func aListThatNamesWhatIsElsewhereIsNotFollowed() throws {
    let installer = try Installer(in: directory)
    #expect(try installer.install().end == .exit(0))
    let victim = try directory.write("theirs", to: "victim")
    let list = "\(installer.prefix)/share/restorationd/installed"
    let good = try Files.read(list)
    for line in ["../victim", "bin/../../victim", victim, ".."] {
      try Files.write(good + Array("\(line)\n".utf8), to: list)
      let result = try installer.uninstall()
      #expect(result.end == .exit(1))
      #expect(result.errors.contains(" names \(line), which install.sh has not written"), "\(result.errors)")
      #expect(Files.exists(victim) && Files.exists("\(installer.prefix)/bin/restorationd"))
    }
  }

  @Test(.scratch) func aDirectoryInFrontOfThePathsIsNotNamedInTheFiles() throws {
    let installer = try Installer(in: directory)
    let root = directory.file("root")
    let arguments = ["--prefix", "/usr", "--destdir", root, "--from", installer.programs]
    #expect(try installer.run("install", arguments).end == .exit(0))
    let service = try Files.text("\(root)/usr/lib/systemd/user/restorationd.service")
    #expect(service.contains("\nExecStart=/usr/bin/restorationd\n"))
    #expect(Files.exists("\(root)/usr/bin/restorationctl"))
    #expect(try installer.run("uninstall", ["--prefix=/usr", "--destdir=\(root)"]).end == .exit(0))
    #expect(!Files.exists("\(root)/usr"))
  }

  @Test(
    .scratch,
    arguments: [
      (["--prefx", "/tmp"], "there is no option --prefx; see --help"),
      (["extra"], "there is no option extra; see --help"),
      (["--prefix"], "--prefix needs a directory"),
      (["--prefix", ""], "--prefix needs a directory"),
      (["--prefix", "/tmp/a\"b"], "--prefix: the name has quotes, "),
      (["--prefix", "/etc/passwd/x", "--from", "PROGRAMS"], "/etc/passwd is not a directory"),
      (["--prefix", "PREFIX", "--from", "/nowhere"], "--from: /nowhere is not a directory"),
      (["--prefix", "PREFIX", "--from", "EMPTY"], "has no program restorationd"),
      (["--prefix", "PREFIX", "--from", "BROKEN"], "/restorationd does not run here"),
    ]
  ) func nonsenseIsRefusedWithAMessage(_ arguments: [String], _ message: String) throws {
    let installer = try Installer(in: directory)
    let empty = try directory.makeDirectory("empty")
    let broken = try directory.makeDirectory("broken")
    let program = try directory.write("#!/bin/sh\nexit 7\n", to: "broken/restorationd")
    chmod(program, 0o755)
    let names = ["PREFIX": installer.prefix, "PROGRAMS": installer.programs, "EMPTY": empty, "BROKEN": broken]
    let result = try installer.run("install", arguments.map { names[$0] ?? $0 })
    #expect(result.end == .exit(1))
    #expect(result.output.isEmpty)
    #expect(result.errors.hasPrefix("install.sh: ") && result.errors.contains(message), "\(result.errors)")
    #expect(!Files.exists(installer.prefix))
  }

  @Test(.scratch) func whatWasCopiedBeforeAFailureCanBeUninstalled() throws {
    let installer = try Installer(in: directory)
    // A file that nobody can create, not even root.
    _ = try ChildProcess.run(["mkdir", "-p", "\(installer.prefix)/share/man/man1/restorationd.1.new/full"])
    let result = try installer.install()
    #expect(result.end == .exit(1))
    #expect(result.errors.contains("install.sh: not all was installed; uninstall.sh removes what was\n"))
    #expect(Files.exists("\(installer.prefix)/bin/restorationd"))
    #expect(try installer.uninstall().end == .exit(0))
    #expect(!Files.exists("\(installer.prefix)/bin"))
  }

  /// As root the file would be root's; another user needs a place that is not theirs.
  @Test(.scratch) func nobodyInstallsForSomebodyElse() throws {
    let installer = try Installer(in: directory)
    let isRoot = geteuid() == 0
    let arguments = isRoot ? [] : ["--prefix", "/usr", "--no-enable"]
    let result = try installer.run("install", arguments + ["--from", installer.programs])
    #expect(result.end == .exit(1))
    let message = isRoot ? "root is asked to install what is for one user" : "/usr is not writable for "
    #expect(result.errors.contains(message), "\(result.errors)")
    #expect(Files.list(directory.file("home")).isEmpty)
  }

  @Test(.scratch, arguments: ["a\nb", "a$b", "a\"b"])
  func aHomeThatUnitsCannotNameIsRefused(_ name: String) throws {
    let installer = try Installer(in: directory)
    let home = try directory.makeDirectory(name)
    let result = try installer.run("install", ["--from", installer.programs, "--no-enable"], home: home)
    #expect(result.end == .exit(1))
    #expect(result.errors.contains("HOME: the name has quotes"), "\(result.errors)")
    #expect(Files.list(home).isEmpty)
  }

  /// Otherwise they would need Swift on the target machine.
  @Test(.passesTurnstile, .enabled(if: Products.isOptimised, "is about the release programs of Tests/run.sh"))
  func releaseProgramsNeedNoSwift() throws {
    for program in [Products.broker, Products.control] {
      let result = try ChildProcess.run(["ldd", program])
      #expect(result.end == .exit(0))
      #expect(result.output.contains("libc.so.6") && !result.output.contains("libswift"), "\(result.output)")
    }
  }
}
