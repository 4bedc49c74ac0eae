// SPDX-License-Identifier: Apache-2.0

internal import Glibc
package import JSONRPC

/// A process that carries out the test's commands, line by line: JSON objects with a member `do`, each of which is
/// answered with one line.
package class CommandedClient {
  private let name: String
  private let process: ChildProcess
  private let errors: String
  /// The member of an answer that has the result, if it is not the whole answer.
  private let member: String?

  /// - Parameter errors: The file for the program's standard error.
  package init(
    _ name: String,
    _ command: [String],
    environment: [String: String?] = [:],
    member: String? = nil,
    errors: String
  ) throws {
    self.name = name
    self.member = member
    self.errors = errors
    process = try ChildProcess(command, environment: environment, errors: errors)
  }

  package var pid: Int32 { process.pid }

  /// A failure that says what the client has said.
  package func fault(_ what: String) -> TestFailure {
    TestFailure("the \(name) client \(what): \(((try? Files.text(errors)) ?? "").suffix(4_000))")
  }

  /// Sends a command without waiting for its answer.
  package func send(_ what: String, _ members: JSONObject = [:]) throws {
    var command: JSONObject = ["do": .string(what)]
    for (name, value) in members.members { command[name] = value }
    try process.write(JSONValue.object(command).text + "\n")
  }

  /// The next line of the program, good or bad.
  package func receive(_ deadline: Deadline = Deadline()) throws -> JSONValue {
    guard let line = try process.output?.next(deadline) else { throw fault("has ended") }
    guard let answer = try? JSONCodec.parse(Array(line.utf8)) else { throw fault("says \(line)") }
    return answer
  }

  /// The result that comes next; an error is thrown as `CallError`.
  package func receiveResult(_ deadline: Deadline = Deadline()) throws -> JSONValue {
    let answer = try receive(deadline)
    if let error = answer["error"] { throw CallError(error) }
    guard answer["lost"]?.string == nil, let result = member.map({ answer[$0] }) ?? answer else {
      throw fault("says \(answer.text)")
    }
    return result
  }

  /// Sends a command and takes its result.
  @discardableResult
  package func tell(
    _ what: String,
    _ members: JSONObject = [:],
    _ deadline: Deadline = Deadline()
  ) throws -> JSONValue {
    try send(what, members)
    return try receiveResult(deadline)
  }

  /// The error that a command ends with.
  package func failure(of what: String, _ members: JSONObject = [:]) throws -> CallError {
    do {
      throw fault("did \(what) with \(try tell(what, members).text)")
    } catch let error as CallError {
      return error
    }
  }

  /// Kills the process as a crash would.
  package func kill() throws { try process.kill() }

  /// Asks the process to end by closing its input, and waits until it has.
  package func finish(_ deadline: Deadline = Deadline()) throws -> ChildProcess.End {
    process.closeInput()
    return try process.waitForEnd(deadline)
  }

  /// Ends the process, with a kill if need be.
  package func end() { if (try? finish(Deadline(.seconds(5)))) == nil { _ = try? kill() } }
}

extension JSONValue {
  /// The events of a client since the last time: `["encode Main/Editor", "saved 3"]`.
  package var logLines: [String] {
    (array ?? []).map { entry in (entry.array ?? []).map { $0.string ?? $0.text }.joined(separator: " ") }
  }
}
