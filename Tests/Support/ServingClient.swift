// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A process of an application that the broker calls, in a language of the test's choice.
///
/// Its commands are at the top of `Tests/Clients/serving.py`; all clients accept the same lines.
package final class ServingClient {
  package enum Language: String, CaseIterable, Sendable {
    /// `serving.py`: only Python's standard library.
    case python
    /// `serving.pl`: modules that come with Perl.
    case perl
    /// `restoration-test-client SOCKET serving`: the library RestorationClient.
    case swift
  }

  package let language: Language
  private let process: ChildProcess

  package convenience init(_ language: Language, socket: String, errors: String) throws {
    try self.init(language, command: Self.command(language, socket: socket), errors: errors)
  }

  /// - Parameter command: starts the program in that language.
  init(_ language: Language, command: [String], errors: String) throws {
    self.language = language
    process = try ChildProcess(command, errors: errors)
  }

  /// The program and its arguments.
  package static func command(_ language: Language, socket: String) -> [String] {
    let clients = "\(Products.repository)/Tests/Clients"
    return switch language {
    case .python: ["python3", "-u", "\(clients)/serving.py", socket]
    case .perl: ["perl", "\(clients)/serving.pl", socket]
    case .swift: [Products.swiftClient, socket, "serving"]
    }
  }

  package var pid: Int32 { process.pid }

  /// Tells it something without waiting for the answer.
  package func send(_ what: String, _ members: JSONObject = [:]) throws {
    var command: JSONObject = ["do": .string(what)]
    for (name, value) in members.members { command[name] = value }
    try process.write(JSONValue.object(command).text + "\n")
  }

  /// The next answer, good or bad.
  package func receive(_ deadline: Deadline = Deadline()) throws -> JSONValue {
    guard let line = try process.output?.next(deadline) else { throw TestFailure("the \(language) client has ended") }
    do {
      return try JSONCodec.parse(Array(line.utf8))
    } catch {
      throw TestFailure("the \(language) client says: \(line)")
    }
  }

  /// Tells it something and takes the answer; an error of the broker is thrown as `CallError`.
  @discardableResult
  package func tell(
    _ what: String,
    _ members: JSONObject = [:],
    _ deadline: Deadline = Deadline()
  ) throws -> JSONValue {
    try send(what, members)
    let answer = try receive(deadline)
    if let error = answer["error"] { throw CallError(error) }
    if let lost = answer["lost"] { throw TestFailure("the \(language) client has lost the broker: \(lost.text)") }
    return answer
  }

  /// Events in it since the last call: `["encode Main/Editor", "saved 3"]`.
  package func log() throws -> [String] {
    let entries = try tell("log")["log"]?.array ?? []
    return entries.map { entry in (entry.array ?? []).map { $0.string ?? $0.text }.joined(separator: " ") }
  }

  /// Waits until `count` of these events have happened in it since its start.
  package func awaits(_ what: String, _ count: Int64 = 1) throws {
    try tell("await", ["what": .string(what), "count": .integer(count)])
  }

  /// Kills the process as a crash would.
  package func kill() throws { try process.kill() }

  /// Lets the process end by closing its input.
  package func end() {
    process.closeInput()
    if (try? process.waitForEnd(Deadline(.seconds(5)))) == nil { _ = try? process.kill() }
  }
}
