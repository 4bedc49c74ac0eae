// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The programs of `Protocol/examples` do what their README says, alone and as one application.
@Suite struct ExampleProgramTests {
  private static let application = "org.example.notes.test"

  private static func start(_ program: ExampleProgram, _ object: [String]) throws -> NoteProcess {
    try NoteProcess(program, object, application)
  }

  private static func state(_ language: String, _ note: String) -> JSONValue {
    ["language": .string(language), "note": .string(note)]
  }

  /// Waits until the broker has asked for the note.
  private static func waitForSave(_ program: ExampleProgram, _ note: String) throws {
    try Wait.until("the note of \(program) is saved") {
      try broker.states(of: application)[["Note"]] == state(program.rawValue, note)
    }
  }

  /// Quotes, backslashes, characters that are special in JSON and shells, four bytes, two code points that are one
  /// letter, and characters that some take for the end of a line.
  private static let oddNote =
    #"  "a\b" \n \u0041 $(x) `y` '*' %s <&> 𝒳😀 é e"# + "\u{301} \u{2028}\u{85}\u{b}\t\u{1}\u{7f} "

  @Test(.broker, arguments: ExampleProgram.allCases)
  func aNoteIsThereAgainAfterAKill(_ program: ExampleProgram) throws {
    let first = try Self.start(program, ["Note"])
    try first.expect("new")
    try first.note("a first one")
    try first.note(Self.oddNote)
    try Self.waitForSave(program, Self.oddNote)
    try first.kill()

    let second = try Self.start(program, ["Note"])
    try second.expect("restored: \(Self.oddNote)")
    try second.note("")
    try Self.waitForSave(program, "")
    try second.kill()

    let third = try Self.start(program, ["Note"])
    try third.expect("restored: ")
    third.closeInput()
    #expect(try third.waitForExit(0) == "")
  }

  @Test(.broker, arguments: ExampleProgram.allCases)
  func whatWasTypedLastIsKeptHoweverItEnds(_ program: ExampleProgram) throws {
    let first = try Self.start(program, ["Note"])
    try first.type("one\ntwo")
    first.closeInput()
    for line in ["new", "noted: one", "noted: two"] { try first.expect(line) }
    #expect(try first.waitForExit(0) == "")

    let second = try Self.start(program, ["Note"])
    try second.type("three\nquit\nfour\n")
    for line in ["restored: two", "noted: three"] { try second.expect(line) }
    #expect(try second.waitForExit(0) == "")

    let third = try Self.start(program, ["Note"])
    try third.expect("restored: three")
    third.closeInput()
    try third.waitForExit(0)
  }

  /// A blank state would hide the saved state from all other clients.
  @Test(.broker, arguments: ExampleProgram.allCases)
  func aRoundGetsTheNoteAndNothingWhereThereIsNone(_ program: ExampleProgram) throws {
    let process = try Self.start(program, ["Note"])
    try process.expect("new")
    let control = try broker.session(Self.application)
    let blank = try control.call("saveApplicationState")
    #expect(blank["stale"] == [])
    #expect(try broker.states(of: Self.application).isEmpty)
    try process.note("something")
    let saved = try control.call("saveApplicationState")
    #expect(saved["stale"] == [])
    #expect(
      try broker.states(of: Self.application, in: saved["generation"])
        == [["Note"]: Self.state(program.rawValue, "something")]
    )
  }

  @Test(.scratch, arguments: ExampleProgram.allCases)
  func withoutABrokerItSaysWhatToDo(_ program: ExampleProgram) throws {
    let command = try program.command()
    let variables: [[String: String?]] = [
      ["RESTORATIOND_SOCKET": directory.file("none.sock")],
      ["RESTORATIOND_SOCKET": nil, "XDG_RUNTIME_DIR": directory.path],
    ]
    for (environment, socket) in zip(variables, ["none.sock", "restorationd/broker.sock"]) {
      let result = try ChildProcess.run(command + ["Note"], environment: environment)
      // With this library a program works all the same.
      #expect(result.end == .exit(program == .python ? 0 : 69))
      #expect(result.output == (program == .python ? "new\n" : ""))
      #expect(result.errors.contains(directory.file(socket)), "\(result.errors)")
      #expect(result.errors.contains("start"), "\(result.errors)")
      #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
    }
  }

  /// It was saved by another program, in another form.
  @Test(.broker, arguments: ExampleProgram.allCases)
  func whatIsNoNoteIsLeftAsItIs(_ program: ExampleProgram) throws {
    let states: [JSONValue] = [["foo": 1], ["note": nil], ["note": 5], ["note": ["deep": "er"]], [:]]
    for (number, state) in states.enumerated() {
      let name = "Note\(number)"
      let other = try broker.session(Self.application)
      try other.register(name)
      try other.encode(name, state: state)
      try other.call("goodbye", ["reason": "restart"])
      let process = try Self.start(program, [name])
      try process.expect("new")
      process.closeInput()
      #expect(try process.waitForExit(0) == "")
      #expect(try broker.states(of: Self.application)[[name]] == state)
    }
  }

  /// Its child processes outlive it: here a process that prints into a pipe waits until the pipe has no reader.
  /// Standard error is read until all copies of it are closed.
  @Test(.broker) func inBashNothingIsSaidWhereSIGPIPEIsIgnored() throws {
    let command = try ExampleProgram.bash.command()
    let script = #"""
      trap '' PIPE
      printf() {
        if [[ ${FUNCNAME[1]} == wait_for_* ]]; then
          python3 -c 'import select; poll = select.poll(); poll.register(1, 0); poll.poll()'
        fi
        builtin printf "$@"
      }
      export -f printf
      "$@" Note </dev/null 2>&1 >/dev/null
      """#
    let result = try ChildProcess.run(
      ["bash", "-c", script, "bash"] + command,
      environment: ["RESTORATIOND_SOCKET": broker.socket, "RESTORATION_APPLICATION": Self.application]
    )
    #expect(result.output == "")
    #expect(result.end == .exit(0), "\(result.errors)")
  }

  @Test(.broker) func inCANoteOfAnotherProgramIsKeptWhole() throws {
    for (name, text) in [("Long", String(repeating: "ü", count: 50_000)), ("Odd", "a\u{0}b")] {
      let other = try broker.session(Self.application)
      let state = Self.state("swift", text)
      try other.register(name)
      try other.encode(name, state: state)
      try other.call("goodbye", ["reason": "restart"])
      let process = try Self.start(.c, [name])
      try process.expect("restored: \(text)")
      process.closeInput()
      #expect(try process.waitForExit(0) == "")
      #expect(try broker.states(of: Self.application)[[name]] == Self.state("c", text))
    }
    let typed = String(repeating: "long ", count: 40_000)
    let process = try Self.start(.c, ["Note"])
    try process.expect("new")
    try process.note(typed)
    process.closeInput()
    #expect(try process.waitForExit(0) == "")
    #expect(try broker.states(of: Self.application)[["Note"]] == Self.state("c", typed))
  }

  @Test(.broker) func inCWhatIsNoUnicodeIsReplaced() throws {
    let command = try ExampleProgram.c.command()
    let script = #"printf 'a\377b\303\nc\342\202' | "$0" Note"#
    let result = try ChildProcess.run(
      ["sh", "-c", script] + command,
      environment: ["RESTORATIOND_SOCKET": broker.socket, "RESTORATION_APPLICATION": Self.application]
    )
    #expect(result.end == .exit(0), "\(result.errors)")
    #expect(result.output == "new\nnoted: a\u{FFFD}b\u{FFFD}\nnoted: c\u{FFFD}\u{FFFD}\n")
    #expect(try broker.states(of: Self.application)[["Note"]] == Self.state("c", "c\u{FFFD}\u{FFFD}"))
  }

  @Test(.passesTurnstile, arguments: ExampleProgram.allCases)
  func aPathThatNoSocketHasIsSaidToBeTooLong(_ program: ExampleProgram) throws {
    let socket = "/tmp/" + String(repeating: "long", count: 40)
    let result = try ChildProcess.run(try program.command() + ["Note"], environment: ["RESTORATIOND_SOCKET": socket])
    #expect(result.end == .exit(69))
    #expect(result.output.isEmpty)
    #expect(result.errors.contains("/tmp/longlong"), "\(result.errors)")
    #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
  }

  @Test(.broker, arguments: ExampleProgram.allCases.filter { !$0.outlivesBroker })
  func withoutALibraryItEndsWithItsBroker(_ program: ExampleProgram) throws {
    let process = try Self.start(program, ["Note"])
    try process.expect("new")
    try broker.kill()
    let errors = try process.waitForExit(69)
    #expect(errors.split(separator: "\n").count == 1, "\(errors)")
    try broker.start()
  }

  @Test(.broker, arguments: ExampleProgram.allCases.filter { $0.outlivesBroker })
  func withALibraryItGoesOnWithTheNextBroker(_ program: ExampleProgram) throws {
    let process = try Self.start(program, ["Note"])
    try process.expect("new")
    try process.note("before")
    try broker.crashAndRestart()
    try process.note("after")
    try Self.waitForSave(program, "after")
    process.closeInput()
    #expect(try process.waitForExit(0) == "")
  }

  @Test(.broker, arguments: ExampleProgram.allCases)
  func anErrorOfTheBrokerIsShownWithItsHint(_ program: ExampleProgram) throws {
    let command = try program.command()
    let process = try Self.start(program, ["a/b"])
    let error = try broker.session(Self.application)
      .failure("registerObjectForStateRestoration", ["restorationIdentifier": "a/b"])
    let errors = try process.waitForExit(1)
    // Each language writes the value as its own.
    let words = try #require(error.object["message"]?.string?.split(separator: ": ").first)
    #expect(errors.contains(words) && errors.contains("a/b"), "\(errors)")
    #expect(errors.contains(try #require(error.data["hint"]?.string)), "\(errors)")

    let usage = try ChildProcess.run(command, environment: ["RESTORATIOND_SOCKET": broker.socket])
    #expect(usage.end == .exit(64))
    #expect(usage.errors.hasPrefix("usage: "), "\(usage.errors)")
  }
}
