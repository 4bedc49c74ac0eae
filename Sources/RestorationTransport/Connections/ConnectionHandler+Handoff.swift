// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore

/// A connection that outlives its process: when it is idle, how it is handed over, and how it is adopted.
extension ConnectionHandler {
  /// Whether this process holds nothing of the connection but its page (`ConnectionLedger`).
  private var isIdle: Bool {
    isOpen && !gate.isEnded && !gate.hasInput && out.isEmpty && output.allIsTaken && handoffState.isSettled
      && position == .betweenFrames && decoder.bufferedBytes == 0 && conversation.isSettled
  }

  func updatePage() {
    if let page, isIdle { page.markIdle(framing: conversation.framing, callsMade: conversation.callsMade) }
    if gate.isDraining, !owesAnswers { handoff?.drained(self) }
  }

  func setContext(_ context: [UInt8]) {
    // An idle page stays idle.
    guard context != handoffState.context else { return }
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

  /// Answers received requests, and reads only what is needed to finish a frame that another process could not finish.
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

  /// Writes a snapshot of the connection and closes it here, unnoticed by the peer.
  ///
  /// - Returns: false if that is impossible; the peer then sees the connection end.
  func handOver() -> Bool {
    guard let context else { return false }
    if let snapshot = leave(), let page, (try? page.handOver(snapshot)) != nil {
      handoff = nil
      context.close(promise: nil)
      return true
    }
    closeForPeer(context)
    return false
  }

  /// The snapshot for the process that continues the connection; `nil` if none can. No more events follow here.
  func leave() -> ConnectionSnapshot? {
    // The delegate must not see an end: for the peer the connection stays open.
    defer { giveUpDelegate() }
    return snapshot()
  }

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

  /// Ends the connection for the peer as well, even if a store holds a duplicate of the socket.
  func closeForPeer(_ context: ChannelHandlerContext) {
    if page != nil, let socket { SystemCalls.shutDown(socket) }
    context.close(promise: nil)
  }

  // MARK: Adopting

  func adopt(_ snapshot: ConnectionSnapshot) {
    out = snapshot.output
    // An idle page has it.
    if let page, page.isBusy { page.setContext(snapshot.context) }
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

/// Marks the page busy before bytes are read: NIO asks its allocator first.
struct MarkingAllocator: RecvByteBufferAllocator {
  private let handler: NIOLoopBound<ConnectionHandler>
  private var allocator = ConnectionSettings.receiveAllocator

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
