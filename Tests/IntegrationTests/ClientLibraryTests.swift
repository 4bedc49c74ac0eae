// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// The libraries of `Protocol/clients`, each in a process of its own, against the real broker.
@Suite(.timeLimit(.minutes(10))) struct ClientLibraryTests {
  private static let application = "org.example.Notes"
  private static let all = LibraryClient.Library.allCases

  @Test("What a library saved comes back when its process was killed", .broker, arguments: all)
  func savesAndRestores(_ library: LibraryClient.Library) throws {
    let first = try LibraryClient(library)
    #expect(try first.open()["reason"] == "pristine")
    #expect(try first.register("Main") == ["path": .path("Main"), "state": "none"])
    #expect(try first.register("Editor", "Main")["path"] == .path("Main", "Editor"))
    let state: JSONValue = ["cursor": 17, "text": "Grüße\u{0}", "list": [1.5, nil, true]]
    #expect(try first.tell("push", ["name": "Editor", "state": state]) == true)
    try first.kill()

    let second = try LibraryClient(library)
    #expect(try second.open()["reason"] == "recover")
    try second.register("Main")
    #expect(try second.register("Editor", "Main")["state"] == "available")
    #expect(try second.tell("decode", ["name": "Editor"]) == ["status": "available", "state": state])
    #expect(try second.tell("decode", ["name": "Main"]) == ["status": "none", "state": nil])
    #expect(try second.tell("complete") == 0)
    try second.tell("goodbye", ["reason": "closed"])

    #expect(try second.open()["reason"] == "pristine")
    #expect(try second.register("Editor")["state"] == "none")
    try second.close()
  }

  @Test("R11 A library is asked in a round, also while its own call waits", .broker, arguments: all)
  func isAsked(_ library: LibraryClient.Library) throws {
    let client = try LibraryClient.open(library)
    for name in ["Main", "Editor", "Broken"] { try client.register(name) }
    try client.tell("push", ["name": "Main", "state": ["pushed": true]])
    try client.tell("set", ["name": "Editor", "state": ["cursor": 17]])
    try client.tell("set", ["name": "Broken", "state": "fail"])
    let own = try client.tell("save")
    #expect(own["saved"] == true)
    #expect(own["stale"]?.array?.map { $0["path"] } == [.path("Broken")])
    #expect(own["stale"]?.array?.map { $0["why"] } == ["failed"])
    #expect(try client.log() == ["encode Main", "encode Editor", "encode Broken"])

    // While it waits for its input.
    try client.tell("set", ["name": "Editor", "state": ["cursor": 18]])
    let other = try broker.session(Self.application)
    #expect(try other.call("saveApplicationState")["saved"] == true)
    #expect(try other.decode("Editor")["state"] == ["cursor": 18])
    #expect(try other.decode("Main")["state"] == ["pushed": true])

    try client.tell("set", ["name": "Editor", "state": ["cursor": 19]])
    try client.tell("invalidate", ["name": "Editor"])
    try client.tell("await", ["what": "encode", "count": 7])
    try Wait.until("the state that was asked for is there") {
      try other.decode("Editor")["state"] == ["cursor": 19]
    }
    try client.close()
  }

  @Test("Errors of the broker come with kind, hint and path", .broker, arguments: all)
  func tellsErrors(_ library: LibraryClient.Library) throws {
    let client = try LibraryClient.open(library)
    try client.register("Editor")
    let identifier = try client.failure("register", ["identifier": "a/b"])
    #expect(identifier.code == -32004)
    #expect(identifier.kind == "invalidIdentifier")
    #expect(identifier.data["hint"]?.string?.isEmpty == false)
    let reserved = try client.failure("push", ["name": "Editor", "state": ["UIStateRestorationMine": 1]])
    #expect(reserved.kind == "reservedKey")
    #expect(reserved.data["path"] == .path("Editor"))
    let method = try client.failure("call", ["method": "noSuchMethod", "params": [:]])
    #expect(method.kind == "methodNotFound")
    // It came up with the message of this one, and the broker would not have known whose it is.
    #expect(try client.failure("push", ["name": "Editor", "bytes": 5_000_000]).kind == "limitExceeded")
    let deep = (0..<80).reduce(JSONValue.object([:])) { inner, _ in ["in": inner] }
    #expect(try client.failure("push", ["name": "Editor", "state": deep]).kind == "limitExceeded")
    #expect(try client.tell("push", ["name": "Editor", "state": ["goes": "on"]]) == true)
    try client.close()
  }

  @Test("R15 A session goes on when the broker was killed", .broker, arguments: all)
  func resumes(_ library: LibraryClient.Library) throws {
    let client = try LibraryClient.open(library)
    try client.register("Main")
    try client.register("Editor", "Main")
    try client.tell("push", ["name": "Editor", "state": ["cursor": 1]])
    for cursor in 2...4 {
      try broker.kill()
      try broker.start()
      #expect(try client.tell("push", ["name": "Editor", "state": ["cursor": .integer(Int64(cursor))]]) == true)
      #expect(try client.log() == ["reconnected true"])
    }
    // It also notices on its own, and serves again.
    try broker.kill()
    try broker.start()
    try client.tell("await", ["what": "reconnected", "count": 4])
    try client.tell("set", ["name": "Main", "state": ["title": "Notes"]])
    let other = try broker.session(Self.application)
    let saved = try other.call("saveApplicationState")
    #expect(saved["stale"] == [])
    #expect(saved["objects"] == 2)
    #expect(try other.decode("Main", "Editor")["state"] == ["cursor": 4])
    try client.tell("goodbye", ["reason": "restart"])
    try client.close()
  }

  @Test("Where the session was forgotten, objects are registered anew", .broker, arguments: all)
  func registersAnew(_ library: LibraryClient.Library) throws {
    let client = try LibraryClient.open(library)
    try client.register("Main")
    try client.register("Editor", "Main")
    try client.tell("rename", ["name": "Editor", "identifier": "Text"])
    try broker.kill()
    Files.removeContents(of: broker.archives)
    try broker.start()
    #expect(try client.tell("push", ["name": "Editor", "state": ["cursor": 1]]) == true)
    #expect(try client.log() == ["reconnected false"])
    let paths: JSONValue = ["Main": [.path("Main"), false], "Editor": [.path("Main", "Text"), false]]
    #expect(try client.tell("objects") == paths)
    #expect(try client.tell("decode", ["name": "Editor"])["state"] == ["cursor": 1])
    try client.close()
  }

  @Test("What the broker cannot read is told at once", .scratch, arguments: all)
  func tellsWhatTheBrokerCannotRead(_ library: LibraryClient.Library) throws {
    let asking = try AskingBroker(in: directory)
    let client = try LibraryClient(library, socket: asking.socket, errors: directory.file("client.log"))
    try client.open()
    try client.tell("notify", ["method": "mutter", "params": [:]])
    #expect(try client.tell("await", ["what": "error", "count": 1]) == 1)
    if library == .c {
      #expect(try client.log() == ["error parseError"])
    } else {
      #expect(try client.tell("errors") == ["the broker could not read what was sent: Parse error (parseError)"])
    }
    try client.close()
  }

  @Test("R36 If another host has got the application, a library takes nothing back by itself", .scratch, arguments: all)
  func leavesTheApplicationToTheOtherHost(_ library: LibraryClient.Library) throws {
    let asking = try AskingBroker(in: directory)
    let client = try LibraryClient(library, socket: asking.socket, errors: directory.file("client.log"))
    try client.open("org.example.Notes", ["takeOver": true])
    try client.register("Editor")
    try client.tell("call", ["method": "lose", "params": [:]])
    try client.tell("await", ["what": "archiveLost", "count": 1])
    #expect(try client.log() == ["archiveLost tower"])
    #expect(try client.failure("push", ["name": "Editor", "state": ["n": 1]]).kind == "fenced")
    // A new broker would be asked for the application, and have it fetched.
    let other = try WireClient(asking.socket)
    try other.call("cut")
    for _ in 0..<2 { #expect(try client.failure("push", ["name": "Editor", "state": ["n": 2]]).kind == "fenced") }
    #expect(try other.call("opened") == [true])
    // The program may, and is not to take it over again.
    try client.open()
    #expect(try other.call("opened") == [true, false])
    try client.close()
  }

  @Test("A call that the callback for errors makes is not the one that the broker could not read", .scratch)
  func callsAfterAnError() throws {
    let asking = try AskingBroker(in: directory)
    let client = try LibraryClient(.c, socket: asking.socket, errors: directory.file("client.log"))
    try client.open()
    try client.tell("retort")
    #expect(try client.failure("call", ["method": "mutter", "params": [:]]).kind == "parseError")
    try client.tell("await", ["what": "retort", "count": 1])
    try client.tell("notify", ["method": "mutter", "params": [:]])
    try client.tell("await", ["what": "retort", "count": 2])
    #expect(try client.log() == ["error parseError", "retort answered", "error parseError", "retort answered"])
    try client.close()
  }

  @Test("A forked child cannot use its parent's session, and neither ends nor disturbs it", .broker, arguments: all)
  func leavesTheSessionToTheParent(_ library: LibraryClient.Library) throws {
    let client = try LibraryClient.open(library)
    try client.register("Editor")
    try client.tell("push", ["name": "Editor", "state": ["cursor": 1]])
    let calls =
      library == .c
      ? ["encode", "decode", "invalidate", "notify", "resume", "goodbye"]
      : ["encode", "decode", "invalidate", "encode_later", "register", "save", "goodbye", "serve", "open", "notify"]
    let own: [JSONValue] =
      library == .c ? [["wait", -1], ["fd", -1], ["own", 0]] : [["exit", nil], ["close", nil], ["own", true]]
    let refused: [JSONValue] = (calls + (library == .python ? ["fileno"] : []))
      .map { [.string($0), library == .c ? "forked" : "SessionForkedError"] }
    #expect(try client.tell("fork", ["name": "Editor", "identifier": "Child"]).array == refused + own)

    #expect(try client.tell("push", ["name": "Editor", "state": ["cursor": 2]]) == true)
    #expect(try client.tell("decode", ["name": "Editor"])["state"] == ["cursor": 2])
    // It notices a call on its own, so its descriptor is still watched.
    try client.tell("set", ["name": "Editor", "state": ["cursor": 3]])
    let other = try broker.session(Self.application)
    #expect(try other.call("saveApplicationState")["stale"] == [])
    #expect(try other.decode("Editor")["state"] == ["cursor": 3])
    #expect(try other.decode("Child")["state"] == ["of": "child"])
    #expect(try client.log().contains { $0.hasPrefix("reconnected") } == false)
    try client.close()
  }

  @Test(
    "Where the session was forgotten, parents are registered first, also those that came later",
    .broker,
    arguments: all
  )
  func registersParentsFirst(_ library: LibraryClient.Library) throws {
    let client = try LibraryClient.open(library)
    for name in ["A", "B", "C"] { try client.register(name) }
    try client.tell("move", ["name": "A", "parent": "B"])
    try client.tell("move", ["name": "B", "parent": "C"])
    try broker.kill()
    Files.removeContents(of: broker.archives)
    try broker.start()
    try client.tell("await", ["what": "reconnected", "count": 1])
    let paths: JSONValue = [
      "A": [.path("C", "B", "A"), false], "B": [.path("C", "B"), false], "C": [.path("C"), false],
    ]
    #expect(try client.tell("objects") == paths)
    #expect(try client.tell("push", ["name": "A", "state": ["of": "A"]]) == true)
    #expect(try client.tell("decode", ["name": "A"])["state"] == ["of": "A"])
    for name in ["B", "C"] { #expect(try client.tell("decode", ["name": .string(name)])["status"] == "none") }
    try client.close()
  }

  @Test("What no program in C may do is refused with the next step", .broker)
  func misuseIsRefusedWithTheNextStep() throws {
    let client = try LibraryClient.open(.c)
    let said = try #require(try client.tell("misuse").array)
    let messages = said.map { $0.array?.first?.string ?? "no misuse" }
    let null = "the object is NULL: register it first"
    #expect(
      messages == [
        "the path of the socket is empty: give one, or NULL for the default",
        "application is NULL: give a name such as org.example.Note", null, null, null, null, null, null,
      ]
    )
    #expect(said.allSatisfy { $0.array?.last?.string?.isEmpty == false })
    try client.close()
  }

  @Test("An object that a new broker refuses is not taken for the one that has got its handle", .broker)
  func refusedObjectsStayApart() throws {
    let other = try broker.session(Self.application, process: "main")
    try other.register("Theirs")
    let client = try LibraryClient.open(.c)
    try client.register("Kid", "Theirs")
    try client.register("Own")
    try client.tell("set", ["name": "Kid", "state": ["of": "Kid"]])
    try client.tell("set", ["name": "Own", "state": ["of": "Own"]])
    try broker.kill()
    Files.removeContents(of: broker.archives)
    try broker.start()
    try client.tell("await", ["what": "reconnected", "count": 1])
    let refused: JSONValue = ["Kid": [.path("Theirs", "Kid"), true], "Own": [.path("Own"), false]]
    #expect(try client.tell("objects") == refused)
    for command in ["push", "decode", "invalidate"] {
      #expect(try client.failure(command, ["name": "Kid", "state": ["of": "Kid"]]).kind == "replaced")
    }
    #expect(try client.tell("save")["stale"] == [])
    #expect(try client.tell("decode", ["name": "Own"])["state"] == ["of": "Own"])

    // It comes back when its parent does.
    let next = try broker.session(Self.application, process: "main")
    try next.register("Theirs")
    try client.register("Kid", "Theirs")
    #expect(try client.tell("push", ["name": "Kid", "state": ["of": "Kid"]]) == true)
    #expect(try client.tell("objects")["Kid"] == [.path("Theirs", "Kid"), false])
    try client.close()
  }

  @Test("Large states come in several answers, up to the limit", .broker, arguments: all)
  func takesLargeStates(_ library: LibraryClient.Library) throws {
    let client = try LibraryClient.open(library)
    for number in 0..<40 {
      try client.register("Page\(number)")
      try client.tell("set", ["name": .string("Page\(number)"), "state": ["bytes": 200_000]])
    }
    let saved = try client.tell("save")
    #expect(saved["stale"] == [])
    #expect(saved["objects"] == 40)
    #expect(saved["bytes"] == .integer(40 * 200_011))
    #expect(try client.tell("decode", ["name": "Page39"])["state"] == ["bytes": 200_000])
    // {"text":"…"} has eleven bytes besides.
    #expect(try client.tell("push", ["name": "Page0", "bytes": 262_133]) == true)
    #expect(try client.tell("decode", ["name": "Page0"])["state"] == ["bytes": 262_133])
    let refused = try client.failure("push", ["name": "Page0", "bytes": 262_134])
    #expect(refused.kind == "limitExceeded")
    #expect(refused.data["path"] == .path("Page0"))
    // In a round, a state that is too large is stale and delays no other.
    try client.tell("set", ["name": "Page1", "state": ["bytes": 6_000_000]])
    try client.tell("set", ["name": "Page2", "state": ["small": true]])
    let second = try client.tell("save")
    #expect(second["stale"]?.array?.map { $0["path"] } == [.path("Page1")])
    #expect(try client.tell("decode", ["name": "Page2"])["state"] == ["small": true])
    try client.close()
  }

  @Test("R21 A restoration makes and fills a library's objects", .broker, arguments: all)
  func isRestored(_ library: LibraryClient.Library) throws {
    let client = try LibraryClient.open(library)
    try client.tell("class", ["restorationClass": "Document"])
    try client.register("Main")
    let document: JSONObject = ["identifier": "Doc", "parent": .path("Main"), "restorationClass": "Document"]
    try client.tell("register", document)
    // More than the broker sends unasked: it is fetched.
    try client.tell("push", ["name": "Main", "bytes": 100_000])
    try client.tell("push", ["name": "Doc", "state": ["line": 7]])
    try client.tell("goodbye", ["reason": "restart"])

    try client.open()
    try client.tell("class", ["restorationClass": "Document"])
    try client.register("Main")
    let result = try client.tell("restore", ["deadline": 10])
    #expect(result["restored"] == [.path("Main"), .path("Main", "Doc")])
    #expect(result["skipped"] == [])
    try client.tell("await", ["what": "decode", "count": 2])
    try client.tell("await", ["what": "finished", "count": 2])
    let log = try client.log()
    #expect(log.first == "create Main/Doc")
    #expect(log.contains(#"decode Main {"bytes":100000}"#))
    #expect(log.contains(#"decode Doc {"line":7}"#))
    #expect(Set(log.suffix(2)) == ["finished Main", "finished Doc"] || library == .c)
    try client.close()
  }

  @Test("R6 R8 A library knows where others move its objects", .broker, arguments: all)
  func isMoved(_ library: LibraryClient.Library) throws {
    let other = try broker.session(Self.application, process: "main")
    try other.register("Main")
    let client = try LibraryClient.open(library, Self.application, ["serving": false])
    try client.register("Editor", "Main")
    try other.call("setRestorationIdentifier", ["object": .path("Main"), "restorationIdentifier": "Window"])
    let takeOver: JSONValue = [
      "restorationIdentifier": "Editor", "restorationParent": .path("Window"), "takeOver": true,
    ]
    try Wait.until("the path is known") {
      try client.tell("objects") == ["Editor": [.path("Window", "Editor"), false]]
    }
    try other.call("registerObjectForStateRestoration", takeOver)
    try Wait.until("the loss is known") {
      try client.tell("objects") == ["Editor": [.path("Window", "Editor"), true]]
    }
    #expect(try client.failure("push", ["name": "Editor", "state": [:]]).kind != nil)
    try client.close()
  }

  @Test("Without a broker a library says what to start", .scratch, arguments: all)
  func missesTheBroker(_ library: LibraryClient.Library) throws {
    let socket = directory.file("none.sock")
    let client = try LibraryClient(library, socket: socket, errors: directory.file("client.log"))
    let error = try client.failure("open", ["application": "org.example.Notes"])
    #expect(error.kind == "noBroker")
    let text = (error.object["message"]?.string ?? "") + (error.data["hint"]?.string ?? "")
    #expect(text.contains(socket))
    #expect(text.contains("restorationd.socket"))
    try client.close()
  }

  @Test("A path that is not a socket is told as such", .scratch, arguments: all)
  func missesTheSocket(_ library: LibraryClient.Library) throws {
    let file = directory.file("archives")
    try directory.write("", to: "archives")
    let client = try LibraryClient(library, socket: file, errors: directory.file("client.log"))
    let error = try client.failure("open", ["application": "org.example.Notes"])
    #expect(error.kind == "noBroker")
    #expect(error.object["message"]?.string?.hasPrefix("\(file) is not a socket") == true)
    try client.close()
  }

  @Test("A broker that does not answer costs a call its time and no more", .broker, arguments: all)
  func isPatient(_ library: LibraryClient.Library) throws {
    let client = try LibraryClient.open(library)
    try client.register("Editor")
    let pid = try broker.pid
    Glibc.kill(pid, SIGSTOP)
    try Wait.until("the broker stands still") { try Files.text("/proc/\(pid)/stat").contains(") T ") }
    let error = try client.failure("call", ["method": "ping", "params": [:], "timeout": 0.2])
    Glibc.kill(pid, SIGCONT)
    #expect(error.kind == "callTimedOut")
    _ = try client.tell("call", ["method": "ping", "params": [:], "timeout": 30])
    #expect(try client.tell("push", ["name": "Editor", "state": ["on": true]]) == true)
    try client.close()
  }
}
