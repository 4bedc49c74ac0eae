// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// How the client libraries lead to the program's own objects and values, over real processes.
@Suite(.timeLimit(.minutes(10))) struct ClientLibraryObjectTests {
  private static let application = "org.example.Notes"
  private static let all = LibraryClient.Library.allCases

  @Test("R14 A reference in a decoded state leads to the object of this process", .broker, arguments: all)
  func referencesLeadToObjects(_ library: LibraryClient.Library) throws {
    let other = try broker.session(Self.application)
    try other.register("Theirs")
    let client = try LibraryClient.open(library)
    try client.register("Main")
    try client.register("Editor", "Main")
    let state: JSONValue = [
      "front": ["$restorable": .path("Main", "Editor")], "theirs": ["$restorable": .path("Theirs")],
    ]
    try client.tell("push", ["name": "Main", "state": state])
    #expect(try client.tell("referred", ["name": "Main", "key": "front"]) == "Editor")
    #expect(try client.tell("referred", ["name": "Main", "key": "theirs"]) == .null)
    #expect(try client.tell("at", ["path": .path("Main", "Editor")]) == "Editor")
    #expect(try client.tell("at", ["path": .path("Theirs")]) == .null)
    try client.tell("rename", ["name": "Editor", "identifier": "Text"])
    #expect(try client.tell("referred", ["name": "Main", "key": "front"]) == "Editor")
    #expect(try client.tell("at", ["path": .path("Main", "Editor")]) == .null)
    #expect(try client.tell("at", ["path": .path("Main", "Text")]) == "Editor")
    try client.close()
  }

  @Test("Two objects of a program under one path are told in its process", .broker, arguments: all)
  func duplicatesAreTold(_ library: LibraryClient.Library) throws {
    let client = try LibraryClient.open(library)
    try client.register("Editor")
    try client.tell("set", ["name": "Editor", "state": ["cursor": 1]])
    let error = try client.failure("twice", ["identifier": "Editor"])
    #expect(error.kind?.lowercased() == "duplicateobject")
    #expect(error.object["message"]?.string?.contains("Editor") == true)
    // The first one stays, and may register again.
    #expect(try client.tell("register", ["identifier": "Editor"])["existing"] == true)
    #expect(try client.tell("save")["stale"] == [])
    #expect(try client.log() == ["encode Editor"])
    #expect(try client.tell("decode", ["name": "Editor"])["state"] == ["cursor": 1])
    try client.close()
  }

  @Test("R30 After the user has quit, calls say that nothing of the session is stored", .broker, arguments: all)
  func discardedIsTold(_ library: LibraryClient.Library) throws {
    let delegate = try broker.session(Self.application, process: "main", ["delegate": true])
    let client = try LibraryClient.open(library)
    try client.register("Editor")
    try delegate.call("goodbye", ["reason": "userQuit"])
    for (what, members) in [
      ("register", ["identifier": "Another"]), ("rename", ["name": "Editor", "identifier": "Text"]),
    ] as [(String, JSONObject)] {
      let error = try client.failure(what, members)
      #expect(error.kind?.lowercased() == "discarded")
      #expect(error.object["message"]?.string?.contains("the user has quit the application") == true)
    }
    #expect(try client.tell("at", ["path": .path("Editor")]) == "Editor")
    // The broker knows the object no longer, and does not register it again.
    _ = try client.failure("decode", ["name": "Editor"])
    try client.close()
  }

  @Test(
    "R22 A factory leaves an object to another session of the class, or says that it comes",
    .broker,
    arguments: all
  )
  func classesAreShared(_ library: LibraryClient.Library) throws {
    let former = try LibraryClient.open(library)
    for name in ["Doc", "Late"] {
      let object = try former.tell("register", ["identifier": .string(name), "restorationClass": "Document"])
      #expect(object["existing"] == nil)
      try former.tell("push", ["name": .string(name), "state": ["text": .string(name)]])
    }
    try former.tell("goodbye", ["reason": "restart"])
    let clients = try [LibraryClient.open(library), LibraryClient.open(library)]
    for client in clients { try client.tell("class", ["restorationClass": "Document", "shared": true]) }
    try clients[0].tell("set", ["name": "Doc", "state": ["instead": "pass"]])
    for client in clients { try client.tell("set", ["name": "Late", "state": ["instead": "awaited"]]) }
    try clients[0].send("restore", ["deadline": 60])
    try clients[1].tell("await", ["what": "create", "count": 1])
    try clients[1].tell("register", ["identifier": "Late"])
    #expect(try clients[0].receiveResult()["restored"] == [.path("Doc"), .path("Late")])
    try clients[1].tell("await", ["what": "finished", "count": 2])
    #expect(try clients[1].log().contains(#"decode Late {"text":"Late"}"#))
    for client in clients { try client.close() }
  }

  @Test("R29 A process that comes late is handed its states, and a new object gets none", .broker, arguments: all)
  func comesLate(_ library: LibraryClient.Library) throws {
    let former = try LibraryClient.open(library, Self.application, ["process": "worker"])
    for name in ["Late", "New"] {
      try former.register(name)
      try former.tell("push", ["name": .string(name), "state": ["text": .string(name)]])
    }
    try former.tell("goodbye", ["reason": "restart"])
    let driver = try broker.session(Self.application, process: "driver")
    try driver.call("restoreApplicationState", ["deadlineMilliseconds": 1])
    let late = try LibraryClient.open(library, Self.application, ["process": "worker"])
    #expect(try late.tell("register", ["identifier": "New", "fresh": true])["state"] == "none")
    let object = try late.tell("register", ["identifier": "Late"])
    #expect(object["state"] == "available" && object["handing"] == true)
    try late.tell("await", ["what": "finished", "count": 1])
    #expect(try late.log() == [#"decode Late {"text":"Late"}"#, "finished Late"])
    #expect(try late.tell("decode", ["name": "New"])["state"] == .null)
    try late.close()
  }

  @Test("A state that follows the answer to a registration is given after the registration has returned", .scratch)
  func isCalledWhenItHasTheObject() throws {
    let asking = try AskingBroker(in: directory)
    let client = try LibraryClient(.c, socket: asking.socket, errors: directory.file("client.log"))
    try client.open()
    try client.register("Hasty")
    // Nothing else comes that would wake it.
    try client.tell("await", ["what": "finished", "count": 1])
    #expect(try client.log() == [#"decode Hasty {"text":"an hour of work"}"#, "finished Hasty"])
    try client.close()
  }

  @Test("R4 What was pushed while an object was excluded is saved when it is included", .broker, arguments: all)
  func savesWhatWasExcluded(_ library: LibraryClient.Library) throws {
    let other = try broker.session(Self.application, process: "main")
    let window: JSONObject = ["kind": "viewController"]
    let handle = try #require(try other.register("Main", with: window)["object"])
    func rename(_ name: JSONValue) throws {
      try other.call("setRestorationIdentifier", ["object": handle, "restorationIdentifier": name])
    }
    for isAsked in [false, true] {
      try rename("Main")
      let client = try LibraryClient.open(library, Self.application, ["serving": .bool(isAsked)])
      let sheet: JSONObject = ["identifier": "Sheet", "parent": .path("Main"), "kind": "viewController"]
      try client.tell("register", sheet)
      try rename(.null)
      try client.tell("push", ["name": "Sheet", "state": ["asked": .bool(isAsked)]])
      try rename("Shown")
      // Without serving, Python reads only when it is told to.
      try Wait.until("it is saved") {
        try client.tell("call", ["method": "ping", "params": [:]])
        return try other.decode("Shown", "Sheet")["state"] == ["asked": .bool(isAsked)]
      }
      try client.tell("goodbye", ["reason": "restart"])
      try client.close()
    }
  }

  @Test("A state that the broker has asked for and refused is told", .broker, arguments: all)
  func tellsWhatWasRefused(_ library: LibraryClient.Library) throws {
    let client = try LibraryClient.open(library)
    try client.register("Editor")
    try client.tell("set", ["name": "Editor", "state": ["UIStateRestorationMine": 1]])
    try client.tell("invalidate", ["name": "Editor"])
    if library == .c {
      let line = "restoration: the broker has not stored the state of Editor: reservedKey\n"
      try Wait.until("it is told") { try Files.text(broker.directory.file("client.log")).contains(line) }
    } else {
      try client.tell("await", ["what": "error", "count": 1])
      let told = try client.tell("errors").array?.first?.string
      #expect(told?.contains("Editor>: reservedKey") == true, "\(told ?? "")")
    }
    try client.close()
  }

  @Test("R14 In Swift a reference leads to the program's own object, and two objects on one path are told", .broker)
  func swiftLeadsToObjects() throws {
    let client = try Self.serving(["Main", "Editor"])
    try client.tell("set", ["name": "Main", "state": ["front": ["$restorable": .path("Editor")]]])
    try client.tell("push")
    #expect(try client.tell("referred", ["name": "Main", "key": "front"]) == ["name": "Editor"])
    #expect(try client.tell("at", ["path": .path("Editor")]) == ["name": "Editor"])
    #expect(try client.tell("twice", ["name": "Editor"])["told"]?.string?.contains("as Editor;") == true)
    #expect(try client.tell("at", ["path": .path("Editor")]) == ["name": "Editor"])
    #expect(try client.tell("save")["stale"] == [])
  }

  /// A process with the Swift library, and objects with these names.
  private static func serving(_ names: [String]) throws -> ServingClient {
    let client = try broker.serving(.swift, of: application, as: "editor")
    try client.register(names.map { ["identifier": .string($0), "state": ["name": .string($0)]] })
    return client
  }

  @Test("R30 What is released at the end comes back after a restart, a logout and a crash", .broker)
  func releasedAtTheEndComesBack() throws {
    let names = ["Main", "Editor", "List"]
    for end in ["restart", "logout", "crash"] {
      let client = try Self.serving(names)
      try client.tell("push")
      try client.tell("drop", ["names": .array(names.map { .string($0) })])
      if end == "crash" { try client.kill() } else { try client.tell("goodbye", ["reason": .string(end)]) }
      let reader = try broker.session(Self.application)
      for name in names { #expect(try reader.decode(name)["state"] == ["name": .string(name)], "\(end)") }
    }
  }

  @Test("R12 What the program has released is neither asked for nor saved in the next round", .broker)
  func releasedIsNotSaved() throws {
    let client = try Self.serving(["Main", "Tab"])
    #expect(try client.tell("save")["objects"] == 2)
    try client.tell("drop", ["names": ["Tab"]])
    let saved = try client.tell("save")
    #expect(saved["saved"] == true && saved["stale"] == [] && saved["objects"] == 1)
    #expect(try client.log().filter { $0.hasPrefix("encode") } == ["encode Main", "encode Tab", "encode Main"])
    let states = try broker.states(of: Self.application)
    #expect(Array(states.keys) == [["Main"]])
  }

  @Test("The application's own state is pushed and read", .broker) func ownStateIsPushed() throws {
    for library in Self.all {
      let client = try LibraryClient.open(library, Self.application, ["process": .string(library.rawValue)])
      let state: JSONValue = ["theme": .string(library.rawValue)]
      #expect(try client.tell("own", ["state": state]) == state)
      try client.close()
    }
  }

  @Test("Bytes and dates mean the same in Python, C and Swift", .broker) func valuesPassThroughAllLanguages() throws {
    let bytes: JSONValue = .array((0..<256).map { .integer($0) })
    let read: JSONValue = ["bytes": bytes, "milliseconds": 1_772_269_500_042]
    let base64 = try #require(Self.base64)
    let clients = try Self.all.map { try LibraryClient.open($0, Self.application, ["process": .string($0.rawValue)]) }
    for (index, client) in clients.enumerated() { try client.register("Object\(index)") }
    let swift = try broker.serving(.swift, of: Self.application, as: "swift")
    try swift.register([["identifier": "Swift"], ["identifier": "Again"]])
    let written: JSONValue = ["data": ["$data": base64], "date": ["$date": "2026-02-28T10:05:00.042+01:00"]]
    let writer = try broker.session(Self.application)
    // Each reads what the one before has written.
    var state = written
    for (index, client) in clients.enumerated() {
      let name = JSONValue.string("Object\(index)")
      try client.tell("push", ["name": name, "state": state])
      #expect(try client.tell("pass", ["from": name, "to": name]) == read, "\(index)")
      state = try #require(try writer.decode("Object\(index)")["state"])
      #expect(state["data"] == written["data"])
    }
    try swift.set("Swift", state: state)
    try swift.tell("push", ["names": ["Swift"]])
    #expect(try swift.tell("pass", ["from": "Swift", "to": "Again"]) == read)
    state = try #require(try writer.decode("Again")["state"])
    #expect(state == ["data": ["$data": base64], "date": ["$date": "2026-02-28T09:05:00.042Z"]])
    try clients[0].tell("push", ["name": "Object0", "state": state])
    #expect(try clients[0].tell("pass", ["from": "Object0", "to": "Object0"]) == read)
    for client in clients { try client.close() }
  }

  /// All bytes, as Python writes them.
  private static var base64: JSONValue? {
    let program = "import base64; print(base64.b64encode(bytes(range(256))).decode(), end='')"
    return (try? ChildProcess.run(["python3", "-c", program]).output).map { .string($0) }
  }
}
