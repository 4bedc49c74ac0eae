// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A client in its own process, which carries out the test's commands, line by line.
///
/// Commands are JSON objects with a member `do`; each is answered with one line. Both programs know the same ones.
package final class ProcessClient {
  package enum Kind: String, CaseIterable, Sendable {
    /// `Tests/Clients/client.py`: only Python's standard library.
    case python
    /// `restoration-test-client`: the library RestorationClient.
    case swift
  }

  package let kind: Kind
  private let process: ChildProcess

  /// - Parameter errors: the file for the program's standard error.
  package convenience init(_ kind: Kind, socket: String, errors: String) throws {
    let command =
      switch kind {
      case .python: ["python3", "-u", Products.pythonClient, socket]
      case .swift: [Products.swiftClient, socket]
      }
    try self.init(kind, command: command, errors: errors)
  }

  /// - Parameter command: starts the program of that kind.
  init(_ kind: Kind, command: [String], errors: String) throws {
    self.kind = kind
    process = try ChildProcess(command, errors: errors)
  }

  package var pid: Int32 { process.pid }

  /// Sends a command without waiting for its answer.
  package func send(_ command: JSONObject) throws { try process.write(JSONValue.object(command).text + "\n") }

  /// The next line of the program.
  package func receive(_ deadline: Deadline = Deadline()) throws -> JSONValue {
    guard let line = try process.output?.next(deadline) else { throw TestFailure("the \(kind) client has ended") }
    do {
      return try JSONCodec.parse(Array(line.utf8))
    } catch {
      throw TestFailure("the \(kind) client says: \(line)")
    }
  }

  /// Sends a command and takes its answer.
  @discardableResult
  package func command(_ command: JSONObject, _ deadline: Deadline = Deadline()) throws -> JSONValue {
    try send(command)
    return try receive(deadline)
  }

  /// Calls a method of the broker.
  @discardableResult
  package func call(
    _ method: String,
    _ parameters: JSONValue = [:],
    _ deadline: Deadline = Deadline()
  ) throws -> JSONValue {
    let answer = try command(["do": "call", "method": .string(method), "params": parameters], deadline)
    if let error = answer["error"] { throw CallError(error) }
    guard let result = answer["result"] else { throw TestFailure("the \(kind) client says: \(answer.text)") }
    return result
  }

  package func failure(_ method: String, _ parameters: JSONValue = [:]) throws -> CallError {
    do {
      let result = try call(method, parameters)
      throw TestFailure("\(method) did not fail: \(result.text)")
    } catch let error as CallError {
      return error
    }
  }

  /// The parameters of the next notification, which must have this name.
  package func notification(_ method: String) throws -> JSONValue {
    let answer = try command(["do": "notification"])
    guard answer["method"] == .string(method) else {
      throw TestFailure("a notification \(method) was due, not \(answer.text)")
    }
    return answer["params"] ?? .null
  }

  /// Opens a session.
  @discardableResult
  package func initialize(_ application: String, _ more: JSONObject = [:]) throws -> JSONValue {
    var parameters: JSONObject = ["application": .string(application)]
    for (name, value) in more.members { parameters[name] = value }
    return try call("initialize", .object(parameters))
  }

  /// Kills the process as a crash would.
  package func kill() throws { try process.kill() }

  /// Lets the process end by closing its input.
  package func end() {
    process.closeInput()
    if (try? process.waitForEnd(Deadline(.seconds(5)))) == nil { _ = try? process.kill() }
  }
}
