// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
public import RestorationClient
internal import Synchronization

/// A broker for one test, in a directory of its own. `stop`, its release, and any end of the test's process remove it
/// with its processes and their groups. A process that has called `setsid` is in none of them.
///
/// Write `defer { broker.stop() }` after its start: Swift may release a variable's value after its last use, in the
/// middle of the test.
public final class PrivateBroker: Sendable {
  public let directory: String
  public let socket: String
  /// The variables for a process that uses this broker: those of the test's process, and `RESTORATIOND_SOCKET`.
  public let environment: [String: String]
  /// Whether it never withholds a state after crashes.
  let developerMode: Bool
  private let command: [String]
  private let keeper: Keeper
  private let processes = Mutex(Processes())

  private struct Processes {
    var broker: TestedProcess?
    /// Milliseconds by which its clock is ahead; `nil` for the computer's.
    var ahead: Int64?
    var children: [TestedProcess] = []
    var wereStopped = false

    func check() throws {
      if wereStopped { throw TestingError("the broker was stopped; make another PrivateBroker") }
    }
  }

  private static let socketBytesMax = 107
  /// The timeout for accepting connections.
  private static let startMax = Duration.seconds(60)
  /// The timeout for moving the clock, above the broker's own.
  private static let moveSecondsMax = 60
  /// The most milliseconds ahead: a hundred years.
  private static let aheadMax: Int64 = 36_525 * 24 * 3_600 * 1_000

  /// Variables that make a program believe that a service manager has started it.
  private static let managed = [
    "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "FDSTORE",
    "JOURNAL_STREAM", "RESTORATIOND_ARCHIVES", "RESTORATIOND_LOG_LEVEL", "RESTORATION_UNIT",
  ]

  /// Starts a broker, which accepts connections when this returns. Otherwise throws a `TestingError` with its log.
  ///
  /// - Parameters:
  ///   - program: `nil` takes `$RESTORATIOND_BINARY`, otherwise `restorationd` on the `PATH`. The test may set them.
  ///   - testClock: `advance` moves the broker's clock.
  ///   - developerMode: the broker quarantines and discards nothing after crashes, as `killAtRandomPoints` needs it.
  ///   - limits: such as `["roundQuietMilliseconds": 100]`.
  ///   - arguments: more arguments of `restorationd`.
  public init(
    program: String? = nil,
    testClock: Bool = false,
    developerMode: Bool = false,
    limits: [String: Int] = [:],
    arguments: [String] = []
  ) async throws {
    var variables = ownEnvironment.filter { !Self.managed.contains($0.key) }
    let program = program ?? variables["RESTORATIOND_BINARY"] ?? "restorationd"
    let pattern = "\(variables["TMPDIR"] ?? "/tmp")/restorationd-XXXXXX"
    guard "\(pattern)/broker.sock".utf8.count <= Self.socketBytesMax else {
      throw TestingError(
        "\(pattern)/broker.sock is longer than the \(Self.socketBytesMax) bytes of a socket's path; "
          + "let TMPDIR be shorter"
      )
    }
    var template = Array(pattern.utf8CString)
    guard let name = mkdtemp(&template) else {
      throw TestingError("\(pattern) cannot be made: \(systemError(errno)); let TMPDIR name a directory of yours")
    }
    directory = String(cString: name)
    do {
      keeper = try Keeper(removing: directory, environment: variables)
    } catch {
      rmdir(directory)
      throw error
    }
    socket = "\(directory)/broker.sock"
    variables["RESTORATIOND_SOCKET"] = socket
    environment = variables
    self.developerMode = developerMode || arguments.contains("--developer-mode")
    let configuration = "\(directory)/config.json"
    command =
      [program, "--socket", socket, "--archives", "\(directory)/archives", "--config", configuration]
      + (developerMode ? ["--developer-mode"] : []) + arguments
    processes.withLock { $0.ahead = testClock ? 0 : nil }
    // From here on everything is set: if the rest throws, `deinit` stops the processes.
    let members = limits.map { (name: $0.key, value: JSONValue.integer(Int64($0.value))) }
    try Self.write(JSONText(["limits": .object(JSONObject(members))]).string, to: configuration)
    try await start()
  }

  deinit {
    stop()
  }

  /// Starts it after `kill`, over the same archives; returns when it accepts connections.
  public func start() async throws {
    // In its runtime directory it would find a service manager.
    let variables = environment.merging(["XDG_RUNTIME_DIR": directory]) { $1 }
    let started = try processes.withLock { processes in
      try processes.check()
      guard processes.broker == nil else { throw TestingError("the broker runs already; call kill() or restart()") }
      do {
        let words = command + (processes.ahead.map { ["--test-clock", "\($0)"] } ?? [])
        let process = try TestedProcess(words, environment: variables, log: "\(directory)/log", keeper: keeper)
        processes.broker = process
        return process
      } catch let error as TestingError where [ENOENT, EACCES].contains(error.number) {
        throw TestingError("\(error); install restorationd, or name its program in RESTORATIOND_BINARY")
      }
    }
    let end = ContinuousClock.now + Self.startMax
    while true {
      do {
        return try await connect().close()
      } catch {
        // This asks only whether it accepts connections.
        guard started.hasEnded || ContinuousClock.now > end else {
          try await Task.sleep(for: .milliseconds(10))
          continue
        }
        kill()
        let log = contents(of: "\(directory)/log")
        throw TestingError("\(command[0]) takes no connections at \(socket): \(error)\n\(log)")
      }
    }
  }

  public func kill() {
    processes.withLock { processes in
      processes.broker?.kill()
      processes.broker = nil
    }
  }

  /// Kills it and starts it again, over the same archives.
  public func restart() async throws {
    kill()
    try await start()
  }

  /// Stops it (SIGSTOP): connections stay, without answers until `thaw`.
  public func freeze() { processes.withLock { $0.broker?.freeze() } }

  /// Continues it (SIGCONT).
  public func thaw() { processes.withLock { $0.broker?.thaw() } }

  /// Moves its clock ahead, for dates and timeouts, also after a restart. Returns when all due work was done, in order.
  /// Clients' clocks do not move: a client cannot answer in between, so the broker's timeouts for it pass.
  ///
  /// Throws a `TestingError` if the broker does not run, has no `testClock`, or is not done within a minute, if the
  /// time is negative, or if the clock would be ahead by more than 100 years.
  public func advance(by time: Duration) async throws {
    let rounded = (time / .milliseconds(1)).rounded(.toNearestOrEven)
    let (broker, milliseconds) = try processes.withLock { processes in
      try processes.check()
      guard let ahead = processes.ahead else {
        throw TestingError("the broker has the computer's clock; make it with PrivateBroker(testClock: true)")
      }
      guard let broker = processes.broker, !broker.hasEnded else {
        throw TestingError("the broker is not running; call restart()")
      }
      guard let milliseconds = Int64(exactly: rounded), (0...Self.aheadMax - ahead).contains(milliseconds) else {
        throw TestingError("\(time) is not a time from 0 to \(Self.aheadMax - ahead) milliseconds")
      }
      // First: wherever it ends, none of its dates is in the future of the next one.
      processes.ahead = ahead + milliseconds
      return (broker, milliseconds)
    }
    let answer = try await onOwnThread { try broker.ask("advance \(milliseconds)", within: Self.moveSecondsMax) }
    guard answer.hasPrefix("ok ") else { throw TestingError(answer) }
  }

  /// Kills it and its processes, and removes its directory. It starts nothing afterwards.
  public func stop() {
    processes.withLock { processes in
      for process in processes.children + [processes.broker].compactMap(\.self) { process.kill() }
      processes = Processes(wereStopped: true)
    }
    keeper.finish()
  }

  /// Starts a program that uses this broker and ends with it. Its standard input is a socket, not to be opened as
  /// `/dev/stdin`. If it exits, it stays a zombie until `kill` or `stop`.
  public func spawn(_ command: [String]) throws -> TestedProcess {
    try processes.withLock { processes in
      try processes.check()
      let child = try TestedProcess(command, environment: environment, log: nil, keeper: keeper)
      processes.children.removeAll { $0.ending != nil }
      processes.children.append(child)
      return child
    }
  }

  public func connect() async throws -> BrokerConnection {
    try await answer(of: "the connection") { [socket] in try await BrokerConnection.connect(to: socket) }
  }

  /// Restores a generation into a running application, and returns the result. Sessions that serve are delivered their
  /// states; others receive `headReplaced` and decode them.
  @discardableResult
  public func replay(_ generation: Int64, of application: String) async throws -> RestoreResult {
    let connection = try await connect()
    _ = try await answer(of: "rollBack") {
      try await connection.call(RollBack(generation: generation, force: true), of: application)
    }
    let restored = try await answer(of: "restoreApplicationState") {
      try await connection.call(RestoreApplicationState(), of: application)
    }
    await connection.close()
    return restored
  }

  private static func write(_ text: String, to path: String) throws {
    guard let file = fopen(path, "we") else { throw TestingError("\(path): \(systemError(errno))") }
    fputs(text, file)
    fclose(file)
  }
}

extension Duration {
  /// Of 24 hours.
  public static func days(_ days: Int) -> Duration { .seconds(days * 24 * 3_600) }
}
