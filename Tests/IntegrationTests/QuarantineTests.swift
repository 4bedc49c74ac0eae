// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// Real processes that crash when they decode (R31, R35).
@Suite struct QuarantineTests {
  private static let application = "org.example.Editor"

  /// An application of a hundred objects, of which one has a state that processes crash of.
  private static func poison(_ index: Int = 57, count: Int = 100) throws -> [JSONValue] {
    let writer = try broker.session(application, process: "main")
    let paths = (0..<count).map { JSONValue.path("Main", "o\($0)") }
    try writer.register("Main")
    for number in 0..<count {
      try writer.register("o\(number)", in: "Main")
      let state: JSONValue = number == index ? ["poison": 1] : ["n": .integer(Int64(number))]
      try writer.call("encodeRestorableState", ["object": paths[number], "state": state])
    }
    try writer.call("goodbye", ["reason": "restart"])
    return paths
  }

  /// Starts a process that registers all objects and restores them; returns its report, `nil` if it has crashed.
  private static func start(_ paths: [JSONValue], pipelined: Bool) throws -> JSONValue? {
    let client = try broker.client(.python)
    try client.initialize(application, ["process": "main"])
    try client.register("Main")
    for number in paths.indices { try client.register("o\(number)", in: "Main") }
    try client.send("restore", ["objects": .array(paths), "pipelined": .bool(pipelined)])
    guard let statuses = try? client.receive(Deadline(.seconds(60))) else {
      try waitForCrash()
      return nil
    }
    try client.call("completeStateRestoration")
    try client.call("goodbye", ["reason": "restart"])
    return statuses
  }

  /// The broker has noticed that the process is gone.
  private static func waitForCrash() throws {
    let watcher = try broker.connect()
    try Wait.until("the session has ended") {
      let applications = try watcher.call("listApplications")["applications"]?.array
      return applications?.first?["sessions"] == 0
    }
  }

  /// A client that waits for each answer before its next call crashes twice, and never again.
  @Test(.broker) func r31APoisonedObjectAmongAHundredStopsNothingAfterTwoCrashes() throws {
    let paths = try Self.poison()
    #expect(try Self.start(paths, pipelined: false) == nil)
    #expect(try Self.start(paths, pipelined: false) == nil)
    let statuses = try #require(try Self.start(paths, pipelined: false))
    #expect(statuses["available"]?.array?.count == 99)
    #expect(statuses["quarantined"] == [paths[57]])
    try Self.release(paths[57])
  }

  /// Starts a process that the broker calls, which registers all objects and gets restored; `nil` if it has crashed.
  private static func startServing(
    _ language: ServingClient.Language,
    _ broker: BrokerFixture,
    crashing index: Int?
  ) throws -> (result: JSONValue, process: ServingClient)? {
    let process = try broker.serving(language, of: application, as: "main")
    try process.register([["identifier": "Main"]])
    try process.register(
      (0..<100).map { number in
        var object: JSONObject = ["identifier": .string("o\(number)"), "parent": .path("Main")]
        if number == index { object["decode"] = "crash" }
        return object
      }
    )
    guard let result = try? process.tell("restore", ["deadlineMilliseconds": 20_000]) else {
      try waitForCrash()
      return nil
    }
    return (result, process)
  }

  @Test(.broker) func r35ASwiftProgramIsToldOnceHowItsWithheldStateIsReleased() throws {
    _ = try Self.poison()
    var restored: (result: JSONValue, process: ServingClient)?
    for _ in 0..<4 where restored == nil { restored = try Self.startServing(.swift, broker, crashing: 57) }
    let process = try #require(restored).process
    try process.tell("push", ["names": ["Main/o57"]])
    let log = try Files.text(broker.directory.file("log"))
    let command = "restorationctl quarantine release \(Self.application) Main/o57"
    #expect(log.split(separator: "\n").filter { $0.contains(command) }.count == 1, "\(log)")
  }

  /// The broker hands the states out in batches, so that a crash may be due to many; the guilty one is found anyway.
  @Test(.broker) func r31APoisonedStateOfABatchThatTheBrokerHandsOutIsFound() throws {
    let paths = try Self.poison()
    var crashes = 0
    var restored: (result: JSONValue, process: ServingClient)?
    while restored == nil, crashes < 6 {
      restored = try Self.startServing(ServingClient.Language.allCases[crashes % 3], broker, crashing: 57)
      if restored == nil { crashes += 1 }
      if restored == nil, crashes == 2 { try broker.crashAndRestart() }
    }
    #expect((2...4).contains(crashes), "\(crashes) crashes")
    let (result, process) = try #require(restored)
    #expect(result["skipped"] == [["path": paths[57], "reason": "quarantined"]])
    // Since when is told as other times are.
    let explained = try ControlTool.run(["explain", Self.application, "Main/o57"], status: 0).output
    #expect(explained.contains(/withheld since [0-9-]{10} [0-9:]{8} UTC:/), "\(explained)")
    let others = paths.indices.filter { $0 != 57 }.map { paths[$0].text }
    let found = Set((result["restored"]?.array ?? []).map(\.text))
    #expect(found.isSuperset(of: others))
    // It is notified anyway (R35).
    try process.awaits("finished", 100)
    let told = try process.tell("restored")
    #expect(told.strings("finished").contains("Main/o57"))
    #expect(told["objects"]?["Main/o57"] == nil)
    #expect(told["objects"]?["Main/o58"]?["state"] == ["n": 58])
    let strikes = try broker.connect().call("listQuarantine", ["application": .string(Self.application)])["strikes"]
    #expect(strikes == 0)
    try process.tell("goodbye", ["reason": "restart"])

    // One more crash is one, not the third: the restoration that was completed has cleared the strikes.
    try Self.release(paths[57])
    #expect(try Self.startServing(.perl, broker, crashing: 57) == nil)
    let last = try #require(try Self.startServing(.python, broker, crashing: nil))
    #expect(last.result["skipped"] == [])
    #expect(try last.process.tell("restored")["objects"]?["Main/o57"]?["state"] == ["poison": 1])
  }

  /// The text is kept for inspection, and for another try.
  private static func release(_ path: JSONValue) throws {
    let tool = try broker.connect()
    let parameters: JSONObject = ["application": .string(application)]
    let listed = try tool.call("listQuarantine", .object(parameters))["objects"]?.array
    #expect(listed?.map { $0["path"] } == [path])
    #expect(listed?.first?["states"]?.array?.first?["state"] == ["poison": 1])
    var release = parameters
    release["path"] = path
    #expect(try tool.call("releaseQuarantine", .object(release)) == ["released": 1])
    #expect(try tool.call("listQuarantine", .object(parameters))["objects"] == [])
  }

  /// A client that sends all its calls before it reads an answer needs a few more crashes, and loses no other state
  /// either.
  @Test(.broker) func r31AClientThatDoesNotWaitForAnswersFindsItsPoisonToo() throws {
    let paths = try Self.poison(3, count: 10)
    var crashes = 0
    var statuses: JSONValue?
    while statuses == nil, crashes < 8 {
      statuses = try Self.start(paths, pipelined: true)
      if statuses == nil { crashes += 1 }
      if crashes == 2 { try broker.crashAndRestart() }
    }
    #expect((2...5).contains(crashes))
    #expect(statuses?["available"]?.array?.count == 9)
    #expect(statuses?["quarantined"] == [paths[3]])
  }

  /// R35: a new state from the process ends the quarantine.
  @Test(.broker) func r35ANewStateIsHandedOut() throws {
    let paths = try Self.poison(1, count: 3)
    #expect(try Self.start(paths, pipelined: false) == nil)
    #expect(try Self.start(paths, pipelined: false) == nil)
    let client = try broker.session(Self.application)
    try client.register("o1", in: "Main")
    try client.call("encodeRestorableState", ["object": paths[1], "state": ["n": 1]])
    try client.call("goodbye", ["reason": "restart"])
    try broker.crashAndRestart()
    let reader = try broker.session(Self.application)
    let listed = try reader.call("listQuarantine")["objects"]?.array
    #expect(listed?.first?["standing"] == "lifted")
    #expect(listed?.first?["states"]?.array?.first?["state"] == ["poison": 1])
    let statuses = try #require(try Self.start(paths, pipelined: false))
    #expect(statuses["available"]?.array?.count == 3)
  }

  @Test(.broker) func theControlToolListsAndReleases() throws {
    let paths = try Self.poison(1, count: 2)
    let nothing = try ControlTool.run(["quarantine", "list", Self.application], status: 0)
    #expect(nothing.output == "0 objects.\n")
    for _ in 1...2 { #expect(try Self.start(paths, pipelined: false) == nil) }
    let list = try ControlTool.run(["quarantine", "list", Self.application], status: 0)
    #expect(list.output.contains("Main/o1"))
    #expect(list.output.contains("quarantined"))
    #expect(list.output.hasSuffix("\n1 object.\n"))
    let json = try ControlTool.run(["-j", "quarantine", "list", Self.application]).json
    #expect(json["application"] == .string(Self.application))
    #expect(json["objects"]?.array?.first?["states"]?.array?.first?["state"] == ["poison": 1])
    let before = ["--socket", broker.socket, "quarantine", "-j", "list", Self.application]
    #expect(try ControlTool.run(before).json == json)
    let shown = try ControlTool.run(["show", Self.application, "Main/o1"])
    #expect(shown.output.contains("Marks:  orphaned, quarantined"))
    #expect(shown.output.contains("poison"))
    #expect(try ControlTool.run(["list"]).output.contains("available, 1 withheld"))
    #expect(try ControlTool.run(["status"]).output.contains("Withheld:  1 state of \(Self.application); see"))
    let doctor = try ControlTool.run(["doctor"], status: 1).output
    #expect(doctor.contains("!!    withheld  1 state of \(Self.application)"), "\(doctor)")
    #expect(doctor.contains("restorationctl quarantine list \(Self.application)\n"), "\(doctor)")
    let status = try ControlTool.run(["status", "-j"]).json["withheld"]
    #expect(status == [["application": .string(Self.application), "objects": 1]])
    #expect(try ControlTool.run(["tree", Self.application]).output.contains(/o1 .* vow\n/))
    let got = try ControlTool.run(["get", Self.application, "Main/o1", "/poison"], status: 0)
    #expect(got.output == "1\n")
    #expect(got.errors.contains("restorationctl quarantine release \(Self.application) Main/o1\n"), "\(got.errors)")
    let path = ["quarantine", "release", Self.application, "Main/o1"]
    let released = try ControlTool.run(path)
    #expect(released.output == "Released 1 object at Main/o1 of \(Self.application).\n")
    #expect(try ControlTool.run(["-j"] + path).json["released"] == 0)
    let all = try ControlTool.run(["quarantine", "release", Self.application])
    #expect(all.output == "Nothing was withheld of \(Self.application).\n")
    #expect(try ControlTool.run(["get", Self.application, "Main/o1"], status: 0).errors == "")
    #expect(try ControlTool.run(["quarantine", "release", Self.application, "No"]).end == .exit(4))
    #expect(try ControlTool.run(["quarantine", "list", "no.such.app"]).end == .exit(4))
  }

  /// A broker in developer mode hands it out again and again.
  @Test(.broker(arguments: ["--developer-mode"])) func r31DeveloperModeWithholdsNothing() throws {
    let paths = try Self.poison(1, count: 3)
    for _ in 1...4 { #expect(try Self.start(paths, pipelined: false) == nil) }
    let tool = try broker.connect()
    let listed = try tool.call("listQuarantine", ["application": .string(Self.application)])
    #expect(listed == ["archive": .null, "strikes": 0, "objects": []])
    let client = try broker.session(Self.application)
    try client.call("goodbye", ["reason": "userQuit"])
    #expect(try Self.start(Array(paths.prefix(1)), pipelined: false)?["available"]?.array?.count == 1)
  }

  /// R16, R19: an application that starts, pushes empty states and crashes before it restores loses nothing, however
  /// often; its next decode gives the old state.
  @Test(.broker) func r19BlankStartsThatCrashBeforeTheyRestoreLoseNothing() throws {
    let paths = try Self.poison(-1, count: 5)
    for run in 1...6 {
      let client = try broker.client(.python)
      try client.initialize(Self.application, ["process": "main"])
      try client.register("Main")
      for (number, path) in paths.enumerated() {
        try client.register("o\(number)", in: "Main")
        try client.call("encodeRestorableState", ["object": path, "state": [:]])
      }
      try client.kill()
      try Self.waitForCrash()
      if run == 3 { try broker.crashAndRestart() }
    }
    let client = try broker.client(.python)
    let restoration = try client.initialize(Self.application, ["process": "main"])["restoration"]
    #expect(restoration?["state"] == "available")
    #expect(restoration?["reason"] == "recover")
    try client.register("Main")
    for (number, path) in paths.enumerated() {
      try client.register("o\(number)", in: "Main")
      let decoded = try client.call("decodeRestorableState", ["object": path])
      #expect(decoded["state"] == ["n": .integer(Int64(number))])
    }
    // No state has crashed a process.
    let listed = try client.call("listQuarantine")
    #expect(listed == ["archive": .null, "strikes": 0, "objects": []])
  }
}
