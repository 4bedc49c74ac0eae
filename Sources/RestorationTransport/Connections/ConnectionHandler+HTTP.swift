// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore
internal import NIOHTTP1

/// A connection whose peer speaks HTTP: NIO's decoder behind this handler makes parts of requests of the bytes,
/// `HTTPExchanges` decides about them, and each request's frame goes the way of all frames.
extension ConnectionHandler {
  var exchangeIsOpen: Bool { exchanges?.isAwaitingResponse ?? false }

  /// What waits behind a request is timed when that has its response.
  var isInsideRequest: Bool { !exchangeIsOpen && (headIsPartial || exchanges?.isInsideRequest ?? false) }

  /// The peer's first bytes were the beginning of a request.
  func beginHTTP(_ input: [UInt8]) {
    guard let context else { return }
    exchanges = HTTPExchanges(settings: settings)
    let decoder = HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: HTTPExchanges.headLimits)
    do {
      try context.pipeline.syncOperations.addHandlers([
        ByteToMessageHandler(decoder, maximumBufferSize: HTTPExchanges.headBytesMax), HTTPRequestHandler(self),
      ])
    } catch {
      // Only a channel that is closed takes no handlers.
      context.close(promise: nil)
      return
    }
    if !input.isEmpty { receiveHTTP(NIOAny(ByteBuffer(bytes: input)), context) }
    if inputHasEnded { context.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
  }

  func receiveHTTP(_ bytes: NIOAny, _ context: ChannelHandlerContext) {
    // The decoder would keep what comes after the last request.
    guard let exchanges, exchanges.takesInput else { return }
    var bytes = unwrapInboundIn(bytes)
    if isDraining, !headIsPartial, exchanges.isBetweenRequests {
      nextRequests += bytes.readableBytesView
      return
    }
    // Line ends between requests mean nothing.
    if !headIsPartial, !isInsideRequestBody, bytes.readableBytesView.allSatisfy({ $0 == 13 || $0 == 10 }) { return }
    // The decoder does not say what it keeps, but whether the last byte ends a request is seen by itself.
    if bytes.readableBytes > 1, let most = bytes.readSlice(length: bytes.readableBytes - 1) {
      context.fireChannelRead(wrapInboundOut(most))
    }
    let parts = httpParts
    context.fireChannelRead(wrapInboundOut(bytes))
    headIsPartial = httpParts == parts && !isInsideRequestBody
  }

  /// The next frame; what HTTP asks for besides is done at once.
  func nextHTTPEvent() -> FrameDecoder.Event? {
    while let action = exchanges?.next() {
      switch action {
      case .sendContinue:
        out += "HTTP/1.1 100 Continue\r\n\r\n".utf8
        queueForEndOfTick()
      case .frame(let event, let keepsAlive):
        conversation.framing = .http(keepsAlive: keepsAlive)
        return event
      case .refuse(let status, let headers, let error, let hasBody):
        refuseHTTP(status: status, headers: headers, error, hasBody: hasBody)
        beginClosing(.protocolFault, afterOutput: true)
        return nil
      }
    }
    return nil
  }

  /// Writes a response with an error that concerns HTTP itself. The connection is to be closed.
  func refuseHTTP(status: String, headers: String = "", _ error: ErrorObject, hasBody: Bool = true) {
    let body = Conversation.text(of: error)
    let head = Framing.responseHead(status: status, length: body.count, keepsAlive: false, headers: headers)
    out += head.utf8
    if hasBody { out += body }
    queueForEndOfTick()
  }

  /// Goes on with the next request when nothing is owed for this one any more.
  func endExchangeIfAnswered() {
    guard exchangeIsOpen, !conversation.owesAnswers, case .http(let keepsAlive) = conversation.framing else { return }
    if !responseIsWritten {
      out += "HTTP/1.1 204 No Content\r\n\(keepsAlive ? "" : "Connection: close\r\n")\r\n".utf8
    }
    responseIsWritten = false
    exchanges?.responded()
    hasInput = true
    if !keepsAlive { beginClosing(.peerClosed, afterOutput: true) }
    queueForEndOfTick()
  }
}
