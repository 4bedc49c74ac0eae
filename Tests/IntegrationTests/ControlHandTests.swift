// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// `restorationctl get`, `put` and `rm`: states by hand.
@Suite(.broker) struct ControlHandTests {
  private static let application = "org.example.Notes"
  private static let editor = [application, "Main/Editor"]

  private static func put(_ arguments: String..., input: String = "") throws -> ControlTool.Result {
    try ControlTool.run(["put"] + editor + arguments, input: input)
  }

  private static func get(_ arguments: String...) throws -> String {
    try ControlTool.run(["get"] + editor + arguments, status: 0).output
  }

  @Test func aValueIsPutAndGotAndEverythingElseStaysAsItWas() throws {
    let state = #"{"z":1e400,"tabs":[{"file":"a"},{"file":"b"}],"a/b":-0.0,"n":18446744073709551615}"#
    let stored = try Self.put(state)
    #expect(stored.output.contains(/^Stored Main\/Editor of org.example.Notes as change [0-9]+\.\n$/), "\(stored)")
    #expect(try Self.get() == state + "\n")
    #expect(try Self.put("/tabs/1/file", #""c\n""#).end == .exit(0))
    #expect(try Self.put("/tabs/-", "-r", "d").end == .exit(0))
    #expect(try Self.put("/a~1b", "-5").end == .exit(0))
    #expect(try Self.put("/dash", "-r", "--", "-r").end == .exit(0))
    #expect(try Self.get("/dash", "-r") == "-r\n")
    #expect(try Self.put("/dash", "-r", "--", "-").end == .exit(0))
    #expect(try Self.get("/dash", "-r") == "-\n")
    try ControlTool.run(["rm"] + Self.editor + ["/dash"], status: 0)
    #expect(try Self.put("/new", "-", input: "[ 1, 2 ]\n").end == .exit(0))
    let changed = #"{"z":1e400,"tabs":[{"file":"a"},{"file":"c\n"},"d"],"a/b":-5,"n":18446744073709551615,"new":[1,2]}"#
    #expect(try Self.get() == changed + "\n")
    #expect(try Self.get("/tabs/1/file") == "\"c\\n\"\n")
    #expect(try Self.get("/tabs/1/file", "-r") == "c\n\n")
    #expect(try Self.get("/tabs/0", "-r") == #"{"file":"a"}"# + "\n")
    #expect(try Self.get("/new", "--json=pretty") == "[\n  1,\n  2\n]\n")
    for pointer in ["/tabs/0", "/new", "/tabs/1", "/a~1b"] {
      try ControlTool.run(["rm"] + Self.editor + [pointer], status: 0)
    }
    #expect(try Self.get() == #"{"z":1e400,"tabs":[{"file":"c\n"}],"n":18446744073709551615}"# + "\n")
  }

  @Test func selectionsAndReferencesOutliveAPut() throws {
    let client = try broker.session(Self.application, process: "main")
    try client.register("Main")
    try client.call(
      "encodeRestorableState",
      [
        "object": .path("Main"), "state": ["to": ["$restorable": .path("Main")], "n": 1],
        "elements": [["role": "selected", "indexPath": [0, 3]]],
      ]
    )
    try client.call("goodbye", ["reason": "restart"])
    try ControlTool.run(["put", Self.application, "Main", "/n", "2"], status: 0)
    let shown = try ControlTool.run(["show", Self.application, "Main", "-j"]).json
    #expect(shown["elements"]?.array?.first?["indexPath"] == [0, 3])
    #expect(shown["state"] == ["to": ["$restorable": .path("Main"), "object": .null], "n": 2])
  }

  /// Hands at different keys of one state: each is written over by the others, unless it looks again (R15).
  @Test func nothingIsLostBetweenManyHands() throws {
    #expect(try Self.put("{}").end == .exit(0))
    let hands = try (1...16).map { hand in
      let arguments = ["put"] + Self.editor + ["/\(hand)", "\(hand)"]
      return try ChildProcess([Products.control] + arguments, environment: ControlTool.environment())
    }
    for hand in hands { #expect(try hand.waitForEnd(Deadline(.seconds(60))) == .exit(0)) }
    let state = try JSONCodec.parse(Array(Self.get().utf8))
    #expect(state.object?.members.count == hands.count)
  }

  /// Runs a hand, and puts another value just before each of its writes.
  private static func collide(_ words: [String], times: Int) throws -> (end: ChildProcess.End, collisions: Int) {
    let socket = try PassingSocket(broker.directory.file("passing"))
    let hand = try ChildProcess(
      [Products.control, "put"] + Self.editor + words,
      environment: ControlTool.environment(["RESTORATIOND_SOCKET": socket.path])
    )
    var count = 0
    try socket.pass(to: broker.socket, before: "encodeRestorableState") {
      guard count < times else { return }
      count += 1
      let other = try Self.put("/other", "\(count)")
      #expect(other.end == .exit(0))
    }
    return (try hand.waitForEnd(), count)
  }

  @Test func nothingIsLostBetweenTwoHandsThatCollide() throws {
    #expect(try Self.put("{}").end == .exit(0))
    let result = try Self.collide(["/mine", "1"], times: 3)
    #expect(result.end == .exit(0) && result.collisions == 3)
    #expect(try Self.get() == #"{"other":3,"mine":1}"# + "\n")
  }

  @Test func aHandThatNeverGetsItsTurnGivesUp() throws {
    #expect(try Self.put("{}").end == .exit(0))
    let result = try Self.collide(["/mine", "1"], times: .max)
    #expect(result.end == .exit(75) && result.collisions == 17)
    #expect(try Self.get() == #"{"other":17}"# + "\n")
  }

  @Test func whatALiveProcessHasIsLeftToItAndItIsNamed() throws {
    let client = try broker.session(Self.application, process: "editor")
    try client.register("Main")
    try client.encode("Main", state: ["n": 1])
    for arguments in [
      ["put", Self.application, "Main", "/n", "2"], ["rm", Self.application, "Main", "/n"],
      ["rm", Self.application, "Main"],
    ] {
      let refused = try ControlTool.run(arguments + ["-j"], status: 1)
      #expect(try refused.error["kind"] == "notOwner" && refused.error["path"] == .path("Main"))
      #expect(refused.errors.contains("Main is live in editor (\(getpid()))\n"), "\(refused.errors)")
    }
    #expect(try ControlTool.run(["get", Self.application, "Main", "/n"]).output == "1\n")
  }

  @Test func anExpectedChangeIsHeld() throws {
    #expect(try Self.put("{}", "--expecting", "0").end == .exit(0))
    let sequence = try #require(try ControlTool.run(["show", "-j"] + Self.editor).json["sequence"]?.integer)
    let again = try ControlTool.run(["put", "-j"] + Self.editor + ["{}", "--expecting", "0"], status: 75)
    #expect(try again.error["kind"] == "stateChanged" && again.error["code"] == -32021)
    #expect(again.errors.contains("has the state of change \(sequence), not none"), "\(again.errors)")
    let next = try ControlTool.run(["put", "-j"] + Self.editor + ["{}", "--expecting", "\(sequence)"], status: 0)
    #expect(try next.json["path"] == .path("Main", "Editor") && next.json["sequence"] != .integer(sequence))
  }

  @Test func whatIsNotThereIsStatus4AndSaysWhatIs() throws {
    #expect(try Self.put(#"{"scroll":1,"tabs":[1]}"#).end == .exit(0))
    let rows: [([String], String)] = [
      (["/scrol"], "did you mean scroll?"), (["/tabs/1"], "/tabs is an array with 1 element."),
      (["/scroll/x"], "/scroll is neither"), (["/tabs/01"], "/tabs is an array"),
    ]
    for (arguments, hint) in rows {
      for command in ["get", "rm"] {
        let result = try ControlTool.run([command, "-j"] + Self.editor + arguments, status: 4)
        #expect(try result.error["kind"] == "noValue")
        #expect(result.errors.contains(hint), "\(result.errors)")
      }
    }
    #expect(try Self.put("/none/x", "1").end == .exit(4))
    let typo = try ControlTool.run(["get", Self.application, "Main/Editro"], status: 4)
    #expect(typo.errors.contains("did you mean Editor?"), "\(typo.errors)")
    #expect(try ControlTool.run(["get", "-j", Self.application, "Main"], status: 4).error["kind"] == "noState")
    for command in [["get"], ["rm"], ["tree"], ["verify"]] {
      let path = command == ["get"] || command == ["rm"] ? ["Main"] : []
      let result = try ControlTool.run(command + ["org.example.Note"] + path, status: 4)
      #expect(result.errors.contains("Did you mean org.example.Notes? "), "\(result.errors)")
    }
    try broker.connect().encode("Main", state: [:], of: "org.example.Several@2")
    let without = try ControlTool.run(["tree", "org.example.Several"], status: 4)
    #expect(without.errors.contains("Did you mean org.example.Several@2? "), "\(without.errors)")
    let bytes = ["sh", "-c", #"exec "$@" "$(printf 'caf\351')""#, "sh"] + [Products.control, "get", "a", "-r"]
    let foreign = try ChildProcess.run(bytes)
    #expect(foreign.end == .exit(64) && foreign.errors.contains("is not UTF-8"), "\(foreign.errors)")
    let deep = try ControlTool.run(["put", Self.application, "Main/New", "/a/b", "1"], status: 4)
    #expect(deep.errors.contains("Main/New has no state, and only the last key of /a/b may be new"), "\(deep.errors)")
    let steps: [([String], String)] = [
      (["put", "org.example.New", "A", "/x/y/z", "1"], #"org.example.New A '{"x":{"y":{}}}'"#),
      (["put", "org.example.New", "A", "/x/-", "1"], #"org.example.New A '{"x":[]}'"#),
    ]
    for (words, step) in steps {
      let errors = try ControlTool.run(words, status: 4).errors
      #expect(errors.hasSuffix("\n  Put the others first: restorationctl put \(step)\n"), "\(errors)")
    }
    try broker.session("org.example.Empty").call("ping")
    let empty = try ControlTool.run(["get", "org.example.Empty", "Main"], status: 4)
    #expect(empty.errors.contains("restorationctl put org.example.Empty Main '{}' makes it."), "\(empty.errors)")
    try ControlTool.run(["put", Self.application, "Empty/Child", "{}"], status: 0)
    for arguments in [
      ["rm", "-j", Self.application, "Empty", "/n"], ["put", "-j", Self.application, "Empty", "/n/x", "1"],
    ] {
      #expect(try ControlTool.run(arguments, status: 4).error["kind"] == "noState")
    }
  }

  @Test func aPersonWhoMakesSomethingNewIsToldWhatResemblesIt() throws {
    #expect(try Self.put("{}").end == .exit(0))
    func made(_ arguments: String...) throws -> String {
      try ControlTool.runOnTerminal(["put"] + arguments + ["{}"], status: 0).output
    }
    let object = try made(Self.application, "Main/Editro")
    #expect(object.contains("Main/Editro is new in org.example.Notes; did you mean Main/Editor?"), "\(object)")
    let application = try made("org.example.Note", "Main")
    #expect(application.contains("org.example.Note is new; did you mean org.example.Notes?"), "\(application)")
    #expect(try !made("org.example.Mail", "Main").contains("is new"), "only the domain is the same")
    // Somebody counts.
    for number in 1...3 { #expect(try !made("org.example.Job\(number)", "Main").contains("is new")) }
    #expect(try !made("-q", "org.example.Noted", "Main").contains("is new"))
    let script = try ControlTool.run(["put", "org.example.Notez", "Main", "{}"], status: 0)
    #expect(script.errors == "")
  }

  @Test func whatWasDoneIsNotSaidToWhoWantsQuiet() throws {
    let client = try broker.session(Self.application, process: "main")
    try client.register("Live")
    for command in [
      ["put"] + Self.editor + ["{}"], ["put", "--quiet"] + Self.editor + ["/n", "1"], ["rm"] + Self.editor + ["/n"],
      ["save", Self.application], ["save", "--all"], ["verify", Self.application], ["verify", "--all"],
      ["backup", Self.application], ["rm"] + Self.editor, ["forget", "--yes", "--force", Self.application],
    ] {
      let result = try ControlTool.run(["-q"] + command, status: 0)
      #expect(result.output + result.errors == "", "\(command)")
    }
    #expect(try Self.put("{}").end == .exit(0))
    // Data is no such sentence, nor is a failure.
    #expect(try ControlTool.run(["get", "-q"] + Self.editor, status: 0).output == "{}\n")
    #expect(try ControlTool.run(["-q", "-j", "put"] + Self.editor + ["{}"]).json["sequence"] != nil)
    #expect(try ControlTool.run(["-q", "verify", "org.example.None"], status: 4).errors.contains("org.example.None"))
  }

  @Test(arguments: [
    ["/n", "{"], ["/n", "word"], ["7"], ["n", "1"], ["/~2", "1"], ["/n", "1", "2"], ["/n", "--x"], ["", "{}"], ["--"],
    ["--expecting", "-1", "{}"], [],
  ])
  func aPutThatMakesNoSenseIsStatus64(_ arguments: [String]) throws {
    let result = try ControlTool.run(["put"] + Self.editor + arguments, status: 64)
    #expect(result.output.isEmpty && !result.errors.isEmpty)
    #expect(try ControlTool.run(["list", "--no-legend"]).output.isEmpty)
  }

  @Test func confidentialStatesAreChangedAndNotShown() throws {
    let client = try broker.session(Self.application, process: "main")
    try client.register("Login", with: ["confidential": true])
    try client.encode("Login", state: ["password": "hunter2"])
    try client.call("goodbye", ["reason": "restart"])
    let login = [Self.application, "Login"]
    let hidden = try ControlTool.run(["get", "-j"] + login + ["/password"], status: 1)
    #expect(try hidden.error["kind"] == "confidential")
    for text in [hidden.output, hidden.errors] { #expect(!text.contains("hunter2")) }
    let missing = try ControlTool.run(["rm"] + login + ["/passwort"], status: 4)
    #expect(!missing.errors.contains("did you mean"), "\(missing.errors)")
    try ControlTool.run(["put"] + login + ["/user", "-r", "me"], status: 0)
    let all = try ControlTool.run(["get"] + login + ["--reveal"], status: 0)
    #expect(all.output == #"{"password":"hunter2","user":"me"}"# + "\n")
  }

  @Test func anObjectIsRemovedIfNothingIsBelowIt() throws {
    #expect(try Self.put("{}").end == .exit(0))
    let full = try ControlTool.run(["rm", "-j", Self.application, "Main"], status: 1)
    #expect(try full.error["kind"] == "notEmpty")
    #expect(full.errors.contains("restorationctl forget org.example.Notes Main "), "\(full.errors)")
    #expect(try ControlTool.run(["rm"] + Self.editor).output == "Removed Main/Editor of org.example.Notes: 2 B.\n")
    try ControlTool.run(["rm"] + Self.editor, status: 4)
  }

  @Test func aGenerationIsReadLikeTheHead() throws {
    let client = try broker.session(Self.application, process: "main")
    try client.register("Main")
    try client.encode("Main", state: ["n": 1])
    try client.call("saveApplicationState")
    try client.encode("Main", state: ["n": 2])
    let main = ["get", Self.application, "Main", "/n"]
    #expect(try ControlTool.run(main + ["--generation", "1"]).output == "1\n")
    #expect(try ControlTool.run(main).output == "2\n")
    try ControlTool.run(main + ["--generation", "9"], status: 4)
  }
}
