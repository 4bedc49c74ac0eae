// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
internal import NIOCore
package import NIOHTTP1

/// The requests of an HTTP peer, one after the other. Pure: parts of requests in, actions out.
///
/// Invariants:
/// 1. A request is not read before the former one has its response.
/// 2. A refused request is the last one: the rest of its body is not read.
/// 3. Each request gets one response. If there is nothing to answer, the response has no content.
/// 4. While the connection is drained, requests that have not begun are left to the next process.
package struct HTTPExchanges {
  package enum Action {
    /// One frame, to be answered with one response.
    case frame(FrameDecoder.Event, keepsAlive: Bool)
    /// Text to send; after the last response the connection is closed.
    case send(String, isLast: Bool)
  }

  private enum Mode {
    case betweenRequests, body, awaitingResponse
    case refused
  }

  /// Stands for a request of a page, which is thus counted, delayed and answered like any other.
  private static let messageOfPage = Array(#"{"jsonrpc":"2.0","id":null,"method":"GET"}"#.utf8)

  private let frameBytesMax: Int
  private let pages: Set<String>
  private var mode = Mode.betweenRequests
  private var parts = CircularBuffer<HTTPServerRequestPart>()
  private var fault: ErrorObject?
  private var isLast = false
  private var body: FrameBody
  /// The page that the current request asks for; `nil` if it contains a message. HEAD gets only the head of the
  /// response.
  package private(set) var page: (path: String, isHead: Bool)?
  /// Whether the response to the current request is in the output.
  private var responseIsWritten = false
  /// Whether the decoder's last part was not the end of a request.
  private var decoderIsInRequest = false
  /// Whether the last bytes begin a head that is incomplete.
  private var headIsPartial = false
  package private(set) var nextRequests: [UInt8] = []

  package init(settings: ConnectionSettings) {
    frameBytesMax = settings.limits.frame.frameBytesMax
    pages = settings.pages
    body = FrameBody(limits: settings.limits.frame, vocabulary: settings.vocabulary)
  }

  package var isAwaitingResponse: Bool { mode == .awaitingResponse }
  private var isInsideRequest: Bool { mode == .body }

  /// Bytes of a request that is not complete.
  package var bufferedBytes: Int { body.bufferedBytes }

  package var hasInput: Bool { !parts.isEmpty || fault != nil }

  /// A request that has begun must be finished by this process. Requests behind it wait for its response.
  package var position: FramePosition {
    !isAwaitingResponse && (headIsPartial || isInsideRequest) ? .finishingFrame : .betweenFrames
  }

  /// Whether to give these bytes to the decoder: the last byte separately, after `lastByteFollows`.
  package mutating func takes(_ bytes: some Sequence<UInt8>, isDraining: Bool) -> Bool {
    // The decoder would buffer what follows the last request.
    if mode == .refused || isAwaitingResponse && isLast { return false }
    if isDraining, !headIsPartial, !isInsideRequest, !hasInput {
      nextRequests += bytes
      return false
    }
    // Line ends between requests are ignored.
    return headIsPartial || decoderIsInRequest || !bytes.allSatisfy { $0 == 13 || $0 == 10 }
  }

  /// The decoder does not report what it buffers. With the last byte alone, a part that it completes is visible.
  package mutating func lastByteFollows() { headIsPartial = !decoderIsInRequest }

  package mutating func append(_ part: HTTPServerRequestPart) {
    headIsPartial = false
    if case .end = part { decoderIsInRequest = false } else { decoderIsInRequest = true }
    if mode != .refused { parts.append(part) }
  }

  /// The input is not HTTP; no part follows.
  package mutating func failed(_ message: String) {
    fault = .parseError(hint: "This is not HTTP/1.1 (\(message)). Send POST requests with a JSON-RPC 2.0 body.")
  }

  package mutating func wroteResponse() { responseIsWritten = true }

  /// The current request is answered.
  ///
  /// - Returns: the rest of the response, and whether another request may follow; `nil` if there is no request.
  package mutating func endExchange() -> (rest: String, keepsAlive: Bool)? {
    guard isAwaitingResponse else { return nil }
    let rest = responseIsWritten ? "" : "HTTP/1.1 204 No Content\r\n\(isLast ? "Connection: close\r\n" : "")\r\n"
    responseIsWritten = false
    page = nil
    mode = isLast ? .refused : .betweenRequests
    return (rest, !isLast)
  }

  /// The next action; `nil` if it needs more parts, or a response is pending.
  package mutating func next() -> Action? {
    while mode == .betweenRequests || mode == .body {
      guard let part = parts.popFirst() else {
        guard let fault else { return nil }
        return refuse("400 Bad Request", fault)
      }
      if let action = take(part) { return action }
    }
    return nil
  }

  private mutating func take(_ part: HTTPServerRequestPart) -> Action? {
    switch part {
    case .head(let head):
      return begin(head)
    case .body(let bytes):
      guard page == nil else { return nil }
      bytes.withUnsafeReadableBytes { body.append($0) }
      guard let failure = body.failure, failure.code == ErrorObject.limitExceededCode else { return nil }
      return refuse("413 Content Too Large", failure)
    case .end:
      guard isInsideRequest else { return nil }
      mode = .awaitingResponse
      if page != nil { Self.messageOfPage.withUnsafeBytes { body.append($0) } }
      return .frame(body.end(), keepsAlive: !isLast)
    }
  }

  private mutating func begin(_ head: HTTPRequestHead) -> Action? {
    if head.method != .POST {
      let path = Self.path(of: head.uri)
      let isPage = pages.contains(path)
      guard isPage, head.method == .GET || head.method == .HEAD else {
        let error = ErrorObject.invalidRequest(hint: "Use POST; the body is a JSON-RPC 2.0 message or a batch.")
        let headers = "Allow: \(isPage ? "GET, HEAD, POST" : "POST")\r\n"
        return refuse("405 Method Not Allowed", error, headers: headers, hasBody: head.method != .HEAD)
      }
      page = (path, head.method == .HEAD)
    }
    guard head.headers[canonicalForm: "transfer-encoding"].allSatisfy({ $0.lowercased() == "chunked" }) else {
      return refuse("415 Unsupported Media Type", .invalidRequest(hint: "The only Transfer-Encoding is chunked."))
    }
    // The body of a GET has no meaning.
    if page == nil, let refusal = refuseBody(of: head.headers) { return refusal }
    // After a request to upgrade, the decoder parses no further request.
    isLast = !head.isKeepAlive || head.version != .http1_1 || head.headers.contains(name: "upgrade")
    mode = .body
    guard head.version == .http1_1 else { return nil }
    let expectations = head.headers[canonicalForm: "expect"]
    guard expectations.contains(where: { $0.lowercased() == "100-continue" }) else { return nil }
    return .send("HTTP/1.1 100 Continue\r\n\r\n", isLast: false)
  }

  /// Refuses a body that its headers make unreadable or too long.
  private mutating func refuseBody(of headers: HTTPHeaders) -> Action? {
    guard !headers.contains(name: "content-encoding") else {
      let hint = "Send the body as it is, without Content-Encoding."
      return refuse("415 Unsupported Media Type", .invalidRequest(hint: hint))
    }
    guard headers["content-type"].allSatisfy({ Framing.isUTF8(contentType: $0) }) else {
      return refuse("415 Unsupported Media Type", .invalidRequest(hint: "The only charset is utf-8."))
    }
    if let length = headers.first(name: "content-length").flatMap({ Int($0) }), length > frameBytesMax {
      return refuse("413 Content Too Large", FrameBody.tooLong(length, max: frameBytesMax))
    }
    return nil
  }

  private mutating func refuse(
    _ status: String,
    _ error: ErrorObject,
    headers: String = "",
    hasBody: Bool = true
  ) -> Action {
    mode = .refused
    parts.removeAll()
    let hasBody = hasBody && page?.isHead != true
    return .send(Self.refusal(status, error, headers: headers, hasBody: hasBody), isLast: true)
  }

  /// Without the query, and without the host that requests through a proxy name.
  private static func path(of target: String) -> String {
    let path = target.hasPrefix("http://") ? target.dropFirst(7).drop { $0 != "/" } : target[...]
    return String(path.prefix { $0 != "?" })
  }

  /// The response with the page that the current request asks for.
  package func response(mediaType: String, _ text: String) -> String {
    let length = text.utf8.count
    let head = Framing.responseHead(status: "200 OK", mediaType: mediaType, length: length, keepsAlive: !isLast)
    return page?.isHead == true ? head : head + text
  }

  /// The response if the page is unavailable; it is the last one.
  package mutating func response(to error: ErrorObject) -> String {
    isLast = true
    return Self.refusal("503 Service Unavailable", error, hasBody: page?.isHead != true)
  }

  /// The response to an error of HTTP itself; the connection must be closed after it.
  static func refusal(_ status: String, _ error: ErrorObject, headers: String = "", hasBody: Bool = true) -> String {
    let body = Conversation.text(of: error)
    let head = Framing.responseHead(status: status, length: body.count, keepsAlive: false, headers: headers)
    return hasBody ? head + String(decoding: body, as: UTF8.self) : head
  }
}

extension HTTPExchanges {
  /// The bytes that the decoder may buffer: an incomplete head, and one read behind it.
  static let headBytesMax = 256 << 10

  static var headLimits: NIOHTTPDecoderLimitConfiguration {
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderFieldSize = 16 << 10
    limits.maxHeaderListSize = 64 << 10
    limits.maxHeaderFieldCount = 128
    return limits
  }
}

/// Passes the parts from NIO's decoder to the connection's handler, which comes first in the pipeline.
final class HTTPRequestHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart

  private let handler: ConnectionHandler

  init(_ handler: ConnectionHandler) { self.handler = handler }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) { handler.exchanges?.append(unwrapInboundIn(data)) }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let error = error as? HTTPParserError { handler.exchanges?.failed("\(error)") }
  }
}
