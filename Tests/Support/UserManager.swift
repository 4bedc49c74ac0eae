// SPDX-License-Identifier: Apache-2.0

internal import Glibc
package import JSONRPC

/// A user with a user manager, in their own namespaces (`Tests/usermanager/namespace.py`), and a test's operations on
/// them. Paths are those within the namespaces; `outside` makes one that the test can open.
package final class UserManager {
  package static let service = "restorationd.service"
  package static let socketUnit = "restorationd.socket"

  package let directory: ScratchDirectory
  package let home: String
  private let runtime: String
  private let uid: Int64
  private let host: ChildProcess
  private let pid: Int32
  private var clients: [ProcessClient] = []
  private var servingClients: [ServingClient] = []

  /// Whether a user manager can run here; in CI it must.
  package static let isUsable: Bool = {
    guard !Environment.isCI else { return true }
    let result = try? ChildProcess.run(unshare + ["true"])
    return result?.end == .exit(0) && Files.exists(program)
  }()

  /// The name of the skip if it cannot.
  package static let requirement = "needs root, systemd and namespaces; run Tests/run.sh as root on such a machine"

  private static let program = "/lib/systemd/systemd"
  private static let unshare = ["unshare", "--mount", "--pid", "--cgroup", "--fork", "--kill-child", "--mount-proc"]
  /// The directory in there that has the tests' own programs and the checkout's files.
  private static let files = "/run/restorationd-test"

  package init(in directory: ScratchDirectory) throws {
    self.directory = directory
    let script = "\(Products.repository)/Tests/usermanager/namespace.py"
    host = try ChildProcess(Self.unshare + ["python3", "-B", script], errors: directory.file("host.log"))
    guard let line = try host.output?.next(), let children = try? Files.text(Self.children(of: host.pid)),
      let pid = children.split(separator: " ").first.flatMap({ Int32($0) })
    else {
      throw TestFailure("no namespaces: \((try? Files.text(directory.file("host.log"))) ?? "")")
    }
    let user = try JSONCodec.parse(Array(line.utf8))
    self.pid = pid
    home = user["home"]?.string ?? ""
    runtime = user["runtime"]?.string ?? ""
    uid = user["uid"]?.integer ?? 0
  }

  /// The control group of everything in there, as the test sees it, if the machine has a visible one.
  package var group: String? {
    let line = try? Files.text("/proc/\(pid)/cgroup").split(separator: "\n").first { $0.hasPrefix("0::") }
    let path = line?.dropFirst(3).split(separator: "/").dropLast().joined(separator: "/") ?? ""
    return ["/sys/fs/cgroup/\(path)", "/sys/fs/cgroup/unified/\(path)"].first { Files.exists($0) }
  }

  private static func children(of pid: Int32) -> String { "/proc/\(pid)/task/\(pid)/children" }

  package var socket: String { "\(runtime)/restorationd/broker.sock" }
  package var broker: String { "\(home)/.local/bin/restorationd" }
  /// Units that the user has made.
  package var units: String { "\(home)/.config/systemd/user" }
  package func outside(_ path: String) -> String { "/proc/\(pid)/root\(path)" }
  /// The archive of an application, as the test can open it.
  package func archive(_ application: String) -> String {
    outside("\(home)/.local/state/restorationd/\(application).sqlite")
  }

  // MARK: The host

  @discardableResult
  private func tell(_ command: JSONObject, _ deadline: Deadline = Deadline(.seconds(150))) throws -> JSONValue {
    try host.write(JSONValue.object(command).text + "\n")
    guard let line = try host.output?.next(deadline) else {
      throw TestFailure("the namespaces are gone: \((try? Files.text(directory.file("host.log"))) ?? "")")
    }
    let answer = try JSONCodec.parse(Array(line.utf8))
    if let failure = answer["failure"]?.string { throw TestFailure("\(command["do"]?.string ?? ""): \(failure)") }
    return answer
  }

  /// Starts the user manager; it is ready afterwards, and sockets listen.
  package func login() throws {
    var environment: JSONObject = [:]
    // Programs that were not built to be installed find Swift's libraries by this.
    if !Products.isOptimised { environment["LD_LIBRARY_PATH"] = .string(try addSwift()) }
    try tell(["do": "login", "environment": .object(environment)])
  }

  /// Ends the user manager and everything the user runs in it; the milliseconds that took.
  @discardableResult
  package func logout() throws -> Int64 { try tell(["do": "logout"])["milliseconds"]?.integer ?? 0 }

  /// Copies a file or a directory of the checkout or of the build into the namespaces.
  package func add(_ path: String, as target: String) throws {
    try tell(["do": "add", "from": .string(path), "to": .string(target)])
  }

  /// Puts a file or directory of the checkout if the user can read it; its path there.
  package func added(_ path: String) throws -> String {
    let target = "\(Self.files)/\(path)"
    if !Files.exists(outside(target)) { try add("\(Products.repository)/\(path)", as: target) }
    return target
  }

  package func write(_ text: String, to path: String) throws {
    try tell(["do": "write", "path": .string(path), "text": .string(text)])
  }

  package func addSwift() throws -> String {
    let target = "\(Self.files)/swift"
    if !Files.exists(outside(target)) {
      let maps = try Files.text("/proc/self/maps").split(separator: "\n")
      let library = maps.compactMap { $0.split(separator: " ").last }.first { $0.hasSuffix("/libswiftCore.so") }
      guard let library else { throw TestFailure("the test does not know where Swift's libraries are") }
      let directory = library.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
      try tell(["do": "add", "from": .string(directory), "to": .string(target), "bind": true])
    }
    return target
  }

  // MARK: The journal

  /// The log entries since the last call.
  package func takeJournal() throws -> [JSONValue] { try tell(["do": "journal"])["entries"]?.array ?? [] }

  /// Waits for entries with these fields.
  @discardableResult
  package func journal(_ fields: JSONObject, count: Int64 = 1) throws -> [JSONValue] {
    let answer = try tell(["do": "awaitJournal", "fields": .object(fields), "count": .integer(count)])
    return answer["entries"]?.array ?? []
  }

  /// All of it as text.
  package var log: String {
    let errors = (try? Files.text(directory.file("client.log"))) ?? ""
    let entries = (try? takeJournal()) ?? []
    return entries.map { entry in
      "\(entry["SYSLOG_IDENTIFIER"]?.string ?? ""): \(entry["MESSAGE"]?.string ?? entry.text)\n"
    }.joined() + errors
  }

  // MARK: Programs

  /// A command that enters the namespaces as the user and runs another one.
  package func command(_ command: [String], environment: [String: String] = [:]) -> [String] {
    var variables = [
      "HOME": home, "XDG_RUNTIME_DIR": runtime, "USER": "restorationd-test", "LOGNAME": "restorationd-test",
      "PATH": "\(home)/.local/bin:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
      "DBUS_SESSION_BUS_ADDRESS": "unix:path=\(runtime)/bus", "SYSTEMD_COLORS": "0", "SWIFT_BACKTRACE": "enable=no",
      "PYTHONDONTWRITEBYTECODE": "1",
    ]
    variables.merge(environment) { $1 }
    let enter = [
      "nsenter", "--target", "\(pid)", "--mount", "--pid", "--cgroup", "setpriv", "--reuid", "\(uid)", "--regid",
      "\(uid)", "--clear-groups", "--inh-caps=-all", "--pdeathsig", "KILL", "env", "-i", "-C", home,
    ]
    return enter + variables.map { "\($0)=\($1)" } + command
  }

  /// Runs a program to its end.
  package func run(
    _ arguments: [String],
    input: String = "",
    environment: [String: String] = [:],
    _ deadline: Deadline = Deadline(.seconds(60))
  ) throws -> (end: ChildProcess.End, output: String, errors: String) {
    try ChildProcess.run(command(arguments, environment: environment), input: input, deadline)
  }

  /// The output of a program that must exit with 0.
  @discardableResult
  package func output(_ arguments: String..., deadline: Deadline = Deadline(.seconds(60))) throws -> String {
    let result = try run(arguments, deadline)
    guard result.end == .exit(0) else {
      throw TestFailure("\(arguments.joined(separator: " ")): \(result.end)\n\(result.output)\(result.errors)")
    }
    return result.output
  }

  /// Starts a program that is spoken with; it ends with the test.
  package func start(_ arguments: [String], environment: [String: String] = [:]) throws -> ChildProcess {
    try ChildProcess(command(arguments, environment: environment), errors: directory.file("client.log"))
  }

  /// Starts a program that may trace the user's.
  package func startAsRoot(_ command: [String]) throws -> ChildProcess {
    try ChildProcess(enteringAsRoot + command, errors: directory.file("client.log"))
  }

  /// What a command begins with that is to run in there as root.
  package var enteringAsRoot: [String] { ["nsenter", "--target", "\(pid)", "--mount", "--pid", "--cgroup"] }

  /// A command that enters the namespaces and runs another one as the user, as Flatpak runs an application.
  package func flatpak(_ application: String, _ command: [String]) throws -> [String] {
    enteringAsRoot + ["sh", "\(try added("Tests/usermanager"))/flatpak.sh", home, application] + command
  }

  package func client(_ kind: ProcessClient.Kind) throws -> ProcessClient {
    let program: [String]
    var environment: [String: String] = [:]
    switch kind {
    case .python: program = ["python3", "-u", "\(try added("Tests/Clients"))/client.py"]
    case .swift:
      program = ["\(Self.files)/restoration-test-client"]
      if !Files.exists(outside(program[0])) { try add(Products.swiftClient, as: program[0]) }
      environment["LD_LIBRARY_PATH"] = try addSwift()
    }
    let command = command(program + [socket], environment: environment)
    let client = try ProcessClient(kind.rawValue, command, errors: directory.file("client.log"))
    clients.append(client)
    return client
  }

  /// The program that takes `serving.py`'s commands, in there; in Swift it needs `addSwift`.
  package func servingCommand(_ language: ServingClient.Language) throws -> [String] {
    let clients = try added("Tests/Clients")
    switch language {
    case .python: return ["/usr/bin/python3", "-u", "\(clients)/serving.py", socket]
    case .perl: return ["/usr/bin/perl", "\(clients)/serving.pl", socket]
    case .swift:
      let program = "\(Self.files)/restoration-test-client"
      if !Files.exists(outside(program)) { try add(Products.swiftClient, as: program) }
      return [program, socket, "serving"]
    }
  }

  /// A process that the broker calls.
  package func serving() throws -> ServingClient {
    let command = command(try servingCommand(.python))
    let client = try ServingClient("serving", command, errors: directory.file("client.log"))
    servingClients.append(client)
    return client
  }

  // MARK: Units

  @discardableResult
  package func systemctl(_ arguments: String...) throws -> String {
    let command = ["systemctl", "--user", "--no-pager"] + arguments
    let result = try run(command)
    guard result.end == .exit(0) else {
      throw TestFailure("\(command.joined(separator: " ")): \(result.end)\n\(result.output)\(result.errors)")
    }
    return result.output
  }

  package func property(_ name: String, of unit: String = UserManager.service) throws -> String {
    String(try systemctl("show", "--value", "--property", name, unit).prefix { $0 != "\n" })
  }

  /// The broker's process, as the user sees it; 0 if it is not running.
  package var mainPID: Int32 { get throws { Int32(try property("MainPID")) ?? 0 } }

  /// Adds settings to a unit.
  package func dropIn(_ unit: String = UserManager.service, _ name: String, _ text: String) throws {
    try write(text, to: "\(units)/\(unit).d/\(name).conf")
    if Files.exists(outside("\(runtime)/systemd/private")) { try systemctl("daemon-reload") }
  }

  /// Installs the programs and the units.
  package func install() throws {
    for (program, name) in [(Products.broker, "restorationd"), (Products.control, "restorationctl")] {
      try add(program, as: "\(home)/.local/bin/\(name)")
    }
    for name in Files.list("\(Products.repository)/systemd/user") {
      let text = try Files.text("\(Products.repository)/systemd/user/\(name)").split(separator: "/usr/bin/")
      try write(text.joined(separator: "\(home)/.local/bin/"), to: "\(units)/\(name)")
    }
    try output("env", "SYSTEMD_OFFLINE=1", "systemctl", "--user", "enable", "--quiet", Self.socketUnit)
  }

  // MARK: The end

  /// Ends everything, and looks for the traces of a crash.
  package func finish() throws {
    for client in servingClients.reversed() { client.end() }
    for client in clients.reversed() { client.end() }
    let text = log
    host.closeInput()
    try host.waitForEnd()
    let marks = ["Fatal error", "Program crashed", "Precondition failed", "Assertion failed", "Traceback"]
    for line in text.split(separator: "\n") where marks.contains(where: { line.contains($0) }) {
      throw TestFailure("the journal has: \(line)\n\(text.suffix(4_000))")
    }
  }
}
