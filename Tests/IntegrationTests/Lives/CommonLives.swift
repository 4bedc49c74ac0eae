// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationTesting
internal import TestSupport
internal import Testing

/// What happens to programs in an ordinary week: whatever it is, an hour of work is there afterwards.
@Suite(.timeLimit(.minutes(5))) struct CommonLives {
  private static let application = "org.example.Notes"
  private static let hour = "an hour of work"

  /// The saved state of a window.
  private static func saved(_ window: String, at socket: String? = nil) throws -> String? {
    try WireClient(socket ?? broker.socket).decode(window, of: application)["state"]?["text"]?.string
  }

  /// Programs that are opened and worked with, until all of the machine is gone at once.
  private static func work(in roles: String...) throws {
    let programs = try roles.map { try WindowProgram($0) }
    for program in programs { try program.type(hour) }
    try broker.kill()
    for program in programs { try program.kill() }
    try broker.start()
  }

  @Test("R29 A program that is upgraded and started again goes on where it was", .passesTurnstile)
  func anUpgrade() async throws {
    let broker = try await PrivateBroker(program: Products.broker, testClock: true)
    defer { broker.stop() }
    let main = try WindowProgram("main", "--main", at: broker.socket)
    try main.awaits("restored")
    let old = try WindowProgram("editor", at: broker.socket)
    try old.type(Self.hour)
    try old.close()
    let new = try WindowProgram("editor", at: broker.socket)
    try new.awaits("shows \(Self.hour)")
    try new.awaits("ready")
    try await broker.advance(by: .seconds(61))
    #expect(try Self.saved("editor", at: broker.socket) == Self.hour)
  }

  @Test("R29 A program that crashes while all is restored, and is started again at once, is restored", .broker)
  func aCrashInARestoration() throws {
    try Self.work(in: "main", "editor", "tabs")
    let main = try WindowProgram("main", "--main")
    let editor = try WindowProgram("editor")
    try editor.awaits("shows \(Self.hour)")
    try editor.kill()
    let again = try WindowProgram("editor")
    try again.awaits("shows \(Self.hour)")
    // All have waited for this one.
    let tabs = try WindowProgram("tabs")
    try tabs.awaits("ready")
    try main.awaits("restored")
    try again.awaits("ready")
    #expect(try Self.saved("editor") == Self.hour)
  }

  @Test("R29 After a no, a program that crashes an hour later gets back that hour", .passesTurnstile)
  func aCrashAfterANo() async throws {
    let broker = try await PrivateBroker(program: Products.broker, testClock: true)
    defer { broker.stop() }
    let before = try WindowProgram("editor", at: broker.socket)
    try before.type("last week")
    try before.close()
    let main = try WindowProgram("main", "--main", "--declines", at: broker.socket)
    try main.awaits("restored")
    let editor = try WindowProgram("editor", at: broker.socket)
    try editor.type(Self.hour)
    try await broker.advance(by: .seconds(3_600))
    try editor.kill()
    let again = try WindowProgram("editor", at: broker.socket)
    try again.awaits("shows \(Self.hour)")
    try again.awaits("ready")
    try await broker.advance(by: .seconds(61))
    #expect(try Self.saved("editor", at: broker.socket) == Self.hour)
  }

  @Test("R13 R23 Tabs that are loaded when they are looked at hold up no start, and none is lost", .broker)
  func tabsThatAreNotLookedAt() throws {
    let tabs = ["one", "two", "three", "four"]
    func start(_ names: ArraySlice<String>) throws -> LibraryClient {
      let browser = try LibraryClient.open(.c, Self.application, ["process": "browser"])
      for name in names { try browser.register(name) }
      return browser
    }
    let first = try start(tabs[...])
    for name in tabs { try first.tell("push", ["name": .string(name), "state": ["text": .string(name)]]) }
    try first.kill()
    let begin = Deadline.now
    for _ in 1...21 {
      let browser = try start(tabs[..<1])
      try browser.tell("restore", ["deadline": 10])
      try browser.tell("goodbye", ["reason": "restart"])
      try browser.close()
    }
    #expect(Deadline.now - begin < 10_000, "one of them has waited for its tabs")
    let last = try start(tabs[1...])
    for name in tabs[1...] {
      #expect(try last.tell("decode", ["name": .string(name)])["state"] == ["text": .string(name)])
    }
  }

  @Test("R21 If the broker is killed in a restoration, that goes on, and all hear of its end", .broker)
  func aBrokerThatIsKilledInARestoration() throws {
    try Self.work(in: "main", "tabs")
    let main = try WindowProgram("main", "--main")
    try main.awaits("shows \(Self.hour)")
    try broker.crashAndRestart()
    let tabs = try WindowProgram("tabs")
    try tabs.awaits("shows \(Self.hour)")
    try tabs.awaits("ready")
    try main.awaits("ready")
    try main.awaits("restored")
  }

  @Test("R29 A program that was there before the broker was killed is restored with the others", .broker)
  func aBrokerThatIsKilledBeforeARestoration() throws {
    try Self.work(in: "main", "editor")
    let editor = try WindowProgram("editor")
    try editor.awaits("open")
    try broker.crashAndRestart()
    let main = try WindowProgram("main", "--main")
    try editor.awaits("shows \(Self.hour)")
    try main.awaits("restored")
    #expect(try Self.saved("editor") == Self.hour)
  }

  @Test("R19 A blank window that is saved once, before it gets its state, is not what comes back", .broker)
  func aBlankWindowThatIsSaved() throws {
    try Self.work(in: "main", "editor")
    let editor = try WindowProgram("editor")
    try editor.awaits("open")
    let main = try WindowProgram("main", "--saves", "--main")
    try editor.awaits("shows \(Self.hour)")
    try main.awaits("restored")
    try editor.kill()
    let again = try WindowProgram("editor")
    try again.awaits("shows \(Self.hour)")
    // Until it has said that it shows it, others read the blank one.
    try again.awaits("ready")
    #expect(try Self.saved("editor") == Self.hour)
  }

  @Test("R29 What a new version cannot read comes back with the old one", .broker)
  func aVersionThatCannotRead() throws {
    try Self.work(in: "main", "editor")
    let main = try WindowProgram("main", "--main")
    let second = try WindowProgram("editor", "--unreadable")
    try second.awaits("cannot read \(Self.hour)")
    try main.awaits("restored")
    try second.type("of the second version")
    try second.close()
    try ControlTool.run(["quarantine", "release", Self.application, "editor"], status: 0)
    try WindowProgram("editor").awaits("shows \(Self.hour)")
  }

  @Test("R14 A window is saved while the password form is in front of it", .broker) func aPasswordForm() throws {
    let program = """
      import restorationd
      session = restorationd.Session("org.example.Bank")
      window = session.register("Window", kind="viewController")
      form = session.register(None, window, kind="viewController")
      window.encode({"account": 17, "front": form})
      """
    let environment = ["RESTORATIOND_SOCKET": broker.socket, "PYTHONPATH": LibraryClient.module]
    let end = try ChildProcess.run(["python3", "-B", "-c", program], environment: environment)
    #expect(end.end == .exit(0), "\(end.errors)")
    let saved = try ControlTool.run(["get", "org.example.Bank", "Window"], status: 0).output
    #expect(saved == #"{"account":17,"front":{"$restorable":null,"object":null}}"# + "\n")
  }

  @Test("R32 Of what a script has put for a year there is a copy, if the file is damaged", .passesTurnstile)
  func aYearOfPuts() async throws {
    let broker = try await PrivateBroker(program: Products.broker, testClock: true)
    defer { broker.stop() }
    func control(_ words: String...) throws -> String {
      try ChildProcess.run([Products.control, "--socket", broker.socket] + words).output
    }
    for month in 1...12 {
      _ = try control("put", "org.example.Diary", "Page", "/month", "\(month)")
      try await broker.advance(by: .days(30))
    }
    broker.kill()
    let archives = "\(broker.directory)/archives"
    #expect(Files.list(archives).contains("org.example.Diary+backup.sqlite"))
    try Files.write(Array(repeating: 0xa5, count: 8_192), to: "\(archives)/org.example.Diary.sqlite")
    try await broker.start()
    #expect(try control("get", "org.example.Diary", "Page", "/month") == "12\n")
  }

  @Test("R23 A program that came and went an hour ago holds up no login", .passesTurnstile)
  func aProgramThatCameAndWent() async throws {
    let broker = try await PrivateBroker(program: Products.broker, testClock: true)
    defer { broker.stop() }
    let main = try WindowProgram("main", at: broker.socket)
    try main.type(Self.hour)
    let second = try WindowProgram("second", at: broker.socket)
    try second.type("a note")
    try second.close()
    try await broker.advance(by: .seconds(3_600))
    broker.kill()
    try main.kill()
    try await broker.start()
    let begin = Deadline.now
    let login = try WindowProgram("main", "--main", at: broker.socket)
    try login.awaits("shows \(Self.hour)")
    try login.awaits("restored")
    #expect(Deadline.now - begin < 8_000, "it has waited for the other one")
    #expect(try Self.saved("second", at: broker.socket) == "a note")
  }
}
