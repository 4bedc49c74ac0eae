// SPDX-License-Identifier: Apache-2.0

internal import Glibc
package import JSONRPC

/// A broker under test and the verbs a test has for it. Everything is undone in reverse order when the test is over.
package final class BrokerFixture {
  package let directory: ScratchDirectory
  /// What starts the broker in its stead, such as strace.
  package var wrapper: [String]
  /// More variables of its environment.
  package var variables: [String: String] = [:]
  private let arguments: [String]
  /// Members of the configuration file.
  private var settings: JSONObject
  private var process: ChildProcess?
  private var kept: [WireClient] = []
  private var clients: [ProcessClient] = []
  private var servingClients: [ServingClient] = []

  package init(
    in directory: ScratchDirectory,
    arguments: [String] = [],
    limits: JSONObject = [:],
    settings: JSONObject = [:],
    wrapper: [String] = []
  ) {
    self.directory = directory
    self.arguments = arguments
    self.settings = settings
    self.settings["limits"] = .object(limits)
    self.wrapper = wrapper
  }

  package var socket: String { directory.file("run/broker.sock") }
  package var archives: String { directory.file("archives") }
  /// The standard error of all brokers of this test.
  package var log: String { (try? Files.text(directory.file("log"))) ?? "" }

  /// The broker's process.
  package var pid: Int32 {
    get throws {
      guard let process else { throw TestFailure("the broker is not running") }
      guard !wrapper.isEmpty else { return process.pid }
      let children = try Files.text("/proc/\(process.pid)/task/\(process.pid)/children")
      guard let child = children.split(separator: " ").first.flatMap({ Int32($0) }) else {
        throw TestFailure("\(process.name) has no child")
      }
      return child
    }
  }

  package var status: ProcessStatus { get throws { ProcessStatus(try pid) } }

  package var command: [String] {
    [Products.broker, "--socket", socket, "--archives", archives, "--config", directory.file("config.json")]
      + arguments
  }

  /// Without variables that would make a broker look outside of the test's directory.
  package var environment: [String: String?] {
    [
      "RESTORATIOND_SOCKET": nil, "RESTORATIOND_ARCHIVES": nil, "RESTORATIOND_LOG_LEVEL": nil,
      "XDG_RUNTIME_DIR": directory.path, "XDG_STATE_HOME": directory.path, "XDG_CONFIG_HOME": directory.path,
      "SWIFT_BACKTRACE": "enable=no",
    ]
  }

  /// Starts the broker and waits until it accepts connections; the milliseconds that took.
  @discardableResult
  package func start(_ deadline: Deadline = Deadline()) throws -> Int64 {
    if !Files.exists(directory.file("config.json")) {
      try directory.write(JSONValue.object(settings).text, to: "config.json")
    }
    if !Files.exists(directory.file("run")) { _ = try directory.makeDirectory("run") }
    let arrivals = try DirectoryWatch(directory.file("run"))
    let begin = Deadline.now
    let process = try ChildProcess(
      wrapper + command,
      environment: environment.merging(variables) { $1 },
      output: .file(directory.file("output")),
      errors: directory.file("log")
    )
    self.process = process
    while (try? WireClient(socket)) == nil {
      guard process.isRunning else {
        throw TestFailure("the broker ended at its start: \(try process.waitForEnd())")
      }
      guard !deadline.isOver else { throw TestFailure("the broker does not accept connections") }
      // A socket is bound a moment before it listens: after its arrival there is nothing to wait for but that moment.
      if !arrivals.hasSeen("broker.sock", deadline) { sched_yield() }
    }
    return Deadline.now - begin
  }

  package func connect() throws -> WireClient { try WireClient(socket) }

  /// A connection with a session of an application.
  package func session(
    _ application: String = "org.example.Test",
    process: String? = nil,
    _ more: JSONObject = [:]
  ) throws -> WireClient {
    let client = try connect()
    var parameters: JSONObject = ["application": .string(application)]
    if let process { parameters["process"] = .string(process) }
    for (name, value) in more.members { parameters[name] = value }
    try client.call("initialize", .object(parameters))
    return client
  }

  /// Keeps a connection open until the test is over.
  package func keep(_ client: WireClient) { kept.append(client) }

  /// Starts a client process that ends with the test.
  package func client(_ kind: ProcessClient.Kind) throws -> ProcessClient {
    let client = try ProcessClient(kind, socket: socket, errors: directory.file("log"))
    clients.append(client)
    return client
  }

  /// Starts a client process that the broker calls; it ends with the test.
  package func serving(_ language: ServingClient.Language) throws -> ServingClient {
    let client = try ServingClient(language, socket: socket, errors: directory.file("log"))
    servingClients.append(client)
    return client
  }

  // MARK: Ends and beginnings

  /// Ends the broker at once, as a crash would.
  package func kill() throws {
    guard let process else { return }
    if !wrapper.isEmpty, let child = try? pid, let end = try? FileDescriptor.process(child) {
      Glibc.kill(child, SIGKILL)
      // The wrapper may be gone before what it wraps, which would still answer.
      guard end.waitUntilReadable(Deadline()) else { throw TestFailure("the broker goes on running") }
    }
    try process.kill()
    self.process = nil
  }

  /// Asks the broker to end and waits until it has.
  package func terminate() throws -> ChildProcess.End {
    guard let process else { throw TestFailure("the broker is not running") }
    Glibc.kill(try pid, SIGTERM)
    let end = try process.waitForEnd()
    self.process = nil
    return end
  }

  /// Waits until the broker has ended on its own.
  package func waitForEnd(_ deadline: Deadline = Deadline()) throws -> ChildProcess.End {
    guard let process else { throw TestFailure("the broker is not running") }
    let end = try process.waitForEnd(deadline)
    self.process = nil
    return end
  }

  package var isRunning: Bool { process?.isRunning ?? false }

  /// Kills the broker and starts it again; the milliseconds until it accepted.
  @discardableResult
  package func crashAndRestart() throws -> Int64 {
    try kill()
    return try start()
  }

  /// Ends what still runs, the last started first, and looks for the traces of a crash.
  package func finish() throws {
    for client in servingClients.reversed() { client.end() }
    for client in clients.reversed() { client.end() }
    if let process {
      guard process.isRunning else { throw TestFailure("the broker ended: \(try process.waitForEnd())\n\(log)") }
      try kill()
    }
    let marks = ["Fatal error", "Program crashed", "Precondition failed", "Assertion failed", "runtime error"]
    for line in log.split(separator: "\n") where marks.contains(where: { line.contains($0) }) {
      throw TestFailure("the broker's log has: \(line)")
    }
    let output = (try? Files.text(directory.file("output"))) ?? ""
    guard output.isEmpty else { throw TestFailure("the broker printed: \(output)") }
  }
}

/// Tells when a file is created in a directory.
final class DirectoryWatch {
  private let descriptor: FileDescriptor
  private var seen: Set<String> = []

  init(_ path: String) throws {
    let number = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
    guard number >= 0 else { throw TestFailure("inotify_init1: \(SystemError.current)") }
    descriptor = FileDescriptor(owning: number)
    guard inotify_add_watch(number, path, UInt32(IN_CREATE)) >= 0 else {
      throw TestFailure("inotify_add_watch \(path): \(SystemError.current)")
    }
  }

  /// False when the file was created before this call; true after waiting for anything to be created (or a moment, in
  /// which the process that should create it may have ended).
  func hasSeen(_ name: String, _ deadline: Deadline) -> Bool {
    if seen.contains(name) { return false }
    guard descriptor.waitUntilReadable(Deadline(.milliseconds(100))) else { return true }
    let bytes = (try? descriptor.read(deadline)) ?? []
    var offset = 0
    while offset + 16 <= bytes.count {
      let length = bytes[(offset + 12)..<(offset + 16)].reversed().reduce(0) { $0 << 8 | Int($1) }
      let field = bytes[(offset + 16)..<min(bytes.count, offset + 16 + length)]
      seen.insert(String(decoding: field.prefix { $0 != 0 }, as: UTF8.self))
      offset += 16 + length
    }
    return true
  }
}
