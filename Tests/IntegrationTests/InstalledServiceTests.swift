// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The service after `systemd/install.sh`.
@Suite(
  .userManager(installing: false),
  .enabled(if: UserManager.isUsable, Comment(rawValue: UserManager.requirement)),
  .timeLimit(.minutes(10))
)
struct InstalledServiceTests {
  /// A user, logged in, with the programs and scripts but nothing installed.
  private struct Machine {
    let manager: UserManager
    let scripts: String
    let programs: String

    init(_ manager: UserManager) throws {
      self.manager = manager
      scripts = try manager.added("systemd")
      _ = try manager.added("Protocol/examples")
      programs = "\(manager.home)/programs"
      for (program, name) in [(Products.broker, "restorationd"), (Products.control, "restorationctl")] {
        try manager.add(program, as: "\(programs)/\(name)")
      }
    }

    func run(_ script: String, _ arguments: String...) throws -> Installer.Result {
      let environment = Products.isOptimised ? [:] : ["LD_LIBRARY_PATH": try manager.addSwift()]
      return try manager.run(["\(scripts)/\(script).sh"] + arguments, environment: environment, Deadline(.seconds(120)))
    }

    func install(_ arguments: String...) throws -> String {
      let prefix = arguments.isEmpty ? [] : ["--prefix"] + arguments
      let environment = Products.isOptimised ? [:] : ["LD_LIBRARY_PATH": try manager.addSwift()]
      let command = ["\(scripts)/install.sh", "--from", programs] + prefix
      let result = try manager.run(command, environment: environment, Deadline(.seconds(120)))
      #expect(result.end == .exit(0), "\(result.output)\(result.errors)")
      return result.output
    }

    /// New files in the user's home.
    func files() throws -> [String] {
      let found = try manager.output("find", manager.home, "-type", "f,l", "!", "-path", "*/programs/*")
      return found.split(separator: "\n").map(String.init).filter { !$0.contains("/.local/state/") }.sorted()
    }
  }

  @Test func theSocketListensAndTheBrokerAnswersAfterInstalling() throws {
    let machine = try Machine(manager)
    let before = try machine.files()
    let first = try machine.install()
    #expect(first.contains("\nStarted restorationd.socket: "), "\(first)")
    #expect(first.contains("\nThe broker answers. "))
    let enabled = try manager.systemctl("is-enabled", UserManager.socketUnit, "restoration-login.service")
    #expect(enabled == "enabled\nenabled\n")
    let process = try manager.mainPID
    #expect(process > 0)
    let second = try machine.install()
    #expect(second.hasSuffix(" is installed in \(manager.home)/.local already; no file has changed.\n"), "\(second)")
    #expect(second.split(separator: "\n").count == 1)
    #expect(try manager.mainPID == process)

    let client = try manager.client(.python)
    try client.initialize("org.example.Notes")
    try client.encode("Main", state: ["cursor": 1])
    let result = try machine.run("uninstall")
    #expect(result.end == .exit(0), "\(result.errors)")
    #expect(result.output.hasSuffix("Archives are kept: \(manager.home)/.local/state/restorationd\n"))
    #expect(try machine.files() == before)
    #expect(Files.exists(manager.archive("org.example.Notes")))
    #expect(try manager.property("LoadState") == "not-found")
  }

  @Test func anUpgradeRestartsTheBrokerAndConnectionsSurvive() throws {
    let machine = try Machine(manager)
    _ = try machine.install()
    let client = try manager.client(.python)
    try client.initialize("org.example.Notes")
    try client.encode("Main", state: ["cursor": 1])
    let process = try manager.mainPID
    // A program that differs from the one to be installed.
    let append = #"cp "$0" "$0.x" && printf x >>"$0.x" && mv "$0.x" "$0""#
    try manager.output("sh", "-c", append, manager.broker)
    let said = try machine.install()
    let lines = "\n  bin/restorationd\nRestarted restorationd.service; its clients stay connected.\n"
    #expect(said.contains(lines), "\(said)")
    #expect(try manager.mainPID != process)
    let encoded = try client.encode("Main", state: ["cursor": 2])
    #expect(encoded["durability"] == "disk")
  }

  @Test func aPrefixThatTheManagerDoesNotKnowIsLinked() throws {
    let machine = try Machine(manager)
    let before = try machine.files()
    let prefix = "\(manager.home)/a place of 100%"
    #expect(try machine.install(prefix).contains("\nThe broker answers. "))
    #expect(try manager.property("ExecStart").contains("path=\(prefix)/bin/restorationd ;"))
    #expect(try machine.install(prefix).contains("no file has changed"))
    #expect(try machine.run("uninstall", "--prefix", prefix).end == .exit(0))
    #expect(try machine.files() == before)
  }

  @Test func aUnitThatGoesBeforeTheInstalledOneIsNamed() throws {
    let machine = try Machine(manager)
    let other = "\(manager.units)/restorationd.service"
    try manager.write("[Service]\nExecStart=/bin/false\n", to: other)
    let result = try machine.run("install", "--from", machine.programs)
    #expect(result.end == .exit(1))
    #expect(result.errors.hasPrefix("install.sh: \(other) goes before \(manager.home)/.local/share/systemd/user/"))
    #expect(try machine.files() == [other])
  }

  @Test func aMaskedUnitIsToBeUnmasked() throws {
    let machine = try Machine(manager)
    try manager.systemctl("mask", UserManager.socketUnit)
    let before = try machine.files()
    let result = try machine.run("install", "--from", machine.programs)
    #expect(result.end == .exit(1))
    #expect(result.errors.contains("\n  systemctl --user unmask restorationd.socket, "), "\(result.errors)")
    #expect(try machine.files() == before)
  }

  @Test func aDirectoryThatCannotBeWrittenIsNamedBeforeAnythingIsCopied() throws {
    let machine = try Machine(manager)
    let before = try machine.files()
    try manager.output("mkdir", "-p", "-m", "555", "\(manager.home)/part/share")
    let result = try machine.run("install", "--from", machine.programs, "--prefix", "\(manager.home)/part")
    #expect(result.end == .exit(1))
    #expect(result.errors.hasPrefix("install.sh: \(manager.home)/part/share is not writable for "))
    #expect(try machine.files() == before)
  }

  @Test func removingOneInstallationLeavesTheServiceOfAnotherAlone() throws {
    let machine = try Machine(manager)
    let other = "\(manager.home)/other"
    let copied = try machine.run("install", "--from", machine.programs, "--prefix", other, "--no-enable")
    #expect(copied.end == .exit(0), "\(copied.errors)")
    _ = try machine.install()
    let process = try manager.mainPID
    #expect(process > 0)
    #expect(try machine.run("uninstall", "--prefix", other).end == .exit(0))
    #expect(try manager.mainPID == process)
    #expect(try manager.systemctl("is-enabled", UserManager.socketUnit, "restoration-login.service").count == 16)
  }

  @Test func restartsByHandAreNotRefused() throws {
    _ = try Machine(manager).install()
    for _ in 1...12 { try manager.systemctl("restart", UserManager.service) }
    #expect(try manager.property("ActiveState") == "active")
  }

  @Test(.enabled(if: Environment.isLong, "takes as long as the manager tries; run Tests/run.sh --long"))
  func aBrokerThatEndsAfterEachStartIsGivenUpAndComesBackWithItsSocket() throws {
    _ = try Machine(manager).install()
    try manager.dropIn(UserManager.service, "broken", "[Service]\nExecStart=\nExecStart=/bin/false\n")
    _ = try manager.run(["systemctl", "--user", "restart", UserManager.service])
    try Wait.until("the manager gives up", Deadline(.seconds(60))) {
      try manager.property("ActiveState", of: UserManager.socketUnit) == "failed"
    }
    #expect(try manager.property("Result", of: UserManager.socketUnit) == "service-start-limit-hit")
    try manager.dropIn(UserManager.service, "broken", "")
    try manager.systemctl("reset-failed", UserManager.service, UserManager.socketUnit)
    try manager.systemctl("restart", UserManager.socketUnit)
    try manager.output("restorationctl", "status")
  }

  /// Its connection would wait at the socket, and have the manager start the broker again and again.
  @Test func aClientOfABrokenConfigurationDoesNotUseUpTheStarts() throws {
    _ = try Machine(manager).install()
    try manager.systemctl("stop", UserManager.service)
    let file = "\(manager.home)/.config/restorationd/config.json"
    try manager.write(#"{"bogus": 1}"#, to: file)
    _ = try manager.takeJournal()
    #expect(try manager.run(["restorationctl", "status"]).end != .exit(0))
    try manager.waitUntil("failed")
    let starts = try manager.takeJournal().count { $0["MESSAGE"]?.string?.contains("unknown setting bogus") == true }
    #expect((1...2).contains(starts), "\(starts) starts")
    #expect(try manager.property("ActiveState", of: UserManager.socketUnit) == "active")
    try manager.write("{}", to: file)
    try manager.output("restorationctl", "status")
  }
}
