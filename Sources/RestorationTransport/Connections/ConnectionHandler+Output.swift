// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore

/// The methods of `Connection`. Their output is collected, and written in `endTick`.
extension ConnectionHandler {
  var isOpen: Bool { closing.isOpen }

  var isGone: Bool { context?.channel.isActive != true }

  var canBeCalled: Bool { conversation.framing?.canBeCalled ?? true }

  func respond(to call: Conversation.Call, with outcome: Outcome) {
    guard isOpen else { return }
    let before = out.count
    if exchanges?.page != nil, case .error(let error) = outcome {
      conversation.respond(to: call, verbatim: (exchanges?.response(to: error) ?? "").utf8, into: &out)
    } else {
      conversation.respond(to: call, with: outcome, into: &out)
    }
    responded(out.count - before)
  }

  func respond(to call: Conversation.Call, writing: (inout JSONWriter) -> Void) {
    guard isOpen else { return }
    let before = out.count
    conversation.respond(to: call, into: &out, writing: writing)
    responded(out.count - before)
  }

  func respond(to call: Conversation.Call, mediaType: String, page: String) {
    guard isOpen, let response = exchanges?.response(mediaType: mediaType, page) else { return }
    let before = out.count
    conversation.respond(to: call, verbatim: response.utf8, into: &out)
    responded(out.count - before)
  }

  /// Call after an answer has added `count` bytes to the output.
  @inline(__always)
  private func responded(_ count: Int) {
    if count == 0 { output.noteUnfinished() }
    if exchanges != nil {
      if count > 0 { exchanges?.wroteResponse() }
      endExchangeIfAnswered()
    }
    queueForEndOfTick()
  }

  func expect(_ bytes: Int, from call: Conversation.Call) {
    guard isOpen else { return }
    conversation.expect(bytes, from: call)
    output.noteUnfinished()
    pauseInputIfOutputIsFull()
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
    guard output.addOffer(count, inChannel: bytesInChannel) else {
      out.removeLast(count)
      return false
    }
    queueForEndOfTick()
    return true
  }

  func call(method: String, parameters: JSONText?) -> Int? {
    guard isOpen, canBeCalled, !gate.isEnded else { return nil }
    let before = out.count
    let callID = conversation.call(method: method, parameters: parameters, into: &out)
    countUnsolicited(out.count - before)
    return callID
  }

  func park(_ call: Conversation.Call) throws(ErrorObject) {
    try conversation.park(call)
    queueForEndOfTick()
  }

  func setInputPaused(_ isPaused: Bool) {
    if isPaused { gate.pause(.receiver) } else { gate.resume(.receiver) }
    queueForEndOfTick()
  }

  private func countUnsolicited(_ count: Int) {
    output.addUnsolicited(count)
    queueForEndOfTick()
    if output.overflows(inChannel: bytesInChannel) { beginClosing(.outputOverflow, afterOutput: false) }
  }
}

extension ConnectionHandler {
  /// Larger storage is released after the tick.
  private static let keptBytesMax = 32 << 10

  /// The channel reports when its output falls below the low mark. Both marks are far below what pauses input.
  static func waterMark(for limits: TransportLimits) -> ChannelOptions.Types.WriteBufferWaterMark {
    let high = max(limits.replyBytesPause / 8 * 3, 2)
    return .init(low: high / 2, high: high)
  }

  /// The exact number of bytes that wait in the channel.
  var bytesInChannel: Int { (try? context?.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0 }

  func pauseInputIfOutputIsFull() {
    guard output.mayBeFull(collected: out.count) else { return }
    output.isCrowded = flushQueue.load.isHigh
    let unfinished = conversation.unfinishedBytes
    if output.isFull(collected: out.count, unfinished: unfinished, inChannel: bytesInChannel) { gate.pause(.output) }
  }

  /// Writes collected output. The rest that the kernel does not take waits in the channel.
  ///
  /// While nothing waits, the socket is written directly: a write through the channel costs more than making the
  /// answer.
  func writeOutput(_ context: ChannelHandlerContext) {
    if closing.dropsOutput { return }
    if !out.isEmpty {
      page?.markBusy()
      var taken = 0
      if output.allIsTaken, let socket { taken = out.withUnsafeBytes { SystemCalls.send(socket, $0) } }
      if let write = output.wrote(leaving: out.count - taken) {
        writeThroughChannel(ByteBuffer(bytes: out[taken...]), write, context)
      }
      if out.capacity <= Self.keptBytesMax {
        out.removeAll(keepingCapacity: true)
      } else {
        out = []
      }
      pauseInputIfOutputIsFull()
    }
    guard gate.isPaused(.output) else { return }
    output.isCrowded = flushQueue.load.isHigh
    guard output.hasRoom(collected: out.count, unfinished: conversation.unfinishedBytes, inChannel: bytesInChannel)
    else {
      if output.isCrowded { flushQueue.awaitLowLoad(self) }
      return
    }
    gate.resume(.output)
    queueForEndOfTick()
  }

  private func writeThroughChannel(_ rest: ByteBuffer, _ write: OutputAccount.Write, _ context: ChannelHandlerContext) {
    if handoff != nil { handoffState.wrote(rest) }
    let promise = context.eventLoop.makePromise(of: Void.self)
    promise.futureResult.assumeIsolated().whenComplete { [self] _ in
      output.taken(write)
      handoffState.firstIsTaken()
      queueForEndOfTick()
    }
    context.writeAndFlush(wrapOutboundOut(rest), promise: promise)
  }

  /// Bytes of answers that the peer has not taken, or that are not finished.
  var replyBytes: Int {
    output.replies(collected: out.count, unfinished: conversation.unfinishedBytes, inChannel: bytesInChannel)
  }

  var usage: ConnectionUsage {
    guard context != nil else { return ConnectionUsage(isPaused: true) }
    return ConnectionUsage(
      inputBytes: decoder.bufferedBytes,
      heldBackBytes: conversation.heldBackBytes,
      replyBytes: replyBytes,
      unsolicitedBytes: output.unsolicited,
      offeredBytes: output.offered(inChannel: bytesInChannel),
      isPaused: !wantsInput && !isBehind
    )
  }
}
