// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// `restorationctl`: its output and exit statuses.
@Suite struct ControlTests {
  @Test(.broker) func statusNamesTheBrokerItsSocketAndItsProcess() throws {
    try broker.session("org.example.Notes").register("Main")
    let result = try ControlTool.run(["status"], status: 0)
    #expect(result.output.contains(broker.socket))
    #expect(result.output.contains("\(try broker.pid)"))
    #expect(result.output.contains(/Uptime:\ \ [0-9]+\ (s|min)\n/), "\(result.output)")
    #expect(result.errors.isEmpty)
    #expect(result.output.split(separator: "\n").allSatisfy { $0.count <= 100 })
  }

  @Test(.broker) func statusInJSONHasAllMembers() throws {
    let session = try broker.session("a")
    let text = try ControlTool.run(["status"]).output
    #expect(
      text.split(separator: "\n").map { $0.split(separator: ":")[0].split(separator: " ").joined() } == [
        "Broker", "Socket", "Process", "Uptime", "Sessions", "Objects", "Archives",
      ]
    )
    let status = try ControlTool.run(["status", "-j"]).json
    #expect(
      status.object?.members.map(\.name) == [
        "broker", "version", "socket", "pid", "uptimeMilliseconds", "sessions", "objects", "archives", "bytes",
        "readOnly", "damaged", "withheld",
      ]
    )
    #expect(status["socket"] == .string(broker.socket))
    #expect(status["pid"] == .integer(Int64(try broker.pid)))
    #expect(status["sessions"] == 1)
    try session.call("ping")
  }

  @Test(.broker) func listIsATableWithALegend() throws {
    for name in ["org.example.Notes", "b"] { try broker.connect().encode("Main", state: ["n": 1], of: name) }
    let text = ControlTool.golden(try ControlTool.run(["list"]).output).replacing(/[0-9.]+ KiB/, with: "<size>")
    #expect(
      text == """
        APPLICATION  SESSIONS  OBJECTS  GENERATION  STATES  FILES  STATE
        b  0  1  -  7 B  <size>  available
        org.example.Notes  0  1  -  7 B  <size>  available

        2 applications.

        """
    )
    let bare = try ControlTool.run(["list", "--no-legend"])
    #expect(bare.output.split(separator: "\n").count == 2)
    // A while after its last write an archive is tidied, and its files have another size.
    try Wait.until("two equal lists stand before and after one") {
      let called = { try ControlTool.run(["call", "listApplications"]).output }
      let (before, listed, after) = (try called(), try ControlTool.run(["list", "-j"]).output, try called())
      guard before == after else { return false }
      #expect(listed == before)
      return true
    }
  }

  @Test(.broker) func aListIsOfAPatternAndInAnOrder() throws {
    for (name, length) in [("org.example.A", 1), ("org.example.B", 240_000), ("net.C", 40_000)] {
      let state: JSONValue = ["text": .string(String(repeating: "x", count: length))]
      try broker.connect().encode("Main", state: state, of: name)
    }
    func names(_ words: String...) throws -> [String] {
      let lines = try ControlTool.run(["list", "--no-legend"] + words, status: 0).output.split(separator: "\n")
      return lines.compactMap { $0.split(separator: " ").first.map(String.init) }
    }
    #expect(try names() == ["net.C", "org.example.A", "org.example.B"])
    #expect(try names("org.*.[!B]") == ["org.example.A"])
    #expect(try names("org") == [])
    #expect(try names("--sort", "size") == ["org.example.B", "net.C", "org.example.A"])
    let json = try ControlTool.run(["list", "-j", "*C", "--sort", "time"], status: 0).json
    #expect(json["applications"]?.array?.compactMap { $0["application"]?.string } == ["net.C"])
    let wrong = try ControlTool.run(["list", "--sort", "age"], status: 64)
    #expect(wrong.errors.contains("name, size, time") || wrong.errors.contains("'time'"), "\(wrong.errors)")
  }

  /// Columns give way before names do, in this order: GENERATION, FILES, OBJECTS, STATES, STATE, SESSIONS.
  @Test(
    .broker,
    arguments: [
      (90, "APPLICATION SESSIONS OBJECTS GENERATION STATES FILES STATE"),
      (80, "APPLICATION SESSIONS OBJECTS STATES FILES STATE"), (60, "APPLICATION SESSIONS STATES STATE"),
      (40, "APPLICATION SESSIONS"), (24, "APPLICATION"),
    ]
  ) func aNarrowListLeavesOutColumns(_ columns: Int, _ titles: String) throws {
    let name = "org.example.Notes.Editor"
    try broker.connect().encode("Main", state: ["n": 1], of: name)
    for command in [["list"], ["top", "--count", "1"]] {
      let output = try ControlTool.run(command, environment: ["COLUMNS": "\(columns)"], status: 0).output
      let lines = output.split(separator: "\n")
      #expect(lines.allSatisfy { $0.count <= columns }, "\(output)")
      let header = try #require(lines.first { $0.hasPrefix("APPLICATION") })
      #expect(header.split(separator: " ").joined(separator: " ") == titles)
      #expect(output.contains(columns > 24 ? name : "org.exam"), "\(output)")
    }
  }

  @Test(.broker) func listShowsApplications() throws {
    let empty = try ControlTool.run(["list"], status: 0)
    #expect(empty.output.contains("0 applications"))
    let client = try broker.session("org.example.Notes")
    try client.register("Main")
    try client.encode("Main", state: ["n": 1])
    let result = try ControlTool.run(["list"], status: 0)
    #expect(result.output.contains("org.example.Notes"))
    #expect(result.output.contains("available"))
    #expect(result.output.contains("1 application."))
  }

  @Test(.broker) func callPrintsTheResultOnOneLineInAPipe() throws {
    let state = #"{"application":"a","object":["A"],"state":{"x":0.1,"y":18446744073709551615,"z":1e400}}"#
    let encoded = try ControlTool.run(["call", "encodeRestorableState", state], status: 0)
    #expect(encoded.output.contains(#""durability":"disk""#))
    let decoded = try ControlTool.run(
      ["call", "decodeRestorableState", "-"],
      input: #"{"application":"a","object":["A"]}"#
    )
    #expect(decoded.end == .exit(0))
    #expect(decoded.output.contains(#"{"x":0.1,"y":18446744073709551615,"z":1e400}"#))
    #expect(decoded.output.split(separator: "\n", omittingEmptySubsequences: false).count == 2)
  }

  @Test(.broker) func anErrorOfTheBrokerIsAMessageAndStatus1() throws {
    let result = try ControlTool.run(["call", "noSuchMethod"], status: 1)
    #expect(result.output.isEmpty)
    #expect(!result.errors.isEmpty)
  }

  @Test(.broker) func methodsAreListedAndDescribedAndTheOneThatWasMeantIsNamed() throws {
    let list = ControlTool.golden(try ControlTool.run(["methods"], status: 0).output)
    for row in ["encodeRestorableState  broker  Stores a state.", "stateWanted  client  "] {
      #expect(list.contains("\n" + row), "\(list)")
    }
    #expect(try ControlTool.run(["methods", "-j"]).output.firstMatch(of: /\bR[0-9]/) == nil)
    let names = try ControlTool.run(["methods", "-j"]).json["methods"]?.array?.compactMap { $0["name"]?.string } ?? []
    #expect(names.count > 50 && names.contains("rpc.discover"))
    let page = ControlTool.golden(try ControlTool.run(["methods", "encodeRestorableState"]).output)
    let rows = [
      "object  Handle or array of string  Required. The object; ",
      "expecting  integer or null  Stores the state only if ", "RESULT  TYPE  MEANING\nsequence  integer  Stored, ",
      "stateChanged  -32021  The object's newest state ",
    ]
    for row in rows { #expect(page.contains("\n" + row), "\(page)") }
    #expect(!list.contains("(R") && !page.contains("(R"), "rules are for those who read the protocol")
    let described = try ControlTool.run(["methods", "ping", "-j"]).json
    #expect(described["name"] == "ping" && described["result"] != nil)
    for command in [["methods", "encodeRestorabelState"], ["call", "encodeRestorabelState"]] {
      let result = try ControlTool.run(command + ["-j"], status: 1)
      #expect(try result.error["kind"] == "methodNotFound" && result.error["code"] == -32601)
      #expect(result.errors.contains("Did you mean encodeRestorableState? "), "\(result.errors)")
    }
  }

  @Test(.broker, arguments: [["call", "ping", "{"], ["call", "ping", "7"], ["call"], ["dance"]])
  func aWrongCommandLineIsStatus64(_ arguments: [String]) throws {
    let result = try ControlTool.run(arguments, status: 64)
    #expect(result.output.isEmpty)
    #expect(!result.errors.isEmpty)
  }

  @Test(.broker, arguments: ["{", "7", ""])
  func parametersThatCannotBeSentAreToldWhatTheyShouldBe(_ parameters: String) throws {
    for (argument, input) in [(parameters, ""), ("-", parameters)] {
      let result = try ControlTool.run(["call", "ping", argument], input: input, status: 64)
      #expect(result.errors.contains(#"such as '{"application":"org.example.Notes"}'"#), "\(result.errors)")
    }
  }

  @Test(.broker) func aWrongParameterIsNamed() throws {
    let parameters = #"{"application":"a","object":["A"],"state":{"a":1,"a":2}}"#
    let result = try ControlTool.run(["-j", "call", "encodeRestorableState", parameters], status: 1)
    #expect(result.errors.contains("Invalid params (/state/a)\n"), "\(result.errors)")
    #expect(result.output.contains(#""pointer":"/state/a""#))
  }

  /// The broker would ignore it, and miss what was meant, or do another thing.
  @Test(.broker) func aParameterThatTheMethodDoesNotHaveIsNamedAndNothingIsDone() throws {
    for (name, meant) in [("aplication", "application"), ("expectin", "expecting"), ("elemnts", "elements")] {
      let parameters = #"{"application":"a","object":["A"],"state":{},"\#(name)":1}"#
      let result = try ControlTool.run(["-j", "call", "encodeRestorableState", parameters], status: 1)
      let error = try result.error
      #expect(error["message"] == .string("encodeRestorableState has no parameter \(name)"))
      let hint = "Did you mean \(meant)? restorationctl methods encodeRestorableState lists them."
      #expect(error["hint"] == .string(hint))
      #expect(error["kind"] == "invalidParams" && error["code"] == -32602 && error["pointer"] == .string("/\(name)"))
    }
    let traced = ["call", "listApplications", #"{"_meta":{"traceparent":"00"}}"#]
    #expect(try ControlTool.run(traced, status: 0).output == "{\"applications\":[]}\n")
    try ControlTool.run(["call", "ping", #"{"application":"a"}"#], status: 0)
    let page = try ControlTool.run(["methods", "listGenerations"], status: 0).output
    #expect(page.contains(/\napplication +ApplicationName +The application that the call is about\./), "\(page)")
  }

  @Test(.scratch, arguments: ["status", "list", "call"])
  func withoutABrokerItSaysWhichSocketAndWhatToStart(_ command: String) throws {
    let socket = directory.file("b.sock")
    let result = try ChildProcess.run(
      [Products.control, "--socket", socket, command] + (command == "call" ? ["ping"] : [])
    )
    #expect(result.end == .exit(3))
    #expect(result.output.isEmpty)
    #expect(result.errors.contains(socket))
    #expect(result.errors.contains("restorationd"))
  }

  @Test(.broker) func theSocketMayComeFromTheEnvironment() throws {
    let result = try ChildProcess.run(
      [Products.control, "call", "ping"],
      environment: ["RESTORATIOND_SOCKET": broker.socket]
    )
    #expect(result.end == .exit(0))
    #expect(result.output == "{}\n")
  }
}
