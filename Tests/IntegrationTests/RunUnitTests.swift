// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// Programs that `restorationctl run` brings back, under a real user manager.
@Suite(
  .userManager,
  .enabled(if: UserManager.isUsable, Comment(rawValue: UserManager.requirement)),
  .timeLimit(.minutes(10))
)
struct RunUnitTests {
  private static let unit = "restoration-run@notes.service"

  /// Notes each start; ends with status 0 also if it is stopped.
  private static let program = """
    import os, signal, sys
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda *_: sys.exit(0))
    with open(sys.argv[1], "a") as journal:
        journal.write(f"{os.getcwd()} {sys.argv[2:]}\\n")
    while True:
        signal.pause()
    """

  private var journal: String { "\(manager.home)/starts" }
  private var file: String { "\(manager.home)/.config/restorationd/run/notes" }

  private func starts() -> [String] {
    ((try? Files.text(manager.outside(journal))) ?? "").split(separator: "\n").map(String.init)
  }

  private func waitForStarts(_ count: Int) throws {
    try Wait.until("it has started \(count) times") { starts().count >= count }
    #expect(starts().count == count)
  }

  /// Runs the program under the ID notes, in `/usr`.
  private func run(_ more: [String] = [], environment: [String: String] = [:]) throws {
    try manager.write(Self.program, to: "\(manager.home)/program.py")
    let program = ["--", "python3", "\(manager.home)/program.py", journal, "a b"]
    let tool = ["env", "-C", "/usr", "restorationctl", "run", "--id", "notes"]
    let result = try manager.run(tool + more + program, environment: environment)
    #expect(result.end == .exit(0), "\(result.output)\(result.errors)")
  }

  private func record(_ id: String = "notes") throws -> String {
    try manager.run(["restorationctl", "get", "org.restorationd.run", id]).output
  }

  @Test func aProgramComesBackUntilItIsDone() throws {
    try run()
    try waitForStarts(1)
    #expect(Files.mode(manager.outside(file)) == 0o600)
    #expect(try record() == #"{"directory":"/usr"}"# + "\n")
    try manager.systemctl("kill", "--signal=KILL", Self.unit)
    try waitForStarts(2)
    try Wait.until("its end is kept") { try record().contains("SIGKILL") }
    // It ends with status 0, but because it is told to.
    try manager.logout()
    #expect(Files.exists(manager.outside(file)))
    try manager.login()
    try waitForStarts(3)
    #expect(Set(starts()) == ["/usr ['a b']"])
    try manager.systemctl("kill", "--signal=USR1", Self.unit)
    try Wait.until("its end is kept") { try record() == #"{"directory":"/usr","exitStatus":0}"# + "\n" }
    try manager.waitUntil("inactive", Self.unit)
    #expect(!Files.exists(manager.outside(file)))
    #expect(try manager.run(["systemctl", "--user", "is-enabled", Self.unit]).output == "disabled\n")
    // Nothing is left to run, and that is no failure.
    try manager.systemctl("start", Self.unit)
    #expect(try manager.property("ActiveState", of: Self.unit) == "inactive")
    try waitForStarts(3)
  }

  /// Only the shell's PATH has the interpreter.
  @Test func aScriptWhoseInterpreterTheShellFindsRunsAndComesBack() throws {
    let tools = "\(manager.home)/tools"
    let scripts = [
      "mylang": "#!/bin/sh\necho >>~/starts started\nexec sleep 1000\n", "app": "#!/usr/bin/env mylang\n",
      "done": "#!/bin/sh\n", "broken": "#!/usr/bin/env nolang\n",
    ]
    for (name, text) in scripts {
      try manager.write(text, to: "\(tools)/\(name)")
      try manager.output("chmod", "+x", "\(tools)/\(name)")
    }
    func run(_ program: String) throws -> (end: ChildProcess.End, output: String, errors: String) {
      let path = "\(tools):\(manager.home)/.local/bin:/usr/bin:/bin"
      return try manager.run(["restorationctl", "run", "--id", "notes", "--", program], environment: ["PATH": path])
    }
    let ran = try run("app")
    #expect(ran.end == .exit(0) && ran.output.hasPrefix("notes runs, and is restarted"), "\(ran.output)\(ran.errors)")
    try waitForStarts(1)
    try manager.systemctl("kill", "--signal=KILL", Self.unit)
    try waitForStarts(2)
    try manager.output("restorationctl", "run", "--forget", "notes")
    let broken = try run("broken")
    #expect(broken.end == .exit(1), "\(broken.output)")
    #expect(broken.errors.contains("before it had lived for a second"), "\(broken.errors)")
    try manager.output("restorationctl", "run", "--forget", "notes")
    let done = try run("done")
    #expect(done.end == .exit(0) && done.output.contains("it is done"), "\(done.output)\(done.errors)")
  }

  @Test func everythingIsKilledAndTheProgramComesBack() throws {
    try run()
    try waitForStarts(1)
    let client = try manager.client(.python)
    try client.initialize("org.example.Notes")
    try manager.output("systemctl", "--user", "kill", "--signal=KILL", Self.unit, UserManager.service)
    try waitForStarts(2)
  }

  @Test func aStoppedProgramComesBackAtTheNextLoginAndARestartedOneAtOnce() throws {
    try run()
    try waitForStarts(1)
    try manager.systemctl("restart", Self.unit)
    try waitForStarts(2)
    try manager.systemctl("stop", Self.unit)
    #expect(Files.exists(manager.outside(file)))
    try manager.logout()
    try manager.login()
    try waitForStarts(3)
    // A signal by which somebody ends it is no crash.
    try manager.systemctl("kill", "--signal=HUP", Self.unit)
    try Wait.until("its end is kept") { try record().contains("SIGHUP") }
    try manager.waitUntil("inactive", Self.unit)
    #expect(try manager.property("NRestarts", of: Self.unit) == "0")
    #expect(Files.exists(manager.outside(file)))
    try run(["--replace"])
    try waitForStarts(4)
  }

  @Test func aProgramThatCannotBeExecutedIsNotTriedAgain() throws {
    try run()
    try waitForStarts(1)
    let gone = #"{"arguments":["/nowhere"],"directory":"/","graphical":false}"#
    try manager.write(gone, to: file)
    try manager.systemctl("kill", "--signal=KILL", Self.unit)
    try manager.waitUntil("failed", Self.unit)
    // The restart after the kill, and none after that.
    #expect(try manager.property("NRestarts", of: Self.unit) == "1")
    let message = "restorationctl: notes ended with status 203 and is started again, at the next login"
    try manager.journal(["MESSAGE": .string(message)])
  }

  /// The socket takes connections, and nobody answers.
  @Test func aBrokerThatHangsHoldsNothingUp() throws {
    let hangs = "[Service]\nType=exec\nExecStart=\nExecStart=/usr/bin/tail -f /dev/null\n"
    try manager.dropIn(UserManager.service, "hangs", hangs)
    try run()
    try waitForStarts(1)
    try manager.systemctl("kill", "--signal=KILL", Self.unit)
    try waitForStarts(2)
    try manager.systemctl("kill", "--signal=USR1", Self.unit)
    try manager.waitUntil("inactive", Self.unit)
    #expect(!Files.exists(manager.outside(file)))
  }

  @Test func nothingThatAnArchiveOrAClientSaysIsRun() throws {
    try run()
    try waitForStarts(1)
    let proof = "\(manager.home)/proof"
    let hostile: JSONValue = [
      "arguments": ["/usr/bin/touch", .string(proof)], "command": .string("touch \(proof)"), "directory": "/tmp",
      "graphical": false, "id": "evil", "exitStatus": 0,
    ]
    let application = "org.restorationd.run"
    let client = try manager.client(.python)
    for id in ["notes", "evil"] { try client.encode(id, state: hostile, of: application) }
    let document = try manager.output("restorationctl", "export", application)
    #expect(document.contains("touch"))
    let imported = try manager.run(["restorationctl", "import", "--force", application, "-"], input: document)
    #expect(imported.end == .exit(0), "\(imported.errors)")
    // A session of the application that owns the paths, and wants units to be started for them.
    let owner = try manager.client(.python)
    try owner.initialize(application, ["storyboard": ["unit": "restoration-run@evil.service"]])
    for id in ["notes", "evil"] { try owner.register(id) }

    try manager.systemctl("kill", "--signal=KILL", Self.unit)
    try waitForStarts(2)
    try manager.logout()
    try manager.login()
    try waitForStarts(3)
    _ = try manager.run(["restorationctl", "restore", application, "--deadline", "2"])
    try manager.systemctl("start", "restoration-run@evil.service")
    #expect(try manager.property("ActiveState", of: "restoration-run@evil.service") == "inactive")
    #expect(Set(starts()) == ["/usr ['a b']"])
    #expect(!Files.exists(manager.outside(proof)))
    #expect(try manager.output("restorationctl", "run", "--list", "--no-legend").split(separator: "\n").count == 1)
  }

  @Test func aProgramThatCrashesAgainAndAgainIsGivenUpWithAMessage() throws {
    let tool = ["restorationctl", "run", "--id", "loop", "--", "sh", "-c", "exit 3"]
    let first = try manager.run(tool)
    #expect(first.end == .exit(1))
    // Where it has been started again when the manager is asked, its status is gone.
    let words = #/restorationctl: loop has (ended with status 3|failed) before it had lived for a second\n.*/#
    #expect(try words.dotMatchesNewlines().wholeMatch(in: first.errors) != nil, "\(first.errors)")
    let unit = "restoration-run@loop.service"
    try manager.waitUntil("failed", unit)
    #expect(try manager.property("NRestarts", of: unit) == "5")
    let messages = try manager.takeJournal().compactMap { $0["MESSAGE"]?.string }
    #expect(messages.count { $0.hasPrefix("restorationctl: loop ended with status 3 and is started again") } == 5)
    // The journal has an entry for each line.
    let hints = [
      "after the fifth time in a minute only at the next login", "See why: journalctl --user -u \(unit)",
      "Start it before: systemctl --user reset-failed \(unit); systemctl --user start \(unit)",
      "Or end it: restorationctl run --forget loop",
    ]
    for hint in hints { #expect(messages.contains { $0.hasSuffix(hint) }, "\(hint)") }
    #expect(try record("loop").contains(#""exitStatus":3"#))
    #expect(Files.exists(manager.outside("\(manager.home)/.config/restorationd/run/loop")))
    // The same command tries again at once.
    #expect(try manager.run(tool).end == .exit(1))
    try Wait.until("it is started again") { try manager.property("ActiveState", of: unit) != "failed" }
  }

  @Test func aForgottenProgramLeavesNothing() throws {
    try run()
    try waitForStarts(1)
    let listed = try JSONCodec.parse(Array(try manager.output("restorationctl", "run", "--list", "-j").utf8))
    let program = try #require(listed["programs"]?.array?.first)
    #expect(program["id"] == "notes" && program["unit"] == .string(Self.unit) && program["state"] == "active")
    #expect(program["directory"] == "/usr" && program["arguments"]?.array?.last == "a b")
    #expect(try manager.output("restorationctl", "run", "--forget", "notes") == "Forgot notes.\n")
    #expect(try manager.property("ActiveState", of: Self.unit) == "inactive")
    #expect(!Files.exists(manager.outside(file)))
    #expect(try record().isEmpty)
    let again = try manager.run(["restorationctl", "run", "--forget", "notes"])
    #expect(again.end == .exit(4) && again.errors.hasPrefix("restorationctl: nothing is run as notes\n"))
  }

  @Test func aProgramOfTheGraphicalSessionEndsAndComesBackWithIt() throws {
    // As a desktop has one.
    let desktop = "[Unit]\nBindsTo=graphical-session.target\nBefore=graphical-session.target\n"
    try manager.write(desktop, to: "\(manager.units)/desktop.target")
    try manager.systemctl("daemon-reload")
    // Before, and without a display, it belongs to the manager.
    try run(environment: ["DISPLAY": ":0"])
    try waitForStarts(1)
    try manager.systemctl("start", "desktop.target")
    try run(["--replace"], environment: ["DISPLAY": ":0"])
    try waitForStarts(2)
    let unit = "restoration-run-graphical@notes.service"
    try manager.waitUntil("inactive", Self.unit)
    #expect(try manager.property("ActiveState", of: unit) == "active")
    try manager.systemctl("stop", "desktop.target")
    try manager.waitUntil("inactive", unit)
    #expect(Files.exists(manager.outside(file)))
    try manager.systemctl("start", "desktop.target")
    try waitForStarts(3)
    #expect(try manager.property("ActiveState", of: unit) == "active")
  }
}
