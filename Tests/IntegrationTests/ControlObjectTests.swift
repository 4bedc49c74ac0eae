// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// `restorationctl show`, `history` and `discard`.
@Suite(.broker) struct ControlObjectTests {
  private static let editor = ["show", "a", "Main/Editor"]

  /// An application with a state, a secret and, when `runs` is more than one, generations; its last session, which
  /// stays open.
  @discardableResult
  private static func fill(runs: Int = 1) throws -> WireClient {
    var run = 0
    while true {
      run += 1
      let client = try broker.session("a", process: "editor", ["bundleVersion": "7"])
      try client.register("Main", with: ["kind": "viewController"])
      let editor: JSONValue = [
        "restorationIdentifier": "Editor", "restorationParent": .path("Main"), "kind": "view",
        "objectClass": ["TextEditor", "Editor"],
      ]
      let object = try client.call("registerObjectForStateRestoration", editor)["object"] ?? .null
      let secret: JSONValue = [
        "restorationIdentifier": "Login", "restorationParent": .path("Main"), "confidential": true,
      ]
      let login = try client.call("registerObjectForStateRestoration", secret)["object"] ?? .null
      let elements: JSONValue = [["role": "selected", "indexPath": [0, 3], "identifier": "row"]]
      try client.call(
        "encodeRestorableState",
        ["object": object, "state": ["run": .integer(Int64(run))], "elements": elements, "revision": 4]
      )
      try client.call("encodeRestorableState", ["object": login, "state": ["password": "hunter2"]])
      guard run < runs else {
        broker.keep(client)
        return client
      }
      try client.call("goodbye", ["reason": "restart"])
    }
  }

  private static func pid() throws -> Int32 {
    let tree = try ControlTool.run(["-j", "tree", "a"]).json
    return Int32(try #require(tree["sessions"]?.array?.first?["pid"]?.integer))
  }

  // MARK: show

  @Test func showHasTheFactsAndTheState() throws {
    try Self.fill()
    let result = try ControlTool.run(Self.editor, status: 0)
    let lines = result.output.split(separator: "\n").filter { !$0.contains("System version:") }.joined(separator: "\n")
    #expect(
      ControlTool.golden(lines, [try Self.pid()]) == """
          Path:  Main/Editor
          Class:  TextEditor < Editor
          Kind:  view
          Owner:  editor, process <pid1>
          Generation:  head
          Revision:  4
          Modified:  <time> (<age> ago)
          Size:  84 B
        Bundle version:  7
          Selected:  [0, 3] row
        {
          "run": 1
        }
        """
    )
  }

  @Test func showInJSONHasAllMembers() throws {
    try Self.fill()
    let object = try ControlTool.run(Self.editor + ["-j"]).json
    #expect(
      object.object?.members.map(\.name) == [
        "application", "generation", "path", "object", "kind", "classes", "process", "pid", "vacant", "orphaned",
        "included", "confidential", "redacted", "status", "bytes", "modified", "revision", "sequence", "coder",
        "elements", "state",
      ]
    )
    #expect(object["path"] == .path("Main", "Editor"))
    #expect(object["state"] == ["run": 1])
    #expect(object["status"] == "available")
    #expect(object["coder"]?["UIApplicationStateRestorationBundleVersionKey"] == "7")
    #expect(object["elements"] == [["role": "selected", "indexPath": [0, 3], "identifier": "row"]])
    #expect(object["generation"] == .null)
    let main = try ControlTool.run(["show", "a", "Main", "--json=short"]).json
    #expect(main["status"] == "none" && main["state"] == .null && main["coder"] == .null)
    #expect(try ControlTool.run(["show", "a", "Main"]).output.contains("State:  none"))
  }

  @Test func aConfidentialStateIsShownWhenAskedFor() throws {
    try Self.fill(runs: 2)
    for place in [[], ["--generation", "1"]] {
      let arguments = ["show", "a", "Main/Login"] + place
      for form in [[], ["-j"]] {
        let redacted = try ControlTool.run(arguments + form, status: 0)
        #expect(!redacted.output.contains("hunter2"))
        #expect(try ControlTool.run(arguments + form + ["--reveal"]).output.contains("hunter2"))
      }
      #expect(try ControlTool.run(arguments).output.contains("confidential; --reveal shows it"))
      let object = try ControlTool.run(arguments + ["-j"]).json
      #expect(object["redacted"] == true && object["state"] == .null && object["status"] == "available")
    }
  }

  @Test func showReadsGenerations() throws {
    try Self.fill(runs: 3)
    for generation in 1...2 as ClosedRange<Int64> {
      let object = try ControlTool.run(Self.editor + ["-j", "--generation", "\(generation)"]).json
      #expect(object["state"] == ["run": .integer(generation)])
      #expect(object["generation"] == .integer(generation))
      #expect(object["pid"] == .null && object["included"] == .null)
    }
    let text = try ControlTool.run(Self.editor + ["--generation=1"])
    #expect(text.output.contains("Generation:  1\n"))
    #expect(text.output.contains("written by editor"))
    #expect(try ControlTool.run(Self.editor).output.contains("Generation:  head, after 2\n"))
    let missing = try ControlTool.run(["show", "a", "Main/Edito", "--generation=1"], status: 4)
    #expect(missing.errors.contains("did you mean Editor?"), "\(missing.errors)")
  }

  @Test func aPathThatLeadsNowhereIsToldWhereItEnds() throws {
    try Self.fill()
    let near = try ControlTool.run(["show", "a", "Main/Edtior/Cursor", "-j"], status: 4)
    #expect(near.errors.contains("unknown object Main/Edtior/Cursor in a"))
    #expect(near.errors.contains("Main exists; below it are Editor, Login; did you mean Editor?"))
    #expect(try near.error["path"] == .path("Main", "Edtior", "Cursor"))
    #expect(try near.error["code"] == -32002)
    let far = try ControlTool.run(["show", "a", "Other"])
    #expect(far.errors.contains("At the top is Main"), "\(far.errors)")
    let below = try ControlTool.run(["show", "a", "Main/Editor/X"])
    #expect(below.errors.contains("Main/Editor exists; below it is nothing"), "\(below.errors)")
  }

  // MARK: history

  @Test func historyListsGenerations() throws {
    try Self.fill(runs: 3)
    let result = try ControlTool.run(["history", "a"])
    #expect(
      ControlTool.golden(result.output) == """
        GENERATION  COMMITTED  AGE  KIND  OBJECTS  SIZE  PINNED
          1  <time>  <age>  startup  2  106 B  pinned
          2  <time>  <age>  startup  2  106 B

        2 generations.

        """,
      "\(result.output)"
    )
    #expect(try ControlTool.run(["history", "a", "--no-legend"]).output.split(separator: "\n").count == 2)
    let parameters = #"{"application":"a"}"#
    let raw = try ControlTool.run(["call", "listGenerations", parameters])
    #expect(try ControlTool.run(["history", "a", "-j"]).output == raw.output)
  }

  @Test func withoutGenerationsHistorySaysSo() throws {
    try Self.fill()
    #expect(try ControlTool.run(["history", "a"]).output == "0 generations.\n")
  }

  // MARK: discard

  private static func states(_ client: WireClient) throws -> Int {
    let objects = try client.call("describeApplication")["objects"]?.array ?? []
    return objects.count { $0["modified"] != .null }
  }

  @Test func discardSaysWhatItTook() throws {
    let client = try Self.fill(runs: 2)
    let result = try ControlTool.run(["discard", "a", "--yes", "--reason", "a test"], status: 0)
    #expect(result.output == "Discarded 2 states (106 B) of a. 1 generation is kept.\n")
    #expect(try Self.states(client) == 0)
  }

  @Test func generationsAreDiscardedByForceOnly() throws {
    try Self.fill(runs: 2)
    let refused = try ControlTool.run(["discard", "a", "--generations", "--yes", "-j"], status: 1)
    #expect(try refused.error["kind"] == "needsForce")
    #expect(refused.errors.contains("--force"))
    let result = try ControlTool.run(["discard", "a", "--generations", "--force", "-j"])
    #expect(try result.json == ["application": "a", "states": 2, "bytes": 106, "generations": 1, "generationsKept": 0])
    #expect(try ControlTool.run(["history", "a"]).output == "0 generations.\n")
  }

  @Test func discardAsksAtATerminal() throws {
    let client = try Self.fill(runs: 2)
    let question = "Discard 2 states (106 B) of a? 1 session is live. 1 generation is kept. [y/N] "
    for answer in ["n", "", "yesterday"] {
      let refused = try ControlTool.runOnTerminal(["discard", "a"], answers: [(question, answer)], status: 1)
      #expect(refused.output.contains("nothing was discarded"))
    }
    #expect(try Self.states(client) == 2)
    // The time that a person takes is not the broker's.
    let arguments = ["discard", "a", "--timeout=10"]
    let done = try ControlTool.runOnTerminal(arguments, answers: [(question, "y")], status: 0)
    #expect(done.output.contains("Discarded 2 states (106 B) of a."))
    #expect(try Self.states(client) == 0)
  }

  // MARK: forget

  @Test func forgetRemovesAnObjectThatNobodyHasOrAnApplication() throws {
    let client = try Self.fill(runs: 2)
    let (main, refused) = (["forget", "a", "Main"], ["forget", "a", "--yes", "-j"])
    #expect(try ControlTool.run(main + ["--yes"], status: 1).errors.contains("belongs to"))
    #expect(try ControlTool.run(refused, status: 1).error["kind"] == "needsForce")
    try client.call("goodbye", ["reason": "restart"])
    let question = "Forget Main of a: 3 objects (106 B)? [y/N] "
    let declined = try ControlTool.runOnTerminal(main, answers: [(question, "n")], status: 1)
    #expect(declined.output.contains("nothing was forgotten"))
    let done = try ControlTool.run(main + ["--yes", "-j"], status: 0)
    #expect(try done.json == ["application": "a", "path": ["Main"], "objects": 3, "bytes": 106])
    #expect(try ControlTool.run(["show", "a", "Main", "--generation", "1"]).end == .exit(0))
    try ControlTool.run(main + ["--yes"], status: 4)
    let forgotten = try ControlTool.run(["forget", "a", "--force"], status: 0)
    #expect(forgotten.output == "Forgot a: 0 objects (0 B).\n")
    try ControlTool.run(["forget", "a", "--force"], status: 4)
    #expect(!Files.list(broker.archives).contains { $0.hasPrefix("a.") || $0.hasPrefix("a+") })
  }

  // MARK: reopen

  @Test func reopenBringsBackWhatWasClosed() throws {
    let client = try Self.fill()
    #expect(try ControlTool.run(["reopen", "a"], status: 4).errors.contains("See restorationctl reopen a --list."))
    #expect(try ControlTool.run(["reopen", "a", "--list"], status: 0).output == "Nothing was closed lately.\n")
    try client.call("unregisterObject", ["object": .path("Main", "Editor")])
    let list = try ControlTool.run(["reopen", "a", "--list", "-j"], status: 0).json["objects"]?.array
    #expect(list?.map { $0["path"] } == [.path("Main", "Editor")])
    let done = try ControlTool.run(["reopen", "a", "Main/Editor"], status: 0)
    #expect(done.output == "Opened Main/Editor of a again: 1 object.\n")
    #expect(try ControlTool.run(["show", "a", "Main/Editor"]).end == .exit(0))
    try ControlTool.run(["reopen", "a", "Main/Editor"], status: 4)
  }
}
