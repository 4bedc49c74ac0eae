// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore

/// What `Connection` offers: changes of the conversation, whose output is collected and written in `endTick`.
extension ConnectionHandler {
  var isOpen: Bool { if case .open = phase { true } else { false } }

  var canBeCalled: Bool { conversation.framing.canBeCalled }

  func respond(to call: Conversation.Call, with outcome: Outcome) {
    guard isOpen else { return }
    let before = out.count
    conversation.respond(to: call, with: outcome, into: &out)
    responded(out.count - before)
  }

  func respond(to call: Conversation.Call, writing: (inout JSONWriter) -> Void) {
    guard isOpen else { return }
    let before = out.count
    conversation.respond(to: call, into: &out, writing: writing)
    responded(out.count - before)
  }

  /// An answer has added so many bytes to the output.
  @inline(__always)
  private func responded(_ count: Int) {
    if count == 0 { gathersAnswers = true }
    if exchanges != nil {
      if count > 0 { responseIsWritten = true }
      endExchangeIfAnswered()
    }
    queueForEndOfTick()
  }

  func notify(method: String, parameters: JSONText?) {
    guard isOpen, canBeCalled else { return }
    let before = out.count
    conversation.notify(method: method, parameters: parameters, into: &out)
    countUnsolicited(out.count - before)
  }

  func offer(method: String, parameters: JSONText?) -> Bool {
    guard isOpen, canBeCalled else { return true }
    let before = out.count
    conversation.notify(method: method, parameters: parameters, into: &out)
    let count = out.count - before
    if offeredInTick + offeredInChannel + count > limits.offeredBytesMax, let context {
      let waiting = offeredBytes(context)
      if waiting > 0, waiting + count > limits.offeredBytesMax {
        out.removeLast(count)
        awaitsRoomForOffers = true
        return false
      }
    }
    offeredInTick += count
    queueForEndOfTick()
    return true
  }

  func call(method: String, parameters: JSONText?) -> Int? {
    guard isOpen, canBeCalled, !inputHasEnded else { return nil }
    let before = out.count
    let callID = conversation.call(method: method, parameters: parameters, into: &out)
    countUnsolicited(out.count - before)
    return callID
  }

  func forget(_ callID: Int) { conversation.forget(callID) }

  func park(_ call: Conversation.Call) throws(ErrorObject) {
    try conversation.park(call)
    queueForEndOfTick()
  }

  func unpark(_ call: Conversation.Call) { conversation.unpark(call) }

  func pendingCall(withID id: RequestID) -> Conversation.Call? { conversation.pendingCall(withID: id) }

  func setInputPaused(_ isPaused: Bool) {
    inputIsPaused = isPaused
    queueForEndOfTick()
  }

  func close(afterOutput: Bool) { beginClosing(.closed, afterOutput: afterOutput) }

  private func countUnsolicited(_ count: Int) {
    unsolicitedInTick += count
    queueForEndOfTick()
    guard unsolicitedInTick + unsolicitedInChannel > limits.outQueueBytesMax, let context else { return }
    // A write counts whole until its last byte is taken; here the exact number decides.
    if unsolicitedInTick + min(unsolicitedInChannel, channelBytes(context)) > limits.outQueueBytesMax {
      beginClosing(.outputOverflow, afterOutput: false)
    }
  }
}

/// The way from `out` to the kernel, and the count of what is on it.
extension ConnectionHandler {
  /// Storage larger than this is not kept for the next tick.
  private static let keptBytesMax = 32 << 10

  /// From which amount on the channel tells when it has become small again: far below what pauses input.
  static func waterMark(for limits: TransportLimits) -> ChannelOptions.Types.WriteBufferWaterMark {
    let high = max(limits.replyBytesPause / 8 * 3, 2)
    return .init(low: high / 2, high: high)
  }

  /// Answers the peer has not taken, including those of batches that are not complete.
  private func replyBytes(_ context: ChannelHandlerContext) -> Int {
    let waiting = max(0, channelBytes(context) - unsolicitedInChannel - offeredInChannel)
    return out.count - unsolicitedInTick - offeredInTick + conversation.gatheredBytes + waiting
  }

  /// Offered notifications the peer has not taken. A write counts whole until its last byte is taken; here the exact
  /// number decides.
  private func offeredBytes(_ context: ChannelHandlerContext) -> Int {
    offeredInTick + min(offeredInChannel, channelBytes(context))
  }

  func tellOfRoomForOffers(_ context: ChannelHandlerContext) {
    guard isOpen, let connection, offeredBytes(context) <= limits.offeredBytesMax / 2 else { return }
    awaitsRoomForOffers = false
    delegate?.hasRoomForOffers(connection)
  }

  func channelBytes(_ context: ChannelHandlerContext) -> Int {
    guard writesInChannel > 0 else { return 0 }
    return (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
  }

  /// Called after each message, so the exact count is asked for only when the answer can matter.
  func pauseInputIfOutputIsFull() {
    guard writesInChannel > 0 || gathersAnswers || out.count > limits.replyBytesPause, let context else { return }
    if replyBytes(context) > limits.replyBytesPause { outputIsPaused = true }
    if gathersAnswers { gathersAnswers = conversation.gatheredBytes > 0 }
  }

  private func resumeInputIfOutputHasRoom(_ context: ChannelHandlerContext) {
    guard outputIsPaused, replyBytes(context) <= limits.replyBytesPause / 2 else { return }
    outputIsPaused = false
    queueForEndOfTick()
  }

  /// Hands everything collected to the kernel; what it does not take waits in the channel.
  ///
  /// The kernel is asked directly as long as nothing waits: the channel's own way costs more than the answer's text.
  func writeOutput(_ context: ChannelHandlerContext) {
    if case .closing(_, afterOutput: false) = phase { return }
    if !out.isEmpty {
      page?.markBusy()
      var taken = 0
      if writesInChannel == 0, let socket { taken = out.withUnsafeBytes { SystemCalls.send(socket, $0) } }
      if taken < out.count { writeThroughChannel(ByteBuffer(bytes: out[taken...]), context) }
      unsolicitedInTick = 0
      offeredInTick = 0
      if out.capacity <= Self.keptBytesMax {
        out.removeAll(keepingCapacity: true)
      } else {
        out = []
      }
      pauseInputIfOutputIsFull()
    }
    resumeInputIfOutputHasRoom(context)
  }

  private func writeThroughChannel(_ rest: ByteBuffer, _ context: ChannelHandlerContext) {
    let unsolicited = min(unsolicitedInTick, rest.readableBytes)
    let offered = min(offeredInTick, rest.readableBytes - unsolicited)
    writesInChannel += 1
    if handoff != nil { channelWrites.append(rest) }
    unsolicitedInChannel += unsolicited
    offeredInChannel += offered
    let promise = context.eventLoop.makePromise(of: Void.self)
    promise.futureResult.assumeIsolated().whenComplete { [self] _ in
      writesInChannel -= 1
      if !channelWrites.isEmpty { channelWrites.removeFirst() }
      unsolicitedInChannel -= unsolicited
      offeredInChannel -= offered
      queueForEndOfTick()
    }
    context.writeAndFlush(wrapOutboundOut(rest), promise: promise)
  }

  var usage: ConnectionUsage {
    ConnectionUsage(
      inputBytes: decoder.bufferedBytes,
      heldBackBytes: conversation.heldBackBytes,
      replyBytes: context.map(replyBytes) ?? 0,
      unsolicitedBytes: unsolicitedInTick + unsolicitedInChannel,
      offeredBytes: context.map(offeredBytes) ?? 0,
      isPaused: !wantsInput
    )
  }
}
