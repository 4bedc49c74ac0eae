// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore
internal import NIOHTTP1

/// The requests of a peer that speaks HTTP, one after the other. Pure: parts of requests in, what is to be done out.
///
/// Invariants:
/// 1. Nothing is done about a request before the one before it has its response.
/// 2. A request that is refused is the last one: the rest of its body is not read.
struct HTTPExchanges {
  enum Action {
    /// Say that the body may come.
    case sendContinue
    /// One frame, to be answered with one response, after which the connection goes on or not.
    case frame(FrameDecoder.Event, keepsAlive: Bool)
    /// Say so with that status and further header lines, then close.
    case refuse(status: String, headers: String, ErrorObject, hasBody: Bool)
  }

  private enum Mode {
    case betweenRequests
    case body(keepsAlive: Bool)
    case awaitingResponse
    /// Nothing that comes is looked at.
    case refused
  }

  private let frameBytesMax: Int
  private var mode = Mode.betweenRequests
  private var parts = CircularBuffer<HTTPServerRequestPart>()
  private var fault: ErrorObject?
  /// The request under way is the last one of its connection.
  private var isLast = false
  private var body: FrameBody

  init(settings: ConnectionSettings) {
    frameBytesMax = settings.limits.frame.frameBytesMax
    body = FrameBody(limits: settings.limits.frame, vocabulary: settings.vocabulary)
  }

  /// Whether what comes now is looked at, be it later.
  var takesInput: Bool {
    switch mode {
    case .betweenRequests, .body: true
    case .awaitingResponse: !isLast
    case .refused: false
    }
  }

  var isAwaitingResponse: Bool { if case .awaitingResponse = mode { true } else { false } }

  /// Whether a request has begun and has not come whole.
  var isInsideRequest: Bool { if case .body = mode { true } else { false } }

  /// Whether whatever comes now belongs to another request than what came before.
  var isBetweenRequests: Bool { !isInsideRequest && !hasInput }

  var hasInput: Bool { !parts.isEmpty || fault != nil }

  mutating func append(_ part: HTTPServerRequestPart) {
    if case .refused = mode { return }
    parts.append(part)
  }

  /// What came is no HTTP; nothing follows.
  mutating func failed(_ message: String) {
    fault = .parseError(hint: "This is not HTTP/1.1 (\(message)). Send POST requests with a JSON-RPC 2.0 body.")
  }

  /// The response of the request is written.
  mutating func responded() { if isAwaitingResponse { mode = isLast ? .refused : .betweenRequests } }

  /// The next thing to do, or nil when more parts are needed or a response is.
  mutating func next() -> Action? {
    while true {
      switch mode {
      case .awaitingResponse, .refused:
        return nil
      case .betweenRequests, .body:
        guard let part = parts.popFirst() else {
          guard let fault else { return nil }
          return refuse("400 Bad Request", fault)
        }
        if let action = take(part) { return action }
      }
    }
  }

  private mutating func take(_ part: HTTPServerRequestPart) -> Action? {
    switch part {
    case .head(let head):
      return begin(head)
    case .body(let bytes):
      bytes.withUnsafeReadableBytes { body.append($0) }
      if let failure = body.failure, failure.code == ErrorObject.limitExceededCode { return refuseAsTooLarge(failure) }
      return nil
    case .end:
      guard case .body(let keepsAlive) = mode else { return nil }
      mode = .awaitingResponse
      return .frame(body.end(), keepsAlive: keepsAlive)
    }
  }

  private mutating func begin(_ head: HTTPRequestHead) -> Action? {
    guard head.method == .POST else {
      let error = ErrorObject.invalidRequest(hint: "Use POST; the body is a JSON-RPC 2.0 message or a batch.")
      return refuse("405 Method Not Allowed", error, headers: "Allow: POST\r\n", hasBody: head.method != .HEAD)
    }
    guard head.headers[canonicalForm: "transfer-encoding"].allSatisfy({ $0.lowercased() == "chunked" }) else {
      return refuse("415 Unsupported Media Type", .invalidRequest(hint: "The only Transfer-Encoding is chunked."))
    }
    guard !head.headers.contains(name: "content-encoding") else {
      let hint = "Send the body as it is, without Content-Encoding."
      return refuse("415 Unsupported Media Type", .invalidRequest(hint: hint))
    }
    guard head.headers["content-type"].allSatisfy({ Framing.isUTF8(contentType: $0) }) else {
      return refuse("415 Unsupported Media Type", .invalidRequest(hint: "The only charset is utf-8."))
    }
    if let length = head.headers.first(name: "content-length").flatMap({ Int($0) }), length > frameBytesMax {
      return refuseAsTooLarge(FrameBody.tooLong(length, max: frameBytesMax))
    }
    // After the request for another protocol the decoder reads no further one.
    let asksForUpgrade = head.headers.contains(name: "upgrade")
    isLast = !head.isKeepAlive || head.version != .http1_1 || asksForUpgrade
    mode = .body(keepsAlive: !isLast)
    guard head.version == .http1_1 else { return nil }
    let expectations = head.headers[canonicalForm: "expect"]
    return expectations.contains { $0.lowercased() == "100-continue" } ? .sendContinue : nil
  }

  private mutating func refuseAsTooLarge(_ error: ErrorObject) -> Action {
    refuse("413 Content Too Large", error)
  }

  private mutating func refuse(
    _ status: String,
    _ error: ErrorObject,
    headers: String = "",
    hasBody: Bool = true
  ) -> Action {
    mode = .refused
    parts.removeAll()
    return .refuse(status: status, headers: headers, error, hasBody: hasBody)
  }
}

extension HTTPExchanges {
  /// Bytes of a head that the decoder holds until it is whole, and of a read behind it.
  static let headBytesMax = 256 << 10

  /// Limits of a request's head.
  static var headLimits: NIOHTTPDecoderLimitConfiguration {
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderFieldSize = 16 << 10
    limits.maxHeaderListSize = 64 << 10
    limits.maxHeaderFieldCount = 128
    return limits
  }
}

/// Hands the parts NIO's decoder finds to the connection's handler, which stands before both in the pipeline and has
/// the bytes first.
final class HTTPRequestHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart

  private let handler: ConnectionHandler

  init(_ handler: ConnectionHandler) { self.handler = handler }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let part = unwrapInboundIn(data)
    handler.httpParts += 1
    if case .end = part { handler.isInsideRequestBody = false } else { handler.isInsideRequestBody = true }
    handler.exchanges?.append(part)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let error = error as? HTTPParserError { handler.exchanges?.failed("\(error)") }
  }
}
