// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
public import RestorationClient
internal import Synchronization

/// A broker for one test, in a directory of its own. When it is stopped or released, and also when the test's process
/// is killed, nothing of it and of the processes it has started is left.
public final class PrivateBroker: Sendable {
  /// Removed at the end.
  public let directory: String
  /// The path of its socket.
  public let socket: String
  /// The variables of a process that is to use this broker: those that the test's process had when this was made, and
  /// `RESTORATIOND_SOCKET`.
  public let environment: [String: String]
  private let command: [String]
  private let keeper: Keeper
  private let processes = Mutex(Processes())

  private struct Processes {
    var broker: TestedProcess?
    var children: [TestedProcess] = []
    var wereStopped = false

    func check() throws {
      if wereStopped { throw TestingError("the broker was stopped; make another PrivateBroker") }
    }
  }

  /// What makes a program believe that a service manager has started it.
  private static let managed = [
    "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "FDSTORE",
    "JOURNAL_STREAM", "RESTORATIOND_ARCHIVES", "RESTORATIOND_LOG_LEVEL", "RESTORATION_UNIT",
  ]

  /// Starts a broker; it takes connections when this returns. Throws a `TestingError` with its log if it does not.
  ///
  /// - Parameters:
  ///   - program: nil takes `$RESTORATIOND_BINARY`, otherwise `restorationd` on the `PATH`. The test may have set them.
  ///   - developerMode: the broker quarantines and discards nothing, however often an application is killed.
  ///   - limits: such as `["roundQuietMilliseconds": 100]`.
  ///   - arguments: more arguments of `restorationd`.
  public init(
    program: String? = nil,
    developerMode: Bool = false,
    limits: [String: Int] = [:],
    arguments: [String] = []
  ) async throws {
    var variables = ownEnvironment.filter { !Self.managed.contains($0.key) }
    let program = program ?? variables["RESTORATIOND_BINARY"] ?? "restorationd"
    var template = Array("\(variables["TMPDIR"] ?? "/tmp")/restorationd-XXXXXX".utf8CString)
    guard let name = mkdtemp(&template) else { throw TestingError("mkdtemp: \(systemError(errno))") }
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
    let configuration = "\(directory)/config.json"
    command =
      [program, "--socket", socket, "--archives", "\(directory)/archives", "--config", configuration]
      + (developerMode ? ["--developer-mode"] : []) + arguments
    // If the rest throws, everything is set, and `deinit` stops what there is.
    let members = limits.map { (name: $0.key, value: JSONValue.integer(Int64($0.value))) }
    try Self.write(JSONText(["limits": .object(JSONObject(members))]).string, to: configuration)
    try await start()
  }

  deinit {
    stop()
  }

  /// Starts it after `kill`, over the same archives, and returns when it takes connections.
  public func start() async throws {
    // Its runtime directory is where it would look for a service manager that can start units.
    let variables = environment.merging(["XDG_RUNTIME_DIR": directory]) { $1 }
    let started = try processes.withLock { processes in
      try processes.check()
      guard processes.broker == nil else { throw TestingError("the broker runs already; call kill() or restart()") }
      do {
        let process = try TestedProcess(command, environment: variables, log: "\(directory)/log", keeper: keeper)
        processes.broker = process
        return process
      } catch {
        throw TestingError("\(error); install restorationd, or name its program in RESTORATIOND_BINARY")
      }
    }
    let end = ContinuousClock.now + .seconds(15)
    while true {
      do {
        return try await connect().close()
      } catch {
        guard started.hasEnded || ContinuousClock.now > end else {
          try await Task.sleep(for: .milliseconds(10))
          continue
        }
        kill()
        throw TestingError("\(command[0]) takes no connections: \(error)\n\(contents(of: "\(directory)/log"))")
      }
    }
  }

  /// Ends it by SIGKILL, as a crash would.
  public func kill() {
    processes.withLock { processes in
      processes.broker?.kill()
      processes.broker = nil
    }
  }

  /// Kills it, and starts it again over the same archives.
  public func restart() async throws {
    kill()
    try await start()
  }

  /// Stops it (SIGSTOP): connections stay, and nothing is answered until `thaw`.
  public func freeze() { processes.withLock { $0.broker?.freeze() } }

  /// Lets it continue after `freeze`.
  public func thaw() { processes.withLock { $0.broker?.thaw() } }

  /// Kills it and the processes it has started, and removes its directory. Afterwards it starts nothing.
  public func stop() {
    processes.withLock { processes in
      for process in processes.children + [processes.broker].compactMap(\.self) { process.kill() }
      processes = Processes(wereStopped: true)
    }
    keeper.finish()
  }

  /// Starts a program that uses this broker and ends with it. Its standard input is a socket, which it cannot open as
  /// `/dev/stdin`.
  public func spawn(_ command: [String]) throws -> TestedProcess {
    try processes.withLock { processes in
      try processes.check()
      let child = try TestedProcess(command, environment: environment, log: nil, keeper: keeper)
      processes.children.removeAll { $0.ending != nil }
      processes.children.append(child)
      return child
    }
  }

  /// Connects to it.
  public func connect() async throws -> BrokerConnection { try await BrokerConnection.connect(to: socket) }

  /// Puts a stored generation into a running application, and returns how it was restored. Sessions that serve are
  /// given their states; others are told by `headReplaced`, and decode them.
  @discardableResult
  public func replay(_ generation: Int64, of application: String) async throws -> RestoreResult {
    let connection = try await connect()
    try await connection.rollBack(application, to: generation, force: true)
    let restored = try await connection.restoreApplicationState(of: application)
    await connection.close()
    return restored
  }

  private static func write(_ text: String, to path: String) throws {
    guard let file = fopen(path, "we") else { throw TestingError("\(path): \(systemError(errno))") }
    fputs(text, file)
    fclose(file)
  }
}
