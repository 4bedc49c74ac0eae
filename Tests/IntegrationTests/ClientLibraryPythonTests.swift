// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// Features that only the Python library has.
@Suite(.timeLimit(.minutes(10))) struct ClientLibraryPythonTests {
  private static let application = "org.example.Notes"
  private static let kinds: [LibraryClient.Library] = [.python, .asyncio]

  @Test("A state that is pushed without waiting is stored, also by a new broker", .broker, arguments: kinds)
  func savesLater(_ library: LibraryClient.Library) throws {
    let client = try LibraryClient.open(library)
    try client.register("Main")
    try client.register("Editor")
    try client.tell("later", ["name": "Editor", "state": ["cursor": 1]])
    #expect(try client.tell("decode", ["name": "Editor"])["state"] == ["cursor": 1])
    try broker.kill()
    Files.removeContents(of: broker.archives)
    try broker.start()
    try client.tell("await", ["what": "reconnected", "count": 1])
    try client.tell("later", ["name": "Editor", "state": ["cursor": 2]])
    #expect(try client.tell("decode", ["name": "Editor"])["state"] == ["cursor": 2])
    try client.close()
  }

  @Test("What could not be registered anew is not taken for another object", .broker, arguments: kinds)
  func losesObjects(_ library: LibraryClient.Library) throws {
    let other = try broker.session(Self.application, process: "main")
    try other.register("Main")
    let client = try LibraryClient.open(library, Self.application, ["serving": false])
    try client.register("Orphan", "Main")
    try client.register("Editor")
    try broker.kill()
    Files.removeContents(of: broker.archives)
    try broker.start()
    #expect(try client.failure("push", ["name": "Orphan", "state": ["lost": true]]).kind == "replaced")
    #expect(try client.tell("decode", ["name": "Editor"])["status"] == "none")
    #expect(try client.tell("push", ["name": "Editor", "state": ["cursor": 1]]) == true)
    #expect(try client.tell("register", ["identifier": "Orphan"])["path"] == .path("Orphan"))
    #expect(try client.tell("push", ["name": "Orphan", "state": ["found": true]]) == true)
    #expect(try client.tell("decode", ["name": "Editor"])["state"] == ["cursor": 1])
    try client.close()
  }

  @Test("Numbers that Python has no room for come back as they were", .broker, arguments: kinds)
  func takesLargeNumbers(_ library: LibraryClient.Library) throws {
    let client = try LibraryClient.open(library)
    try client.register("Editor")
    #expect(try client.tell("large", ["name": "Editor", "digits": 5_000]) == true)
    #expect(try client.failure("unwritable", ["name": "Editor"]).kind == "InvalidState")
    #expect(try client.tell("large", ["name": "Editor", "digits": 5_000]) == true)
    #expect(try client.log().contains { $0.hasPrefix("reconnected") } == false)
    try client.close()
  }

  @Test("R28 Rows that were selected are found again after the data were reordered", .broker, arguments: kinds)
  func findsRowsAgain(_ library: LibraryClient.Library) throws {
    let first = try LibraryClient(library)
    try Self.openList(first, rows: ["k1", "k2", "k3"])
    let selected: JSONValue = [["role": "selected", "indexPath": [0, 1]]]
    try first.tell("set", ["name": "List", "state": ["zoom": 1], "elements": selected])
    let saved = try first.tell("save")
    #expect(saved["stale"] == [])
    // An answer that is not JSON made a round wait for its whole deadline.
    #expect((saved["milliseconds"]?.integer ?? 5_000) < 5_000)
    try first.kill()

    let second = try LibraryClient(library)
    try Self.openList(second, rows: ["k3", "k1", "new", "k2"])
    let found: JSONValue = [["role": "selected", "indexPath": [0, 3], "identifier": "k2", "resolved": true]]
    #expect(try second.tell("decode", ["name": "List"])["elements"] == found)
    #expect(try second.tell("errors") == [])
    try second.close()
  }

  private static func openList(_ client: LibraryClient, rows: JSONValue) throws {
    try client.open()
    try client.tell("register", ["identifier": "Main", "kind": "viewController"])
    try client.tell("register", ["identifier": "List", "parent": .path("Main"), "kind": "view"])
    try client.tell("source", ["name": "List", "rows": rows])
  }

  @Test("What a callback raises is told to the broker with its type and in the log", .scratch, arguments: kinds)
  func tellsWhatACallbackRaises(_ library: LibraryClient.Library) throws {
    let asking = try AskingBroker(in: directory)
    let client = try LibraryClient(library, socket: asking.socket, errors: directory.file("client.log"))
    func answer(_ method: String, _ params: JSONValue) throws -> JSONValue {
      try client.tell("call", ["method": "ask", "params": ["method": .string(method), "params": params]])
    }
    try client.open()
    try client.register("Editor")
    try client.tell("set", ["name": "Editor", "state": "fail"])
    try client.tell("source", ["name": "Editor", "rows": [5, "\"five\""]])
    try client.tell("class", ["restorationClass": "Document"])

    let encoded = try answer("encodeRestorableStateWithCoder", ["round": 1, "objects": [["object": 1]]])
    let raised: JSONValue = "ValueError: there is none now"
    #expect(encoded["result"] == ["states": [["object": 1, "error": ["message": raised]]]])
    let decoded = try answer("decodeRestorableStateWithCoder", ["objects": [["object": 1, "state": [:]]]])
    #expect(decoded["error"] == ["code": -32603, "message": raised])
    let taken: JSONValue = ["restorationClass": "Document", "identifierPath": .path("Taken")]
    let refused: JSONValue = ["code": -32004, "message": "restorationd.BrokerError: it is taken. Take another."]
    #expect(try answer("objectWithRestorationIdentifierPath", taken)["error"] == refused)
    let row: JSONValue = ["view": .path("Editor"), "indexPath": [0], "role": "selected"]
    let wrong: JSONValue = ["code": -32603, "message": "TypeError: identifier([0]) gave 5; give a string or None"]
    #expect(try answer("modelIdentifierForElementAtIndexPath", row)["error"] == wrong)
    let quoted: JSONValue = ["view": .path("Editor"), "indexPath": [1], "role": "selected"]
    #expect(try answer("modelIdentifierForElementAtIndexPath", quoted)["result"] == "\"five\"")
    #expect(try client.tell("errors").array?.count == 4)
    try client.close()
  }

  @Test("R12 An object whose callback raises a long message is stale, and no other is", .broker, arguments: kinds)
  func failsAlone(_ library: LibraryClient.Library) throws {
    let client = try LibraryClient.open(library)
    for name in ["Broken", "Editor"] { try client.register(name) }
    try client.tell("set", ["name": "Broken", "state": ["fail": 5_000_000]])
    try client.tell("set", ["name": "Editor", "state": ["cursor": 1]])
    #expect(try client.tell("save")["stale"]?.array?.map { $0["path"] } == [.path("Broken")])
    #expect(try client.tell("decode", ["name": "Editor"])["state"] == ["cursor": 1])

    try client.tell("set", ["name": "Document", "state": ["fail": 5_000_000]])
    try client.tell("class", ["restorationClass": "Document"])
    try client.tell("register", ["identifier": "Document", "restorationClass": "Document"])
    try client.tell("push", ["name": "Document", "state": ["cursor": 2]])
    try client.tell("goodbye", ["reason": "restart"])
    try client.open()
    try client.tell("set", ["name": "Editor", "state": ["cursor": 1]])
    for name in ["Broken", "Editor"] { try client.register(name) }
    try client.tell("class", ["restorationClass": "Document"])
    let restored = try client.tell("restore", ["deadline": 10])
    #expect(restored["skipped"]?.array?.map { $0["path"] } == [.path("Document")])
    // What was there is concerned, also without a state (R22).
    #expect(restored["restored"] == [.path("Broken"), .path("Editor")])
    try client.close()
  }

  @Test("R13 What a factory or the program forgets is gone", .broker, arguments: kinds)
  func forgets(_ library: LibraryClient.Library) throws {
    let client = try LibraryClient.open(library)
    for name in ["Document", "Other"] {
      try client.tell("register", ["identifier": .string(name), "restorationClass": "Document"])
      try client.tell("push", ["name": .string(name), "state": ["cursor": 1]])
    }
    try client.tell("goodbye", ["reason": "restart"])
    try client.open()
    try client.tell("class", ["restorationClass": "Document"])
    try client.tell("set", ["name": "Document", "state": ["instead": "forget"]])
    try client.tell("forget", ["path": "Other"])
    let restored = try client.tell("restore", ["deadline": 10])
    #expect(restored["skipped"] == [["path": .path("Document"), "reason": "refused"]])
    let described = try client.tell("call", ["method": "describeApplication", "params": [:]])
    #expect(described["objects"] == [])
    try client.close()
  }

  @Test("Threads share a session: their calls are made one after another, and others serve meanwhile", .broker)
  func isUsedByThreads() throws {
    let client = try LibraryClient.open(.python)
    let names = ["A", "B", "C", "D"]
    for name in names { try client.register(name) }
    try client.tell("register", ["identifier": "Asked"])
    let members: JSONObject = ["names": .array(names.map { .string($0) }), "count": 200]
    try client.send("threads", members)
    let other = try broker.session(Self.application)
    #expect(try other.call("saveApplicationState")["stale"] == [])
    #expect(try client.receiveResult() == [true, true, true, true, nil, nil])
    for name in names { #expect(try other.decode(name)["state"] == ["count": 200]) }
    try client.close()
  }

  @Test("Calls made at once before the session is open share one", .broker)
  func opensOneSession() throws {
    let client = try LibraryClient(.asyncio)
    let members: JSONObject = ["application": .string(Self.application), "identifiers": ["A", "B", "C"]]
    try client.tell("together", members)
    for name in ["A", "B", "C"] {
      #expect(try client.tell("push", ["name": .string(name), "state": ["name": .string(name)]]) == true)
    }
    let described = try client.tell("call", ["method": "describeApplication", "params": [:]])
    #expect(described["sessions"]?.array?.count == 1)
    try client.close()
  }

  @Test("A signal during a call that the broker does not read ends the program soon, and by itself", .broker)
  func isInterrupted() throws {
    let client = try LibraryClient.open(.python)
    try client.register("Editor")
    try client.tell("push", ["name": "Editor", "state": ["cursor": 1]])
    let pid = try broker.pid
    Glibc.kill(pid, SIGSTOP)
    defer { Glibc.kill(pid, SIGCONT) }
    try Wait.until("the broker stands still") { try Files.text("/proc/\(pid)/stat").contains(") T ") }
    try client.send("interrupted", ["name": "Editor", "bytes": 3_000_000])
    #expect(try client.receiveResult(Deadline(.seconds(15))) == "KeyboardInterrupt")
    Glibc.kill(pid, SIGCONT)
    try client.open()
    try client.register("Editor")
    #expect(try client.tell("decode", ["name": "Editor"])["state"] == ["cursor": 1])
    try client.close()
  }

  @Test("Arguments that cannot be are refused in the words of the caller", .broker, arguments: kinds)
  func refusesInTheWordsOfTheCaller(_ library: LibraryClient.Library) throws {
    let client = try LibraryClient.open(library)
    let wrong: [(String, JSONObject, [String])] = [
      ("register", ["identifier": "a/b"], ["identifier", "'a/b'", "(invalidIdentifier)"]),
      ("register", ["identifier": 5], ["identifier is not a string: 5", "(invalidParams)"]),
      ("register", ["identifier": "A", "parent": "Main/Editor"], ["A path is a list: ['Main', 'Editor']"]),
      ("register", ["identifier": "A", "parent": ["a": 1]], ["parent is not", "{'a': 1}"]),
      ("register", ["identifier": "A", "parent": ["No"], "wait": 0], ["['No']", "(unknownParent)", "with wait=."]),
      ("register", ["identifier": "A", "parent": ["No"], "wait": -1], ["wait= takes from 0", "-1"]),
      ("register", ["identifier": "A", "parent": ["No"], "wait": "5"], ["wait= takes a number", "'5'"]),
      ("register", ["identifier": "A", "object_class": 5], ["object_class is not", "5"]),
      ("register", ["identifier": "A", "kind": "window"], ["kind is not one of", "'window'"]),
      ("save", ["deadline": 601], ["deadline= takes from 0 to 600 seconds", "601"]),
      ("session", ["socket": 5], ["socket= takes a path", "5"]),
      ("session", ["leave": "go"], ["leave= takes restart", "'go'"]),
      ("session", ["patience": nil], ["patience= takes a number", "None"]),
      ("session", ["proces": "editor"], ["TypeError", "has no argument proces=", "did you mean process=?"]),
      ("session", ["bundleVersion": "1"], ["has no argument bundleVersion=", "did you mean bundle_version=?"]),
      ("session", ["application": "not an app!"], ["ValueError", "'not an app!' is not", "letters, digits, '.', '_'"]),
      ("session", ["application": 5], ["TypeError", "5"]),
      ("open", ["bundle_version": 1], ["bundle_version is not a string: 1", "(invalidParams)"]),
      ("load", ["application": "New", "path": "Main/Editor"], ["['Main', 'Editor']", "(invalidIdentifier)"]),
      ("load", ["application": "New", "path": ["A", "B#01"]], ["identifier: 'B#01'", "(invalidIdentifier)"]),
      ("load", ["application": "New", "path": ["A", "B#1"]], ["nothing"]),
      ("store", ["application": "New", "path": ["A/B"], "state": [:]], ["'A/B'", "(invalidIdentifier)"]),
      ("store", ["application": "New", "path": [5], "state": [:]], ["object is not", ": [5]"]),
    ]
    for (what, members, parts) in wrong {
      let said = try client.tell("wrong", ["what": .string(what), "members": .object(members)]).string ?? "nothing"
      for part in parts { #expect(said.contains(part), "\(said)") }
      #expect(!said.contains("Milliseconds") && !said.contains("restorationIdentifier"), "\(said)")
    }
    // A call that the program has written itself is told of in its own words.
    let call: JSONValue = ["restorationIdentifier": 5]
    let error = try client.failure("call", ["method": "registerObjectForStateRestoration", "params": call])
    #expect(error.object["message"]?.string == "restorationIdentifier is not a string: 5")
    try client.close()
  }

  @Test("Losing the broker and finding it again is in the log", .broker, arguments: kinds)
  func logsReconnecting(_ library: LibraryClient.Library) throws {
    let client = try LibraryClient.open(library)
    try client.register("Editor")
    #expect(try client.tell("logged") == [])
    try broker.kill()
    try broker.start()
    try client.tell("push", ["name": "Editor", "state": ["cursor": 1]])
    try broker.kill()
    Files.removeContents(of: broker.archives)
    try broker.start()
    try client.tell("push", ["name": "Editor", "state": ["cursor": 2]])
    let logged = (try client.tell("logged").array ?? []).map { ($0.array ?? []).compactMap(\.string) }
    #expect(logged.map { $0.first } == ["INFO", "INFO", "INFO", "WARNING"])
    let parts = ["is lost; connecting again", "the session continues", "is lost", "everything is registered again"]
    for (line, part) in zip(logged, parts) { #expect(line.last?.contains(part) == true, "\(line)") }
    try client.close()
  }

  @Test("A parent of another process is awaited by default", .broker, arguments: kinds)
  func awaitsAParent(_ library: LibraryClient.Library) throws {
    let client = try LibraryClient.open(library)
    let other = try broker.session(Self.application)
    func timers() throws -> Int64 { try other.call("statistics")["gauges"]?["timers"]?.integer ?? 0 }
    let before = try timers()
    try client.send("wrong", ["what": "register", "members": ["identifier": "Editor", "parent": .path("Main")]])
    try Wait.until("the registration waits") { try timers() > before }
    try other.register("Main")
    #expect(try client.receiveResult() == .null)
    try client.close()
  }
}
