// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// Programs that start where no broker runs, and what becomes of their states when one comes. For them, the broker
/// comes when its socket has the name that they look for.
@Suite(.timeLimit(.minutes(10))) struct WithoutBrokerTests {
  private static let application = "org.example.Notes"
  private static let kinds: [LibraryClient.Library] = [.python, .asyncio]

  /// A client that finds no broker.
  private static func openAlone(_ library: LibraryClient.Library, serving: Bool = true) throws -> LibraryClient {
    let directory = broker.directory
    let client = try LibraryClient(library, socket: directory.file("later.sock"), errors: directory.file("alone.log"))
    try client.open(application, ["without_broker": "memory", "serving": .bool(serving)])
    return client
  }

  private static func brokerComes(to client: LibraryClient) throws {
    try #require(symlink(broker.socket, broker.directory.file("later.sock")) == 0)
    try client.tell("await", ["what": "reconnected", "count": 1])
  }

  /// What a former run of the program has saved.
  private static func save(_ states: [([String], JSONValue)]) throws {
    let client = try LibraryClient.open(.python)
    for (path, state) in states {
      let name = path[path.count - 1]
      let parent = path.dropLast().map { JSONValue.string($0) }
      try client.tell("register", ["identifier": .string(name), "parent": parent.isEmpty ? nil : .array(parent)])
      try client.tell("push", ["name": .string(name), "state": state])
    }
    try client.kill()
  }

  @Test("What is pushed without a broker is saved when one comes, and comes back", .broker, arguments: kinds)
  func savesWhenABrokerComes(_ library: LibraryClient.Library) throws {
    let client = try Self.openAlone(library)
    // The parent is registered after the child.
    #expect(try client.register("Editor", "Main") == ["path": .path("Main", "Editor"), "state": "none"])
    #expect(try client.register("Main") == ["path": .path("Main"), "state": "none"])
    #expect(try client.tell("decode", ["name": "Editor"]) == ["status": "none", "state": nil])
    let state: JSONValue = ["cursor": 17, "text": "Grüße", "list": [0.1, nil, true]]
    #expect(try client.tell("push", ["name": "Editor", "state": ["cursor": 1]]) == true)
    #expect(try client.tell("push", ["name": "Editor", "state": state]) == true)
    #expect(try client.tell("later", ["name": "Main", "state": ["zoom": 2]]) == .null)
    #expect(try client.tell("decode", ["name": "Editor"]) == ["status": "available", "state": state])
    #expect(try client.tell("own", ["state": ["front": 1]]) == ["front": 1])
    #expect(try client.register("Editor", "Main")["existing"] == true)
    let saved = try client.tell("save")
    #expect(saved["saved"] == false)
    #expect(saved["reason"] == "noBroker")
    #expect(try client.tell("restore", ["deadline": 1])["restored"] == [])
    #expect(try client.tell("complete") == 0)

    try Self.brokerComes(to: client)
    let other = try broker.session(Self.application)
    #expect(try other.decode("Main", "Editor")["state"] == state)
    #expect(try other.decode("Main")["state"] == ["zoom": 2])
    #expect(try other.decode()["state"] == ["front": 1])
    #expect(try client.tell("push", ["name": "Main", "state": ["zoom": 3]]) == true)
    #expect(try other.decode("Main")["state"] == ["zoom": 3])
    #expect(try client.tell("errors") == [])
    try client.kill()

    let next = try LibraryClient.open(library)
    try next.register("Main")
    #expect(try next.register("Editor", "Main")["state"] == "available")
    #expect(try next.tell("decode", ["name": "Editor"]) == ["status": "available", "state": state])
    try next.close()
  }

  // No round begins by itself: the broker asks only for states that the program has announced.
  @Test(
    "R19, R29 What a former run has saved never takes the place of what is in memory",
    .broker(limits: ["roundQuietMilliseconds": 0, "roundIntervalMilliseconds": 0]),
    arguments: kinds
  )
  func keepsWhatIsInMemory(_ library: LibraryClient.Library) throws {
    try Self.save([(["Pushed"], ["old": 1]), (["Asked"], ["old": 2]), (["Silent"], ["old": 3])])
    // The application is restored before the client comes, which is then late.
    let main = try broker.session(Self.application, process: "main")
    _ = try main.call("restoreApplicationState", ["deadlineMilliseconds": 100])

    let client = try Self.openAlone(library)
    for name in ["Pushed", "Asked", "Silent"] { try client.register(name) }
    try client.tell("push", ["name": "Pushed", "state": ["new": 1]])
    try client.tell("set", ["name": "Asked", "state": ["new": 2]])
    try Self.brokerComes(to: client)
    _ = try main.call("restoreApplicationState", ["deadlineMilliseconds": 1000])
    #expect(try client.tell("decode", ["name": "Pushed"])["state"] == ["new": 1])
    try client.tell("await", ["what": "encode", "count": 3])
    try Wait.until("the broker has asked") { try main.decode("Asked")["state"] == ["new": 2] }
    let log = try client.log()
    #expect(!log.contains { $0.hasPrefix("decode") }, "\(log)")
    #expect(try main.decode("Pushed")["state"] == ["new": 1])
    #expect(try main.decode("Asked")["state"] == ["new": 2])
    try client.kill()

    // The program has saved nothing of the third object: its former state is still there.
    let next = try LibraryClient.open(library, Self.application, ["serving": false])
    let kept: [(String, JSONValue)] = [("Pushed", ["new": 1]), ("Asked", ["new": 2]), ("Silent", ["old": 3])]
    for (name, state) in kept {
      try next.register(name)
      #expect(try next.tell("decode", ["name": .string(name)])["state"] == state)
    }
    try next.close()
  }

  @Test("R3, R13 What is removed without a broker is removed when one comes", .broker, arguments: kinds)
  func removesWhenABrokerComes(_ library: LibraryClient.Library) throws {
    let states = [["Main"], ["Main", "List"], ["Left"], ["Left", "Below"], ["Moved"]]
    try Self.save(states.map { ($0, ["old": true]) })
    let client = try Self.openAlone(library)
    for name in ["Main", "Other", "Moved"] { try client.register(name) }
    try client.tell("unregister", ["name": "Main"])
    try client.tell("forget", ["path": .path("Left")])
    try client.tell("push", ["name": "Moved", "state": ["new": true]])
    try client.register("With", "Moved")
    try client.tell("push", ["name": "With", "state": ["with": true]])
    try client.tell("move", ["name": "Moved", "parent": "Other"])
    let objects = try client.tell("objects")
    #expect(objects["Moved"] == [.path("Other", "Moved"), false])
    #expect(objects["With"] == [.path("Other", "Moved", "With"), false])
    try Self.brokerComes(to: client)

    let other = try broker.session(Self.application)
    #expect(try other.decode("Main")["status"] == "none")
    // Another process may have it.
    #expect(try other.decode("Main", "List")["state"] == ["old": true])
    #expect(throws: CallError.self) { try other.decode("Left") }
    #expect(throws: CallError.self) { try other.decode("Left", "Below") }
    #expect(throws: CallError.self) { try other.decode("Moved") }
    #expect(try other.decode("Other", "Moved")["state"] == ["new": true])
    #expect(try other.decode("Other", "Moved", "With")["state"] == ["with": true])
    #expect(try client.tell("errors") == [])
    try client.close()
  }

  /// A client whose registration waits for its parent now that the broker is there, and the session that may have it.
  private static func clientWithoutParent(
    _ library: LibraryClient.Library
  ) throws -> (client: LibraryClient, other: WireClient) {
    let client = try openAlone(library)
    try client.tell("register", ["identifier": "Editor", "parent": .path("Main"), "wait": 10])
    try client.tell("push", ["name": "Editor", "state": ["cursor": 1]])
    let other = try broker.session(application, process: "main")
    func timers() throws -> Int64 { try other.call("statistics")["gauges"]?["timers"]?.integer ?? 0 }
    let before = try timers()
    try #require(symlink(broker.socket, broker.directory.file("later.sock")) == 0)
    try Wait.until("the registration waits") { try timers() > before }
    return (client, other)
  }

  @Test("R3 A parent of another process may come after the broker", .broker, arguments: kinds)
  func awaitsAParent(_ library: LibraryClient.Library) throws {
    let (client, other) = try Self.clientWithoutParent(library)
    try other.register("Main")
    try client.tell("await", ["what": "reconnected", "count": 1])
    #expect(try other.decode("Main", "Editor")["state"] == ["cursor": 1])
    try client.close()
  }

  @Test("If a broker is lost while objects are registered, the next one gets all of them", .broker, arguments: kinds)
  func tellsTheRest(_ library: LibraryClient.Library) throws {
    let (client, _) = try Self.clientWithoutParent(library)
    try broker.kill()
    Files.removeContents(of: broker.archives)
    try broker.start()
    let next = try broker.session(Self.application, process: "main")
    try next.register("Main")
    try client.tell("await", ["what": "reconnected", "count": 1])
    #expect(try next.decode("Main", "Editor")["state"] == ["cursor": 1])
    try client.close()
  }

  private static let lastMoments = [
    """
    import itertools, os, sys, restorationd
    restorationd._pauses = lambda most=0: itertools.repeat(3600)
    with restorationd.Session("org.example.Notes", delegate=restorationd.Delegate()) as session:
        main = session.register("Main")
        first, second = (session.register("Tab", main, position=each) for each in (0, 1))
        first.encode({"name": "first", "next": second})
        second.encode({"name": "second"})
        main.set_children([second, first])
        session.encode({"front": first})
        assert session.object_at(["Main", "Tab#0"]) is second and first.decode()["next"].path == ("Main", "Tab#0")
        os.symlink(sys.argv[1], os.environ["RESTORATIOND_SOCKET"])
    """,
    """
    import asyncio, itertools, os, sys, restorationd
    restorationd._pauses = lambda most=0: itertools.repeat(3600)
    async def main():
        async with restorationd.AsyncSession("org.example.Notes", delegate=restorationd.Delegate()) as session:
            main = await session.register("Main")
            first, second = [await session.register("Tab", main, position=each) for each in (0, 1)]
            await first.encode({"name": "first", "next": second})
            await second.encode({"name": "second"})
            await main.set_children([second, first])
            await session.encode({"front": first})
            os.symlink(sys.argv[1], os.environ["RESTORATIOND_SOCKET"])
    asyncio.run(main())
    """,
    """
    import itertools, os, sys, restorationd
    restorationd._pauses = lambda most=0: itertools.repeat(3600)
    class Tab:
        name = restorationd.restorable("")
    session = restorationd.Session("org.example.Notes", delegate=restorationd.Delegate())
    main = session.register("Main")
    second = session.register("Tab", main, position=0)
    tab = Tab()
    first = session.register("Tab", main, position=1, target=tab)
    second.encode({"name": "second"})
    session.encode({"front": first})
    tab.name = "first"
    os.symlink(sys.argv[1], os.environ["RESTORATIOND_SOCKET"])
    """,
  ]

  @Test("A broker that comes just before the program ends gets everything", .broker, arguments: lastMoments)
  func tellsAtTheEnd(_ program: String) throws {
    let before = try LibraryClient.open(.python)
    try before.tell("own", ["state": ["old": true]])
    try before.kill()
    let result = try ChildProcess.run(
      ["python3", "-c", program, broker.socket],
      environment: ["PYTHONPATH": LibraryClient.module, "RESTORATIOND_SOCKET": broker.directory.file("later.sock")]
    )
    #expect(result.end == .exit(0), "\(result.errors)")
    let other = try broker.session(Self.application)
    #expect(try other.decode("Main", "Tab#0")["state"] == ["name": "second"])
    let first = try other.decode("Main", "Tab#1")["state"]
    #expect(first?["name"] == "first")
    // It moved after the state was pushed.
    if let next = first?["next"] { #expect(next["$restorable"] == .path("Main", "Tab#0")) }
    #expect(try other.decode()["state"]?["front"]?["$restorable"] == .path("Main", "Tab#1"))
    // R19: as the next delegate gets it.
    let next = """
      import restorationd
      print(restorationd.Session("org.example.Notes", delegate=restorationd.Delegate()).decode().state)
      """
    let told = try ChildProcess.run(
      ["python3", "-c", next],
      environment: ["PYTHONPATH": LibraryClient.module, "RESTORATIOND_SOCKET": broker.socket]
    )
    #expect(told.output.contains("front"), "\(told)")
  }

  @Test("Without a broker, calls that need one and invalid arguments are refused", .broker, arguments: kinds)
  func refusesWhatNeedsABroker(_ library: LibraryClient.Library) throws {
    let client = try Self.openAlone(library)
    try client.register("Editor")
    let error = try client.failure("call", ["method": "listGenerations", "params": [:]])
    #expect(error.kind == "noBroker")
    #expect(error.object["message"]?.string?.contains("restorationd.socket") == true)
    #expect(try client.failure("unwritable", ["name": "Editor"]).kind == "InvalidState")
    #expect(try client.failure("push", ["name": "Editor", "bytes": 5_000_000]).kind == "limitExceeded")
    #expect(try client.failure("twice", ["identifier": "Editor"]).kind == "DuplicateObject")
    let logged = (try client.tell("logged").array ?? []).map { ($0.array ?? []).compactMap(\.string) }
    #expect(logged.map { $0.first } == ["WARNING"])
    try client.close()
  }

  private static let scenarios = [
    "references", "interrupted", "interrupted_at_the_end", "interrupted_in_asyncio", "looks_soon_again",
    "refused_in_passing", "refused_registration", "refused_removal", "refused_later", "newer", "decodes_what_is_kept",
    "asked_meanwhile", "unregistered", "makes_objects", "renewed_meanwhile", "renewed_by_two_threads", "silent",
    "silent_later", "comes_and_goes", "comes_and_goes_in_asyncio", "parents", "parents_refused",
    "starts_while_a_broker_ends", "gap", "ends_soon", "forgets_what_is_gone", "barrier", "invalid_parameters",
    "own_thread", "serves", "nested", "changed_meanwhile", "parents_change_meanwhile", "moved_below_meanwhile",
    "names_what_awaits", "changed_while_registered", "slow", "slow_at_the_end",
    "slow_at_the_end_in_asyncio", "slow_in_asyncio",
  ]

  @Test("Changes made without a broker are made at the one that comes, whatever happens")
  func losesNothing() throws {
    let program = "\(Products.repository)/Tests/Clients/libraries/alone.py"
    let result = try ChildProcess.run(
      ["python3", program] + Self.scenarios,
      environment: ["PYTHONPATH": LibraryClient.module]
    )
    #expect(result.end == .exit(0), "\(result.errors)")
  }

  private static let programs = [
    """
    import restorationd, threading
    with restorationd.Session("org.example.Notes") as session:
        tries, connect = threading.Semaphore(0), session._connect
        session._connect = lambda: tries.release() or connect()
        editor = session.register("Editor", ["Main"])
        editor.encode({"count": editor.decode().get("count", 0) + 1})
        session.complete()
        session.save()
        print(editor.decode().state)
        for _ in range(3):
            tries.acquire()
        session.serve(0)
    """,
    """
    import asyncio, restorationd
    async def main():
        asyncio.get_running_loop().slow_callback_duration = 60  # asyncio would tell of a busy machine
        async with restorationd.AsyncSession("org.example.Notes") as session:
            editor = await session.register("Editor", ["Main"], encode=lambda: {"count": 1})
            await editor.encode({"count": (await editor.decode()).get("count", 0) + 1})
            await session.save()
            print((await editor.decode()).state)
            tries, connect = asyncio.Semaphore(0), session._connect
            async def counted():
                tries.release()
                return await connect()
            session._connect = counted
            for _ in range(3):
                await tries.acquire()
    asyncio.run(main())
    """,
    """
    import restorationd
    class Run:
        count = restorationd.restorable(0)
    run = Run()
    session = restorationd.Session("org.example.Notes")
    session.register("Run", target=run)
    run.count += 1
    print({"count": run.count})
    """,
  ]

  @Test("A program that never sees a broker ends well, and says so once", .scratch, arguments: programs)
  func endsWell(_ program: String) throws {
    for socket in ["none.sock", "left.sock"] {
      let path = directory.file(socket)
      if socket == "left.sock" { try Self.leaveSocket(at: path) }
      let result = try ChildProcess.run(
        ["python3", "-X", "dev", "-c", program],
        environment: ["PYTHONPATH": LibraryClient.module, "RESTORATIOND_SOCKET": path]
      )
      #expect(result.end == .exit(0))
      #expect(result.output == "{'count': 1}\n")
      #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
      #expect(result.errors.contains(path) && result.errors.contains("restorationd.socket"), "\(result.errors)")
    }
  }

  /// A socket that refuses connections, as a broker that was killed leaves it.
  private static func leaveSocket(at path: String) throws {
    let script = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
    try #require(try ChildProcess.run(["python3", "-c", script, path]).end == .exit(0))
  }

  @Test("A tool may ask to fail without a broker, and what is no socket always fails", .scratch)
  func failsIfItIsAsked() throws {
    let script = """
      from restorationd import NoBrokerError, Session, load, store
      for work in (lambda: Session("a", without_broker="fails").open(), lambda: load("a", "P"),
                   lambda: store("a", "P", {}), lambda: Session("a", socket="/dev/null").open()):
          try:
              work()
          except NoBrokerError as error:
              print(error.is_absent)
      """
    let result = try ChildProcess.run(
      ["python3", "-c", script],
      environment: ["PYTHONPATH": LibraryClient.module, "RESTORATIOND_SOCKET": directory.file("none.sock")]
    )
    #expect(result.output == "True\nTrue\nTrue\nFalse\n", "\(result.errors)")
  }
}
