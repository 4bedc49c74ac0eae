// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// `restorationctl history`, `show`, `diff`, `rollback`, `save`, `restore` and `explain` with real processes.
@Suite(.broker) struct GenerationCommandTests {
  private static let application = "org.example.Notes"

  /// A run of a real process that registers its objects, pushes their states and leaves.
  private static func run(_ states: [(path: [String], state: JSONValue)]) throws {
    let client = try broker.client(.python)
    try client.initialize(application, ["process": "main"])
    for (path, state) in states {
      var parameters: JSONObject = ["restorationIdentifier": .string(path.last ?? "")]
      if path.count > 1 { parameters["restorationParent"] = .array(path.dropLast().map { .string($0) }) }
      try client.call("registerObjectForStateRestoration", .object(parameters))
      try client.call("encodeRestorableState", ["object": .array(path.map { .string($0) }), "state": state])
    }
    try client.call("goodbye", ["reason": "restart"])
    client.end()
  }

  private static func head() throws -> String { try ControlTool.run(["export", application, "--reveal"]).output }

  /// R16, R19: whatever blank starts have done, the generation that the first of them began with can be reached.
  @Test func aRollbackReachesThePinnedGenerationAfterBlankStarts() throws {
    try Self.run([(["Main"], ["text": "a day's work", "n": 0.5]), (["Main", "Editor"], ["line": 17])])
    let good = try Self.head()
    for run in 1...6 {
      let client = try broker.client(.python)
      try client.initialize(Self.application, ["process": "main"])
      try client.register("Main")
      try client.encode("Main", state: ["blank": .integer(Int64(run))])
      if run % 2 == 0 { try client.kill() } else { try client.call("goodbye", ["reason": "restart"]) }
      if run == 3 { try broker.crashAndRestart() }
    }
    let history = try ControlTool.run(["history", Self.application, "-j"]).json["generations"]?.array ?? []
    #expect(history.first?["pinned"] == true && history.first?["generation"] == 1)
    // Every kept generation can be shown, read, exported and compared.
    for generation in history {
      let number = String(generation["generation"]?.integer ?? 0)
      let shown = try ControlTool.run(["show", Self.application, "Main", "--generation", number, "-j"], status: 0)
      #expect(try shown.json["state"] != nil && shown.json["generation"] == generation["generation"])
      let read = try ControlTool.run(
        ["call", "readArchive", #"{"application":"\#(Self.application)","generation":\#(number)}"#]
      )
      #expect(try read.json["objects"]?.array?.count == 2)
      #expect(try ControlTool.run(["export", Self.application, "--generation", number]).end == .exit(0))
      #expect(try ControlTool.run(["diff", Self.application, "1", number]).end == .exit(0))
    }
    let back = try ControlTool.run(["rollback", Self.application, "1"], status: 0)
    #expect(back.output.hasPrefix("\(Self.application) is back at generation 1, now generation "))
    #expect(try Self.head() == good)
    // It is on disk when it is answered.
    try broker.crashAndRestart()
    #expect(try Self.head() == good)
    #expect(try ControlTool.run(["verify", Self.application]).end == .exit(0))
    let client = try broker.client(.swift)
    let restoration = try client.initialize(Self.application, ["process": "main"])["restoration"]
    #expect(restoration?["state"] == "available" && restoration?["reason"] == "launch")
    try client.register("Main")
    let decoded = try client.decode("Main")
    #expect(decoded["state"]?["text"] == "a day's work")
  }

  @Test func aRollbackIsUndoneByAnother() throws {
    for number in 1...3 { try Self.run([(["Main"], ["n": .integer(Int64(number))]), (["Extra\(number)"], [:])]) }
    let before = try Self.head()
    let back = try ControlTool.run(["rollback", Self.application, "1", "-j"])
    #expect(try back.json == ["generation": 4, "former": 3, "unreadable": []])
    #expect(try Self.head() != before)
    let same = try ControlTool.run(["rollback", Self.application, "4"])
    #expect(same.output == "\(Self.application) is back at generation 4.\n")
    let explained = try ControlTool.run(["explain", Self.application, "Main"], status: 0).output
    #expect(explained.contains("not since the broker started, or since a rollback"), "\(explained)")
    #expect(try ControlTool.run(["rollback", Self.application, "3"]).end == .exit(0))
    #expect(try Self.head() == before)
  }

  @Test func aRollbackOfARunningApplicationNeedsForceAndTellsItsProcesses() throws {
    try Self.run([(["Main"], ["n": 1])])
    let client = try broker.serving(.python)
    try client.tell("open", ["application": .string(Self.application), "process": "editor"])
    try client.tell("register", ["objects": [["identifier": "Main", "state": ["n": 2]]]])
    try client.tell("decode", ["name": "Main"])
    try client.tell("push")
    let refused = try ControlTool.run(["rollback", Self.application, "1"], status: 1)
    #expect(refused.output.isEmpty)
    #expect(refused.errors.contains("editor") && refused.errors.contains("--force"))
    let forced = try ControlTool.run(["rollback", Self.application, "1", "--force", "-j"])
    let generation = try #require(try forced.json["generation"]?.integer, "\(forced.errors)")
    try client.awaits("headReplaced")
    #expect(try client.log().last == "headReplaced \(generation)")
    let shown = try ControlTool.run(["show", Self.application, "Main", "-j"])
    #expect(try shown.json["state"] == ["n": 1])
    #expect(try shown.json["pid"] == .integer(Int64(client.pid)))
    client.end()
  }

  @Test func differencesAreATableForPeopleAndJSONForPrograms() throws {
    try Self.run([(["Main"], ["zoom": 1, "scroll": 2, "mode": "edit"]), (["Find"], [:])])
    let client = try broker.session(Self.application, process: "main")
    try client.register("Find")
    try client.call("unregisterObject", ["object": .path("Find")])
    try client.encode("Main", state: ["zoom": 2, "scroll": 3, "mode": "edit"])
    try client.encode("Main", "Editor", state: [:])
    let table = try ControlTool.run(["diff", Self.application, "1"])
    #expect(
      table.output == """
        CHANGE   PATH         KEYS
        removed  Find
        added    Main/Editor
        changed  Main         scroll, zoom

        Between generation 1 and now: 1 removed, 1 added, 1 changed.

        """
    )
    let json = try ControlTool.run(["diff", Self.application, "1", "--json=short"])
    #expect(
      json.output == #"{"from":1,"to":null,"added":[["Main","Editor"]],"removed":[["Find"]],"#
        + #""changed":[{"path":["Main"],"keys":["scroll","zoom"]}]}"# + "\n"
    )
    let values = try ControlTool.run(["diff", Self.application, "1", "--values", "--no-legend"])
    #expect(
      values.output == """
        removed  Find
        added    Main/Editor
        changed  Main         scroll  2  3
        changed  Main         zoom    1  2

        """
    )
    let changed = try ControlTool.run(["diff", Self.application, "1", "--values", "-j"]).json["changed"]?.array?.first
    #expect(changed?["values"]?.array?.first == ["key": "scroll", "from": 2, "to": 3])
    let none = try ControlTool.run(["diff", Self.application, "1", "1"], status: 0)
    #expect(none.output == "Nothing differs between generation 1 and generation 1.\n")
  }

  @Test func valuesOfConfidentialObjectsDifferInSecret() throws {
    let client = try broker.session(Self.application, process: "main")
    try client.register("Login", with: ["confidential": true])
    for word in ["hunter2", "hunter3"] {
      try client.encode("Login", state: ["password": .string(word)])
      try client.call("saveApplicationState")
    }
    for form in ["off", "short"] {
      let hidden = try ControlTool.run(["diff", Self.application, "1", "--values", "--json", form], status: 0)
      #expect(!hidden.output.contains("hunter") && !hidden.output.contains("password"), "\(hidden.output)")
    }
    let shown = try ControlTool.run(["diff", Self.application, "1", "--values", "--reveal"])
    #expect(shown.output.contains(#"password  "hunter2"  "hunter3""#), "\(shown.output)")
  }

  @Test(arguments: [["rollback", "9"], ["diff", "9"], ["diff", "1", "9"]])
  func aGenerationThatIsNotThereIsStatus4(_ arguments: [String]) throws {
    try Self.run([(["Main"], [:])])
    try Self.run([])
    let command = [arguments[0], Self.application] + arguments.dropFirst()
    let result = try ControlTool.run(command, status: 4)
    #expect(result.output.isEmpty)
    #expect(result.errors.contains("unknown generation 9") && result.errors.contains("restorationctl history"))
    #expect(try ControlTool.run(command + ["-j"]).error["kind"] == "invalidParams")
    let wrong = try ControlTool.run([arguments[0], Self.application, "zero"], status: 64)
    #expect(wrong.errors.contains("numbered"))
    #expect(try ControlTool.run([arguments[0], "org.example.Nobody", "1"]).end == .exit(4))
  }

  /// R11, R12: of a round with a process that does not answer.
  @Test func savingListsWhoDidNotAnswerAndExplainSaysWhy() throws {
    let (good, silent) = (try broker.serving(.python), try broker.serving(.python))
    try good.tell("open", ["application": .string(Self.application), "process": "main"])
    try good.tell("register", ["objects": [["identifier": "Main", "state": ["n": 1]]]])
    try silent.tell("open", ["application": .string(Self.application), "process": "editor"])
    try silent.tell("register", ["objects": [["identifier": "Editor", "parent": .path("Main"), "state": ["line": 1]]]])
    let first = try ControlTool.run(["save", Self.application], status: 0)
    #expect(first.output.hasPrefix("Saved \(Self.application) as generation 1: 2 states, "))
    try silent.tell("behave", ["method": "encodeRestorableStateWithCoder", "as": "never"])
    try good.tell("set", ["name": "Main", "state": ["n": 2]])
    let second = try ControlTool.run(["save", Self.application, "--deadline", "0.5", "--reason", "test"], status: 0)
    #expect(second.output.contains(/Main\/Editor\ +editor\ +[0-9]+\ +late/), "\(second.output)")
    let explained = try ControlTool.run(["explain", Self.application, "Main/Editor"], status: 0)
    #expect(explained.output.contains("Main/Editor is saved as it was before"))
    #expect(explained.output.contains("editor (\(silent.pid)) did not answer in time"))
    let json = try ControlTool.run(["explain", Self.application, "Main", "-j"]).json
    #expect(json["verdict"] == "saved" && json["path"] == ["Main"])
    let none = try ControlTool.run(["explain", Self.application, "Main/Edtor"], status: 4)
    #expect(none.errors.contains("did you mean Editor?"))
    try ControlTool.run(["save", "org.example.Nobody"], status: 4)
    good.end()
    try silent.kill()
  }

  @Test func savingWhatHasNotChangedSaysSo() throws {
    try Self.run([(["Main"], ["n": 1])])
    #expect(try ControlTool.run(["save", Self.application, "-j"]).json["saved"] == true)
    let again = try ControlTool.run(["save", Self.application], status: 0)
    #expect(again.output == "Nothing has changed in \(Self.application); the newest is generation 1.\n")
  }

  @Test func restoringLeavesToProcessesWhatTheyFetchByThemselves() throws {
    try broker.session(Self.application).encode("Main", state: ["n": 1])
    try broker.crashAndRestart()
    try broker.session(Self.application).register("Main")
    let result = try ControlTool.run(["restore", Self.application], status: 0)
    let counts = "0 objects restored, 1 left to its owner, 0 left out, 0 absent, in "
    #expect(result.output.hasPrefix("\(Self.application): \(counts)"), "\(result.output)")
    #expect(result.output.contains("Main          its owner fetches its states by itself\n"), "\(result.output)")
  }

  @Test func anUnknownObjectIsAnsweredWithTheCommandThatShowsTheKnownOnes() throws {
    try Self.run([(["Main"], ["n": 1])])
    try Self.run([(["Main"], ["n": 2])])
    let restore = try ControlTool.run(["restore", Self.application, "Mian", "-j"], status: 4)
    #expect(try restore.error["hint"] == .string("restorationctl tree \(Self.application) shows the known objects."))
    #expect(try restore.error["path"] == .path("Mian"))
    #expect(restore.errors.contains("\n  restorationctl tree"), "\(restore.errors)")
    let rollback = try ControlTool.run(["rollback", Self.application, "1", "Mian"], status: 4)
    #expect(rollback.errors.contains("export \(Self.application) --generation 1"), "\(rollback.errors)")
    let parameters = #"{"application":"\#(Self.application)","objects":[["Mian"]]}"#
    let call = try ControlTool.run(["call", "restoreApplicationState", parameters], status: 4)
    #expect(!call.errors.contains("restorationctl tree"), "a call's next step is another one: \(call.errors)")
  }

  /// R21, R23: the restored objects, the others, and the reasons.
  @Test func restoringListsWhatDidNotComeBack() throws {
    let objects: [JSONValue] = [
      ["identifier": "Main", "state": ["n": 1]], ["identifier": "Gone", "state": ["n": 2]],
      ["identifier": "Other", "classes": ["Old"], "state": ["n": 3]],
    ]
    let first = try broker.serving(.python)
    try first.tell("open", ["application": .string(Self.application), "process": "main"])
    try first.tell("register", ["objects": .array(objects)])
    #expect(try ControlTool.run(["save", Self.application]).end == .exit(0))
    try first.kill()
    let second = try broker.serving(.python)
    try second.tell("open", ["application": .string(Self.application), "process": "main", "delegate": true])
    try second.tell("register", ["objects": [["identifier": "Main"], ["identifier": "Other", "classes": ["New"]]]])
    try second.tell("behave", ["method": "shouldRestoreApplicationState", "as": ["result": false]])
    let declined = try ControlTool.run(["restore", Self.application], status: 1)
    #expect(declined.output == "\(Self.application) declined to be restored.\n")
    try second.tell("behave", ["method": "shouldRestoreApplicationState", "as": .null])
    let restored = try ControlTool.run(["restore", Self.application, "--deadline", "0.5"], status: 0)
    #expect(restored.output.hasPrefix("\(Self.application): 1 object restored, 1 left out, 1 absent, in "))
    #expect(restored.output.contains(/Other\ +its owner is of another class\n/), "\(restored.output)")
    #expect(restored.output.contains(/Gone\ +not registered before the restoration ended\n/), "\(restored.output)")
    #expect(try second.tell("restored")["objects"]?["Main"]?["state"] == ["n": 1])
    let explained = try ControlTool.run(["explain", Self.application, "Other"])
    #expect(explained.output.contains("Old") && explained.output.contains("New"), "\(explained.output)")
    let again = try ControlTool.run(["restore", Self.application, "--deadline", "0.5", "-j"], status: 1)
    #expect(try again.json["restored"] == [] && again.json["absent"] == [["Gone"]])
    second.end()
  }

  /// A script that relies on the status must not take this for success.
  @Test func aRestorationOfNothingFails() throws {
    try Self.run([(["Main"], ["n": 1]), (["Gone"], ["n": 2])])
    let absent = try ControlTool.run(["restore", Self.application, "--deadline", "0.1"], status: 1)
    #expect(absent.output.hasPrefix("\(Self.application): 0 objects restored, 0 left out, "), "\(absent.output)")
    try ControlTool.run(["save", Self.application], status: 0)
    try ControlTool.run(["discard", Self.application, "--force"], status: 0)
    let nothing = try ControlTool.run(["restore", Self.application], status: 1)
    #expect(nothing.output == "Nothing of \(Self.application) was left to be restored.\n")
  }
}
