// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import RestorationBroker
internal import Synchronization
internal import TestSupport
internal import Testing

/// A broker beside a service manager: the units it starts, and its questions when processes end (R22, R30).
@Suite struct ServiceManagerTests {
  /// A service manager that answers as a test says, and starts nothing.
  final class FakeManager: ServiceManager {
    struct State {
      var files: [String: [String]] = [:]
      var started: [String] = []
      var unit: String?
      var result = UnitResult()
      var isStopping = false
      var failure: ServiceManagerError?
      /// It no longer answers questions about units.
      var isStuck = false
      var stuck: [CheckedContinuation<Void, Never>] = []
      /// Nor does it say whether the user's session ends.
      var isSilent = false
    }

    let state = Mutex(State())

    nonisolated(nonsending) func unitFiles(of unit: String) async throws(ServiceManagerError) -> [String]? {
      if let failure = state.withLock({ $0.failure }) { throw failure }
      return state.withLock { $0.files[unit] }
    }

    nonisolated(nonsending) func startUnit(_ unit: String) async throws(ServiceManagerError) {
      state.withLock { $0.started.append(unit) }
      if unit.hasPrefix("broken") { throw ServiceManagerError("its start job failed") }
    }

    func unit(ofProcess pid: Int32) -> String? { state.withLock { $0.unit } }

    nonisolated(nonsending) func result(ofUnit unit: String) async throws(ServiceManagerError) -> UnitResult {
      if state.withLock({ $0.isStuck }) {
        await withCheckedContinuation { waiting in state.withLock { $0.stuck.append(waiting) } }
      }
      return state.withLock { $0.result }
    }

    nonisolated(nonsending) func isStopping() async -> Bool {
      if state.withLock({ $0.isSilent }) {
        await withCheckedContinuation { waiting in state.withLock { $0.stuck.append(waiting) } }
      }
      return state.withLock { $0.isStopping }
    }

    func letGo() {
      let stuck = state.withLock { state in
        state.isStuck = false
        defer { state.stuck = [] }
        return state.stuck
      }
      for waiting in stuck { waiting.resume() }
    }
  }

  /// A broker in this process.
  final class Service {
    let directory: ScratchDirectory
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    var broker: Broker?
    let manager: FakeManager?

    init(_ manager: FakeManager?, in directory: ScratchDirectory) throws {
      self.directory = directory
      self.manager = manager
      try start()
    }

    var socket: String { directory.file("run/broker.sock") }

    func start() throws {
      if !Files.exists(directory.file("run")) { _ = try directory.makeDirectory("run") }
      var flags = BrokerConfiguration.Flags()
      (flags.socket, flags.archives) = (socket, directory.file("archives"))
      let configuration = try BrokerConfiguration(flags, environment: { _ in nil }, readFile: { _ in nil })
      let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
      let fails: @Sendable (String) -> Void = { Issue.record("\($0)") }
      broker = try Broker(
        configuration,
        on: group.next(),
        manager: manager,
        logger: logger,
        whenLost: fails,
        whenFatal: fails
      )
    }

    func stop() throws {
      try broker?.stopAndWait(milliseconds: 10_000)
      broker = nil
      // Pending work in this process may hold it for a moment longer.
      unlink(directory.file("archives/archives.lock"))
    }

    deinit {
      try? stop()
      try? group.syncShutdownGracefully()
    }

    // MARK: Processes

    func save(unit: String) throws {
      let client = try WireClient(socket)
      try client.call("initialize", ["application": "App"])
      let registered = try client.call(
        "registerObjectForStateRestoration",
        ["restorationIdentifier": "Main", "kind": "viewController", "storyboard": ["unit": .string(unit)]]
      )
      try client.call("encodeRestorableState", ["object": registered["object"] ?? .null, "state": [:]])
      try client.call("goodbye", ["reason": "restart"])
    }

    /// The steps of a restoration that waits in vain.
    func restore() throws -> [JSONValue] {
      let client = try WireClient(socket)
      try client.call("restoreApplicationState", ["application": "App", "deadlineMilliseconds": 200])
      let explained = try client.call("explainRestoration", ["application": "App", "object": ["Main"]])
      return try #require(explained["restored"]?.array)
    }

    /// Has a process open a session and be killed; the event that tells of it.
    func kill() throws -> JSONValue {
      let monitor = try WireClient(socket)
      try monitor.call("subscribe", ["application": "App", "events": ["sessionEnded"]])
      let child = try ProcessClient(.python, socket: socket, errors: directory.file("errors"))
      try child.initialize("App")
      try child.kill()
      return try monitor.notification("event")
    }
  }

  /// Runs a test with a broker beside this manager.
  private func withService(
    _ manager: FakeManager?,
    _ body: @Sendable (Service) throws -> Void
  ) async throws {
    try await withScratch { try body(Service(manager, in: $0)) }
  }

  private let files = ["a.service": ["[X-Restoration]\nApplication=App\n"]]

  @Test func r33AManagerThatDoesNotAnswerDoesNotHoldUpTheEnd() async throws {
    let manager = FakeManager()
    manager.state.withLock { $0.isSilent = true }
    try await withService(manager) { service in
      try WireClient(service.socket).call("ping")
      // The answer comes only after the end, and changes nothing.
      try service.stop()
      #expect(manager.state.withLock { $0.stuck.count } == 1)
      manager.letGo()
    }
  }

  @Test func r22AUnitIsStartedOnlyForTheApplicationThatItsFileNames() async throws {
    let manager = FakeManager()
    manager.state.withLock { $0.files = files }
    try await withService(manager) { service in
      try service.save(unit: "a.service")
      #expect(try service.restore().contains { $0["step"] == "unitStarted" })
      #expect(manager.state.withLock { $0.started } == ["a.service"])
      manager.state.withLock { $0.files = ["a.service": ["[X-Restoration]\nApplication=Another\n"]] }
      let refused = try #require(try service.restore().first { $0["step"] == "unitFailed" })
      #expect(refused["message"]?.string?.contains("lacks Application=App") == true)
      #expect(manager.state.withLock { $0.started } == ["a.service"])
    }
  }

  @Test(arguments: ["/bin/sh -c true", "../a.service", "a.service; true", "a@.service", "a.socket"])
  func whatIsNoNameOfAUnitNeverReachesTheManager(unit: String) async throws {
    let manager = FakeManager()
    manager.state.withLock { $0.files = [unit: ["[X-Restoration]\nApplication=App\n"]] }
    try await withService(manager) { service in
      try service.save(unit: unit)
      #expect(try service.restore().contains { $0["step"] == "absent" })
      #expect(manager.state.withLock { $0.started }.isEmpty)
    }
  }

  @Test func r22AUnitThatDoesNotStartIsExplainedInTheWordsOfTheManager() async throws {
    let manager = FakeManager()
    manager.state.withLock { $0.files = ["broken.service": ["[X-Restoration]\nApplication=%p\nApplication=App"]] }
    try await withService(manager) { service in
      try service.save(unit: "broken.service")
      let failed = try #require(try service.restore().first { $0["step"] == "unitFailed" })
      #expect(failed["message"]?.string?.contains("its start job failed") == true)
      manager.state.withLock { $0.failure = ServiceManagerError("the user manager does not answer") }
      let unanswered = try #require(try service.restore().first { $0["step"] == "unitFailed" })
      #expect(unanswered["message"]?.string == "the user manager does not answer")
    }
  }

  @Test func r22WithoutAManagerItIsSaidHowToStartTheUnit() async throws {
    try await withService(nil) { service in
      try service.save(unit: "a.service")
      let failed = try #require(try service.restore().first { $0["step"] == "unitFailed" })
      #expect(failed["message"]?.string?.contains("systemctl --user start a.service") == true)
    }
  }

  // MARK: Ends

  @Test func r30TheEndOfAProcessIsKnownExactly() async throws {
    let manager = FakeManager()
    try await withService(manager) { service in
      manager.state.withLock { $0.unit = "a.service" }
      let killed = try service.kill()
      #expect(killed["ending"] == "crashed" && killed["signal"] == "SIGKILL" && killed["unit"] == "a.service")
      manager.state.withLock { ($0.result.result, $0.result.activeState) = ("oom-kill", "failed") }
      #expect(try service.kill()["how"] == "outOfMemory")
      manager.state.withLock { ($0.result.result, $0.result.activeState) = ("success", "deactivating") }
      #expect(try service.kill()["ending"] == "stopped")
      manager.state.withLock { $0.isStopping = true }
      #expect(try service.kill()["ending"] == "logout")
    }
  }

  @Test func r30AManagerThatDoesNotAnswerHoldsNobodyUp() async throws {
    let manager = FakeManager()
    manager.state.withLock {
      $0.unit = "a.service"
      $0.isStuck = true
    }
    try await withService(manager) { service in
      let killed = try service.kill()
      #expect(killed["ending"] == "crashed" && killed["signal"] == "SIGKILL")
      manager.letGo()
    }
  }

  @Test func r30WithoutAManagerTheKernelTells() async throws {
    try await withService(nil) { service in
      let killed = try service.kill()
      #expect(killed["how"] == "signalled" && killed["signal"] == "SIGKILL" && killed["unit"] == .null)
    }
  }

  @Test func r30ABrokerThatEndsWithTheUsersSessionRemembersIt() async throws {
    let manager = FakeManager()
    try await withService(manager) { service in
      // It lives until the broker has ended: its end ends the session, not the reverse.
      let child = try ProcessClient(.python, socket: service.socket, errors: service.directory.file("errors"))
      try child.initialize("App")
      let registered = try child.call("registerObjectForStateRestoration", ["restorationIdentifier": "Main"])
      try child.call("encodeRestorableState", ["object": registered["object"] ?? .null, "state": [:]])
      manager.state.withLock { $0.isStopping = true }
      try service.stop()
      try child.kill()
      manager.state.withLock { $0.isStopping = false }
      try service.start()
      let reply = try WireClient(service.socket).call("initialize", ["application": "App"])
      #expect(reply["restoration"]?["reason"] == "launch")
    }
  }
}
