// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A client that calls the broker: over a connection of the test, or in another process.
package protocol BrokerCaller {
  func call(_ method: String, _ parameters: JSONValue, _ deadline: Deadline) throws -> JSONValue
}

extension BrokerCaller {
  @discardableResult
  package func register(
    _ identifier: String,
    in parent: String...,
    of application: String? = nil,
    with more: JSONObject = [:]
  ) throws -> JSONValue {
    var parameters: JSONObject = ["restorationIdentifier": .string(identifier)]
    if !parent.isEmpty { parameters["restorationParent"] = .array(parent.map { .string($0) }) }
    return try call("registerObjectForStateRestoration", parameters, of: application, with: more)
  }

  @discardableResult
  package func encode(
    _ path: String...,
    state: JSONValue,
    of application: String? = nil,
    with more: JSONObject = [:]
  ) throws -> JSONValue {
    let parameters: JSONObject = ["object": .array(path.map { .string($0) }), "state": state]
    return try call("encodeRestorableState", parameters, of: application, with: more)
  }

  package func decode(_ path: String..., of application: String? = nil) throws -> JSONValue {
    try call("decodeRestorableState", ["object": .array(path.map { .string($0) })], of: application, with: [:])
  }

  private func call(
    _ method: String,
    _ parameters: JSONObject,
    of application: String?,
    with more: JSONObject
  ) throws -> JSONValue {
    var parameters = parameters
    if let application { parameters["application"] = .string(application) }
    for (name, value) in more.members { parameters[name] = value }
    return try call(method, .object(parameters), Deadline())
  }
}
