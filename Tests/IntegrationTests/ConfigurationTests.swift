// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// Flags override the environment, which overrides the user's file, which overrides defaults; invalid settings are
/// named.
@Suite struct ConfigurationTests {
  /// Runs a broker that must end at once with status 1 or 64; returns its messages.
  private static func failing(
    _ arguments: [String],
    _ environment: [String: String?] = [:],
    in directory: ScratchDirectory
  ) throws -> String {
    var variables: [String: String?] = [
      "RESTORATIOND_SOCKET": nil, "RESTORATIOND_ARCHIVES": nil, "XDG_CONFIG_HOME": directory.path,
      "XDG_RUNTIME_DIR": directory.path, "XDG_STATE_HOME": directory.path, "RESTORATIOND_LOG_LEVEL": nil,
    ]
    variables.merge(environment) { $1 }
    let result = try ChildProcess.run([Products.broker] + arguments, environment: variables)
    #expect(result.end == .exit(1) || result.end == .exit(64), "\(result.end)")
    #expect(result.output.isEmpty)
    #expect(!result.errors.isEmpty)
    return result.errors
  }

  @Test(.scratch) func aFlagGoesOverTheEnvironmentOverTheFile() throws {
    for name in ["f", "e", "c", "restorationd"] { _ = try directory.makeDirectory(name) }
    let file: JSONValue = [
      "socket": .string(directory.file("c/b.sock")), "archives": .string(directory.file("c/archives")),
      "limits": ["batchMax": 9],
    ]
    try directory.write(file.text, to: "restorationd/config.json")
    let environment: [String: String?] = [
      "XDG_CONFIG_HOME": directory.path, "RESTORATIOND_LOG_LEVEL": nil, "XDG_RUNTIME_DIR": nil,
      "RESTORATIOND_SOCKET": directory.file("e/b.sock"), "RESTORATIOND_ARCHIVES": directory.file("e/archives"),
    ]
    func socket(_ arguments: [String], _ changes: [String: String?], _ expected: String) throws {
      let variables = environment.merging(changes) { $1 }
      let errors = directory.file("log")
      let process = try ChildProcess([Products.broker] + arguments, environment: variables, errors: errors)
      try Wait.until("the broker accepts on \(expected)") {
        guard process.isRunning else { throw TestFailure("the broker ended: \(try Files.text(errors))") }
        return (try? WireClient(directory.file(expected)).call("limits")["batchMax"]) == 9
      }
      try process.kill()
    }
    try socket(["--socket", directory.file("f/b.sock"), "--archives", directory.file("f/archives")], [:], "f/b.sock")
    #expect(Files.exists(directory.file("f/archives/+ballast")))
    try socket([], [:], "e/b.sock")
    #expect(Files.exists(directory.file("e/archives/+ballast")))
    try socket([], ["RESTORATIOND_SOCKET": nil, "RESTORATIOND_ARCHIVES": nil], "c/b.sock")
    #expect(Files.exists(directory.file("c/archives/+ballast")))
  }

  @Test(.scratch) func withoutAnythingItListensInTheRuntimeDirectory() throws {
    let environment: [String: String?] = [
      "XDG_CONFIG_HOME": directory.path, "XDG_RUNTIME_DIR": directory.path,
      "XDG_STATE_HOME": directory.file("state"), "RESTORATIOND_SOCKET": nil, "RESTORATIOND_ARCHIVES": nil,
    ]
    let process = try ChildProcess([Products.broker], environment: environment, errors: directory.file("log"))
    try Wait.until("the broker accepts") {
      process.isRunning && (try? WireClient(directory.file("restorationd/broker.sock")).call("ping")) != nil
    }
    #expect(Files.mode(directory.file("restorationd")) == 0o700)
    try process.kill()
  }

  /// File contents, and the words that the message must contain.
  static let files: [(text: String, words: [String])] = [
    ("{", ["config.json"]),
    ("[]", ["config.json", "object"]),
    (#"{"sockt":"/x"}"#, ["sockt"]),
    (#"{"socket":5}"#, ["socket"]),
    (#"{"limits":{"batchMx":5}}"#, ["batchMx"]),
    (#"{"limits":{"batchMax":0}}"#, ["batchMax"]),
    (#"{"limits":{"batchMax":"5"}}"#, ["batchMax"]),
    (#"{"limits":{"batchMax":1.5}}"#, ["batchMax"]),
    (#"{"limits":{"stateDepthMax":56,"depthMax":60}}"#, ["stateDepthMax", "depthMax"]),
    (#"{"limits":{"stateBytesMax":4194304}}"#, ["stateBytesMax"]),
    (#"{"logLevel":"loud"}"#, ["logLevel", "loud"]),
    (#"{"idleExitSeconds":2}"#, ["idleExitSeconds", "2", "3 to 86400", "0 for never"]),
    (#"{"unusedDays":90}"#, ["unusedDays", "restorationd-forget-unused.timer", "restorationctl forget --unused"]),
    (#"{"limits":{"x":1}}"#, ["limits", "unknown limit x"]),
    (#"{"restoreAtLogin":"always"}"#, ["restoreAtLogin", "object"]),
    (#"{"restoreAtLogin":{"*":"seldom"}}"#, ["restoreAtLogin", "*", "never, ask, always"]),
    (#"{"restoreAtLogin":{"a/b":"always"}}"#, ["restoreAtLogin", "a/b"]),
    (#"{"restoreAtLogin":{"a":true}}"#, ["restoreAtLogin"]),
  ]

  @Test(.scratch, arguments: files)
  func aConfigurationThatCannotBeUsedIsNamed(_ file: (text: String, words: [String])) throws {
    let path = try directory.write(file.text, to: "config.json")
    let message = try Self.failing(["--config", path], in: directory)
    for word in file.words + ["config.json"] { #expect(message.contains(word), "\(message)") }
  }

  /// With another character in its place, the archives would go to another directory than was named.
  @Test(.scratch) func aConfigurationThatIsNotUTF8IsRefusedWithThePlace() throws {
    let file = try directory.write("{}", to: "config.json")
    try Files.write(Array(#"{"archives": "/tmp/ä"#.utf8) + [0xff] + Array(#""}"#.utf8), to: file)
    let message = try Self.failing(["--config", file], in: directory)
    #expect(message.contains("\(file) is not UTF-8 at byte 21"), "\(message)")
  }

  @Test(.scratch) func aFlagThatCannotBeUsedIsNamedAndNoFile() throws {
    for (flag, value) in [("--idle-exit", "86401"), ("--log-level", "loud")] {
      let message = try Self.failing([flag, value], in: directory)
      #expect(message.contains("\(flag): ") && message.contains(value), "\(message)")
    }
  }

  @Test(.scratch) func aDirectoryThatCannotBeMadeIsSaid() throws {
    _ = try ChildProcess.run(["ln", "-s", "/nowhere", directory.file("link")])
    for path in [directory.file("link/x"), "/proc/x"] {
      let message = try Self.failing(["--socket", directory.file("b.sock"), "--archives", path], in: directory)
      #expect(message.contains("cannot use directory \(path) (fix it, or name another one): "), "\(message)")
    }
  }

  @Test(.scratch) func aMissingFileThatWasNamedIsAnError() throws {
    let message = try Self.failing(["--config", directory.file("none.json")], in: directory)
    #expect(message.contains("none.json"))
  }

  @Test(.scratch) func aSocketPathThatIsTooLongSaysHowLongItMayBe() throws {
    let name = directory.file(String(repeating: "s", count: 108 - directory.path.utf8.count - 1))
    #expect(name.utf8.count == 108)
    let message = try Self.failing(["--socket", name], in: directory)
    #expect(message.contains("107") && message.contains("108"), "\(message)")
  }

  @Test(.scratch) func noRuntimeDirectorySaysWhatToSet() throws {
    let message = try Self.failing([], ["XDG_RUNTIME_DIR": nil], in: directory)
    #expect(message.contains("XDG_RUNTIME_DIR") && message.contains("--socket"), "\(message)")
  }

  @Test(.scratch) func anUnsafeDirectoryIsRefused() throws {
    _ = try directory.makeDirectory("open")
    _ = try ChildProcess.run(["chmod", "777", directory.file("open")])
    let socket = try Self.failing(["--socket", directory.file("open/b.sock")], in: directory)
    #expect(socket.contains("open"), "\(socket)")
    _ = try ChildProcess.run(["ln", "-s", directory.path, directory.file("link")])
    let archives = try Self.failing(
      ["--socket", directory.file("b.sock"), "--archives", directory.file("link")],
      in: directory
    )
    #expect(archives.contains("symbolic link"), "\(archives)")
  }

  @Test(.scratch) func aFileAtTheSocketsPathIsNotReplaced() throws {
    try directory.write("precious", to: "b.sock")
    let message = try Self.failing(["--socket", directory.file("b.sock")], in: directory)
    #expect(message.contains("b.sock"), "\(message)")
    #expect(try Files.text(directory.file("b.sock")) == "precious")
  }

  /// Words of a command line, and what the message must say.
  static let commandLines: [(words: [String], message: String)] = [
    (["--bogus"], "unknown option --bogus"), (["--archive", "/nonexistent"], "unknown option --archive"),
    (["--idle=3"], "unknown option --idle=3"), (["--arch"], "unknown option --arch"),
    (["--dev=1"], "unknown option --dev=1"),
    (["-x"], "unknown option -x"),
    (["--socket"], "--socket <path>: the value is missing"),
    (["--developer-mode=1"], "--developer-mode takes no value"),
    (["--idle-exit", "soon"], "--idle-exit: \"soon\" is not a number"),
    (["--idle-exit=1e3"], "--idle-exit: \"1e3\" is not a number"),
    (["--idle-exit", "99999999999999999999"], "--idle-exit: \"99999999999999999999\" is not a number"),
    (["--developer-mode", "extra"], "unexpected argument extra"),
    (["--", "--socket"], "unexpected argument --socket"),
  ]

  @Test(.scratch, arguments: commandLines)
  func anInvalidCommandLineIsNamedAndSoIsTheHelp(_ line: (words: [String], message: String)) throws {
    let message = try Self.failing(line.words, in: directory)
    #expect(message.hasPrefix("Error: \(line.message)\nUsage: restorationd [--socket <path>] "), "\(message)")
    #expect(message.hasSuffix("\n  See 'restorationd --help' for more information.\n"), "\(message)")
  }

  @Test(.scratch) func optionsTakeTheirValuesInEitherWayAndTheLastOneCounts() throws {
    let (first, last) = (directory.file("first.json"), directory.file("last.json"))
    #expect(try Self.failing(["--config", first, "--config=\(last)"], in: directory).contains(last))
    #expect(try Self.failing(["--config=\(last)", "--config", first], in: directory).contains(first))
  }

  /// An administrator sets up the fleet for all users of a host.
  @Test(.scratch) func aUserWhoHasNoKeyOfTheFleetIsServedOnThisHost() throws {
    let keys = directory.file("keys")
    let settings: JSONObject = ["replica": ["socket": "/nonexistent/gateway.sock", "keys": .string(keys)]]
    let broker = BrokerFixture(in: directory, settings: settings)
    try broker.start()
    let client = try broker.session()
    let object = try client.call("registerObjectForStateRestoration", ["restorationIdentifier": "editor"])["object"]
    try client.call("encodeRestorableState", ["object": object ?? .null, "state": ["n": 1]])
    #expect(broker.log.contains("there is no key in \(keys)") && broker.log.contains("restorationctl store key new"))
  }

  @Test(.passesTurnstile) func helpAndVersionGoToStandardOutput() throws {
    let help = try ChildProcess.run([Products.broker, "--help"])
    #expect(help.end == .exit(0))
    for flag in ["--socket", "--archives", "--config", "--developer-mode", "--log-level"] {
      #expect(help.output.contains(flag))
    }
    #expect(try ChildProcess.run([Products.broker, "--socket", "/x", "-h"]).output == help.output)
    let version = try ChildProcess.run([Products.broker, "--version"])
    #expect(version.end == .exit(0) && version.output.contains("."))
  }
}
