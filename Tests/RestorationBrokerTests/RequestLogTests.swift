// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Logging
internal import RestorationBroker
internal import Testing

/// What the log levels `debug` and `trace` say of requests.
@Suite struct RequestLogTests {
  private static func broker(_ level: Logger.Level) -> MemoryBroker { MemoryBroker(logLevel: level) }

  @Test func debugHasEachRequestOnceItHasEnded() throws {
    let broker = Self.broker(.debug)
    let peer = broker.connect()
    try peer.initialize()
    _ = try peer.fail("decodeRestorableState", #"{"object":["None"]}"#)
    let other = broker.connect()
    try other.encode(#"["Main"]"#, "{}", #""application":"Other""#)
    try other.call("ping")
    #expect(
      broker.logged == [
        "request answered application=App method=initialize microseconds=0 session=1",
        "request refused: unknownObject application=App method=decodeRestorableState microseconds=0 session=1",
        "request answered application=Other method=encodeRestorableState microseconds=0",
        "request answered method=ping microseconds=0",
      ]
    )
  }

  @Test func aPageOverHTTPIsARequestAsWell() throws {
    let broker = Self.broker(.debug)
    let client = broker.open()
    client.send(bytes: Array("GET /metrics?q HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
    let page = try client.receive()
    #expect(page.contains("\nrestorationd_requests_total 1\n") && page.hasSuffix("# EOF\n"), "\(page)")
    #expect(broker.logged == ["request answered method=/metrics microseconds=0"])
  }

  /// A session is named from the call that begins it to the call that ends it.
  @Test func theSessionIsNamedByItsNumberAndNotByItsToken() throws {
    let broker = Self.broker(.debug)
    let peer = broker.connect()
    let token = try #require(try peer.initialize()["session"]?.string)
    try peer.goodbye("restart")
    let detached = broker.connect()
    let registration = #"{"application":"App","restorationIdentifier":"A"}"#
    let own = try #require(try detached.call("registerObjectForStateRestoration", registration)["session"]?.string)
    try broker.connect().call("goodbye", #"{"application":"App","session":"\#(own)","reason":"closed"}"#)
    #expect(broker.logged.map { $0.suffix(9) } == ["session=1", "session=1", "session=2", "session=2"])
    #expect(!broker.logged.contains { $0.contains(token) || $0.contains(own) })
  }

  @Test func theTimeIsThatFromTheRequestToItsAnswer() throws {
    let broker = Self.broker(.debug)
    let peer = broker.connect()
    try peer.initialize()
    let call = peer.start(
      "registerObjectForStateRestoration",
      peer.registration("A", below: #"["Later"]"#, #""awaitParentMilliseconds":1000"#)
    )
    broker.advance(milliseconds: 300)
    try peer.register("Later")
    #expect(peer.hasAnswer(call))
    #expect(
      broker.logged.contains(
        "request answered application=App method=registerObjectForStateRestoration microseconds=300000 session=1"
      )
    )
  }

  @Test func traceHasItsBeginningAsWell() throws {
    let broker = Self.broker(.trace)
    try broker.connect().call("ping")
    #expect(broker.logged == ["request begins method=ping", "request answered method=ping microseconds=0"])
  }

  @Test func theBrokersOwnRequestsAreThere() throws {
    let broker = Self.broker(.debug)
    let peer = broker.connect()
    try peer.initialize("App", #""serves":["encodeRestorableStateWithCoder"]"#)
    let object = try peer.register("A")
    peer.serves["encodeRestorableStateWithCoder"] = { _ in
      broker.advance(milliseconds: 20)
      return #"{"states":[{"object":\#(object),"state":{}}]}"#
    }
    try peer.call("saveApplicationState")
    let fields = "application=App method=encodeRestorableStateWithCoder microseconds=20000 session=1"
    #expect(broker.logged.contains("the broker's request answered \(fields)"), "\(broker.logged)")
  }

  @Test func whatAClientLeavesUnansweredIsSaid() throws {
    let broker = Self.broker(.debug)
    let peer = broker.connect()
    try peer.initialize()
    peer.start(
      "registerObjectForStateRestoration",
      peer.registration("A", below: #"["Never"]"#, #""awaitParentMilliseconds":9000"#)
    )
    broker.advance(milliseconds: 5)
    broker.disconnect(peer)
    broker.advance(milliseconds: 9_000)
    #expect(
      broker.logged.filter { $0.contains("registerObject") } == [
        "request unanswered: the client has left application=App method=registerObjectForStateRestoration "
          + "microseconds=5000 session=1"
      ]
    )
  }

  /// The name of an unknown method is a client's text.
  @Test func nothingOfWhatAClientWroteIsThere() throws {
    let broker = Self.broker(.trace)
    let peer = broker.connect()
    _ = try peer.fail("secretMethod", #"{"application":"not a name: secret"}"#)
    try peer.encode(#"["secretName"]"#, #"{"secretKey":"secretText"}"#, #""application":"App""#)
    #expect(broker.logged.count == 4 && !broker.logged.contains { $0.contains("secret") }, "\(broker.logged)")
  }

  @Test func infoHasNoRequests() throws {
    let broker = MemoryBroker()
    let peer = broker.connect()
    try peer.initialize()
    _ = try peer.fail("decodeRestorableState", #"{"object":["None"]}"#)
    #expect(broker.logged.isEmpty)
  }
}
