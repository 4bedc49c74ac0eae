// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore
internal import NIOHTTP1
internal import RestorationTransport
internal import Testing

/// Requests and responses one after the other, without a connection and without HTTP's text.
@Suite struct HTTPExchangesTests {
  private static let ping = #"{"jsonrpc":"2.0","id":1,"method":"ping"}"#

  private func exchanges() -> HTTPExchanges {
    var settings = ListenerFixture.settings { $0.frame.frameBytesMax = 100 }
    settings.pages = ["/page"]
    return HTTPExchanges(settings: settings)
  }

  private func head(
    _ headers: [(String, String)] = [],
    method: HTTPMethod = .POST,
    version: HTTPVersion = .http1_1,
    uri: String = "/"
  ) -> HTTPServerRequestPart {
    .head(HTTPRequestHead(version: version, method: method, uri: uri, headers: HTTPHeaders(headers)))
  }

  private func body(_ text: String) -> HTTPServerRequestPart { .body(ByteBuffer(string: text)) }

  /// A whole request.
  private func request(_ headers: [(String, String)] = []) -> [HTTPServerRequestPart] {
    [head(headers), body(Self.ping), .end(nil)]
  }

  /// What is done next, in short.
  private func next(_ exchanges: inout HTTPExchanges) -> String? {
    switch exchanges.next() {
    case nil: nil
    case .frame(.frame, let keepsAlive): keepsAlive ? "frame" : "last frame"
    case .frame: "fault"
    case .send(let text, let isLast): String(text.split(separator: "\r\n")[0]) + (isLast ? " and close" : "")
    }
  }

  /// Whether the decoder would be given this text. The last byte of what it is given follows by itself.
  private func takes(_ text: String, _ exchanges: inout HTTPExchanges, isDraining: Bool = false) -> Bool {
    guard exchanges.takes(text.utf8, isDraining: isDraining) else { return false }
    exchanges.lastByteFollows()
    return true
  }

  @Test func aRequestIsAFrameWhenItHasComeWhole() {
    var exchanges = exchanges()
    exchanges.append(head())
    exchanges.append(body(String(Self.ping.prefix(7))))
    #expect(next(&exchanges) == nil)
    exchanges.append(body(String(Self.ping.dropFirst(7))))
    exchanges.append(.end(nil))
    #expect(next(&exchanges) == "frame")
    #expect(exchanges.isAwaitingResponse)
  }

  @Test func nothingIsDoneAboutARequestBeforeTheOneBeforeHasItsResponse() throws {
    var exchanges = exchanges()
    for part in request() + request() { exchanges.append(part) }
    #expect(next(&exchanges) == "frame" && next(&exchanges) == nil && exchanges.hasInput)
    exchanges.wroteResponse()
    let ended = exchanges.endExchange()
    let (rest, keepsAlive) = try #require(ended)
    #expect(rest == "" && keepsAlive)
    #expect(next(&exchanges) == "frame" && !exchanges.hasInput)
  }

  @Test func aRequestWithNothingToAnswerHasAResponseWithoutContent() throws {
    var exchanges = exchanges()
    #expect(exchanges.endExchange() == nil)
    for part in request() { exchanges.append(part) }
    _ = next(&exchanges)
    let ended = exchanges.endExchange()
    let (rest, keepsAlive) = try #require(ended)
    #expect(rest == "HTTP/1.1 204 No Content\r\n\r\n" && keepsAlive)
    #expect(exchanges.endExchange() == nil)
  }

  @Test(arguments: [[("Connection", "close")], [("Connection", "upgrade"), ("Upgrade", "h2c")]])
  func afterTheLastRequestNothingIsLookedAt(_ headers: [(String, String)]) throws {
    var exchanges = exchanges()
    for part in request(headers) { exchanges.append(part) }
    #expect(next(&exchanges) == "last frame")
    #expect(!takes("POST", &exchanges))
    let ended = exchanges.endExchange()
    let (rest, keepsAlive) = try #require(ended)
    #expect(rest == "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n" && !keepsAlive)
    for part in request() { exchanges.append(part) }
    #expect(next(&exchanges) == nil && !exchanges.hasInput && !takes("POST", &exchanges))
  }

  @Test func aRequestOfHTTP10IsTheLast() {
    var exchanges = exchanges()
    for part in [head([("Expect", "100-continue")], version: .http1_0), body(Self.ping), .end(nil)] {
      exchanges.append(part)
    }
    #expect(next(&exchanges) == "last frame")
  }

  @Test func thePeerIsToldToGoOnBeforeItsBody() {
    var exchanges = exchanges()
    exchanges.append(head([("Expect", "100-Continue")]))
    #expect(next(&exchanges) == "HTTP/1.1 100 Continue" && next(&exchanges) == nil)
    exchanges.append(body(Self.ping))
    exchanges.append(.end(nil))
    #expect(next(&exchanges) == "frame")
  }

  @Test func whatIsRefusedIsTheLastAndItsRestIsNotRead() {
    for (part, status) in [
      (head(method: .GET), "405 Method Not Allowed"),
      (head([("Transfer-Encoding", "gzip")]), "415 Unsupported Media Type"),
      (head([("Content-Encoding", "gzip")]), "415 Unsupported Media Type"),
      (head([("Content-Type", "text/plain; charset=latin1")]), "415 Unsupported Media Type"),
      (head([("Content-Length", "101")]), "413 Content Too Large"),
    ] {
      var exchanges = exchanges()
      for part in [part, body(Self.ping), .end(nil)] + request() { exchanges.append(part) }
      #expect(next(&exchanges) == "HTTP/1.1 \(status) and close")
      #expect(next(&exchanges) == nil && !exchanges.hasInput && !exchanges.isAwaitingResponse)
      #expect(!takes("x", &exchanges))
    }
  }

  /// A body that is no JSON is read to its end as well, but not for ever.
  @Test(arguments: [Self.ping, "x" + Self.ping.dropFirst()])
  func aBodyIsRefusedAtTheByteThatIsTooMuch(_ text: String) {
    var exchanges = exchanges()
    exchanges.append(head([("Transfer-Encoding", "chunked")]))
    exchanges.append(body(text + String(repeating: " ", count: 100 - Self.ping.utf8.count)))
    #expect(next(&exchanges) == nil)
    exchanges.append(body(" "))
    #expect(next(&exchanges) == "HTTP/1.1 413 Content Too Large and close")
  }

  @Test func aResponseToHEADHasNoBodyAndAnyOtherRefusalHas() {
    for (method, hasBody) in [(HTTPMethod.HEAD, false), (.GET, true)] {
      var exchanges = exchanges()
      exchanges.append(head(method: method))
      guard case .send(let text, isLast: true)? = exchanges.next() else {
        Issue.record("\(method) is not refused")
        return
      }
      #expect(text.contains("\r\nAllow: POST\r\nConnection: close\r\n\r\n"))
      #expect(text.hasSuffix("\r\n\r\n") == !hasBody)
    }
  }

  @Test(arguments: ["/page", "/page?x=/y", "http://host/page"]) func aPageIsARequestWhateverItsBody(_ uri: String) {
    var exchanges = exchanges()
    for part in [head(method: .GET, uri: uri), body(String(repeating: "x", count: 200)), .end(nil)] + request() {
      exchanges.append(part)
    }
    #expect(next(&exchanges) == "frame" && exchanges.page?.path == "/page")
    let response = exchanges.response(mediaType: "text/plain", "ä\n")
    #expect(response == "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nä\n")
    exchanges.wroteResponse()
    #expect(exchanges.endExchange()?.keepsAlive == true)
    #expect(next(&exchanges) == "frame" && exchanges.page == nil)
  }

  @Test(arguments: [HTTPMethod.GET, .HEAD]) func aPageThatCannotBeHadIsTheLastResponse(_ method: HTTPMethod) {
    var exchanges = exchanges()
    for part in [head(method: method, uri: "/page"), .end(nil)] { exchanges.append(part) }
    #expect(next(&exchanges) == "frame")
    let response = exchanges.response(to: .invalidRequest(hint: "Wait."))
    #expect(response.hasPrefix("HTTP/1.1 503 Service Unavailable\r\n") && response.contains("Connection: close\r\n"))
    #expect(response.contains("Wait.") == (method == .GET))
    exchanges.wroteResponse()
    #expect(exchanges.endExchange()?.keepsAlive == false)
  }

  @Test(arguments: [HTTPMethod.GET, .HEAD]) func aRefusalThatHEADGetsHasNoBody(_ method: HTTPMethod) {
    var exchanges = exchanges()
    exchanges.append(head([("Transfer-Encoding", "gzip")], method: method, uri: "/page"))
    guard case .send(let text, isLast: true)? = exchanges.next() else { return _ = Issue.record("it is not refused") }
    #expect(text.hasPrefix("HTTP/1.1 415 Unsupported Media Type\r\n"))
    #expect(text.hasSuffix("\r\n\r\n") == (method == .HEAD))
  }

  @Test(arguments: [
    ("Content-Encoding", "gzip"), ("Content-Type", "text/plain; charset=latin1"), ("Content-Length", "101"),
  ])
  func whatComesWithAPageIsIgnored(_ header: (String, String)) {
    var exchanges = exchanges()
    for part in [head([header], method: .GET, uri: "/page"), .end(nil)] { exchanges.append(part) }
    #expect(next(&exchanges) == "frame" && exchanges.page != nil)
  }

  @Test func whatIsNotHTTPIsRefusedAfterTheRequestsBeforeIt() {
    var exchanges = exchanges()
    for part in request() { exchanges.append(part) }
    exchanges.failed("no colon")
    #expect(next(&exchanges) == "frame" && next(&exchanges) == nil && exchanges.hasInput)
    _ = exchanges.endExchange()
    #expect(next(&exchanges) == "HTTP/1.1 400 Bad Request and close")
  }

  @Test func insideARequestOnlyThisProcessCanFinish() {
    var exchanges = exchanges()
    #expect(exchanges.position == .betweenFrames)
    #expect(takes("POST / HT", &exchanges))
    #expect(exchanges.position == .finishingFrame, "the beginning of a head is with the decoder")
    exchanges.append(head())
    #expect(next(&exchanges) == nil && exchanges.position == .finishingFrame)
    #expect(takes("\r\n", &exchanges), "within a body a line end has a meaning")
    exchanges.append(body(Self.ping))
    exchanges.append(.end(nil))
    #expect(next(&exchanges) == "frame" && exchanges.position == .betweenFrames)
    #expect(takes("POST", &exchanges))
    #expect(exchanges.position == .betweenFrames, "what waits behind a request is looked at when that has its response")
    _ = exchanges.endExchange()
    #expect(exchanges.position == .finishingFrame)
  }

  @Test func lineEndsBetweenRequestsMeanNothing() {
    var exchanges = exchanges()
    #expect(!takes("\r\n\n", &exchanges) && exchanges.position == .betweenFrames)
    #expect(takes("\r\nP", &exchanges) && takes("\r\n", &exchanges))
  }

  @Test func aDrainedConnectionLeavesRequestsThatHaveNotBegunToTheNextProcess() {
    var exchanges = exchanges()
    #expect(takes("POST /", &exchanges))
    #expect(takes(" HTTP/1.1", &exchanges, isDraining: true) && exchanges.nextRequests.isEmpty)
    for part in request() { exchanges.append(part) }
    #expect(takes("x", &exchanges, isDraining: true), "the parts that came have not been looked at")
    for part in request() { exchanges.append(part) }
    #expect(next(&exchanges) == "frame")
    _ = exchanges.endExchange()
    #expect(next(&exchanges) == "frame")
    for text in ["POST /a", "POST /b"] { #expect(!takes(text, &exchanges, isDraining: true)) }
    #expect(exchanges.nextRequests == Array("POST /aPOST /b".utf8))
    #expect(exchanges.position == .betweenFrames)
  }
}
