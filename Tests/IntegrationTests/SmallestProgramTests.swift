// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// The smallest useful programs, exactly as the README shows them. `TidyTests` holds the text of the one in Swift.
@Suite(.timeLimit(.minutes(5))) struct SmallestProgramTests {
  /// A language, and how many lines its program may have. Empty lines do not count.
  enum Language: String, CaseIterable {
    case swift, python, c, sh

    var linesMax: Int { [.swift: 6, .python: 4, .c: 20, .sh: 2][self] ?? 0 }

    var text: String {
      get throws {
        let page = try TutorialPage("README.md").section("## The smallest programs")
        guard let text = page.blocks(rawValue).first else { throw TestFailure("README.md has none in \(self)") }
        return text
      }
    }

    func command() throws -> [String] {
      switch self {
      case .swift: ["\(Products.directory)/smallest"]
      case .python: ["python3", try broker.directory.write(text, to: "note.py")]
      case .c: [try TutorialProgram.c(text, "note", in: broker.directory)]
      case .sh: ["sh", try broker.directory.write(text, to: "note.sh")]
      }
    }
  }

  @Test(arguments: Language.allCases) func programsAreSmall(_ language: Language) throws {
    let lines = try language.text.split(separator: "\n")
    #expect(lines.count <= language.linesMax && lines.allSatisfy { $0.count <= 100 })
  }

  /// What the package trait leaves out is one file. So the program in Swift, linked without that file, is one that is
  /// built without the trait, except that the linker is still told to load the library.
  @Test(.scratch) func withoutItsTraitNoProgramInSwiftNeedsFoundation() throws {
    let file = "\(Products.directory)/RestorationClient.build/FoundationValues.swift.o"
    let objects = try Files.text("\(Products.directory)/smallest.product/Objects.LinkFileList").split(separator: "\n")
      .map { String($0.filter { $0 != "'" }) }.filter { !$0.hasSuffix("/FoundationValues.swift.o") }
    let list = try directory.write(objects.map { "'\($0)'" }.joined(separator: "\n"), to: "objects")
    let program = directory.file("smallest")
    let command = ["swiftc", "@\(list)", "-Xlinker", "--defsym=main=smallest_main", "-ljansson", "-o", program]
    let linked = try ChildProcess.run(command, Deadline(.seconds(120)))
    try #require(linked.end == .exit(0), "\(linked.errors)")
    func needed(_ file: String) throws -> [Substring] {
      try ChildProcess.run(["nm", "--undefined-only", file]).output.split(separator: "\n")
        .filter { $0.contains("Foundation") }
    }
    #expect(try needed(program) == [])
    // Nothing else has the linker load it.
    let others = objects.filter { !$0.contains("/RestorationClient.build/") }
    #expect(try ChildProcess.run(["grep", "-laF", "-e", "-lFoundation"] + others).output == "")
    // These words are those by which it would be known.
    #expect(try !needed(file).isEmpty)
    #expect(try ChildProcess.run(["grep", "-laF", "-e", "-lFoundation", file]).output != "")
    let source = try Files.text("\(Products.repository)/Sources/RestorationClient/Values/FoundationValues.swift")
    #expect(source.contains("\n#if Foundation\n") && source.hasSuffix("\n#endif\n"))
  }

  @Test(.broker) func whatWasTypedIsThereAfterAKillInWhateverLanguage() throws {
    let installed = try TutorialProgram.python(in: broker.directory)
    let programs = try Language.allCases.map { try $0.command() }
    var saved = "nothing"
    // Each program follows itself and each other one.
    for (index, program) in programs.enumerated() {
      for next in programs[index...] {
        for (command, line) in [(program, "Grüße \(index)"), (next, "-line of \(next[0])")] {
          let note = try ReadersProgram(command, python: installed)
          try note.awaitLine("saved: \(saved)")
          try note.type(line)
          try note.waits(until: "the line is stored by \(command[0])") {
            try broker.states(of: "org.example.Note")[["Note"]] == ["value": .string(line)]
          }
          try note.kill()
          saved = line
        }
      }
    }
    let socket = broker.directory.file("none")
    let alone = try ChildProcess.run(programs[2], environment: ["RESTORATIOND_SOCKET": socket])
    let hint = "Start it with `restorationd` or `systemctl --user start restorationd.socket`."
    #expect(alone.errors == "no broker listens on \(socket). \(hint)\n")
  }

  /// In their order, as they are written. `DemonstrationTests`, `InstallTests` and `BenchTests` run what compiles for
  /// minutes, with programs that are built, and so do the tests above with the program in Swift.
  @Test(.broker) func theCommandsOfTheReadmeDoWhatItSays() throws {
    let home = try broker.directory.makeDirectory("home")
    try #require(symlink("\(Products.repository)/Protocol", "\(home)/Protocol") == 0)
    for (language, name) in [(Language.sh, "note.sh"), (.python, "note.py"), (.c, "note.c")] {
      try broker.directory.write(try language.text, to: "home/\(name)")
    }
    let venv = try ChildProcess.run(["python3", "-m", "venv", "\(home)/venv"], Deadline(.seconds(120)))
    try #require(venv.end == .exit(0), "\(venv.errors)")
    let environment: [String: String?] = [
      "HOME": home, "XDG_RUNTIME_DIR": home, "PATH": "\(home)/venv/bin:\(Products.searchPath)",
      "RESTORATIOND_SOCKET": broker.socket, "PIP_NO_INDEX": "1", "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8",
    ]
    var (typed, shown) = ("nothing", "")
    for (number, command) in try TutorialPage("README.md").commands.enumerated() {
      let line = "Grüße \(number)"
      let script = "printf '\(line)\\n\(line)\\n' | {\n\(command)\n}"
      let shell = ["bash", "-euc", script]
      let result = try ChildProcess.run(shell, environment: environment, directory: home, Deadline(.seconds(120)))
      #expect(result.end == .exit(0), "\(command): \(result.output)\(result.errors)")
      if let saved = result.output.split(separator: "\n").first(where: { $0.hasPrefix("saved: ") }) {
        #expect(saved == "saved: \(typed)", "\(command)")
        typed = line
      }
      shown += result.output
    }
    // Three programs, one of them twice: on its own and in its block.
    #expect(shown.ranges(of: "saved: ").count == 4)
    let page = "\(home)/org.example.Note.html"
    for text in ["\norg.example.Note ", "└─Note", "\n\(typed)\n", "as generation ", "Note is saved", page] {
      #expect(shown.contains(text), "\(text): \(shown)")
    }
    #expect(try Files.text("\(home)/note.json").contains(typed))
  }

  /// How a program may end that does nothing wrong.
  enum Ending: CaseIterable {
    case byItself, interrupted, terminated, killed, closedTerminal

    var signal: Int32? { [.interrupted: SIGINT, .terminated: SIGTERM, .killed: SIGKILL][self] }
  }

  /// In the long form also after it has lived with its state for a while.
  @Test(
    "R31 What was typed is shown however often and in whatever way the program has ended",
    .broker,
    arguments: Language.allCases,
    Ending.allCases
  )
  func noEndOfOthersMakingIsHeldAgainstAState(_ language: Language, _ ending: Ending) throws {
    let command = try language.command()
    let installed = language == .python ? try TutorialProgram.python(in: broker.directory) : nil
    let first = try ReadersProgram(command, python: installed)
    try first.awaitLine("saved: nothing")
    try first.type("Grüße")
    try Wait.until("the line is stored") {
      (try? broker.states(of: "org.example.Note"))?[["Note"]] == ["value": "Grüße"]
    }
    try first.kill()
    for lifetime in [Duration.milliseconds(100)] + (Environment.isLong ? [.zero, .seconds(2)] : []) {
      for _ in 1...6 {
        var note = try ReadersProgram(command, python: installed)
        try note.awaitLine("saved: Grüße")
        Wait.moment(lifetime)
        if let signal = ending.signal {
          #expect(try note.end(by: signal) == .signal(signal))
        } else if ending == .closedTerminal {
          #expect(try note.closeTerminal() == .signal(SIGHUP))
        } else {
          // The one in Python ends after its second line.
          try note.type(language == .python ? "Grüße\n" : "\u{4}")
          #expect(try note.waitForEnd() == .exit(0))
        }
      }
    }
    let list = try broker.connect().call("listQuarantine", ["application": "org.example.Note"])
    #expect(list == ["archive": .null, "strikes": 0, "objects": []])
  }

  /// The one for the shell is only a reader.
  @Test(
    "R35 A program whose state is withheld says so, with the command that gives it back",
    .broker,
    arguments: [Language.swift, .python, .c]
  )
  func nothingIsWithheldInSilence(_ language: Language) throws {
    try broker.withhold("Note", of: "org.example.Note")
    let note = try ReadersProgram(try language.command(), python: try TutorialProgram.python(in: broker.directory))
    try note.awaitText("restorationctl quarantine release org.example.Note ")
    try note.kill()
  }

  @Test("R30 A program that ends by itself says goodbye", .broker, arguments: [Language.python, .c, .swift])
  func anEndByItselfIsNoCrash(_ language: Language) throws {
    let monitor = try broker.connect()
    try monitor.call("subscribe", ["events": ["sessionEnded"]])
    let installed = language == .python ? try TutorialProgram.python(in: broker.directory) : nil
    let note = try ReadersProgram(try language.command(), python: installed)
    try note.awaitLine("saved: nothing")
    try note.type(language == .python ? "Grüße\n" : "\u{4}")
    #expect(try note.waitForEnd() == .exit(0))
    #expect(try monitor.notification("event")["ending"] == "restart")
  }

  /// What was built is not in PATH.
  @Test(.scratch) func withoutSystemdABrokerStartsAsTheReadmeSays() throws {
    let build = try directory.write("#!/bin/sh\necho '\(Products.directory)'\n", to: "build.sh")
    #expect(chmod(build, 0o755) == 0)
    let page = try TutorialPage("README.md")
    let line = try "\(page.words(/`(PATH=[^`]+)`/).1); \(page.code(after: "Without systemd:"))"
      .replacing("/tmp/r", with: directory.file("r")).replacing("systemd/build.sh", with: build)
    let script = line + "\nuntil restorationctl status; do kill -0 $! || exit 1; done; kill $!; wait $!"
    let result = try ChildProcess.run(["bash", "-c", script], environment: ["PATH": "/usr/bin:/bin"])
    #expect(result.end == .exit(0), "\(result.errors)")
  }

  @Test(.broker) func whatWasTypedWithoutABrokerIsThereAfterAKill() throws {
    func start(_ socket: String) throws -> (ChildProcess, PseudoTerminal) {
      let terminal = try PseudoTerminal()
      let environment = ["RESTORATIOND_SOCKET": socket]
      let command = try Language.swift.command()
      return (try ChildProcess(command, environment: environment, output: .terminal(terminal)), terminal)
    }
    let socket = broker.directory.file("later.sock")
    let (first, terminal) = try start(socket)
    _ = try terminal.shown(until: "saved: nothing")
    try terminal.type("a first one\nGrüße\n")
    try #require(symlink(broker.socket, socket) == 0)
    try Wait.until("the line is stored") {
      // Before the program comes, there is no such application.
      (try? broker.states(of: "org.example.Note"))?[["Note"]] == ["value": "Grüße"]
    }
    try first.kill()
    let (second, other) = try start(broker.socket)
    _ = try other.shown(until: "saved: Grüße")
    try second.kill()
  }
}
