// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// What HTTP asks for beside messages (`Protocol/README.md`, HTTP).
@Suite struct HTTPTests {
  private static let ping = #"{"jsonrpc":"2.0","id":1,"method":"ping"}"#
  private static let pong = #"{"jsonrpc":"2.0","id":1,"result":{}}"#

  private static func request(_ line: String, _ headers: [String], _ body: String) -> String {
    ([line, "Host: localhost"] + headers).joined(separator: "\r\n") + "\r\n\r\n" + body
  }

  private static func post(_ headers: [String] = [], _ body: String = ping) -> String {
    request("POST /any/path?x HTTP/1.1", headers + ["Content-Length: \(body.utf8.count)"], body)
  }

  /// A call that waits for the parent `P`.
  private static func waiting(milliseconds: Int64) -> String {
    let child: JSONValue = [
      "application": "a", "restorationIdentifier": "C", "restorationParent": .path("P"),
      "awaitParentMilliseconds": .integer(milliseconds),
    ]
    return WireClient.message("registerObjectForStateRestoration", child, id: 1)
  }

  /// The answer to the request, and whether the connection is closed after it.
  private static func exchange(_ text: String) throws -> (FramedClient.Reply, closes: Bool) {
    let client = try FramedClient(broker.socket, .http)
    try client.send(bytes: Array(text.utf8))
    guard let reply = try client.receive() else { throw TestFailure("closed without a word") }
    guard reply.headers["Connection"] != "close" else {
      let more = try client.receive()
      #expect(more == nil)
      return (reply, true)
    }
    try client.send(Self.ping)
    let next = try client.receive()
    #expect(next?.text == Self.pong)
    return (reply, false)
  }

  @Test(
    .broker,
    arguments: [
      [], ["Content-Type: application/json"], ["Content-Type: application/x-www-form-urlencoded"],
      ["Content-Type: application/json; charset=UTF-8"], ["Content-Type: application/json;charset=\"utf-8\""],
      ["Accept: */*", "User-Agent: x", "Cookie: y"],
    ]
  )
  func aPostIsAnsweredWhateverItsHeaders(_ headers: [String]) throws {
    let (reply, closes) = try Self.exchange(Self.post(headers))
    #expect(reply.status == 200)
    #expect(reply.text == Self.pong)
    #expect(reply.headers["Content-Type"] == "application/json")
    #expect(!closes)
  }

  @Test(
    .broker,
    arguments: [
      (request("GET / HTTP/1.1", [], ""), 405), (request("PUT / HTTP/1.1", ["Content-Length: 2"], "{}"), 405),
      (request("OPTIONS * HTTP/1.1", [], ""), 405), (request("DELETE /x HTTP/1.1", [], ""), 405),
      (request("POST / HTTP/1.1", ["Transfer-Encoding: gzip, chunked"], "0\r\n\r\n"), 415),
      (post(["Content-Encoding: gzip"]), 415), (post(["Content-Type: application/json; charset=iso-8859-1"]), 415),
      (request("POST / HTTP/1.1", ["Content-Length: 4194305"], ""), 413),
      (request("POST / HTTP/1.1", ["Content-Length: x"], ""), 400), ("POST / HTTX/1.1\r\n\r\n", 400),
      (request("POST / HTTP/1.1", ["X: " + String(repeating: "y", count: 20_000)], ""), 400),
      (request("POST / HTTP/1.1", ["Content-Length: 1", "Transfer-Encoding: chunked"], "1\r\n{\r\n0\r\n\r\n"), 400),
    ]
  )
  func whatIsNoPostOfJSONIsRefusedAndSaysWhy(_ text: String, _ status: Int) throws {
    let (reply, closes) = try Self.exchange(text)
    #expect(reply.status == status)
    #expect(closes)
    if status == 405 { #expect(reply.headers["Allow"] == "POST") }
    let answer = try JSONCodec.parse(Array(reply.text.utf8))
    #expect(answer["id"] == .null)
    #expect(answer["error"]?["data"]?["hint"]?.string?.isEmpty == false)
  }

  @Test(.broker) func aResponseToHEADHasNoBody() throws {
    let client = try broker.connect()
    try client.send(Self.request("HEAD / HTTP/1.1", [], ""))
    let response = try client.receiveToEnd().joined()
    #expect(response.hasPrefix("HTTP/1.1 405"))
    #expect(response.hasSuffix("\r\n\r\n"), "\(response)")
  }

  @Test(.broker) func errorsOfJSONRPCAreNoErrorsOfHTTP() throws {
    let unknown = #"{"jsonrpc":"2.0","id":1,"method":"x"}"#
    for (body, code) in [("{", -32700), ("", -32700), ("[]", -32600), (unknown, -32601)] {
      let (reply, closes) = try Self.exchange(Self.post([], body))
      #expect(reply.status == 200)
      #expect(!closes)
      #expect(try JSONCodec.parse(Array(reply.text.utf8))["error"]?["code"] == .integer(Int64(code)))
    }
  }

  @Test(.broker) func aChunkedBodyIsTakenUpToTheLimit() throws {
    let chunk = { (text: String) in String(text.utf8.count, radix: 16) + ";ext=1\r\n" + text + "\r\n" }
    let head = Self.request("POST / HTTP/1.1", ["Transfer-Encoding: chunked"], "")
    let parts = [Self.ping.prefix(7), Self.ping.dropFirst(7)].map { chunk(String($0)) }.joined()
    let (reply, closes) = try Self.exchange(head + parts + "0\r\nTrailer: x\r\n\r\n")
    #expect(reply.text == Self.pong)
    #expect(!closes)
    let client = try FramedClient(broker.socket, .http)
    // It is refused at the byte that is too much, not at the end.
    let spaces = String(repeating: " ", count: (4 << 20) - Self.ping.utf8.count + 1)
    try client.send(bytes: Array((head + chunk(Self.ping + spaces)).utf8))
    let refusal = try client.receive()
    #expect(refusal?.status == 413)
    #expect(try client.receive() == nil)
  }

  @Test(.broker) func aLargeBodyIsAskedForFirst() throws {
    let client = try FramedClient(broker.socket, .http)
    let headers = ["Content-Length: \(Self.ping.utf8.count)", "Expect: 100-continue"]
    try client.send(bytes: Array(Self.request("POST / HTTP/1.1", headers, "").utf8))
    #expect(try client.receive()?.status == 100)
    try client.send(bytes: Array(Self.ping.utf8))
    #expect(try client.receive()?.text == Self.pong)
    // A body that is too large is refused instead.
    let tooLarge = ["Content-Length: 5000000", "Expect: 100-continue"]
    try client.send(bytes: Array(Self.request("POST / HTTP/1.1", tooLarge, "").utf8))
    #expect(try client.receive()?.status == 413)
  }

  @Test(
    .broker,
    arguments: [
      post(["Connection: close"]),
      "POST / HTTP/1.0\r\nContent-Length: \(ping.utf8.count)\r\n\r\n\(ping)",
      post(["Connection: upgrade, HTTP2-Settings", "Upgrade: h2c"]),
    ]
  )
  func aConnectionThatIsNotKeptIsClosedAfterItsAnswer(_ text: String) throws {
    let (reply, closes) = try Self.exchange(text)
    #expect(reply.text == Self.pong)
    #expect(closes)
  }

  /// Responses come in the order of the requests, though one in between waits for another client.
  @Test(.broker) func responsesKeepTheOrderOfTheRequests() throws {
    let client = try FramedClient(broker.socket, .http)
    try client.send(
      bytes: [Self.waiting(milliseconds: 20_000), Self.ping].flatMap { FramedClient.Framing.http.frame($0) }
    )
    try broker.session("a").register("P")
    #expect(try client.receiveMessage()["result"]?["path"] == .path("P", "C"))
    #expect(try client.receive()?.text == Self.pong)
  }

  /// Input after the last request of a connection is dropped, however much it is.
  @Test(.broker) func whatFollowsTheLastRequestIsDropped() throws {
    let client = try FramedClient(broker.socket, .http)
    let call = Self.waiting(milliseconds: 20_000)
    try client.send(bytes: Array(Self.post(["Connection: upgrade", "Upgrade: h2c"], call).utf8))
    let before = ProcessStatus(try broker.pid).residentKiB
    let junk = [UInt8](repeating: 120, count: 1 << 20)
    for _ in 0..<100 { try client.send(bytes: junk) }
    let session = try broker.session("a")
    #expect(ProcessStatus(try broker.pid).residentKiB - before < 16 << 10)
    try session.register("P")
    #expect(try client.receiveMessage()["result"]?["path"] == .path("P", "C"))
  }

  /// Some clients send a line end after the body; it does not begin a request.
  @Test(.broker(limits: ["partialFrameMilliseconds": 300])) func aLineEndBetweenRequestsIsNoRequest() throws {
    let client = try FramedClient(broker.socket, .http)
    try client.send(Self.ping)
    #expect(try client.receive()?.text == Self.pong)
    try client.send(bytes: Array("\r\n".utf8))
    try client.send(Self.waiting(milliseconds: 900))
    try broker.connect().call("ping")
    // The beginning of another request, behind one that waits, is not timed until that is answered.
    try client.send(bytes: Array("POST / HT".utf8))
    #expect(try client.receiveMessage()["error"]?["data"]?["kind"] == "unknownParent")
    #expect(try client.receive()?.status == 408)
  }

  /// A client that leaves while its request waits is noticed at once.
  @Test(.broker) func aClientThatLeavesWhileItWaitsIsForgotten() throws {
    let watcher = try broker.connect()
    var client: FramedClient? = try FramedClient(broker.socket, .http)
    try client?.send(Self.waiting(milliseconds: 60_000))
    try Wait.until("both are connected") { try watcher.call("statistics")["gauges"]?["connections"] == 2 }
    client = nil
    try Wait.until("one has left") { try watcher.call("statistics")["gauges"]?["connections"] == 1 }
  }
}
