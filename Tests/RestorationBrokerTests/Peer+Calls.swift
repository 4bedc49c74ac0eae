// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import JSONRPC
internal import Testing

/// Calls that are answered at once, or the test cannot continue.
extension Peer {
  /// The answer's whole text.
  func text(_ id: Int) throws -> String { try answer(to: id).description }

  func result(of id: Int) throws -> JSONValue {
    let answer = try answer(to: id)
    return try #require(answer["result"], "call \(id) failed: \(answer)").value()
  }

  func failure(of id: Int) throws -> Failure {
    let answer = try answer(to: id)
    return try #require(failureIfAny(of: id), "call \(id) did not fail: \(answer)")
  }

  private func answer(to id: Int) throws -> JSONSlice { try #require(answers[id], "call \(id) has no answer") }

  @discardableResult
  func call(_ method: String, _ parameters: String = "{}") throws -> JSONValue {
    try result(of: start(method, parameters))
  }

  func fail(_ method: String, _ parameters: String = "{}") throws -> Failure {
    try failure(of: start(method, parameters))
  }

  /// - Parameter more: further members, such as `"delegate":true`.
  @discardableResult
  func initialize(_ application: String = "App", _ more: String = "") throws -> JSONValue {
    try call("initialize", members(#""application":"\#(application)""#, more))
  }

  /// - Parameters:
  ///   - parent: handle or path as JSON text.
  ///   - more: further members.
  /// - Returns: the handle.
  @discardableResult
  func register(_ identifier: String?, below parent: String? = nil, _ more: String = "") throws -> Int64 {
    let result = try call("registerObjectForStateRestoration", registration(identifier, below: parent, more))
    return try #require(result["object"]?.integer)
  }

  func registration(_ identifier: String?, below parent: String? = nil, _ more: String = "") -> String {
    let name = identifier.map { JSONText(.string($0)).string } ?? "null"
    return members(#""restorationIdentifier":\#(name)"#, parent.map { #""restorationParent":\#($0)"# } ?? "", more)
  }

  @discardableResult
  func encode(_ object: String, _ state: String, _ more: String = "") throws -> JSONValue {
    try call("encodeRestorableState", encoding(object, state, more))
  }

  func encoding(_ object: String, _ state: String, _ more: String = "") -> String {
    members(#""object":\#(object),"state":\#(state)"#, more)
  }

  /// The whole answer.
  func decode(_ object: String, _ more: String = "") throws -> JSONValue {
    try call("decodeRestorableState", members(#""object":\#(object)"#, more))
  }

  /// The state, `nil` unless there is one.
  func state(_ object: String) throws -> JSONValue? {
    let state = try decode(object)["state"]
    return state?.isNull == true ? nil : state
  }

  func goodbye(_ reason: String) throws { try call("goodbye", #"{"reason":"\#(reason)"}"#) }

  /// Paths and more of all objects, as `describeApplication` lists them.
  func objects(_ more: String = "") throws -> [JSONValue] {
    try #require(try call("describeApplication", members(more))["objects"]?.array)
  }

  /// Joined paths of all objects that have one, sorted.
  func paths(_ more: String = "") throws -> [String] { try objects(more).compactMap { $0["path"]?.joined }.sorted() }

  private func members(_ members: String...) -> String {
    "{" + members.filter { !$0.isEmpty }.joined(separator: ",") + "}"
  }
}
