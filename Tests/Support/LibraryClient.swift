// SPDX-License-Identifier: Apache-2.0

internal import Glibc
package import JSONRPC

/// A broker that calls its client as the client itself wants: `Tests/Clients/libraries/asking.py`.
package final class AskingBroker {
  package let socket: String
  private let process: ChildProcess

  package init(in directory: ScratchDirectory) throws {
    socket = directory.file("asking.sock")
    let program = "\(Products.repository)/Tests/Clients/libraries/asking.py"
    process = try ChildProcess(["python3", "-u", program, socket], errors: directory.file("asking.log"))
    guard try process.output?.next() == "ready" else { throw TestFailure("\(program) does not start") }
  }
}

/// A process on top of a library of `Protocol/clients`. Its commands are at the top of
/// `Tests/Clients/libraries/driver.py`; all clients accept the same lines.
package final class LibraryClient: CommandedClient {
  package enum Library: String, CaseIterable, Sendable {
    /// `Protocol/clients/python`, blocking.
    case python
    /// `Protocol/clients/python`, on asyncio.
    case asyncio
    /// `Protocol/clients/c`, with AddressSanitizer and UndefinedBehaviorSanitizer.
    case c
  }

  package convenience init(_ library: Library, socket: String, errors: String) throws {
    let driver = "\(Products.repository)/Tests/Clients/libraries/driver.py"
    let command =
      switch library {
      case .python: ["python3", "-u", driver, "sync", socket]
      case .asyncio: ["python3", "-u", driver, "async", socket]
      case .c: [try Self.driver.get(), socket]
      }
    try self.init(
      library.rawValue,
      command,
      environment: ["PYTHONPATH": Self.module, "PYTHONDONTWRITEBYTECODE": "1", "ASAN_OPTIONS": "exitcode=86"],
      member: "ok",
      errors: errors
    )
  }

  package convenience init(_ library: Library) throws {
    try self.init(library, socket: broker.socket, errors: broker.directory.file("client.log"))
  }

  /// One with a session at the test's broker.
  package static func open(
    _ library: Library,
    _ application: String = "org.example.Notes",
    _ more: JSONObject = [:]
  ) throws -> LibraryClient {
    let client = try LibraryClient(library)
    try client.open(application, more)
    return client
  }

  package static let module = "\(Products.repository)/Protocol/clients/python"

  /// The driver in C. Compiled once a run, because an existing program may be of another version.
  package static let driver = Result {
    try compile("Tests/Clients/libraries/driver.c", "client-driver", ["-g", "-fsanitize=address,undefined"])
  }

  /// Compiles a program with the C library, without any warning, and gives its path.
  package static func compile(_ source: String, _ name: String, _ flags: [String]) throws -> String {
    let (top, library) = (Products.repository, "Protocol/clients/c")
    let found = try ChildProcess.run(["pkg-config", "--cflags", "--libs", "jansson"])
    guard found.end == .exit(0) else { throw TestFailure("pkg-config finds no jansson: \(found.errors)") }
    let product = "\(Products.directory)/\(name)"
    let scratch = "\(product).\(getpid())"
    let compiled = try ChildProcess.run(
      ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"] + flags
        + ["-I", "\(top)/\(library)", "-o", scratch]
        + ["\(top)/\(source)", "\(top)/\(library)/restoration.c"]
        + found.output.split(whereSeparator: \.isWhitespace).map(String.init),
      Deadline(.seconds(120))
    )
    guard compiled.end == .exit(0) else { throw TestFailure("\(source) does not compile: \(compiled.errors)") }
    try Files.rename(scratch, to: product)
    return product
  }

  package func failure(_ what: String, _ members: JSONObject = [:]) throws -> CallError {
    try failure(of: what, members)
  }

  /// Opens a session.
  @discardableResult
  package func open(_ application: String = "org.example.Notes", _ more: JSONObject = [:]) throws -> JSONValue {
    var members: JSONObject = ["application": .string(application), "process": "editor"]
    for (name, value) in more.members { members[name] = value }
    return try tell("open", members)
  }

  /// Registers an object below a path.
  @discardableResult
  package func register(_ identifier: String, _ parent: String...) throws -> JSONValue {
    var members: JSONObject = ["identifier": .string(identifier)]
    if !parent.isEmpty { members["parent"] = .array(parent.map { .string($0) }) }
    return try tell("register", members)
  }

  /// Events since the last call: `["encode Editor", "finished Editor"]`.
  package func log() throws -> [String] { try tell("log").logLines }

  /// Ends it by closing its input. It must exit with 0 and, in C, without leaks.
  package func close() throws {
    let end = try finish()
    guard end == .exit(0) else { throw fault("ended with \(end)") }
  }
}
