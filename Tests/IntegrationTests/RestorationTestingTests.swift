// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import RestorationClient
internal import RestorationTesting
internal import TestSupport
internal import Testing

/// The proof kit of the Swift library.
@Suite(.timeLimit(.minutes(5)), .passesTurnstile) struct RestorationTestingTests {
  /// One that pushes.
  private let words = application("words")
  /// One of two processes that serve.
  private let editor = application("editor")

  static func application(_ name: String) -> [String] {
    [
      "env", "PYTHONPATH=\(LibraryClient.module)", "python3", "-B",
      "\(Products.repository)/Tests/Clients/testing/applications/\(name).py",
    ]
  }

  private func makeBroker() async throws -> PrivateBroker {
    try await PrivateBroker(program: Products.broker, developerMode: true, limits: ["eventBytesMax": 1 << 26])
  }

  /// Whether a process of this group has not ended; one that its parent has not awaited has.
  private static func exists(_ group: Int32) -> Bool {
    Files.list("/proc").contains { name in
      guard let pid = Int32(name), getpgid(pid) == group else { return false }
      let facts = (try? Files.text("/proc/\(pid)/stat"))?.split(separator: ")").last?.split(separator: " ") ?? []
      return facts.first.map { $0 != "Z" } ?? false
    }
  }

  @Test("R15 R19 An application that forgets nothing passes, whether it pushes or serves")
  func nothingIsLost() async throws {
    let broker = try await makeBroker()
    try await killAtRandomPoints(words, times: 8, seed: 3, broker: broker) { process in
      try process.write("word\n")
    }
    try await killAtRandomPoints(
      editor,
      times: 4,
      changing: ["Main:/pid"],
      seed: 3,
      quiet: .milliseconds(500),
      broker: broker
    ) { try $0.write("word\n") }
    broker.stop()
  }

  @Test(
    "R15 What an application forgets when it is killed is named by path and field",
    arguments: [
      (["words", "forget-field"], "Window/Page", "/title", #""word" came back as "untitled""#),
      (["words", "forget-digit"], "Window/Page", "/title", "9007199254740993 came back as 9007199254740992"),
      (["words", "round"], "Window/Page", "/title", "9007199254740993 came back as 9007199254740992.0"),
      (["words", "forget-object"], "Window/Page", nil, "the object did not come back; it was {"),
      (["words", "blank"], "Window/Page", "/words/0", #""word" came back as nothing"#),
      (["editor", "forget-field"], "Main", "/text", #""word"#),
      (["editor", "forget-object"], "Main/List", nil, "the object did not come back; it was {"),
    ] as [([String], String, String?, String)]
  )
  func lossesAreNamed(_ words: [String], _ path: String, _ field: String?, _ reason: String) async throws {
    let broker = try await makeBroker()
    let thrown = await #expect(throws: LostStateError.self) {
      try await killAtRandomPoints(
        Self.application(words[0]) + words[1...],
        times: 6,
        changing: ["Main:/pid"],
        seed: 5,
        patience: .seconds(5),
        quiet: .milliseconds(words[0] == "editor" ? 500 : 200),
        broker: broker
      ) { try $0.write("word\n") }
    }
    let failure = try #require(thrown)
    let loss = failure.losses.first { $0.path == path && $0.field == field }
    #expect(loss?.application.hasPrefix("org.example.") == true && loss?.reason.hasPrefix(reason) == true, "\(failure)")
    #expect("\(failure)".contains("lost what it had saved, after kill ") && "\(failure)".contains("seed 5"))
    broker.stop()
  }

  @Test("R15 A field that changes is no loss if it is named")
  func changingFieldsAreNamed() async throws {
    let broker = try await makeBroker()
    let changing = ["Window/Page:/words*", "*:/title"]
    try await killAtRandomPoints(words + ["blank"], times: 2, changing: changing, seed: 5, broker: broker) {
      try $0.write("word\n")
    }
    broker.stop()
  }

  @Test("R15 A field may come back changed if the change is allowed, as of an application that needs work to show it")
  func changesAreAllowed() async throws {
    let broker = try await makeBroker()
    let words = words
    func prove(_ fault: String) async throws {
      try await killAtRandomPoints(
        words + [fault],
        times: 4,
        allowing: [
          "Window:/frame/0": { before, after in after.int ?? 0 >= before.int ?? 0 },
          "Window/Page:/words": { before, after in after.array?.starts(with: before.array ?? []) == true },
        ],
        seed: 5,
        patience: .seconds(5),
        broker: broker
      ) { try $0.write("word\n") }
    }
    try await prove("silent")
    let failure = await #expect(throws: LostStateError.self) { try await prove("blank") }
    let fields = Set(failure?.losses.compactMap(\.field) ?? [])
    #expect(fields.contains("/words/0") && !fields.contains("/frame/0"), "\(String(describing: failure))")
    #expect(failure.map { "\($0)".contains("one more piece of work") } == false)
    broker.stop()
  }

  @Test(
    "An application that shows what it has only by more work is told how to show it before",
    arguments: ["silent", "late"]
  )
  func changesByWorkAreExplained(_ application: String) async throws {
    let broker = try await makeBroker()
    let words = words
    let failure = await #expect(throws: LostStateError.self) {
      try await killAtRandomPoints(words + [application], times: 1, seed: 5, patience: .seconds(5), broker: broker) {
        try $0.write("word\n")
      }
    }
    #expect(failure.map { "\($0)".contains("one more piece of work. If that changes these fields, ") } == true)
    broker.stop()
  }

  @Test("However many events come at once, none is lost")
  func manyObjectsAreFollowed() async throws {
    let broker = try await makeBroker()
    try await killAtRandomPoints(Self.application("many"), times: 2, seed: 3, broker: broker) { try $0.write("more\n") }
    broker.stop()
  }

  @Test(
    "An application of which nothing can be proven does not pass",
    arguments: [
      (["sh", "-c", "exit 3"], 2, "ended by itself with status 3, in its first run"),
      (["no-such-program"], 2, "no-such-program cannot be started"),
      (["true"], 0, "times is 0"),
    ]
  )
  func whatIsUnprovenFails(_ command: [String], _ times: Int, _ reason: String) async throws {
    let broker = try await makeBroker()
    let failure = await #expect(throws: TestingError.self) {
      try await killAtRandomPoints(command, times: times, patience: .seconds(1), broker: broker)
    }
    #expect(failure?.description.contains(reason) == true, "\(failure?.description ?? "")")
    broker.stop()
  }

  @Test("R31 A broker that would withhold the states of a program which is killed proves nothing")
  func developerModeIsNeeded() async throws {
    let broker = try await PrivateBroker(program: Products.broker)
    let failure = await #expect(throws: TestingError.self) {
      try await killAtRandomPoints(words, times: 3, seed: 3, patience: .seconds(5), broker: broker) {
        try $0.write("word\n")
      }
    }
    #expect(failure?.description.contains("PrivateBroker(developerMode: true)") == true, "\(failure as Any)")
    broker.stop()
  }

  @Test("A program under test ignores no signal, whatever the test's process does")
  func signalsAreNotIgnored() async throws {
    let broker = try await PrivateBroker(program: Products.broker)
    let file = "\(broker.directory)/signals"
    let child = try broker.spawn(["sh", "-c", #"grep SigIgn /proc/self/status >"$0.part" && mv "$0.part" "$0""#, file])
    try Wait.until("the ignored signals are written") { Files.exists(file) }
    let ignored = try #require(try Files.text(file).split { $0.isWhitespace }.last.flatMap { UInt64($0, radix: 16) })
    // Those from 32 on that glibc uses itself its posix_spawn leaves ignored.
    #expect(ignored & 0x7FFF_FFFF == 0)
    child.kill()
    broker.stop()
  }

  @Test("A private broker is killed, restarted and frozen on command, and leaves nothing behind")
  func brokersObey() async throws {
    let broker = try await PrivateBroker(program: Products.broker)
    let options = SessionOptions(application: "org.example.Notes")
    let session = try await RestorationSession.start(options, socket: broker.socket)
    let page = try await session.register("Page")
    try await session.encode(["n": 1], for: page)
    try await broker.restart()
    #expect(try await session.decode([String: Int].self, for: page) == ["n": 1])
    broker.freeze()
    async let pushed = session.encode(["n": 2], for: page)
    #expect(throws: TestFailure.self) {
      try FramedClient(broker.socket, .jsonStream).call("ping", .null, Deadline(.milliseconds(100)))
    }
    broker.thaw()
    _ = try await pushed
    broker.kill()
    await #expect(throws: BrokerConnectionError.self) { try await broker.connect() }
    try await broker.start()
    #expect(try await session.decode([String: Int].self, for: page) == ["n": 2])
    await session.end(.restart)
    let child = try broker.spawn(["sh", "-c", "sleep 100 & wait"])
    #expect(!child.hasEnded && Files.isDirectory(broker.directory))
    broker.stop()
    #expect(!Self.exists(child.pid) && child.hasEnded && !Files.exists(broker.directory))
    let started = await #expect(throws: TestingError.self) { try await broker.start() }
    let spawned = #expect(throws: TestingError.self) { try broker.spawn(["true"]) }
    for error in [started, spawned] {
      #expect(error?.description == "the broker was stopped; make another PrivateBroker")
    }
  }

  @Test("When a process was killed, all processes of its group have ended, however long one takes")
  func groupsEndAsAWhole() async throws {
    let broker = try await PrivateBroker(program: Products.broker)
    let mark = "\(broker.directory)/ready"
    // What gives so much memory back does not end at once.
    let script = "import signal; memory = b'x' * (400 << 20); open('\(mark)', 'w').close(); signal.pause()"
    let child = try broker.spawn(["sh", "-c", #"python3 -c "$1" & wait"#, "sh", script])
    try Wait.until("the memory is filled") { Files.exists(mark) }
    child.kill()
    #expect(!Self.exists(child.pid))
    broker.stop()
  }

  @Test("R1 An application starts again when the broker has ended the sessions of the killed one")
  func runsDoNotOverlap() async throws {
    let broker = try await makeBroker()
    try await killAtRandomPoints(Self.application("lingering"), times: 3, seed: 3, broker: broker) {
      try $0.write("more\n")
    }
    broker.stop()
  }

  @Test("Events are read while tests block the threads of Swift's pool")
  func blockedThreadsDoNotMatter() async {
    await #expect(processExitsWith: .success) {
      await withTaskExecutorPreference(BlockingExecutor()) {
        for _ in 0..<2 * sysconf(Int32(_SC_NPROCESSORS_ONLN)) { Task.detached { poll(nil, 0, -1) } }
        do {
          let broker = try await PrivateBroker(program: Products.broker, developerMode: true)
          let words = RestorationTestingTests.application("words")
          try await killAtRandomPoints(words, times: 2, seed: 3, broker: broker) { try $0.write("word\n") }
          broker.stop()
          exit(EXIT_SUCCESS)
        } catch {
          print(error)
          exit(EXIT_FAILURE)
        }
      }
    }
  }

  @Test("A process that was killed is released when the next one is started")
  func killedProcessesAreReleased() async throws {
    let broker = try await PrivateBroker(program: Products.broker)
    var first: TestedProcess? = try broker.spawn(["sleep", "100"])
    weak let released = first
    first?.kill()
    first = nil
    #expect(released != nil)
    let second = try broker.spawn(["sleep", "100"])
    #expect(released == nil && !second.hasEnded)
    broker.stop()
  }

  @Test("A private broker and what it starts have the variables that the test has set")
  func variablesAreThoseOfNow() async {
    await #expect(processExitsWith: .success) {
      setenv("RESTORATION_TESTING_TESTS", "a=b", 1)
      let broker = try await PrivateBroker(program: Products.broker)
      #expect(broker.environment["RESTORATION_TESTING_TESTS"] == "a=b")
      broker.stop()
    }
  }

  @Test("A broker that is released without being stopped leaves nothing behind")
  func releasedBrokersEnd() async throws {
    var broker: PrivateBroker? = try await PrivateBroker(program: Products.broker)
    let directory = try #require(broker?.directory)
    #expect(Files.isDirectory(directory))
    broker = nil
    #expect(!Files.exists(directory))
  }

  @Test("Nothing is left behind when the test's process is killed")
  func killedTestsLeaveNothing() async throws {
    let ended = await #expect(processExitsWith: .signal(SIGKILL), observing: [\.standardOutputContent]) {
      let broker = try await PrivateBroker(program: Products.broker)
      // With the observed output it would be awaited.
      let child = try broker.spawn(["sh", "-c", "exec >/dev/null 2>&1; sleep 1000 & wait"])
      print("\n\(broker.directory) \(child.pid)\n")
      fflush(nil)
      withExtendedLifetime((broker, child)) { _ = raise(SIGKILL) }
    }
    let output = String(decoding: try #require(ended).standardOutputContent, as: UTF8.self)
    let line = try #require(output.split(separator: "\n").first { $0.contains("/restorationd-") })
    let words = line.split(separator: " ").map(String.init)
    let child = try #require(words.last.flatMap { Int32($0) })
    try Wait.until("the directory and the child are gone") { !Files.exists(words[0]) && !Self.exists(child) }
  }

  @Test("A broker that does not start says why, and a missing program is named")
  func failedStartsAreExplained() async throws {
    let refused = await #expect(throws: TestingError.self) {
      try await PrivateBroker(program: Products.broker, arguments: ["--no-such-flag"])
    }
    #expect(refused?.description.contains("no-such-flag") == true, "\(refused?.description ?? "")")
    let missing = await #expect(throws: TestingError.self) { try await PrivateBroker(program: "/nowhere/restorationd") }
    let words = ["/nowhere/restorationd cannot be started: No such file", "RESTORATIOND_BINARY"]
    for word in words { #expect(missing?.description.contains(word) == true, "\(missing?.description ?? "")") }
  }

  @Test("R16 A stored generation comes back in a running application")
  func generationsAreReplayed() async throws {
    let broker = try await PrivateBroker(program: Products.broker)
    let options = SessionOptions(application: "org.example.Notes")
    let session = try await RestorationSession.start(options, socket: broker.socket)
    let page = try await session.register("Page")
    try await session.encode(["n": 1], for: page)
    let saved = try await session.saveApplicationState()
    try await session.encode(["n": 2], for: page)
    try await broker.replay(try #require(saved.generation), of: "org.example.Notes")
    #expect(try await session.decode([String: Int].self, for: page) == ["n": 1])
    await session.end(.restart)
    broker.stop()
  }

  /// The test above that finds nothing lost is the article's, but for the program and the broker.
  @Test("The test in the article about testing is one of this suite")
  func theArticleIsTrue() throws {
    let page = try Files.text("\(Products.repository)/\(TutorialProgram.articles)/Testing.md").split(separator: "```")
    let text = try #require(page.first { $0.hasPrefix("swift\n") && $0.contains("killAtRandomPoints") })
    let lines = text.split(separator: "\n").dropFirst().map { $0.drop { $0 == " " } }
    #expect(lines.count <= 12)
    let own = try Files.text("\(Products.repository)/Tests/IntegrationTests/RestorationTestingTests.swift")
    for line in lines where !line.contains("import ") && !line.contains("@Test") {
      let ours = "(words, times: 8, seed: 3, broker: broker)"
      let expected = line.replacing(#"([".build/debug/words"], times: 20)"#, with: ours)
      #expect(own.contains(expected), "\(line)")
    }
  }
}
