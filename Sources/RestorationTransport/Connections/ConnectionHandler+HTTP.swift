// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore
internal import NIOHTTP1

/// A connection whose peer speaks HTTP: NIO's decoder behind this handler makes parts of requests of the bytes,
/// `HTTPExchanges` decides about them, and each request's frame goes the way of all frames.
extension ConnectionHandler {
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

  /// The next frame; what HTTP asks for besides is done at once.
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

  /// Goes on with the next request when nothing is owed for this one any more.
  func endExchangeIfAnswered() {
    guard !conversation.owesAnswers, let (rest, keepsAlive) = exchanges?.endExchange() else { return }
    out += rest.utf8
    gate.inputWaits(true)
    if !keepsAlive { beginClosing(.peerClosed, afterOutput: true) }
    queueForEndOfTick()
  }
}
