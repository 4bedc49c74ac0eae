// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// Features that all commands of `restorationctl` share (`Protocol/restorationctl.md`).
@Suite(.broker) struct ControlFrameTests {
  private static let commands: [[String]] = [
    ["status"], ["list"], ["tree", "a"], ["show", "a", "Main"], ["history", "a"], ["discard", "a", "--yes"],
    ["call", "ping"],
  ]

  /// In a generation as well, with which the application outlives that it is discarded.
  private static func storeObject() throws {
    let client = try broker.connect()
    try client.encode("Main", state: ["n": 1], of: "a")
    try client.call("saveApplicationState", ["application": "a"])
  }

  // MARK: Options

  @Test func optionsMayStandBeforeAndAfterTheCommand() throws {
    try Self.storeObject()
    let options = ["--json=short", "--no-legend", "--no-pager", "--full", "--timeout=20"]
    // The environment names a missing socket, so that the option counts.
    let elsewhere = ["RESTORATIOND_SOCKET": broker.directory.file("nowhere")]
    let socket = ["--socket", broker.socket]
    for command in Self.commands {
      for arguments in [options + socket + command, command + options + socket, socket + command + ["-j"]] {
        let result = try ControlTool.run(arguments, environment: elsewhere)
        #expect(result.end == .exit(0), "\(arguments): \(result.errors)")
        #expect(result.errors.isEmpty, "\(arguments)")
        #expect(try result.json.object != nil, "\(arguments)")
        #expect(result.output.split(separator: "\n", omittingEmptySubsequences: false).count == 2, "\(arguments)")
      }
      let pretty = try ControlTool.run(command + ["--json", "pretty"])
      #expect(pretty.end == .exit(0), "\(command)")
      #expect(try pretty.json.object != nil, "\(command)")
    }
  }

  @Test func prettyJSONIsLaidOutAsOtherToolsDo() throws {
    let state = #"{"a":[],"b":{},"c":[1,{"d":"}],:\"\\"}],"e":1E400}"#
    let parameters = #"{"application":"a","object":["A"],"state":\#(state)}"#
    #expect(try ControlTool.run(["call", "encodeRestorableState", parameters]).end == .exit(0))
    let result = try ControlTool.run(["show", "a", "A"])
    #expect(
      result.output.hasSuffix(
        """


        {
          "a": [],
          "b": {},
          "c": [
            1,
            {
              "d": "}],:\\"\\\\"
            }
          ],
          "e": 1E400
        }

        """
      ),
      "\(result.output)"
    )
  }

  // MARK: Ends

  @Test(
    arguments: [
      (["list"], 0, nil),
      (["call", "noSuchMethod"], 1, "methodNotFound"),
      (["list", "--socket", "/nowhere/b.sock"], 3, "notRunning"),
      (["tree", "b"], 4, "unknownApplication"),
      (["history", "b"], 4, "unknownApplication"),
      (["discard", "b", "--force"], 4, "unknownApplication"),
      (["show", "b", "Main"], 4, "unknownApplication"),
      (["show", "a", "Mian"], 4, "unknownObject"),
      (["show", "a", "Main", "--generation", "9"], 4, "invalidParams"),
      (["call", "decodeRestorableState", #"{"application":"a","object":["B"]}"#], 4, "unknownObject"),
    ]
  )
  func aFailureIsAMessageAStatusAndInJSONADocument(_ arguments: [String], _ status: Int32, _ kind: String?) throws {
    try Self.storeObject()
    let text = try ControlTool.run(arguments, status: status)
    #expect(text.errors.isEmpty == (kind == nil))
    guard let kind else { return }
    #expect(text.output.isEmpty)
    #expect(text.errors.hasPrefix("restorationctl: "))
    for form in ["short", "pretty"] {
      let result = try ControlTool.run(arguments + ["--json", form], status: status)
      #expect(result.errors == text.errors)
      let error = try result.error
      #expect(error["kind"] == .string(kind))
      #expect(error["message"]?.string.map { text.errors.contains($0) } == true)
      #expect(error.object?.members.map(\.name) == ["code", "message", "kind", "hint", "path", "pointer"])
      if kind == "unknownApplication" { #expect(error["hint"]?.string?.contains("restorationctl list") == true) }
    }
  }

  @Test(
    arguments: [
      ["list", "--socket", ""], ["list", "--timeout", "0"], ["list", "--timeout", "soon"], ["list", "--timeout", "-1"],
      ["list", "--json", "xml"],
      ["show", "a", "Main//Editor"], ["show", "a"], ["show", "a", "Main", "--generation", "0"], ["discard", "a"],
      ["tree"],
    ]
  )
  func aWrongCommandLineIsStatus64(_ arguments: [String]) throws {
    try Self.storeObject()
    let result = try ControlTool.run(arguments, status: 64)
    #expect(result.output.isEmpty)
    #expect(!result.errors.isEmpty)
    // A time says which ones there are.
    let isTime = arguments.contains("--timeout")
    #expect(result.errors.contains("give a number of seconds above 0, 86400 at most\n") == isTime, "\(result.errors)")
  }

  @Test(
    arguments: [
      (["lsit"], "'list'"), (["-j", "--socket", "/nowhere", "tre", "a"], "'tree'"),
      (["tree", "a", "--jsno"], "'--json'"),
      (["history", "--no-legnd", "a"], "'--no-legend'"), (["help", "lsit"], "'list'"),
      (["-j", "help", "tre"], "'tree'"),
    ]
  )
  func aMistypedWordIsToldTheRightOne(_ arguments: [String], _ word: String) throws {
    try Self.storeObject()
    let result = try ControlTool.run(arguments, status: 64)
    #expect(result.errors.contains("Did you mean \(word)?"), "\(result.errors)")
  }

  @Test func aBrokerThatDoesNotSpeakTheProtocolIsStatus69() throws {
    try Self.storeObject()
    let path = broker.directory.file("odd.sock")
    let server = """
      import socket
      s = socket.socket(socket.AF_UNIX); s.bind("\(path)"); s.listen(); print("ready", flush=True)
      c, _ = s.accept(); c.recv(1); c.sendall(b"hello\\n"); c.close()
      """
    let process = try ChildProcess(["python3", "-c", server])
    #expect(try process.output?.next() == "ready")
    let result = try ControlTool.run(["-j", "status", "--socket", path], status: 69)
    #expect(try result.error["kind"] == "unavailable")
    try process.waitForEnd()
  }

  @Test(arguments: commands)
  func aStoppedBrokerIsStatus75AfterTheTimeout(_ command: [String]) throws {
    try Self.storeObject()
    let pid = try broker.pid
    kill(pid, SIGSTOP)
    defer { kill(pid, SIGCONT) }
    let begin = Deadline.now
    let result = try ControlTool.run(command + ["--timeout=0.2", "-j"], status: 75)
    #expect(try result.error["kind"] == "timedOut")
    #expect(result.errors.contains(broker.socket))
    #expect(Deadline.now - begin >= 200)
  }

  @Test(arguments: [[], ["-j"]])
  func outputThatNobodyReadsIsStatus75AfterTheTimeout(_ form: [String]) throws {
    // No pipe takes it as a whole.
    let state: JSONValue = ["text": .string(String(repeating: "x", count: 250 << 10))]
    try broker.connect().encode("Large", state: state, of: "a")
    // The limit covers the whole run: on a busy machine it may be over before there is any output.
    for seconds in [1, 2, 4, 8] {
      let log = broker.directory.file("errors-\(seconds)")
      let process = try ChildProcess(
        [Products.control, "show", "a", "Large", "--timeout=\(seconds)"] + form,
        environment: ControlTool.environment(),
        errors: log
      )
      #expect(try process.waitForEnd() == .exit(75))
      let errors = try Files.text(log)
      if errors.contains("did not finish within"), seconds < 8 { continue }
      #expect(errors.contains("the output was not read completely within \(seconds) s"), "\(errors)")
      // Nothing follows the truncated output that could be mistaken for its end.
      #expect(try process.output?.rest().contains("timedOut") == false)
      return
    }
  }

  @Test func aBrokerThatEndsMeanwhileIsStatus69() throws {
    try Self.storeObject()
    let path = broker.directory.file("odd.sock")
    let server = """
      import socket
      s = socket.socket(socket.AF_UNIX); s.bind("\(path)"); s.listen(); print("ready", flush=True)
      c, _ = s.accept(); c.recv(1); c.close()
      """
    let process = try ChildProcess(["python3", "-c", server])
    #expect(try process.output?.next() == "ready")
    let result = try ControlTool.run(["-j", "tree", "a", "--socket", path], status: 69)
    #expect(try result.error["kind"] == "unavailable")
    #expect(try result.error["hint"]?.string?.contains("restorationctl status") == true)
    try process.waitForEnd()
  }

  @Test func outputThatCannotBeWrittenIsStatus74() throws {
    try Self.storeObject()
    let errors = broker.directory.file("errors")
    let process = try ChildProcess(
      [Products.control, "tree", "a"],
      environment: ControlTool.environment(),
      output: .file("/dev/full"),
      errors: errors
    )
    #expect(try process.waitForEnd() == .exit(74))
    #expect(try Files.text(errors).contains("cannot be written"))
  }

  /// The tool must not write to a file it has opened itself.
  @Test(arguments: [("<&- >&-", true), ("<&- >&- 2>&-", false), ("2>&-", false)])
  func aClosedDescriptorIsNothingElse(_ closed: String, _ complains: Bool) throws {
    try Self.storeObject()
    for (command, status) in [("tree a", closed == "2>&-" ? 0 : 74), ("tree b", 4)] as [(String, Int32)] {
      let result = try ChildProcess.run(
        ["bash", "-c", "exec \"$0\" \(command) \(closed)", Products.control],
        environment: ControlTool.environment()
      )
      #expect(result.end == .exit(status), "\(command): \(result.errors)")
      if complains { #expect(result.errors.contains(status == 74 ? "Bad file descriptor" : "no archive of b")) }
    }
  }

  // MARK: Terminals

  @Test func coloursAreForTerminals() throws {
    try Self.storeObject()
    let arguments = ["tree", "a", "--no-pager"]
    let escape = "\u{1b}["
    #expect(try !ControlTool.run(arguments).output.contains(escape))
    let shown = try ControlTool.runOnTerminal(arguments, status: 0)
    #expect(shown.output.contains(escape))
    for environment in [["NO_COLOR": "1"], ["TERM": "dumb"], ["TERM": nil]] {
      let plain = try ControlTool.runOnTerminal(arguments, environment: environment, status: 0)
      #expect(!plain.output.contains(escape))
      #expect(plain.output.contains("Main"))
    }
    #expect(try ControlTool.runOnTerminal(arguments, environment: ["NO_COLOR": ""]).output.contains(escape))
  }

  @Test func shortJSONIsForPipesAndPrettyJSONForTerminals() throws {
    try Self.storeObject()
    for arguments in [["list", "-j", "--no-pager"], ["call", "listApplications"]] {
      #expect(try ControlTool.run(arguments).output.hasPrefix(#"{"applications":["#))
      let shown = try ControlTool.runOnTerminal(arguments)
      #expect(shown.output.hasPrefix("{\n  \"applications\": [\n"), "\(shown.output)")
    }
  }

  @Test func longOutputGoesToThePagerOfATerminal() throws {
    try Self.storeObject()
    let pager = ["RESTORATIOND_PAGER": "sed s/^/page:/", "PAGER": "false"]
    for command in [["list"], ["tree", "a"], ["show", "a", "Main"], ["history", "a"]] {
      let paged = try ControlTool.runOnTerminal(command, environment: pager, status: 0)
      #expect(paged.output.split(separator: "\n", omittingEmptySubsequences: false).first?.hasPrefix("page:") == true)
      for arguments in [command + ["--no-pager"], ["--no-pager"] + command] {
        #expect(try !ControlTool.runOnTerminal(arguments, environment: pager).output.contains("page:"))
      }
      #expect(try !ControlTool.run(command, environment: pager).output.contains("page:"))
    }
    for environment in [["RESTORATIOND_PAGER": "", "PAGER": "false"], ["PAGER": "cat"], ["TERM": "dumb"]] {
      let shown = try ControlTool.runOnTerminal(["list"], environment: environment, status: 0)
      #expect(shown.output.contains("1 application."))
    }
    // What fits with its lines broken is not chopped, at which less would wait for a key.
    let flags = ["PAGER": "sh -c 'cat >/dev/null; echo flags:$LESS'"]
    #expect(try ControlTool.runOnTerminal(["list"], columns: 40, environment: flags).output.contains("flags:FRXMK"))
    let cut = try ControlTool.runOnTerminal(["list", "--full"], columns: 4, environment: flags).output
    #expect(cut.contains("flags:FRSXMK"))
    let missing = try ControlTool.runOnTerminal(["list"], environment: ["PAGER": "no-such-pager"], status: 0)
    #expect(missing.output.contains("1 application."))
  }

  @Test func tablesFitTheTerminal() throws {
    let name = "org.example." + String(repeating: "LongName.", count: 8) + "End"
    try broker.connect().encode("Main", state: [:], of: name)
    for columns in [80, 72] {
      let result = try ControlTool.run(["list"], environment: ["COLUMNS": "\(columns)"])
      #expect(result.output.split(separator: "\n").allSatisfy { $0.count <= columns }, "\(result.output)")
      #expect(result.output.contains("…") && result.output.contains("End "))
    }
    let shown = try ControlTool.runOnTerminal(["list", "--no-pager"], columns: 90)
    #expect(shown.output.split(separator: "\n").contains { $0.hasPrefix("org.") && $0.count == 90 }, "\(shown.output)")
    let ascii = try ControlTool.run(["list"], environment: ["LC_ALL": "C", "COLUMNS": "80"])
    #expect(ascii.output.contains("...") && ascii.output.utf8.allSatisfy { $0 < 0x80 })
    #expect(try ControlTool.run(["list", "--full"], environment: ["COLUMNS": "80"]).output.contains(name))
    // Nobody looks at a pipe: nothing is lost in it.
    #expect(try ControlTool.run(["list"]).output.contains(name))
  }

  @Test func namesDoNotSteerTheTerminal() throws {
    let client = try broker.session("a", process: "main\u{202e}")
    try client.register("A\u{202e}B", with: ["objectClass": "\u{9b}31m"])
    try client.encode("A\u{202e}B", state: ["k": "\u{9b}\u{7f}"])
    for arguments in [["tree", "a"], ["show", "a", "A\u{202e}B"], ["show", "a", "B\u{1b}"]] {
      let result = try ControlTool.run(arguments)
      for text in [result.output, result.errors] {
        #expect(text.unicodeScalars.allSatisfy { $0 == "\n" || $0.properties.generalCategory != .control }, "\(text)")
        #expect(!text.unicodeScalars.contains("\u{202e}"))
      }
    }
    #expect(try ControlTool.run(["tree", "a"]).output.contains(#"A\u{202e}B"#))
    #expect(try ControlTool.run(["show", "a", "A\u{202e}B"]).output.contains(#""k": "\u009b\u007f""#))
    for arguments in [["tree", "a", "-j", "--no-pager"], ["call", "describeApplication", #"{"application":"a"}"#]] {
      let shown = try ControlTool.runOnTerminal(arguments).output
      #expect(shown.contains(#""\u009b31m""#) && shown.contains(#"A\u202eB"#), "\(shown)")
      #expect(try ControlTool.run(arguments).output.contains("A\u{202e}B"))
    }
  }

  @Test(arguments: [["import", "a", "\u{1b}[31m\u{3164}"], ["\u{1b}[31m\u{3164}"], ["list", "--\u{1b}[31m\u{3164}"]])
  func theCommandLineDoesNotSteerTheTerminalWhenItIsRepeated(_ arguments: [String]) throws {
    let result = try ControlTool.run(arguments, status: 64)
    #expect(result.errors.contains(#"\u{1b}[31m\u{3164}"#), "\(result.errors)")
    #expect(result.errors.unicodeScalars.allSatisfy { $0 == "\n" || $0.properties.generalCategory != .control })
  }

  @Test func whatCannotBeSeenInANameIsShown() throws {
    let hidden = [
      "115f": #"\u115f"#, "3164": #"\u3164"#, "ffa0": #"\uffa0"#, "34f": #"\u034f"#, "2800": #"\u2800"#,
      "200b": #"\u200b"#, "200e": #"\u200e"#, "61c": #"\u061c"#, "feff": #"\ufeff"#, "e0041": #"\udb40\udc41"#,
    ]
    let client = try broker.connect()
    for digits in hidden.keys {
      let scalar = try #require(UInt32(digits, radix: 16).flatMap(Unicode.Scalar.init))
      let name = "Name\(scalar)"
      try client.encode(name, state: [name: 1], of: "a")
      let tree = try ControlTool.run(["tree", "a"]).output
      #expect(tree.contains(#"Name\u{\#(digits)}"#), "\(tree)")
      let shown = try ControlTool.run(["show", "a", name]).output
      #expect(shown.contains(#""Name\#(hidden[digits] ?? "")": 1"#), "\(shown)")
    }
    // Joined pictures are one.
    try client.encode("👩‍👧", state: [:], of: "a")
    #expect(try ControlTool.run(["tree", "a"]).output.contains("─👩‍👧 "))
  }
}
