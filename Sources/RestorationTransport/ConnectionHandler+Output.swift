// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore

/// What `Connection` offers: changes of the conversation, whose output is collected and written in `endTick`.
extension ConnectionHandler {
  var isOpen: Bool {
    if case .open = phase { true } else { false }
  }

  func respond(to call: Conversation.Call, with outcome: Outcome) {
    guard isOpen else { return }
    let before = out.count
    conversation.respond(to: call, with: outcome, into: &out)
    if out.count == before { gathersAnswers = true }
    queueForEndOfTick()
  }

  func respond(to call: Conversation.Call, writing: (inout JSONWriter) -> Void) {
    guard isOpen else { return }
    let before = out.count
    conversation.respond(to: call, into: &out, writing: writing)
    if out.count == before { gathersAnswers = true }
    queueForEndOfTick()
  }

  func notify(method: String, parameters: JSONText?) {
    guard isOpen else { return }
    let before = out.count
    conversation.notify(method: method, parameters: parameters, into: &out)
    countUnsolicited(out.count - before)
  }

  func call(method: String, parameters: JSONText?) -> Int? {
    guard isOpen, !inputHasEnded else { return nil }
    let before = out.count
    let callID = conversation.call(method: method, parameters: parameters, into: &out)
    countUnsolicited(out.count - before)
    return callID
  }

  func forget(_ callID: Int) {
    conversation.forget(callID)
  }

  func park(_ call: Conversation.Call) throws(ErrorObject) {
    try conversation.park(call)
    queueForEndOfTick()
  }

  func unpark(_ call: Conversation.Call) {
    conversation.unpark(call)
  }

  func setInputPaused(_ isPaused: Bool) {
    inputIsPaused = isPaused
    queueForEndOfTick()
  }

  func close(afterOutput: Bool) {
    beginClosing(.closed, afterOutput: afterOutput)
  }

  private func countUnsolicited(_ count: Int) {
    unsolicitedInTick += count
    queueForEndOfTick()
    if unsolicitedInTick + unsolicitedInChannel > limits.outQueueBytesMax {
      beginClosing(.outputOverflow, afterOutput: false)
    }
  }
}

/// The way from `out` to the kernel, and the count of what is on it.
extension ConnectionHandler {
  /// A buffer larger than this is not kept for the next write.
  private static let keptBytesMax = 16 << 10

  /// From this many bytes in the channel on it tells when they have become few again; all of it is far below the
  /// bytes that pause input, so smaller amounts need no exact count.
  static func waterMark(for limits: TransportLimits) -> ChannelOptions.Types.WriteBufferWaterMark {
    let high = max(limits.replyBytesPause / 8 * 3, 2)
    return .init(low: high / 2, high: high)
  }

  /// Answers the peer has not taken, including those of batches that are not complete.
  private func replyBytes(_ context: ChannelHandlerContext) -> Int {
    let written = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    return out.count - unsolicitedInTick + conversation.gatheredBytes + max(0, written - unsolicitedInChannel)
  }

  /// Called after each message, so the exact count is asked for only when the answer can matter.
  func pauseInputIfOutputIsFull() {
    guard channelIsFull || gathersAnswers || out.count > limits.replyBytesPause / 2, let context else { return }
    if replyBytes(context) > limits.replyBytesPause { outputIsPaused = true }
    if gathersAnswers { gathersAnswers = conversation.gatheredBytes > 0 }
  }

  private func resumeInputIfOutputHasRoom(_ context: ChannelHandlerContext) {
    guard outputIsPaused, replyBytes(context) <= limits.replyBytesPause / 2 else { return }
    outputIsPaused = false
    queueForEndOfTick()
  }

  /// Hands everything collected to the kernel, as far as it takes it.
  func writeOutput(_ context: ChannelHandlerContext) {
    if case .closing(_, afterOutput: false) = phase { return }
    if !out.isEmpty {
      let isSmall = out.count <= Self.keptBytesMax
      if isSmall {
        // The storage is free again unless the kernel did not take all of the last write.
        buffer.clear()
        buffer.writeBytes(out)
      }
      let data = isSmall ? buffer : ByteBuffer(bytes: out)
      if out.capacity <= 2 * Self.keptBytesMax {
        out.removeAll(keepingCapacity: true)
      } else {
        out = []
      }
      context.writeAndFlush(wrapOutboundOut(data), promise: promiseForUnsolicited(context))
      channelIsFull = !context.channel.isWritable
      pauseInputIfOutputIsFull()
    }
    resumeInputIfOutputHasRoom(context)
  }

  /// Where a write holds bytes nobody asked for, its completion takes them off the count.
  private func promiseForUnsolicited(_ context: ChannelHandlerContext) -> EventLoopPromise<Void>? {
    guard unsolicitedInTick > 0 else { return nil }
    let count = unsolicitedInTick
    unsolicitedInTick = 0
    unsolicitedInChannel += count
    let promise = context.eventLoop.makePromise(of: Void.self)
    promise.futureResult.assumeIsolated().whenComplete { [self] _ in unsolicitedInChannel -= count }
    return promise
  }

  var usage: ConnectionUsage {
    ConnectionUsage(
      inputBytes: decoder.bufferedBytes,
      heldBackBytes: conversation.heldBackBytes,
      replyBytes: context.map(replyBytes) ?? 0,
      unsolicitedBytes: unsolicitedInTick + unsolicitedInChannel,
      isPaused: !wantsInput
    )
  }
}
