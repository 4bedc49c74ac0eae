// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport

/// A broker that calls its client as the client itself wants: `Tests/Clients/libraries/asking.py`.
final class AskingBroker {
  let socket: String
  private let process: ChildProcess

  init(in directory: ScratchDirectory) throws {
    socket = directory.file("asking.sock")
    let program = "\(Products.repository)/Tests/Clients/libraries/asking.py"
    process = try ChildProcess(["python3", "-u", program, socket], errors: directory.file("asking.log"))
    guard try process.output?.next() == "ready" else { throw TestFailure("\(program) does not start") }
  }
}

/// A process on top of a library of `Protocol/clients`. Its commands are at the top of
/// `Tests/Clients/libraries/driver.py`; all clients accept the same lines.
final class LibraryClient {
  enum Library: String, CaseIterable, Sendable {
    /// `Protocol/clients/python`, blocking.
    case python
    /// `Protocol/clients/python`, on asyncio.
    case asyncio
    /// `Protocol/clients/c`, with AddressSanitizer and UndefinedBehaviorSanitizer.
    case c
  }

  let library: Library
  private let process: ChildProcess
  private let errors: String

  init(_ library: Library, socket: String, errors: String) throws {
    self.library = library
    self.errors = errors
    let driver = "\(Products.repository)/Tests/Clients/libraries/driver.py"
    let command =
      switch library {
      case .python: ["python3", "-u", driver, "sync", socket]
      case .asyncio: ["python3", "-u", driver, "async", socket]
      case .c: [try Self.driver.get(), socket]
      }
    process = try ChildProcess(
      command,
      environment: ["PYTHONPATH": Self.module, "PYTHONDONTWRITEBYTECODE": "1", "ASAN_OPTIONS": "exitcode=86"],
      errors: errors
    )
  }

  convenience init(_ library: Library, _ broker: BrokerFixture) throws {
    try self.init(library, socket: broker.socket, errors: broker.directory.file("client.log"))
  }

  static let module = "\(Products.repository)/Protocol/clients/python"

  /// The driver in C. Compiled once a run, because an existing program may be of another version.
  static let driver = Result {
    try compile("Tests/Clients/libraries/driver.c", "client-driver", ["-g", "-fsanitize=address,undefined"])
  }

  /// Compiles a program with the C library, without any warning, and gives its path.
  static func compile(_ source: String, _ name: String, _ flags: [String]) throws -> String {
    let top = Products.repository
    let found = try ChildProcess.run(["pkg-config", "--cflags", "--libs", "jansson"])
    guard found.end == .exit(0) else { throw TestFailure("pkg-config finds no jansson: \(found.errors)") }
    let product = "\(Products.directory)/\(name)"
    let scratch = "\(product).\(getpid())"
    let compiled = try ChildProcess.run(
      ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"] + flags
        + ["-I", "\(top)/Protocol/clients/c", "-o", scratch]
        + ["\(top)/\(source)", "\(top)/Protocol/clients/c/restoration.c"]
        + found.output.split(whereSeparator: \.isWhitespace).map(String.init),
      Deadline(.seconds(120))
    )
    guard compiled.end == .exit(0) else { throw TestFailure("\(source) does not compile: \(compiled.errors)") }
    try Files.rename(scratch, to: product)
    return product
  }

  var pid: Int32 { process.pid }
  private var complaints: String { (try? Files.text(errors)) ?? "" }

  /// Tells it something without waiting for the answer.
  func send(_ what: String, _ members: JSONObject = [:]) throws {
    var command: JSONObject = ["do": .string(what)]
    for (name, value) in members.members { command[name] = value }
    try process.write(JSONValue.object(command).text + "\n")
  }

  /// Takes the answer; an error is thrown as `CallError`.
  func receive(_ deadline: Deadline = Deadline(.seconds(40))) throws -> JSONValue {
    guard let line = try process.output?.next(deadline) else {
      throw TestFailure("the \(library) client has ended: \(complaints.suffix(4_000))")
    }
    let answer = try JSONCodec.parse(Array(line.utf8))
    if let error = answer["error"] { throw CallError(error) }
    guard let result = answer["ok"] else { throw TestFailure("the \(library) client says: \(line)") }
    return result
  }

  @discardableResult
  func tell(_ what: String, _ members: JSONObject = [:]) throws -> JSONValue {
    try send(what, members)
    return try receive()
  }

  func failure(_ what: String, _ members: JSONObject = [:]) throws -> CallError {
    do {
      let result = try tell(what, members)
      throw TestFailure("\(what) did not fail: \(result.text)")
    } catch let error as CallError {
      return error
    }
  }

  /// Opens a session.
  @discardableResult
  func open(_ application: String = "org.example.Notes", _ more: JSONObject = [:]) throws -> JSONValue {
    var members: JSONObject = ["application": .string(application), "process": "editor"]
    for (name, value) in more.members { members[name] = value }
    return try tell("open", members)
  }

  /// Registers an object below a path.
  @discardableResult
  func register(_ identifier: String, _ parent: String...) throws -> JSONValue {
    var members: JSONObject = ["identifier": .string(identifier)]
    if !parent.isEmpty { members["parent"] = .array(parent.map { .string($0) }) }
    return try tell("register", members)
  }

  /// Events since the last call: `["encode Editor", "finished Editor"]`.
  func log() throws -> [String] {
    let entries = try tell("log").array ?? []
    return entries.map { entry in (entry.array ?? []).map { $0.string ?? $0.text }.joined(separator: " ") }
  }

  func kill() throws { try process.kill() }

  /// Ends it by closing its input. It must exit with 0 and, in C, without leaks.
  func end() throws {
    process.closeInput()
    let end = try process.waitForEnd()
    guard end == .exit(0) else { throw TestFailure("the \(library) client: \(end)\n\(complaints.suffix(4_000))") }
  }
}
