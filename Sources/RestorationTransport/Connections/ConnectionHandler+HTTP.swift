// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore
internal import NIOHTTP1

/// A connection whose peer speaks HTTP: NIO's decoder, behind this handler, parses the bytes into parts of requests;
/// `HTTPExchanges` decides about them; each request's frame is then received like any other.
extension ConnectionHandler {
  /// - Parameter input: the peer's first bytes, which begin a request.
  func beginHTTP(_ input: [UInt8]) {
    guard let context else { return }
    exchanges = HTTPExchanges(settings: settings)
    let decoder = HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: HTTPExchanges.headLimits)
    do {
      try context.pipeline.syncOperations.addHandlers([
        ByteToMessageHandler(decoder, maximumBufferSize: HTTPExchanges.headBytesMax), HTTPRequestHandler(self),
      ])
    } catch {
      // Fails only if the channel is closed.
      context.close(promise: nil)
      return
    }
    if !input.isEmpty { receiveHTTP(ByteBuffer(bytes: input), context) }
    if gate.isEnded { context.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
  }

  func receiveHTTP(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
    guard exchanges?.takes(bytes.readableBytesView, isDraining: gate.isDraining) == true else { return }
    var bytes = bytes
    if bytes.readableBytes > 1, let most = bytes.readSlice(length: bytes.readableBytes - 1) {
      context.fireChannelRead(wrapInboundOut(most))
    }
    exchanges?.lastByteFollows()
    context.fireChannelRead(wrapInboundOut(bytes))
  }

  /// The next frame. Responses that HTTP itself requires are sent at once.
  func nextHTTPEvent() -> FrameDecoder.Event? {
    while let action = exchanges?.next() {
      switch action {
      case .frame(let event, let keepsAlive):
        conversation.framing = .http(keepsAlive: keepsAlive)
        return event
      case .send(let text, let isLast):
        out += text.utf8
        queueForEndOfTick()
        if isLast { beginClosing(.protocolFault, afterOutput: true) }
      }
    }
    return nil
  }

  /// Continues with the next request once this one is answered completely.
  func endExchangeIfAnswered() {
    guard !conversation.owesAnswers, let (rest, keepsAlive) = exchanges?.endExchange() else { return }
    out += rest.utf8
    gate.inputWaits(true)
    if !keepsAlive { beginClosing(.peerClosed, afterOutput: true) }
    queueForEndOfTick()
  }
}
