// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// `restorationctl tree`.
@Suite(.broker) struct ControlTreeTests {
  private static let application = "org.example.Notes"

  /// An application of two processes, with one object for every mark; the numbers of the processes.
  private static func build() throws -> (first: ProcessClient, second: ProcessClient) {
    let toolbar = try broker.client(.python)
    try toolbar.initialize(application, ["process": "toolbar"])
    let first = try broker.client(.python)
    try first.initialize(application, ["process": "main"])
    let second = try broker.client(.python)
    try second.initialize(application, ["process": "sidebar"])
    func register(_ client: ProcessClient, _ identifier: JSONValue, _ parent: JSONValue, _ more: JSONObject = [:])
      throws
      -> JSONValue
    {
      var parameters: JSONObject = ["restorationIdentifier": identifier, "restorationParent": parent]
      for (name, value) in more.members { parameters[name] = value }
      return try client.call("registerObjectForStateRestoration", .object(parameters))["object"] ?? .null
    }
    let bar = try register(toolbar, "Toolbar", .null)
    try toolbar.call("encodeRestorableState", ["object": bar, "state": ["kept": true]])
    let main = try register(first, "Main", .null, ["kind": "viewController", "objectClass": "WindowController"])
    let editor = try register(
      first,
      "Editor",
      main,
      ["kind": "viewController", "objectClass": ["TextEditor", "Editor"], "position": 2]
    )
    let popover = try register(first, .null, main, ["kind": "viewController", "objectClass": "Popover"])
    let find = try register(first, "Find", popover, ["kind": "view"])
    let sidebar = try register(second, "Sidebar", .path("Main"), ["kind": "view", "confidential": true])
    try first.call("encodeRestorableState", ["object": editor, "state": ["cursor": 17], "revision": 3])
    try first.call("encodeRestorableState", ["object": find, "state": ["q": "x"]])
    try second.call("encodeRestorableState", ["object": sidebar, "state": ["secret": 1]])
    try toolbar.kill()
    try Wait.until("the toolbar is orphaned") {
      let description = try first.call("describeApplication")
      return description["objects"]?.array?.first?["orphaned"] == true
    }
    return (first, second)
  }

  @Test func theTreeShowsAllProcessesAndWhatIsSpecial() throws {
    let (first, second) = try Self.build()
    let result = try ControlTool.run(["tree", Self.application], status: 0)
    #expect(
      ControlTool.golden(result.output, [first.pid, second.pid]) == """
        OBJECT  CLASS  PROCESS  PID  AGE  SIZE  MARKS
        org.example.Notes
        ├─Toolbar  -  toolbar  -  <age>  13 B  vo
        └─Main  WindowController  main  <pid1>  -  -  e
          ├─Editor#2  TextEditor  main  <pid1>  <age>  13 B
          ├─(no identifier)  Popover  main  <pid1>  -  -  xe
          │ └─Find  -  main  <pid1>  -  -  xe
          └─Sidebar  -  sidebar  <pid2>  <age>  12 B  c

        v vacant, o orphaned, x excluded, c confidential, w withheld, e empty (no state)
        6 objects, 3 with state (38 B), 2 sessions.

        """
    )
    // Columns stand below each other.
    let lines = result.output.split(separator: "\n").prefix(8).map(Array.init)
    let column = lines[0].firstRange(of: Array("CLASS"))?.lowerBound ?? 0
    #expect(lines.dropFirst(2).allSatisfy { $0[column - 1] == " " && $0[column] != " " })
    #expect(lines.allSatisfy { $0.count <= 80 })
    let bare = try ControlTool.run(["tree", Self.application, "--no-legend"])
    #expect(bare.output.split(separator: "\n").count == 7)
    #expect(bare.output.hasPrefix(Self.application))
  }

  @Test func aNarrowTreeKeepsItsBranchesAndShortensNames() throws {
    let client = try broker.session("a", process: "main")
    let long = "An-identifier-that-is-much-too-long"
    try client.register("Main", with: ["objectClass": "WindowControllerOfTheMainWindow"])
    for name in [long, "Other"] { try client.register(name, in: "Main") }
    try client.register("Below", in: "Main", long)
    let tree = try ControlTool.run(["tree", "a", "--no-legend"], environment: ["COLUMNS": "60"]).output
    let lines = tree.split(separator: "\n").map(String.init)
    #expect(lines.allSatisfy { $0.count <= 60 }, "\(tree)")
    #expect(lines[1].hasPrefix("└─Main "))
    #expect(lines[2].hasPrefix("  ├─An-") && lines[2].contains("…"), "\(tree)")
    #expect(lines[3].hasPrefix("  │ └─Below "), "\(tree)")
    #expect(lines[4].hasPrefix("  └─Other "), "\(tree)")
    #expect(try ControlTool.run(["tree", "a"]).output.contains("├─\(long) "))
  }

  /// Columns give way before names do, in this order: PID, SIZE, CLASS, AGE, PROCESS.
  @Test(arguments: [
    (80, "OBJECT CLASS PROCESS PID AGE SIZE MARKS"), (60, "OBJECT CLASS PROCESS AGE MARKS"),
    (40, "OBJECT PROCESS MARKS"), (20, "OBJECT MARKS"),
  ])
  func aNarrowTreeLeavesOutColumns(_ columns: Int, _ titles: String) throws {
    let client = try broker.session("org.example.Notes", process: "main-window")
    let classes: JSONObject = ["objectClass": "TextEditorController"]
    try client.register("Main", with: classes)
    try client.register("Editor-of-the-text", in: "Main", with: classes)
    try client.register("Selection", in: "Main", "Editor-of-the-text", with: classes)
    try client.call("encodeRestorableState", ["object": ["Main"], "state": ["n": 1]])
    let tree = try ControlTool.run(["tree", Self.application], environment: ["COLUMNS": "\(columns)"], status: 0).output
    let lines = tree.split(separator: "\n").map(String.init)
    #expect(lines[0].split(separator: " ").joined(separator: " ") == titles)
    guard columns >= 40 else { return }
    #expect(lines.allSatisfy { $0.count <= columns }, "\(tree)")
    #expect(lines[3].hasPrefix("  └─Editor-of-the-text ") && lines[4].hasPrefix("    └─Selection "), "\(tree)")
    #expect(tree.split(separator: "\n").joined(separator: " ").hasSuffix("3 objects, 1 with state (7 B), 1 session."))
  }

  @Test func withoutUTF8TheLinesAreASCII() throws {
    _ = try Self.build()
    let plain = try ControlTool.run(["tree", Self.application, "--plain"])
    #expect(plain.output.contains("\n`-Main "))
    #expect(plain.output.contains("\n  |-Editor#2 "))
    #expect(plain.output.contains("\n  | `-Find "))
    for locale in ["C", "POSIX", "de_DE.ISO-8859-1", ""] {
      let result = try ControlTool.run(["tree", Self.application], environment: ["LC_ALL": locale])
      #expect(ControlTool.golden(result.output) == ControlTool.golden(plain.output))
    }
    let german = ["LC_ALL": nil, "LANG": "de_DE.UTF-8"]
    let result = try ControlTool.run(["tree", Self.application], environment: german)
    #expect(result.output.contains("└─Main"))
  }

  @Test func objectsOfOneProcessHaveOneColour() throws {
    _ = try Self.build()
    let screen = try ControlTool.runOnTerminal(["tree", Self.application, "--no-pager"]).output
    func colour(of name: String) -> Substring? {
      guard let line = screen.split(separator: "\n").first(where: { $0.contains("─\(name)") }) else { return nil }
      return line.firstMatch(of: /\x{1b}\[([0-9]+)m/)?.1
    }
    #expect(colour(of: "Main") != nil)
    #expect(colour(of: "Main") == colour(of: "Editor#2"))
    #expect(colour(of: "Sidebar") != nil && colour(of: "Sidebar") != colour(of: "Main"))
    #expect(colour(of: "Toolbar") == "2")
  }

  @Test func theTreeInJSONIsNested() throws {
    let (first, _) = try Self.build()
    let tree = try ControlTool.run(["-j", "tree", Self.application]).json
    #expect(
      tree.object?.members.map(\.name) == ["application", "archive", "generation", "sequence", "sessions", "objects"]
    )
    #expect(tree["application"] == .string(Self.application))
    #expect(tree["sessions"]?.array?.map { $0["process"] } == ["main", "sidebar"])
    let roots = try #require(tree["objects"]?.array)
    #expect(roots.map { $0["component"] } == ["Toolbar", "Main"])
    #expect(roots[0]["vacant"] == true && roots[0]["orphaned"] == true && roots[0]["pid"] == .null)
    let children = try #require(roots[1]["children"]?.array)
    #expect(children.map { $0["component"] } == ["Editor#2", .null, "Sidebar"])
    let editor = children[0]
    #expect(
      editor.object?.members.map(\.name) == [
        "component", "path", "object", "kind", "classes", "process", "pid", "vacant", "orphaned", "included",
        "confidential", "hasState", "bytes", "modified", "revision", "children",
      ]
    )
    #expect(editor["classes"] == ["TextEditor", "Editor"])
    #expect(editor["pid"] == .integer(Int64(first.pid)))
    #expect(editor["revision"] == 3)
    #expect(children[1]["included"] == false && children[1]["path"] == .null)
    let find = children[1]["children"]?.array?.first
    #expect(find?["path"] == .path("Find"))
    #expect(find?["included"] == false && find?["hasState"] == false)
    #expect(children[2]["confidential"] == true)
    let pretty = try ControlTool.run(["tree", Self.application, "--json=pretty"])
    #expect(try pretty.json["objects"] == tree["objects"])
    #expect(pretty.output.hasPrefix("{\n  \"application\": "))
  }

  /// Objects may move between two pages; each is shown anyway, exactly once.
  @Test func aTreeThatDoesNotFitTogetherIsShown() throws {
    func object(_ node: Int, _ parent: String, _ name: String) -> String {
      #"{"node":\#(node),"parent":\#(parent),"object":null,"path":["\#(name)"],"kind":"object","objectClass":null,"#
        + #""process":null,"pid":null,"included":true,"orphaned":false,"bytes":0,"modified":null,"revision":null,"#
        + #""confidential":false}"#
    }
    let objects = [
      object(1, "2", "A"), object(2, "3", "B"), object(3, "1", "C"), object(4, "99", "Lost"), object(5, "5", "Self"),
      object(6, "2", "D"),
    ].joined(separator: ",")
    let answer =
      #"{"jsonrpc":"2.0","id":1,"result":{"application":"a","archive":null,"generation":null,"sequence":1,"#
      + #""sessions":[],"objects":[\#(objects)]}}"#
    let path = broker.directory.file("odd.sock")
    let server = """
      import socket, sys
      s = socket.socket(socket.AF_UNIX); s.bind("\(path)"); s.listen(); print("ready", flush=True)
      for _ in range(2):
        c, _ = s.accept(); c.recv(1 << 16); c.sendall(sys.argv[1].encode() + b"\\n"); c.recv(1); c.close()
      """
    let process = try ChildProcess(["python3", "-c", server, answer])
    #expect(try process.output?.next() == "ready")
    let result = try ControlTool.run(["tree", "a", "--no-legend", "--socket", path], status: 0)
    let names = result.output.split(separator: "\n").dropFirst().map { String($0.prefix { $0 != "-" }).trimmed }
    #expect(names == ["├─Lost", "├─A", "│ └─C", "│   └─B", "│     └─D", "└─Self"])
    let nested = try ControlTool.run(["tree", "a", "-j", "--socket", path]).json
    #expect(nested["objects"]?.array?.map { $0["component"] } == ["Lost", "A", "Self"])
    try process.waitForEnd()
  }

  @Test func wideAndCombiningCharactersStandInTheirColumns() throws {
    let client = try broker.connect()
    for name in ["日本語", "Cafe\u{301}"] { try client.encode(name, state: [:], of: "a") }
    let result = try ControlTool.run(["tree", "a", "--no-legend"])
    #expect(
      result.output.replacing(/[0-9]+ s/, with: "<age>") == """
        a
        ├─日本語  -  -  -  <age>  2 B  v
        └─Cafe\u{301}    -  -  -  <age>  2 B  v

        """,
      "\(result.output)"
    )
  }

  @Test func anEmptyApplicationIsATree() throws {
    let client = try broker.session("a")
    let result = try ControlTool.run(["tree", "a"], status: 0)
    #expect(result.output.contains("0 objects, 0 with state (0 B), 1 session."))
    #expect(try ControlTool.run(["tree", "a", "-j"]).json["objects"] == [])
    try client.call("ping")
  }

  /// Trees of depth 60, as many as are asked for.
  private static func plant(_ count: Int) throws {
    let client = try broker.connect()
    let names = (0..<59).map { JSONValue.string("level\($0)") }
    for first in stride(from: 0, to: count, by: 64) {
      let ids = try (first..<min(count, first + 64)).map { root in
        let path = JSONValue.array([.string("root\(root)")] + names)
        return try client.request("encodeRestorableState", ["application": "big", "object": path, "state": ["n": 1]])
      }
      for id in ids { try client.answer(to: id) }
    }
  }

  @Test func asManyObjectsAsThereMayBeAreShown() throws {
    try Self.plant(273)
    let patience = Deadline(.seconds(100))
    let result = try ControlTool.run(["tree", "big"], environment: ["COLUMNS": "80"], patience, status: 0)
    let lines = result.output.split(separator: "\n")
    #expect(lines.count == 1 + 1 + 16_380 + 2)
    #expect(lines.allSatisfy { $0.count <= 80 })
    #expect(lines.last == "16380 objects, 273 with state (1.8 KiB), 0 sessions.")
  }

  @Test func aDeepTreeIsShown() throws {
    try Self.plant(30)
    let lines = try ControlTool.run(["tree", "big"], environment: ["COLUMNS": "80"]).output.split(separator: "\n")
    #expect(lines.count == 1 + 1 + 1_800 + 2)
    #expect(lines.allSatisfy { $0.count <= 80 })
    // Of a line that is too long the end remains: it has the name.
    #expect(lines[61].hasPrefix("…") && lines[61].contains("└─level58 "))
    let full = try ControlTool.run(["tree", "big", "--full"])
    #expect(full.output.split(separator: "\n")[61].hasPrefix("│" + String(repeating: " ", count: 117) + "└─level58 "))
    let nested = try ControlTool.run(["tree", "big", "--json=short"]).output
    #expect(nested.matches(of: /"children":\[/).count == 1_800)
    #expect(nested.hasSuffix("[" + String(repeating: "]}", count: 61) + "\n"))
    try Self.expectQuietEnd()
  }

  /// Who stops reading early, as `head` does, or leaves the pager, has seen enough.
  private static func expectQuietEnd() throws {
    let script = #""$0" tree big | head -n 1 >/dev/null; exit "${PIPESTATUS[0]}""#
    let piped = try ChildProcess.run(["bash", "-c", script, Products.control], environment: ControlTool.environment())
    #expect(piped.end == .exit(74))
    #expect(piped.errors.isEmpty)
    let paged = try ControlTool.runOnTerminal(["tree", "big"], environment: ["PAGER": "head -n 1"], status: 0)
    #expect(paged.output.split(separator: "\n").count == 1)
  }
}

extension String {
  fileprivate var trimmed: String { String(reversed().drop { $0 == " " }.reversed()) }
}
