// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// `restorationctl monitor`: a process that shows events.
@Suite struct MonitorTests {
  /// Starts the tool and waits until it has subscribed.
  private static func monitor(
    _ arguments: [String],
    among count: Int64 = 1,
    columns: String? = nil
  ) throws -> ChildProcess {
    let process = try ChildProcess(
      [Products.control, "monitor"] + arguments,
      environment: ControlTool.environment(["COLUMNS": columns]),
      errors: broker.directory.file("monitor")
    )
    let observer = try broker.connect()
    try Wait.until("the monitor has subscribed") {
      try observer.call("statistics")["gauges"]?["subscriptions"] == .integer(count)
    }
    return process
  }

  private static func line(_ process: ChildProcess) throws -> String { try #require(try process.output?.next()) }

  private static func errors() throws -> String { try Files.text(broker.directory.file("monitor")) }

  private static func edit(_ application: String) throws {
    let client = try broker.session(application, process: "editor")
    try client.register("Main")
    try client.encode("Main", state: ["text": "secret"])
    try client.notify("encodeRestorableState", ["object": .path("Main"), "state": ["UIStateRestorationX": 1]])
    try client.call("setRestorationIdentifier", ["object": .path("Main"), "restorationIdentifier": "Window"])
    try client.call("goodbye", ["reason": "closed"])
  }

  @Test(.broker) func aLineOfTextIsOneEvent() throws {
    let monitor = try Self.monitor([], columns: "80")
    #expect(try Self.line(monitor) == "TIME      EVENT                 APPLICATION       DETAILS")
    try Self.edit("org.example.Notes")
    let lines = try (1...7).map { _ in try Self.line(monitor) }
    for line in lines {
      #expect(line.wholeMatch(of: /[0-2]\d:[0-5]\d:[0-6]\d  .+/) != nil, "\(line)")
      #expect(line.count <= 80, "\(line)")
      #expect(!line.contains("secret"))
    }
    let pid = "editor (\(getpid()))"
    let end = "\(pid), closed, 1 object"
    func row(_ name: String, _ details: String) -> String {
      let column = name + String(repeating: " ", count: 20 - name.count)
      return "  \(column)  org.example.Notes  \(details)"
    }
    #expect(
      lines.map { String($0.dropFirst(8)) } == [
        row("archiveOpened", "0 objects, 0 B"), row("sessionBegan", "\(pid), pristine"),
        row("objectRegistered", "Main, editor"), row("stateEncoded", "Main, 17 B, #6, editor"),
        row("encodeFailed", "Main, reservedKey, editor"), row("pathChanged", "Main -> Window"),
        row("sessionEnded", end.count <= 29 ? end : "\(end.prefix(14))…\(end.suffix(14))"),
      ]
    )
    monitor.send(signal: SIGTERM)
    #expect(try monitor.waitForEnd() == .exit(0))
    #expect(try Self.errors().isEmpty)
  }

  @Test(.broker) func theApplicationAndNamesOfEventsChooseWhatIsShown() throws {
    let one = try Self.monitor(["org.example.Notes", "--no-legend", "--full"])
    let few = try Self.monitor(["--no-legend", "--event", "sessionEnded", "--event", "encodeFailed"], among: 2)
    for application in ["other", "org.example.Notes"] { try Self.edit(application) }
    let first = try Self.line(one)
    #expect(first.contains("archiveOpened") && !first.contains("org.example.Notes"))
    let lines = try (1...4).map { _ in try Self.line(few) }
    #expect(lines.map { $0.contains("encodeFailed  ") } == [true, false, true, false])
    #expect(lines.map { $0.contains("sessionEnded  ") } == [false, true, false, true])
    #expect(lines.map { $0.contains("  other  ") } == [true, true, false, false])
    for monitor in [one, few] {
      monitor.send(signal: SIGINT)
      #expect(try monitor.waitForEnd() == .exit(0))
    }
  }

  @Test(.broker) func withAPathOnlyTheEventsOfThatObjectAreShownWithItsValues() throws {
    let monitor = try Self.monitor(["a", "Main/Editor", "--no-legend", "--full"])
    let client = try broker.session("a", process: "editor")
    for name in ["Main", "Side"] {
      try client.register(name)
      try client.encode(name, state: ["of": .string(name)])
    }
    try client.register("Editor", in: "Main")
    try client.encode("Main", "Editor", state: ["cursor": 7])
    var lines = try (1...2).map { _ in try Self.line(monitor) }
    // Its path changes as well.
    try client.call("setRestorationIdentifier", ["object": .path("Main"), "restorationIdentifier": "Window"])
    try client.call("discardApplicationState")
    lines += try (1...2).map { _ in try Self.line(monitor) }
    let expected = ["objectRegistered", "stateEncoded", "pathChanged", "applicationDiscarded"]
    #expect(zip(lines, expected).allSatisfy { $0.contains("  \($1) ") }, "\(lines)")
    #expect(lines[1].contains("Main/Editor") && lines[1].hasSuffix(#"{"cursor":7}"#), "\(lines)")
  }

  @Test(.broker) func anObjectThatIsRolledBackOrRemovedByOthersIsShown() throws {
    let client = try broker.session("a", process: "editor")
    try client.register("Main")
    try client.encode("Main", state: ["n": 1])
    try client.call("saveApplicationState")
    try client.encode("Main", state: ["n": 2])
    try client.call("goodbye", ["reason": "restart"])
    let monitor = try Self.monitor(["a", "Main", "--no-legend", "--full"])
    try ControlTool.run(["rollback", "a", "1"], status: 0)
    let back = try Self.line(monitor)
    #expect(back.contains("  generationSealed  ") && back.hasSuffix(#"rolledBack, 1 object, 7 B, {"n":1}"#), "\(back)")
    try ControlTool.run(["rm", "a", "Main"], status: 0)
    let gone = try Self.line(monitor)
    #expect(gone.contains("  objectUnregistered  ") && gone.hasSuffix("Main, unregistered"), "\(gone)")
  }

  @Test(.broker, arguments: ["--json=short", "-j"])
  func inJSONALineIsTheNotificationsParameters(_ option: String) throws {
    let monitor = try Self.monitor([option, "org.example.Notes"])
    try Self.edit("org.example.Notes")
    let events = try (1...7).map { _ in try JSONCodec.parse(Array(Self.line(monitor).utf8)) }
    #expect(
      events.map { $0["name"] } == [
        "archiveOpened", "sessionBegan", "objectRegistered", "stateEncoded", "encodeFailed", "pathChanged",
        "sessionEnded",
      ]
    )
    #expect(events.allSatisfy { $0["application"] == "org.example.Notes" && $0["subscription"] == 1 })
    #expect(events[5]["from"] == ["Main"])
  }

  @Test(.broker) func prettyJSONHasAMemberALine() throws {
    let monitor = try Self.monitor(["--json=pretty", "--event", "sessionEnded"])
    try Self.edit("a")
    var text = try Self.line(monitor)
    while !text.hasSuffix("\n}") { text += "\n" + (try Self.line(monitor)) }
    #expect(try JSONCodec.parse(Array(text.utf8))["ending"] == "closed")
    #expect(text.split(separator: "\n").count == 13)
  }

  @Test(.broker) func namesDoNotSteerTheTerminal() throws {
    let monitor = try Self.monitor(["a", "--no-legend", "--event", "applicationDiscarded"])
    let client = try broker.session("a")
    try client.call("discardApplicationState", ["reason": "\u{1b}[2Jgone\nsessionEnded"])
    #expect(try Self.line(monitor).hasSuffix(#"discarded, \u{1b}[2Jgone\u{a}sessionEnded"#))
  }

  // MARK: Ends

  @Test(.broker) func anUnknownEventIsTheBrokersErrorAndNamesThoseThatThereAre() throws {
    let result = try ControlTool.run(["monitor", "-j", "--event", "stateEncoded", "--event", "nope"], status: 1)
    #expect(result.errors.contains("nope"))
    #expect(result.errors.contains("generationSealed"))
    #expect(try result.error["kind"] == "invalidParams")
  }

  @Test(.scratch) func withoutABrokerItSaysWhatToStart() throws {
    let socket = directory.file("b.sock")
    let result = try ChildProcess.run([Products.control, "--socket", socket, "monitor"])
    #expect(result.end == .exit(3))
    #expect(result.output.isEmpty)
    #expect(result.errors.contains(socket) && result.errors.contains("restorationd"))
  }

  @Test(.broker, arguments: [true, false])
  func whenTheBrokerEndsItSaysSoAndEndsToo(_ isKilled: Bool) throws {
    let monitor = try Self.monitor(["--no-legend"])
    try Self.edit("a")
    while !(try Self.line(monitor).contains("sessionEnded")) {}
    if isKilled { try broker.kill() } else { _ = try broker.terminate() }
    #expect(try monitor.waitForEnd() == .exit(69))
    // The client may have left before.
    let rest = try monitor.output?.rest() ?? ""
    #expect(rest.split(separator: "\n").allSatisfy { $0.contains("archiveClosed") }, "\(rest)")
    #expect(try Self.errors().contains(broker.socket))
  }

  @Test(.broker) func itEndsWithoutAWordWhenNobodyReadsItsOutput() throws {
    let command = "\(Products.control) --socket \(broker.socket) monitor --no-legend | head -n 1"
    let shell = try ChildProcess(["sh", "-c", command], errors: broker.directory.file("monitor"))
    let observer = try broker.connect()
    func subscriptions() throws -> JSONValue? { try observer.call("statistics")["gauges"]?["subscriptions"] }
    try Wait.until("the monitor has subscribed") { try subscriptions() == 1 }
    try observer.encode("A", state: [:], of: "a")
    #expect(try Self.line(shell).contains("archiveOpened"))
    // No further event is needed for it to notice.
    #expect(try shell.waitForEnd() == .exit(0))
    try Wait.until("it has gone") { try subscriptions() == 0 }
    #expect(try Self.errors().isEmpty)
  }

  @Test(.broker) func severalMonitorsSeeTheSame() throws {
    let monitors = try (1...4).map { try Self.monitor(["--json=short"], among: Int64($0)) }
    for application in ["a", "b", "c"] { try Self.edit(application) }
    let texts = try monitors.map { monitor in try (1...21).map { _ in try Self.line(monitor) }.joined() }
    #expect(Set(texts).count == 1)
  }

  @Test(.broker) func theTimeItIsGivenEndsIt() throws {
    let result = try ControlTool.run(["monitor", "--timeout=2", "--no-legend"], status: 75)
    #expect(result.output.isEmpty)
    #expect(result.errors.contains("s (--timeout)"))
  }

  @Test(.broker) func statesAreShownIfAskedForUnlessTheyAreConfidential() throws {
    let arguments = ["--event", "stateEncoded", "--values", "--no-legend"]
    let monitors = try [Self.monitor(arguments), Self.monitor(arguments + ["-j"], among: 2)]
    let client = try broker.session("a", process: "editor")
    try client.register("Login", with: ["confidential": true])
    for name in ["Main", "Login"] { try client.encode(name, state: ["word": "hunter2"]) }
    let lines = try monitors.map { monitor in try (1...2).map { _ in try Self.line(monitor) } }
    #expect(lines[0][0].hasSuffix(#", editor, {"word":"hunter2"}"#), "\(lines[0][0])")
    #expect(lines[0][1].hasSuffix(", editor, (confidential)"), "\(lines[0][1])")
    #expect(lines[1][0].hasSuffix(#","state":{"word":"hunter2"}}"#), "\(lines[1][0])")
    #expect(lines[1][1].hasSuffix(#","redacted":true}"#), "\(lines[1][1])")
  }

  @Test(.broker) func onATerminalWhatIsBadStandsOut() throws {
    let terminal = try PseudoTerminal(columns: 80)
    let process = try ChildProcess(
      [Products.control, "monitor"],
      environment: ControlTool.environment(),
      output: .terminal(terminal)
    )
    var screen = try terminal.shown(until: "DETAILS")
    try Self.edit("a")
    screen += try terminal.shown(until: "reservedKey")
    #expect(screen.contains("\u{1b}[31mencodeFailed"))
    #expect(screen.contains("  stateEncoded"))
    process.send(signal: SIGINT)
    #expect(try process.waitForEnd() == .exit(0))
  }
}
