// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import TestSupport
internal import Testing

/// The first command of the README, without its building.
@Suite struct DemonstrationTests {
  private static let demonstration = "\(Products.repository)/systemd/demonstration"

  /// A directory of programs as `systemd/try.sh` has it; a program may be stood in for by a shell script, which finds
  /// the real one in `$0.real`.
  private static func programs(in scratch: ScratchDirectory, standIns: [String: String] = [:]) throws -> String {
    let directory = try scratch.makeDirectory("programs")
    let real = [
      "restorationd": Products.broker, "restorationctl": Products.control,
      "restoration-sample": "\(Products.directory)/restoration-sample",
    ]
    for (name, path) in real {
      if let script = standIns[name] {
        try scratch.write("#!/bin/bash\n\(script)\nexec \"$0.real\" \"$@\"\n", to: "programs/\(name)")
        chmod("\(directory)/\(name)", 0o700)
        symlink(path, "\(directory)/\(name).real")
      } else {
        symlink(path, "\(directory)/\(name)")
      }
    }
    return directory
  }

  /// A repository as small as that of `smallCommand`, in which nothing is installed or built; gives its try.sh.
  private static func smallScript(in scratch: ScratchDirectory, build: String) throws -> String {
    _ = try smallCommand("", in: scratch)
    _ = try scratch.makeDirectory("repository/Tests")
    for (path, script) in [("Tests/packages.sh", ""), ("systemd/build.sh", build)] {
      try scratch.write("#!/bin/bash\n\(script)\n", to: "repository/\(path)")
      chmod(scratch.file("repository/\(path)"), 0o700)
    }
    return scratch.file("repository/systemd/try.sh")
  }

  @Test(.scratch) func programsOfAReleaseNeedNoCompiler() throws {
    let programs = try Self.programs(in: directory)
    Files.remove("\(programs)/restoration-sample")
    let result = try ChildProcess.run(
      [try Self.smallScript(in: directory, build: "echo it builds >&2; exit 1"), "--from", programs],
      environment: ["TMPDIR": directory.path],
      Deadline(.seconds(120))
    )
    #expect(result.end == .exit(0), "\(result.output)\(result.errors)")
    #expect(result.output.hasPrefix("== Taking the programs in \(programs)\n"))
    #expect(result.output.contains("made of five processes, in two languages"))
    #expect(result.output.hasSuffix("Everything came back.\n"))
  }

  @Test(.scratch) func whatTheCompilerSaysIsInALog() throws {
    let programs = try Self.programs(in: directory)
    let build = "for i in 1 2 3; do echo \"[$i/3] Compiling it\" >&2; done; echo '\(programs)'"
    let script = try Self.smallScript(in: directory, build: build)
    let environment: [String: String?] = ["TMPDIR": directory.path, "PATH": "/usr/bin:/bin"]
    let result = try ChildProcess.run([script], environment: environment, Deadline(.seconds(120)))
    #expect(result.end == .exit(0), "\(result.output)\(result.errors)")
    let lines = result.output.split(separator: "\n", maxSplits: 2)
    #expect(lines[0].hasPrefix("== Building the programs") && lines[0].hasSuffix("the log is .build/try.log"))
    #expect(lines[1] == "restorationd: an editor made of five processes, in three languages")
    let log = directory.file("repository/.build/try.log")
    #expect(try Files.text(log) == "[1/3] Compiling it\n[2/3] Compiling it\n[3/3] Compiling it\n")

    let failing = "#!/bin/bash\necho 'a.swift:1:1: error: it is wrong' >&2; exit 1\n"
    try directory.write(failing, to: "repository/systemd/build.sh")
    let failed = try ChildProcess.run([script], environment: environment)
    #expect(failed.end == .exit(1))
    #expect(failed.errors == "try.sh: the programs were not built: a.swift:1:1: error: it is wrong\n")
  }

  private static func command(_ programs: String) -> [String] { ["python3", "-B", demonstration, programs] }

  /// The same for a repository of a few texts: failures and interruptions need no large one.
  private static func smallCommand(_ programs: String, in scratch: ScratchDirectory) throws -> [String] {
    for directory in ["", "/systemd", "/Sources", "/Sources/JSONRPC", "/Sources/JSONRPC/Text"] {
      _ = try scratch.makeDirectory("repository\(directory)")
    }
    let linked = [
      "README.md", "Package.swift", "Sources/ARCHITECTURE.md", "Sources/JSONRPC/Text/JSONValue.swift", "systemd/try.sh",
      "systemd/demonstration",
    ]
    for path in linked { symlink("\(Products.repository)/\(path)", scratch.file("repository/\(path)")) }
    return ["python3", "-B", scratch.file("repository/systemd/demonstration"), programs]
  }

  @Test(.scratch(alone: true)) func everythingThatWasKilledComesBack() throws {
    let result = try ChildProcess.run(
      Self.command(try Self.programs(in: directory)),
      environment: ["TMPDIR": directory.path],
      Deadline(.seconds(120))
    )
    #expect(result.end == .exit(0), "\(result.output)\(result.errors)")
    #expect(result.errors.isEmpty, "\(result.errors)")
    #expect(result.output.contains(/[1-9][0-9,]* states compared, 0 different\n/), "\(result.output)")
    #expect(result.output.contains(/[1-9][0-9,]* other checks, 0 wrong\n/), "\(result.output)")
    #expect(result.output.hasSuffix("Everything came back.\n"))
    for line in result.output.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
    #expect(!result.output.unicodeScalars.contains("\u{1b}"))
    #expect(Files.list(directory.path) == ["programs"])
  }

  /// The README's pictures. But for numbers, that of the demonstration is the one that is made now.
  @Test(.scratch, .enabled(if: Browser.isUsable, "chromium is not installed"))
  func picturesShowWhatWasKilledAndWhatCameBack() throws {
    let made = try directory.makeDirectory("pictures")
    let result = try ChildProcess.run(
      try Self.smallCommand(try Self.programs(in: directory), in: directory) + ["--pictures", made],
      environment: ["TMPDIR": directory.path],
      Deadline(.seconds(120))
    )
    #expect(result.end == .exit(0), "\(result.output)\(result.errors)")
    let kept = "\(Products.repository)/Protocol/pictures"
    let drawings = try [made, kept].map { try Files.text("\($0)/demonstration.svg") }
    let withoutNumbers = drawings.map { $0.replacing(/[0-9][0-9.,]*/, with: "0") }
    #expect(withoutNumbers[0] == withoutNumbers[1], "renew \(kept): Tests/README.md says how")
    let shown = drawings.map { $0.matches(of: />([^<>]+)<\/t/).map { String($0.1) } }
    for text in [
      "broker", "windows", "documents-1", "documents-2", "previews", "outlines", "Python", "Perl",
      "kill -9, all six at once", "kill -9, one alone", "0 different",
    ] {
      for words in shown { #expect(words.contains(text), "\(text)") }
    }
    #expect(shown[0].last?.hasSuffix("states compared, 0 different. Everything came back.") == true)
    let parse = "import sys, xml.dom.minidom as dom; dom.parse(sys.argv[1])"
    #expect(try ChildProcess.run(["python3", "-c", parse, "\(made)/demonstration.svg"]).end == .exit(0))
    for file in [made, kept].map({ "\($0)/inspect.png" }) {
      let picture = try Files.read(file)
      // Signature, length and name of the first chunk, and in it width and height.
      #expect(picture.starts(with: [0x89, 0x50, 0x4E, 0x47]), "\(file)")
      #expect(picture[16..<24].map { $0 } == [0, 0, 0x04, 0xB0, 0, 0, 0x02, 0x80], "\(file)")
      #expect((20 << 10...200 << 10).contains(picture.count), "\(file)")
    }
  }

  /// Ways for a broker to fail that the demonstration must not overlook.
  enum Fault: String, CaseIterable {
    /// A state was acknowledged and is not in the archive.
    case lostState
    /// An object has another state than was sent.
    case otherState
    /// The archive is gone.
    case lostArchive

    var standIns: [String: String] {
      let key = "Sources/ARCHITECTURE.md"
      let change =
        #"{"application":"org.restorationd.Try","object":["Sources","ARCHITECTURE.md"],"state":{"cursor":0}}"#
      // The broker's fourth argument is the archives' directory, which exists from the second start on.
      return switch self {
      case .lostState:
        [
          "restorationd":
            #"[ -d "$4" ] && printf 'sent\t\#(key)\t{"cursor":0}\ndone\t\#(key)\n' >>"${4%/*}/documents-1""#
        ]
      case .otherState:
        [
          "restoration-sample": """
          [ "$1" = documents-1 ] && [ -e "$3" ] && \
          "${0%/*}/restorationctl" --socket "$2" call encodeRestorableState '\(change)' >"$3.change"
          """
        ]
      case .lostArchive:
        ["restorationd": #"rm -f "$4"/*.sqlite*"#]
      }
    }

    var complaint: String {
      switch self {
      case .lostState, .otherState: "DIFFERENT: documents-1: Sources/ARCHITECTURE.md came back as {"
      case .lostArchive: "DIFFERENT: outlines: README.md came back as null"
      }
    }
  }

  @Test(.scratch, arguments: Fault.allCases)
  func whatIsDifferentIsShownAndFails(_ fault: Fault) throws {
    let result = try ChildProcess.run(
      try Self.smallCommand(try Self.programs(in: directory, standIns: fault.standIns), in: directory),
      environment: ["TMPDIR": directory.path],
      Deadline(.seconds(120))
    )
    #expect(result.end == .exit(1), "\(result.output)\(result.errors)")
    #expect(result.output.contains(fault.complaint), "\(result.output)")
    #expect(result.output.contains(/states compared, [1-9][0-9,]* different\n/), "\(result.output)")
    #expect(!result.output.contains("Everything came back."))
  }

  @Test(.scratch) func aBrokerThatDoesNotStartFailsItWithItsLog() throws {
    let programs = try Self.programs(in: directory, standIns: ["restorationd": "echo no disk >&2; exit 1"])
    let result = try ChildProcess.run(Self.command(programs), environment: ["TMPDIR": directory.path])
    #expect(result.end == .exit(1))
    #expect(result.errors.contains("the broker did not start; its log is\nno disk"), "\(result.errors)")
    #expect(Files.list(directory.path) == ["programs"])
  }

  /// Ctrl-C, the end of a terminal, and a kill that leaves the demonstration no time to clean up.
  @Test(.scratch, arguments: [SIGINT, SIGTERM, SIGHUP, SIGKILL])
  func aSignalLeavesNothingBehind(_ signal: Int32) throws {
    let errors = directory.file("errors")
    let child = try ChildProcess(
      try Self.smallCommand(try Self.programs(in: directory), in: directory),
      environment: ["TMPDIR": directory.path],
      errors: errors
    )
    while let line = try child.output?.next(Deadline(.seconds(60))), !line.hasPrefix("3. ") {}
    // Between a kill and the next start none may run.
    try Wait.until("its processes run") { !Self.processes(of: directory).isEmpty }
    child.send(signal: signal)
    #expect(try child.waitForEnd() == .signal(signal))
    try Wait.until("all processes have ended") { Self.processes(of: directory).isEmpty }
    if signal != SIGKILL { #expect(Set(Files.list(directory.path)) == ["errors", "programs", "repository"]) }
    #expect(try Files.text(errors).isEmpty)
  }

  /// Command lines that name the directory.
  private static func processes(of scratch: ScratchDirectory) -> [String] {
    Files.list("/proc").filter { Int($0) != nil }
      .compactMap { try? Files.text("/proc/\($0)/cmdline") }
      .filter { $0.contains("\(scratch.path)/rd-try-") }
  }

  @Test(.passesTurnstile, arguments: [("xterm", nil, true), ("xterm", "1", false), ("dumb", nil, false)])
  func colourIsForTerminalsThatWantIt(_ terminal: String, _ noColor: String?, _ isColoured: Bool) throws {
    let program = "import sys; sys.path.insert(0, '\(Self.demonstration)'); from page import Page; Page().title('A')"
    let result = try ChildProcess.run(
      ["script", "--quiet", "--return", "--command", "python3 -B -c \"\(program)\"", "/dev/null"],
      environment: ["TERM": terminal, "NO_COLOR": noColor]
    )
    #expect(result.end == .exit(0), "\(result.output)")
    #expect(result.output.contains("A"))
    #expect(result.output.unicodeScalars.contains("\u{1b}") == isColoured)
  }
}
