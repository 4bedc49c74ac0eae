// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore

/// A connection that outlives its process: what of it is here, and how it leaves and comes back.
extension ConnectionHandler {
  /// Nothing of the connection is in this process but what its page says (`ConnectionLedger`).
  private var isIdle: Bool {
    isOpen && !gate.isEnded && !gate.hasInput && out.isEmpty && output.allIsTaken && handoffState.isSettled
      && position == .betweenFrames && decoder.bufferedBytes == 0 && conversation.isSettled
  }

  /// Called at the end of each tick with something to do.
  func updatePage() {
    if let page, isIdle { page.markIdle(framing: conversation.framing, callsMade: conversation.callsMade) }
    if gate.isDraining, !owesAnswers { handoff?.drained(self) }
  }

  /// What the delegate wants to know again of this connection, in another process.
  func setContext(_ context: [UInt8]) {
    handoffState.setContext(context)
    guard let page else { return }
    page.setContext(context)
    queueForEndOfTick()
  }

  func countUnsettled(_ change: Int) {
    handoffState.countUnsettled(change)
    queueForEndOfTick()
  }

  // MARK: Leaving

  /// Answers what has been taken in, and takes in nothing more than is needed to come to the end of what has begun and
  /// could not go on elsewhere.
  func drain() {
    gate.drain()
    queueForEndOfTick()
  }

  private var owesAnswers: Bool {
    guard isOpen else { return false }
    if conversation.awaitsAnswers { return true }
    if let exchanges, exchanges.isAwaitingResponse || gate.hasInput { return true }
    return position.mustBeFinished && !gate.isEnded
  }

  /// Puts down what is left of the connection and closes it here, so that the peer does not notice.
  ///
  /// - Returns: false where that cannot be: the peer sees the connection end.
  func handOver() -> Bool {
    guard let context else { return false }
    let snapshot = snapshot()
    // Nobody is told any more: the connection has not ended.
    giveUpDelegate()
    if let page, let snapshot, (try? page.handOver(snapshot)) != nil {
      handoff = nil
      context.close(promise: nil)
      return true
    }
    closeForPeer(context)
    return false
  }

  /// Nil if no other process could go on.
  private func snapshot() -> ConnectionSnapshot? {
    guard !owesAnswers, isOpen || closing.isEnding else { return nil }
    var snapshot = handoffState.snapshot(collected: out, inChannel: bytesInChannel)
    snapshot.framing = conversation.framing
    snapshot.callsMade = conversation.callsMade
    snapshot.isClosing = closing.isEnding
    if let exchanges, isOpen {
      snapshot.input = exchanges.nextRequests
    } else if isOpen {
      guard let unfinished = decoder.unfinishedInput else { return nil }
      snapshot.input = conversation.heldBackInput + unfinished
    }
    return snapshot
  }

  /// Ends the connection for the peer too where others hold its socket as well.
  func closeForPeer(_ context: ChannelHandlerContext) {
    if page != nil, let socket { SystemCalls.shutDown(socket) }
    context.close(promise: nil)
  }

  // MARK: Coming back

  /// Goes on where the process before has left off.
  func goOn(with snapshot: ConnectionSnapshot) {
    out = snapshot.output
    page?.setContext(snapshot.context)
    if case .http = snapshot.framing {
      beginHTTP(snapshot.input)
    } else {
      snapshot.input.withUnsafeBytes { decoder.append($0) }
    }
    gate.inputWaits(!snapshot.input.isEmpty)
    if snapshot.isClosing { beginClosing(.closed, afterOutput: true) }
    queueForEndOfTick()
  }
}

/// Tells that bytes are about to be read, which nothing else does before they are.
struct MarkingAllocator: RecvByteBufferAllocator {
  private let handler: NIOLoopBound<ConnectionHandler>
  private var allocator = AdaptiveRecvByteBufferAllocator()

  init(_ handler: ConnectionHandler, eventLoop: any EventLoop) {
    self.handler = NIOLoopBound(handler, eventLoop: eventLoop)
  }

  func nextBufferSize() -> Int? {
    handler.value.page?.markBusy()
    return allocator.nextBufferSize()
  }

  func buffer(allocator byteBuffers: ByteBufferAllocator) -> ByteBuffer {
    handler.value.page?.markBusy()
    return allocator.buffer(allocator: byteBuffers)
  }

  mutating func record(actualReadBytes: Int) -> Bool { allocator.record(actualReadBytes: actualReadBytes) }
}
