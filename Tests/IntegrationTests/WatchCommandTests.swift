// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// What `restorationctl` shows again and again: `tree --watch`, `get --watch` and `top`.
@Suite struct WatchCommandTests {
  private static func start(_ arguments: [String]) throws -> ChildProcess {
    try ChildProcess([Products.control] + arguments, environment: ControlTool.environment())
  }

  /// The lines up to an empty one.
  private static func block(_ process: ChildProcess) throws -> [String] {
    var lines: [String] = []
    while true {
      let line = try #require(try process.output?.next(), "it has ended")
      if line.isEmpty { return lines }
      lines.append(line)
    }
  }

  @Test(.broker) func aWatchedTreeIsShownAgainWhenItChanges() throws {
    let client = try broker.session("a", process: "editor")
    let tree = try Self.start(["tree", "a", "--watch", "--no-legend"])
    #expect(try Self.block(tree) == ["a"])
    try client.register("Main")
    while try Self.block(tree).last?.hasPrefix("└─Main") != true {}
    try client.call("goodbye", ["reason": "closed"])
    while try Self.block(tree) != ["a"] {}
    tree.send(signal: SIGINT)
    #expect(try tree.waitForEnd() == .exit(0))
  }

  @Test(.broker) func aWatchedValueIsPrintedAgainWhenItChangesAndOnlyThen() throws {
    let client = try broker.connect()
    func put(_ state: JSONValue) throws { try client.encode("Main", state: state, of: "a") }
    try put(["n": 1, "other": 1])
    let get = try Self.start(["get", "a", "Main", "/n", "--watch"])
    #expect(try get.output?.next() == "1")
    try put(["n": 1, "other": 2])
    try put(["n": "two"])
    #expect(try get.output?.next() == "\"two\"")
    try put([:])
    #expect(try get.waitForEnd() == .exit(4))
    let whole = try Self.start(["get", "a", "Main", "--watch"])
    #expect(try whole.output?.next() == "{}")
    try ControlTool.run(["rm", "a", "Main"], status: 0)
    #expect(try whole.waitForEnd() == .exit(4))
    let head = try ControlTool.run(["get", "a", "Main", "--watch", "--generation", "1"], status: 64)
    #expect(head.errors.contains("--watch is for the head"), "\(head.errors)")
  }

  @Test(.broker) func inJSONEachTreeIsADocument() throws {
    let client = try broker.session("a")
    let tree = try Self.start(["tree", "a", "--watch", "--json=short"])
    let next = { try JSONCodec.parse(Array(try #require(try tree.output?.next()).utf8)) }
    #expect(try next()["objects"] == [])
    try client.register("Main")
    #expect(try next()["objects"]?.array?.first?["component"] == "Main")
  }

  @Test(.broker) func onATerminalATreeTakesThePlaceOfTheFormerOneAndEndsWithTheScreen() throws {
    let client = try broker.session("a")
    for number in 1...9 { try client.register("Object\(number)") }
    let terminal = try PseudoTerminal(rows: 6)
    let tree = try ChildProcess(
      [Products.control, "tree", "a", "--watch", "--no-legend"],
      environment: ControlTool.environment(["TERM": "xterm", "NO_COLOR": "1"]),
      output: .terminal(terminal)
    )
    let first = try terminal.shown(until: "\u{1b}[J(6 more lines)\u{1b}[?7h\n")
    #expect(first.hasPrefix("\u{1b}[?7l\u{1b}[H\u{1b}[Ka\n") && first.contains("Object3"))
    #expect(!first.contains("Object4"))
    try client.register("Object10")
    #expect(try terminal.shown(until: "(7 more lines)\u{1b}[?7h\n").hasPrefix("\u{1b}[?7l\u{1b}[H"))
    tree.send(signal: SIGTERM)
    #expect(try tree.waitForEnd() == .exit(0))
  }

  /// Wrapping is off there, so a terminal would write the rest of a line over its last column.
  @Test(.broker, arguments: [80, 40, 12]) func nothingIsWrittenOverTheEndOfALine(_ columns: UInt16) throws {
    try broker.connect().encode("Main", state: ["n": 1], of: "org.example.Notes.Editor")
    for command in [["top", "--count", "1"], ["top", "--count", "1", "--full"]] {
      let shown = try ControlTool.runOnTerminal(command, columns: columns, status: 0).output
      let lines = shown.replacing(/\u{1b}\[[0-9;?]*[A-Za-z]/, with: "").split(separator: "\n")
      #expect(lines.allSatisfy { $0.count <= columns }, "\(shown)")
      #expect(lines[0].hasPrefix("restorationd"))
    }
  }

  @Test(.broker) func theEndOfTheBrokerEndsWhatIsWatched() throws {
    let client = try broker.session("a")
    let tree = try Self.start(["tree", "a", "--watch", "--no-legend"])
    #expect(try Self.block(tree) == ["a"])
    try client.call("ping")
    try broker.kill()
    #expect(try tree.waitForEnd() == .exit(69))
  }

  @Test(.broker) func topShowsWhatTheBrokerDoesAndItsApplications() throws {
    let client = try broker.session("a")
    try client.register("Main")
    try client.encode("Main", state: ["n": 1])
    try broker.session("b").call("goodbye", ["reason": "restart"])
    let lines = try ControlTool.run(["top", "--count", "1"], status: 0).output.split(separator: "\n")
    #expect(lines[0].contains(", pid \(try broker.pid), up "))
    #expect(lines[1].wholeMatch(of: /CPU \d+\.\d %, requests \d+\.\d\/s, .*errors \d+\.\d\/s/) != nil)
    #expect(lines[2].hasPrefix("APPLICATION"))
    #expect(lines[3].hasPrefix("a "))
  }

  @Test(.broker) func aTimeLimitEndsWhatIsShownOnATerminal() throws {
    let result = try ControlTool.runOnTerminal(
      ["top", "--timeout", "0.5"],
      environment: ["TERM": "xterm", "NO_COLOR": "1"],
      status: 75
    )
    #expect(result.output.contains("gave up after 0.5 s (--timeout)"))
  }

  @Test(.broker) func topInJSONHasRatesSinceTheLastTime() throws {
    let client = try broker.session("a")
    for _ in 1...20 { try client.call("ping") }
    let result = try ControlTool.run(["top", "--count", "2", "--interval", "0.01", "--json=short"], status: 0)
    let loads = try result.output.split(separator: "\n").map { try JSONCodec.parse(Array($0.utf8)) }
    try #require(loads.count == 2)
    for load in loads {
      #expect(load["rates"]?["requests"]?.real ?? 0 > 0)
      #expect(load["gauges"]?["sessions"] == 1)
      #expect(load["applications"]?.array?.first?["application"] == "a")
    }
    // The tool itself asks twice each time.
    #expect(loads[1]["rates"]?["encodes"]?.real == 0)
    let invalid = try ControlTool.run(["top", "--count", "0"], status: 64)
    #expect(invalid.errors.contains("--count is 0. Give at least 1."))
  }
}
