// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore

/// A connection that outlives its process: what of it is here, and how it leaves and comes back.
extension ConnectionHandler {
  /// Nothing of the connection is in this process but what its page says (`ConnectionLedger`).
  private var isIdle: Bool {
    isOpen && !inputHasEnded && !hasInput && out.isEmpty && writesInChannel == 0 && unsettledNotifications == 0
      && isBetweenFrames && conversation.isSettled
  }

  private var isBetweenFrames: Bool {
    exchanges == nil
      ? decoder.position == .betweenFrames && decoder.bufferedBytes == 0 : !exchangeIsOpen && !isInsideRequest
  }

  /// Called at the end of each tick with something to do.
  func updatePage() {
    if let page, isIdle { page.markIdle(framing: knownFraming, callsMade: conversation.callsMade) }
    if isDraining, !owesAnswers { handoff?.drained(self) }
  }

  /// What the delegate wants to know again of this connection, in another process.
  func setContext(_ context: [UInt8]) {
    recordContext = context
    guard let page else { return }
    page.setContext(context)
    queueForEndOfTick()
  }

  func countUnsettled(_ change: Int) {
    unsettledNotifications += change
    queueForEndOfTick()
  }

  // MARK: Leaving

  /// Answers what has been taken in, and takes in nothing more than is needed to come to the end of what has begun and
  /// could not go on elsewhere.
  func drain() {
    isDraining = true
    queueForEndOfTick()
  }

  /// Whether input that has begun has to be taken in here, because no other decoder could go on with it.
  var mustFinishInput: Bool { exchanges == nil ? decoder.position.mustBeFinished : isInsideRequest }

  private var owesAnswers: Bool {
    guard isOpen else { return false }
    if conversation.awaitsAnswers || exchanges != nil && (exchangeIsOpen || hasInput) { return true }
    return mustFinishInput && !inputHasEnded
  }

  /// Puts down what is left of the connection and closes it here, so that the peer does not notice.
  ///
  /// - Returns: false where that cannot be: the peer sees the connection end.
  func handOver() -> Bool {
    guard let context else { return false }
    let record = record(context)
    // Nobody is told any more: the connection has not ended.
    giveUpDelegate()
    if let page, let record, (try? page.handOver(record)) != nil {
      handoff = nil
      context.close(promise: nil)
      return true
    }
    closeForPeer(context)
    return false
  }

  private func record(_ context: ChannelHandlerContext) -> ConnectionSnapshot? {
    guard !owesAnswers else { return nil }
    var record = ConnectionSnapshot(framing: knownFraming, callsMade: conversation.callsMade)
    record.context = recordContext
    switch phase {
    case .open where exchanges != nil:
      record.input = nextRequests
    case .open:
      guard let unfinished = decoder.unfinishedInput else { return nil }
      record.input = conversation.heldBackInput + unfinished
    case .closing(_, afterOutput: true):
      record.isClosing = true
    case .opening, .closing, .lingering, .closed:
      return nil
    }
    let waiting = channelBytes(context)
    record.output = channelWrites.flatMap { $0.readableBytesView }.suffix(waiting) + out
    return record
  }

  /// Ends the connection for the peer too where others hold its socket as well.
  func closeForPeer(_ context: ChannelHandlerContext) {
    if page != nil, let socket { SystemCalls.shutDown(socket) }
    context.close(promise: nil)
  }

  // MARK: Coming back

  /// Goes on where the process before has left off.
  func goOn(with record: ConnectionSnapshot) {
    out = record.output
    recordContext = record.context
    page?.setContext(record.context)
    if case .http = record.framing {
      beginHTTP(record.input)
    } else {
      record.input.withUnsafeBytes { decoder.append($0) }
    }
    hasInput = !record.input.isEmpty
    if record.isClosing { beginClosing(.closed, afterOutput: true) }
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
