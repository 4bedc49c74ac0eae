// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// `restorationctl run` without a service manager: a script stands in for systemctl, and notes what it is asked.
@Suite(.scratch, .timeLimit(.minutes(5))) struct RunCommandTests {
  private var home: String { directory.file("home") }
  private var files: String { "\(home)/.config/restorationd/run" }

  private func prepare() throws {
    _ = try directory.makeDirectory("home")
    _ = try directory.makeDirectory("bin")
    // Nothing is active, and every other wish is granted.
    try answer("ActiveState=active")
  }

  /// Has systemctl say this of a unit.
  private func answer(_ state: String) throws {
    let script = """
      #!/bin/sh
      case "$*" in *ExecMainStatus*) printf '\(state)\\n'; exit;; esac
      echo "$*" >>"$HOME/calls"
      case "$*" in *is-active*) exit 3;; esac

      """
    chmod(try directory.write(script, to: "bin/systemctl"), 0o755)
  }

  private func command(_ arguments: [String]) -> [String] { [Products.control, "run"] + arguments }

  private var environment: [String: String?] {
    [
      "HOME": home, "PATH": "\(directory.path)/bin:/usr/bin:/bin", "XDG_RUNTIME_DIR": directory.path,
      "RESTORATIOND_SOCKET": nil, "DISPLAY": nil, "WAYLAND_DISPLAY": nil, "SWIFT_BACKTRACE": "enable=no",
    ]
  }

  private func run(
    _ arguments: String...,
    changes: [String: String?] = [:],
    status: Int32 = 0,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> (output: String, errors: String) {
    let environment = environment.merging(changes) { $1 }
    let result = try ChildProcess.run(command(arguments), environment: environment, directory: directory.path)
    #expect(result.end == .exit(status), "\(result.output)\(result.errors)", sourceLocation: sourceLocation)
    return (result.output, result.errors)
  }

  private func text(_ id: String) throws -> String { try Files.text("\(files)/\(id)") }

  private func content(_ arguments: [String], path: String? = nil) -> String {
    let object: JSONObject = [
      "arguments": .array(arguments.map { .string($0) }), "directory": .string(directory.path), "graphical": false,
      "path": .string(path ?? "\(directory.path)/bin:/usr/bin:/bin"),
    ]
    return JSONValue.object(object).text + "\n"
  }

  private func write(_ text: String, as id: String) throws {
    _ = try run("--list")
    try Files.write(Array(text.utf8), to: "\(files)/\(id)")
  }

  private var calls: [String] {
    ((try? Files.text("\(home)/calls")) ?? "").split(separator: "\n").map(String.init)
  }

  @Test func theFileIsTheUsersAloneAndHoldsTheProgramItsArgumentsAndTheDirectory() throws {
    try prepare()
    let output = try run("--id", "notes", "--", "sh", "a b", "--version", "-j", "--", "$(x)", "ü").output
    #expect(try text("notes") == content(["/usr/bin/sh", "a b", "--version", "-j", "--", "$(x)", "ü"]))
    #expect(Files.mode("\(files)/notes") == 0o600 && Files.mode(files) == 0o700)
    #expect(Files.list(files) == ["notes"])
    let status = "systemctl --user status restoration-run@notes.service"
    #expect(output == "notes runs, and is restarted after a crash and at login. See it: \(status)\n")
    #expect(calls.contains("--user --quiet enable restoration-run@notes.service"))
    #expect(calls.contains("--user --quiet disable restoration-run-graphical@notes.service"))
    #expect(calls.last == "--user --quiet --no-block start restoration-run@notes.service")
  }

  /// They would be something else to a unit, a path, a shell or a command line. The last is equal to K for Swift.
  @Test(arguments: ["a/b", "..", "a b", "a@b", "a.b", "-a", "a\nb", "%i", "$(x)", "é", "\u{212a}", "LONG"])
  func anIDWithOtherSignsIsRefused(_ name: String) throws {
    try prepare()
    let id = name == "LONG" ? String(repeating: "a", count: 65) : name
    for option in ["--id", "--forget", "--become", "--ended"] {
      let errors = try run("\(option)=\(id)", "--", "true", status: 64).errors
      #expect(errors.contains("'\(id)' is no ID"), "\(errors)")
    }
    #expect(calls == [] && !Files.exists(files))
  }

  @Test func whatCannotBeRunIsRefusedBeforeAnythingIsWritten() throws {
    try prepare()
    try directory.write("no program", to: "text")
    for name in ["nowhere", "./nowhere", "/usr/bin", "./text", ""] {
      let errors = try run("--id", "a", "--", name, status: 64).errors
      #expect(errors.contains("'\(name)' is not an executable program"), "\(errors)")
    }
    // PATH may say something else in another directory; and what is not UTF-8 would be something else.
    chmod(try directory.write("#!/bin/sh\n", to: "here"), 0o755)
    _ = try run("--id", "a", "--", "here", changes: ["PATH": ".:/usr/bin:/bin"], status: 64)
    let bytes = ["sh", "-c", #"exec "$@" "$(printf 'a\377')""#, "sh"] + command(["--id", "a", "--", "true"])
    let result = try ChildProcess.run(bytes, environment: environment)
    #expect(result.end == .exit(64) && result.errors.contains("is not UTF-8"), "\(result.errors)")
    for form in ["", "--id a", "--list --forget a", "--list --replace", "--list -- true", "--id a true"] {
      let arguments = form.split(separator: " ").map(String.init)
      #expect(try ChildProcess.run(command(arguments), environment: environment).end == .exit(64), "\(form)")
    }
    #expect(!Files.exists("\(files)/a"))
  }

  @Test func anotherCommandLineIsRefusedUnlessItReplacesTheFirst() throws {
    try prepare()
    _ = try run("--id", "a", "--", "sleep", "1")
    let refused = try run("--id", "a", "--", "sleep", "2", status: 1).errors
    #expect(refused.contains("a runs /usr/bin/sleep 1 in \(directory.path)\n"), "\(refused)")
    #expect(try text("a") == content(["/usr/bin/sleep", "1"]))
    // The same is started if it has ended.
    let before = calls.count
    _ = try run("--id", "a", "--", "sleep", "1")
    #expect(calls.dropFirst(before).last == "--user --quiet --no-block start restoration-run@a.service")
    // Managers that keep count of starts over a reload would refuse another one.
    let reset = "--user --quiet reset-failed restoration-run@a.service restoration-run-graphical@a.service"
    #expect(calls.dropFirst(before).contains(reset))
    _ = try run("--id", "a", "--replace", "--", "sleep", "2")
    #expect(try text("a") == content(["/usr/bin/sleep", "2"]))
    #expect(calls.last == "--user --quiet --no-block restart restoration-run@a.service")
  }

  /// `/bin` is a link to `/usr/bin` on most systems, and the first of PATH on some.
  @Test func theSameProgramMayBeSpelledInAnotherWay() throws {
    try prepare()
    let folder = try directory.makeDirectory("tools")
    #expect(symlink("tools", directory.file("link")) == 0)
    chmod(try directory.write("#!/bin/sh\n", to: "tools/one"), 0o755)
    #expect(symlink("one", "\(folder)/two") == 0)
    let path = "\(folder):\(directory.path)/bin:/usr/bin:/bin"
    _ = try run("--id", "a", "--", "one", "1", changes: ["PATH": path])
    for way in [folder, "./tools", "tools/../tools/", "link"] { _ = try run("--id", "a", "--", "\(way)/one", "1") }
    // PATH is that of the last one.
    #expect(try text("a") == content(["\(folder)/one", "1"]))
    // A program may ask by which name it was started.
    let refused = try run("--id", "a", "--", "tools/two", "1", status: 1).errors
    #expect(refused.contains("a runs \(folder)/one 1 in \(directory.path)\n"), "\(refused)")
  }

  /// The manager's clock is that of this machine, where the year 2262 is in the future.
  @Test(
    arguments: [
      (
        "ActiveState=activating\\nSubState=auto-restart\\nExecMainCode=1\\nExecMainStatus=127",
        "has ended with status 127"
      ),
      ("ActiveState=failed\\nSubState=failed\\nExecMainCode=3\\nExecMainStatus=11", "has ended by signal 11 (Segm"),
      ("ActiveState=active\\nNRestarts=1", "has failed"), ("ActiveState=inactive", "was stopped"),
    ]
  )
  func aProgramThatEndsAtOnceIsToldWithItsStatus(_ state: String, _ how: String) throws {
    try prepare()
    try answer(state + "\\nExecMainStartTimestampMonotonic=9223372036854775807")
    let result = try run("-j", "--id", "a", "--", "true", status: 1)
    #expect(result.errors.hasPrefix("restorationctl: a \(how)"), "\(result.errors)")
    let hints = ["journalctl --user -u restoration-run@a.service", "run --forget a"]
    for hint in hints { #expect(result.errors.contains(hint), "\(result.errors)") }
    #expect(result.output.contains(#""kind":"ended""#))
    // It is started again all the same, unless somebody says otherwise.
    #expect(Files.exists("\(files)/a"))
  }

  @Test func aProgramThatIsDoneAtOnceIsNoFailure() throws {
    try prepare()
    try answer("ActiveState=inactive'; rm \"$HOME\"/.config/restorationd/run/a; printf '")
    let done = try run("--id", "a", "--", "true")
    #expect(done.output == "a has ended with status 0, so it is done and not started again.\n")
  }

  @Test func aManagerThatSaysNothingIsNotAskedAgain() throws {
    try prepare()
    try answer("")
    #expect(try run("--id", "a", "--", "true").output.hasPrefix("a is being started."))
  }

  @Test func aProgramIsForgottenAlsoWithoutABroker() throws {
    try prepare()
    _ = try run("--id", "a", "--", "sleep", "1")
    let forgotten = try run("--forget", "a")
    #expect(forgotten.output == "Forgot a.\n" && !Files.exists("\(files)/a"))
    #expect(forgotten.errors.hasPrefix("restorationctl: the broker's record of a stays: no broker"))
    #expect(forgotten.errors.hasSuffix("\n  To remove it as well, do the same once a broker runs.\n"))
    // What is not known can only be known to a broker.
    _ = try run("--forget", "a", status: 3)
  }

  @Test func ofManyAtOnceOneIsTakenWhole() throws {
    try prepare()
    let processes = try (1...8).map { number in
      try ChildProcess(command(["--id", "a", "--", "/bin/sleep", "\(number)"]), environment: environment)
    }
    let ends = try processes.map { try $0.waitForEnd() }
    #expect(ends.count { $0 == .exit(0) } == 1 && ends.count { $0 == .exit(1) } == 7, "\(ends)")
    let winner = try #require(ends.firstIndex(of: .exit(0))) + 1
    #expect(try text("a").contains(#"["/bin/sleep","\#(winner)"]"#))
    #expect(Files.list(files) == ["a"])
  }

  @Test func whileOneDecidesAnotherWaits() throws {
    try prepare()
    _ = try run("--list")
    let descriptor = open(files, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    defer { close(descriptor) }
    #expect(flock(descriptor, LOCK_EX) == 0)
    let process = try ChildProcess(command(["--id", "a", "--", "true"]), environment: environment)
    try Wait.until("it waits for the lock") {
      // The kernel marks those that wait by an arrow.
      let waiting = try Files.text("/proc/locks").split(separator: "\n").filter { $0.contains("-> FLOCK") }
      return waiting.contains { $0.contains(" \(process.pid) ") }
    }
    #expect(!Files.exists("\(files)/a"))
    #expect(flock(descriptor, LOCK_UN) == 0)
    #expect(try process.waitForEnd() == .exit(0))
    #expect(Files.list(files) == ["a"])
  }

  @Test func whatCannotBeEnabledIsNotKept() throws {
    try prepare()
    _ = try run("--id", "b", "--", "sleep", "1")
    let before = calls.count
    let script = "#!/bin/sh\necho \"$*\" >>\"$HOME/calls\"\ncase \"$*\" in *enable*) exit 1;; esac\n"
    chmod(try directory.write(script, to: "bin/systemctl"), 0o755)
    let errors = try run("--id", "a", "--", "true", status: 1).errors
    #expect(errors.contains("systemctl --user --quiet enable restoration-run@a.service failed: status 1"), "\(errors)")
    _ = try run("--id", "b", "--replace", "--", "sleep", "2", status: 1)
    #expect(Files.list(files) == ["b"])
    #expect(try text("b") == content(["/usr/bin/sleep", "1"]))
    // What ran as the other unit comes back as before.
    #expect(!calls.dropFirst(before).contains { $0.contains("disable") })
  }

  @Test(arguments: ["link", "group", "others", "pipe", "owner", "directory", "linked directory"])
  func aFileThatSomebodyElseMayHaveWrittenIsNeitherRunNorReplaced(_ fault: String) throws {
    try prepare()
    let proof = directory.file("proof")
    let program = content(["/usr/bin/touch", proof])
    try write(program, as: "a")
    let file = "\(files)/a"
    switch fault {
    case "link":
      try Files.rename(file, to: "\(home)/a")
      symlink("\(home)/a", file)
    case "group": chmod(file, 0o620)
    case "others": chmod(file, 0o602)
    case "pipe":
      Files.remove(file)
      mkfifo(file, 0o600)
    case "owner":
      // Only root can give a file away.
      guard geteuid() == 0 else { return }
      chown(file, 12_345, 12_345)
    case "directory": chmod(files, 0o770)
    default:
      try Files.rename(files, to: "\(home)/run")
      symlink("\(home)/run", files)
    }
    let errors = try run("--become", "a", status: 78).errors
    #expect(errors.contains(fault.hasSuffix("directory") ? files : file), "\(errors)")
    _ = try run("--id", "a", "--replace", "--", "true", status: 1)
    #expect(!Files.exists(proof))
  }

  @Test(
    arguments: [
      "", "{}", "[]", #"{"arguments":["/bin/true"],"directory":"/"}"#,
      #"{"arguments":["/bin/true"],"directory":"/","graphical":false,"environment":{}}"#,
      #"{"arguments":["/bin/true"],"arguments":["/bin/true"],"directory":"/","graphical":false}"#,
      #"{"arguments":[],"directory":"/","graphical":false}"#,
      #"{"arguments":["true"],"directory":"/","graphical":false}"#,
      #"{"arguments":["/bin/true",1],"directory":"/","graphical":false}"#,
      #"{"arguments":["/bin/true","a\u0000b"],"directory":"/","graphical":false}"#,
      #"{"arguments":["/bin/true"],"directory":"tmp","graphical":false}"#,
      #"{"arguments":["/bin/true"],"directory":"/","graphical":0}"#,
      #"{"arguments":["/bin/true"],"directory":"/","graphical":false,"path":null}"#,
      #"{"arguments":["/bin/true"],"directory":"/","graphical":false} x"#,
    ]
  ) func aFileWithAnotherTextIsNotRun(_ text: String) throws {
    try prepare()
    try write(text, as: "a")
    let errors = try run("--become", "a", status: 78).errors
    #expect(errors.contains("\(files)/a is not as restorationctl run writes it\n"), "\(errors)")
    #expect(errors.contains("restorationctl run --forget a"))
    #expect(try run("--list").output == "0 programs.\n")
  }

  @Test func theProgramTakesTheToolsPlaceInItsDirectory() throws {
    try prepare()
    // Python sets a handler of its own, so the masks are those of its beginning.
    let script = """
      import os, sys
      status = open("/proc/self/status").read()
      print(os.getcwd(), sorted(os.listdir("/proc/self/fd")), sys.argv[1:])
      print([line.split()[1] for line in status.splitlines() if line.startswith("SigBlk")])
      """
    try write(content(["/usr/bin/python3", "-c", script, "a b", ""]), as: "a")
    // Others of the runner's threads may have files open that a program inherits; Python closes them.
    let clean = ["/usr/bin/python3", "-c", "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"]
    let arguments = clean + command(["--become", "a"])
    let output = try ChildProcess.run(arguments, environment: environment, directory: directory.path).output
    #expect(output == "\(directory.path) ['0', '1', '2', '3'] ['a b', '']\n['0000000000000000']\n")
    // The shell leaves signals as they are; SIGPIPE is the thirteenth.
    try write(content(["/bin/sh", "-c", "grep ^SigIgn /proc/self/status"]), as: "b")
    let ignored = try run("--become", "b").output.split(separator: "\t").last?.filter { $0.isHexDigit }
    let mask = try #require(ignored.flatMap { UInt64($0, radix: 16) })
    #expect(mask & 0x1000 == 0)
  }

  /// The manager's has not what a shell adds, such as the directory of an interpreter.
  @Test func aProgramHasThePathThatFoundIt() throws {
    try prepare()
    let tools = try directory.makeDirectory("tools")
    chmod(try directory.write("#!/bin/sh\necho \"I speak $PATH\"\n", to: "tools/mylang"), 0o755)
    chmod(try directory.write("#!/usr/bin/env mylang\n", to: "tools/app"), 0o755)
    let path = "\(tools):\(directory.path)/bin:/usr/bin:/bin"
    _ = try run("--id", "a", "--", "app", changes: ["PATH": "relative:\(path):"])
    #expect(try text("a") == content(["\(tools)/app"], path: path))
    #expect(try run("--become", "a", changes: ["PATH": "/usr/bin:/bin"]).output == "I speak \(path)\n")
  }

  @Test func theStatusSaysWhatCannotBeUsed() throws {
    try prepare()
    #expect(try run("--become", "a", status: 78).errors.contains("nothing is run as a\n"))
    let gone = #"{"arguments":["/bin/true"],"directory":"/nowhere","graphical":false}"#
    try write(gone, as: "a")
    #expect(try run("--become", "a", status: 200).errors.contains("/nowhere cannot be used: No such file"))
    try write(content(["/nowhere"]), as: "a")
    #expect(try run("--become", "a", status: 203).errors.contains("/nowhere cannot be used: No such file"))
  }

  /// The manager tells by variables how the program ended.
  @Test(
    arguments: [
      ("success", "exited", "0", true), ("success", "killed", "TERM", false), ("exit-code", "exited", "1", false),
      ("signal", "killed", "SEGV", false), ("core-dump", "dumped", "ABRT", false), ("timeout", "exited", "0", false),
    ]
  ) func onlyAfterASuccessOfItsOwnAProgramIsDone(_ result: String, _ code: String, _ status: String, _ isDone: Bool)
    throws
  {
    try prepare()
    try write(content(["/bin/true"]), as: "a")
    let variables: [String: String?] = ["SERVICE_RESULT": result, "EXIT_CODE": code, "EXIT_STATUS": status]
    // The manager has a job for the unit: somebody stops it.
    let busy = "#!/bin/sh\ncase \"$*\" in *Job*) echo 17;; esac\n"
    _ = try directory.makeDirectory("busy")
    chmod(try directory.write(busy, to: "busy/systemctl"), 0o755)
    let path = "\(directory.file("busy")):/usr/bin:/bin"
    _ = try run("--ended", "a", changes: variables.merging(["PATH": path]) { $1 })
    #expect(Files.exists("\(files)/a"))
    let errors = try run("--ended", "a", changes: variables).errors
    #expect(Files.exists("\(files)/a") != isDone)
    #expect(errors.contains("is started again") == (result != "success"), "\(errors)")
  }
}
