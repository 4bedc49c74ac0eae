// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire
internal import Testing

/// A detached session of the application `App` whose calls each come over a connection of their own that can be sent
/// nothing but answers, as a script makes them over HTTP.
final class Poller {
  private let broker: MemoryBroker
  private let pid: Int64
  private(set) var token = ""

  /// - Parameter more: further members of `initialize`, such as `"delegate":true`.
  init(_ broker: MemoryBroker, pid: Int64 = 700, serves: [String] = [], _ more: String = "") throws {
    self.broker = broker
    self.pid = pid
    let names = serves.map { "\"\($0)\"" }.joined(separator: ",")
    let members = [#""application":"App","serves":[\#(names)]"#, more].filter { !$0.isEmpty }
    let result = try call("initialize", members.joined(separator: ","))
    token = try #require(result["session"]?.string)
  }

  func connect() -> Peer { broker.connect(pid: pid, canBeCalled: false) }

  /// The members of a call in this session.
  func scoped(_ members: String) -> String {
    guard !token.isEmpty else { return "{\(members)}" }
    let scope = #""application":"App","session":"\#(token)""#
    return members.isEmpty ? "{\(scope)}" : "{\(scope),\(members)}"
  }

  /// Makes a call over a connection of its own, which ends with its answer.
  @discardableResult
  func call(_ method: String, _ members: String = "") throws -> JSONValue {
    let peer = connect()
    defer { broker.disconnect(peer) }
    return try peer.call(method, scoped(members))
  }

  func fail(_ method: String, _ members: String = "") throws -> Peer.Failure {
    let peer = connect()
    defer { broker.disconnect(peer) }
    return try peer.fail(method, scoped(members))
  }

  @discardableResult
  func register(_ identifier: String, _ more: String = "") throws -> Int64 {
    let members = [#""restorationIdentifier":"\#(identifier)""#, more].filter { !$0.isEmpty }
    return try #require(
      try call("registerObjectForStateRestoration", members.joined(separator: ","))["object"]?.integer
    )
  }

  /// The next waiting call or notification of the session; null if there is none.
  func next(_ members: String = "") throws -> JSONValue { try call("nextRequest", members) }

  /// The call of this method that waits longest, which must come next.
  func nextCall(_ method: String) throws -> (id: Int64, parameters: JSONValue) {
    let request = try next()
    #expect(request["method"]?.string == method, "\(request)")
    return (try #require(request["id"]?.integer), request["params"] ?? .null)
  }

  func answer(_ id: Int64, _ result: String) throws {
    #expect(try call("answerRequest", #""id":\#(id),"result":\#(result)"#) == [:])
  }

  /// A call that waits for its answer, and its connection, which takes more than one call at a time.
  func wait(_ milliseconds: Int = 30_000) -> (peer: Peer, id: Int) {
    let peer = broker.connect(pid: pid)
    return (peer, peer.start("nextRequest", scoped(#""waitMilliseconds":\#(milliseconds)"#)))
  }
}
