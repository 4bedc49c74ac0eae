// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A client in its own process, which calls the broker for the test. Both programs know the same commands.
package final class ProcessClient: CommandedClient, BrokerCaller {
  package enum Kind: String, CaseIterable, Sendable {
    /// `Tests/Clients/client.py`: only Python's standard library.
    case python
    /// `restoration-test-client`: the library RestorationClient.
    case swift
  }

  package convenience init(_ kind: Kind, socket: String, errors: String) throws {
    let command =
      switch kind {
      case .python: ["python3", "-u", Products.pythonClient, socket]
      case .swift: [Products.swiftClient, socket]
      }
    try self.init(kind.rawValue, command, errors: errors)
  }

  /// Calls a method of the broker.
  @discardableResult
  package func call(
    _ method: String,
    _ parameters: JSONValue = [:],
    _ deadline: Deadline = Deadline()
  ) throws -> JSONValue {
    let answer = try tell("call", ["method": .string(method), "params": parameters], deadline)
    guard let result = answer["result"] else { throw fault("says \(answer.text)") }
    return result
  }

  package func failure(_ method: String, _ parameters: JSONValue = [:]) throws -> CallError {
    try failure(of: "call", ["method": .string(method), "params": parameters])
  }

  /// The parameters of the next notification, which must have this name.
  package func notification(_ method: String) throws -> JSONValue {
    let answer = try tell("notification")
    guard answer["method"] == .string(method) else { throw fault("got \(answer.text) instead of \(method)") }
    return answer["params"] ?? .null
  }

  /// Opens a session.
  @discardableResult
  package func initialize(_ application: String, _ more: JSONObject = [:]) throws -> JSONValue {
    var parameters: JSONObject = ["application": .string(application)]
    for (name, value) in more.members { parameters[name] = value }
    return try call("initialize", .object(parameters))
  }
}
