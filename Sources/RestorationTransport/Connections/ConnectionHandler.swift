// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore

/// The event-loop side of a `Connection`: bytes in, through decoder and conversation to the delegate; answers out.
///
/// It passes the channel's events to pure machines and carries out what they decide.
///
/// Invariants:
/// 1. The delegate is called in the order of arrival, only from channel events and `endTick`, and never after
///    `connectionClosed`.
/// 2. Changes made by a `Connection` method take effect in `endTick`.
/// 3. Machines cannot reach the handler, and everything runs on one event loop. So accesses to a machine never overlap,
///    and Swift need not check that at run time (`@exclusivity`); the check took a tenth of a request.
final class ConnectionHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundOut = ByteBuffer

  let settings: ConnectionSettings
  let flushQueue: FlushQueue
  let account: ProcessAccount
  private var isQueued = false
  /// Whether more input waits for this connection's turn.
  private(set) var isBehind = false
  @exclusivity(unchecked) private var delegate: (any ConnectionDelegate)?
  /// Set before the channel is active; `nil` after it has closed, because the connection holds this handler.
  @exclusivity(unchecked) var connection: Connection?
  private(set) var context: ChannelHandlerContext?
  /// `nil` after the channel has closed.
  var socket: Int32?

  @exclusivity(unchecked) var closing: Closing
  @exclusivity(unchecked) var gate: InputGate
  @exclusivity(unchecked) var decoder: FrameDecoder
  /// Used instead of the decoder if the peer speaks HTTP.
  @exclusivity(unchecked) var exchanges: HTTPExchanges?
  @exclusivity(unchecked) var conversation: Conversation
  /// Messages that wait until earlier answers have been sent, the next one last.
  @exclusivity(unchecked) private var deliveries: [Conversation.Delivery] = []
  /// The delegate asked whether a request may begin, and must be told when it may.
  private var awaitsRoom = false
  /// The bytes of this connection that `account` counts, the part of an incomplete frame among them, and those that the
  /// load of all connections counts.
  private var counted = (waiting: 0, unfinished: 0, replies: 0)
  var unfinishedBytes: Int { counted.unfinished }
  private var timers: (frame: Scheduled<Void>?, linger: Scheduled<Void>?)
  /// Frames to be written at the end of the tick.
  @exclusivity(unchecked) var out: [UInt8] = []
  @exclusivity(unchecked) var output: OutputAccount

  var handoffState: HandoffState
  /// `nil` if connections end with this process.
  var handoff: ConnectionHandoff?
  /// `nil` until the connection is stored.
  var page: ConnectionPage?

  /// - Parameter snapshot: of the former process's connection.
  init(
    settings: ConnectionSettings,
    flushQueue: FlushQueue,
    account: ProcessAccount,
    delegate: (any ConnectionDelegate)?,
    adopting snapshot: ConnectionSnapshot? = nil
  ) {
    let limits = settings.limits
    (self.settings, self.flushQueue, self.account, self.delegate) = (settings, flushQueue, account, delegate)
    closing = Closing(lingers: limits.lingerSeconds > 0)
    gate = InputGate(limits: limits)
    decoder = FrameDecoder(limits: limits.frame, vocabulary: settings.vocabulary, framing: snapshot?.framing)
    conversation = Conversation(limits: limits.conversation, after: snapshot?.callsMade ?? CallsMade())
    conversation.framing = snapshot?.framing
    output = OutputAccount(limits: limits)
    handoffState = HandoffState(adopting: snapshot)
  }

  // MARK: Channel events

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    // Still set if the channel failed before it became active.
    handoff?.closed(self)
    handoff = nil
    giveUpDelegate()
    _ = closing.end()
  }

  func channelActive(context: ChannelHandlerContext) {
    guard let connection, closing.open() else { return }
    if let adopted = handoffState.takeAdopted() {
      adopt(adopted)
      delegate?.connectionAdopted(connection, context: adopted.context, afterKill: adopted.wasKilled)
      pull()
      watchFrame(context)
    } else {
      handoff?.opened(self)
      delegate?.connectionOpened(connection)
    }
    requestInput()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard isOpen else { return }
    if exchanges != nil {
      receiveHTTP(unwrapInboundIn(data), context)
    } else {
      unwrapInboundIn(data).withUnsafeReadableBytes { decoder.append($0) }
    }
    gate.inputWaits(true)
    pull()
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    gate.readCompleted()
    requestInput()
    watchFrame(context)
    if page != nil { queueForEndOfTick() }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard case .inputClosed? = event as? ChannelEvent else { return }
    gate.inputEnded()
    stopFrameTimer()
    if exchanges != nil { context.fireUserInboundEventTriggered(event) }
    pull()
    queueForEndOfTick()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { queueForEndOfTick() }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // A read or write failed: the peer is gone. After most errors NIO closes the channel itself.
    closeForPeer(context)
  }

  /// Input that waits for its turn, for space or for others of its process is delivered: the peer may have left after
  /// its last notification. Requests that were held back are dropped, because their answers could not be sent.
  func channelInactive(context: ChannelHandlerContext) {
    gate.resume(.process)
    account.forget(self)
    counted.unfinished = 0
    while let delivery = deliveries.popLast() { if case .notification = delivery { deliver(delivery) } }
    pull(inTurns: false)
    account.change(by: -counted.waiting)
    let reason = closing.end()
    stopFrameTimer()
    timers.linger?.cancel()
    (out, deliveries) = ([], [])
    flushQueue.forget(self)
    flushQueue.count(-counted.replies)
    counted = (0, 0, 0)
    socket = nil
    handoff?.closed(self)
    handoff = nil
    let (connection, delegate) = (connection, delegate)
    giveUpDelegate()
    if exchanges != nil { context.fireChannelInactive() }
    if let reason, let connection { delegate?.connectionClosed(connection, reason: reason) }
  }

  // MARK: Input

  var position: FramePosition { exchanges?.position ?? decoder.position }

  /// Whether more bytes may be read from the socket now.
  var wantsInput: Bool { isOpen ? gate.wantsInput(at: position) : closing.isLingering }

  /// Whether frames may be delivered now. Over HTTP, the peer's end is noticed even while a response is pending, and
  /// requests for the next process were set aside before.
  private var pullsInput: Bool {
    guard isOpen else { return false }
    guard let isAwaitingResponse = exchanges?.isAwaitingResponse else { return gate.takesFrames(at: decoder.position) }
    return gate.takesInput && !isAwaitingResponse
  }

  private func requestInput() {
    guard wantsInput, let context, gate.beginsRead() else { return }
    context.read()
  }

  /// Takes a slice of the input that waited for this connection's turn.
  func takeTurn() {
    isBehind = false
    guard isOpen else { return }
    deliverRest()
    pull()
    // The end of the tick continues to read.
    queueForEndOfTick()
  }

  /// Delivers the available frames until input pauses, or others have their turn.
  ///
  /// - Parameter inTurns: false at the end, when no input waits any more.
  private func pull(inTurns: Bool = true) {
    if inTurns {
      guard !isBehind else { return }
      chargeProcess()
      guard !gate.hasInput || flushQueue.letsBegin() else { return fallBehind() }
    }
    var left = FlushQueue.framesAtOnce
    // Accessing a property that a call may change costs more than accessing a local variable.
    var deliveries: [Conversation.Delivery] = []
    swap(&deliveries, &self.deliveries)
    while deliveries.isEmpty, pullsInput {
      if inTurns, left == 0 || left < FlushQueue.framesAtOnce && flushQueue.isOld() {
        guard flushQueue.letsGoOn() else {
          fallBehind()
          break
        }
        left = FlushQueue.framesAtOnce
      }
      left -= 1
      guard let event = nextEvent() else {
        gate.inputWaits(false)
        if inTurns { noteUnfinishedFrame() }
        deliverEndOfInput(&deliveries)
        break
      }
      counted.unfinished = 0
      stopFrameTimer()
      let before = out.count
      conversation.receive(event, into: &out, &deliveries)
      if exchanges != nil, out.count > before { exchanges?.wroteResponse() }
      gate.holdBack(bytes: conversation.heldBackBytes)
      // Before the delivery: a request that would wait is refused if too much waits.
      if inTurns { chargeProcess() }
      deliver(&deliveries)
      pauseInputIfOutputIsFull()
      if exchanges != nil { endExchangeIfAnswered() }
    }
    swap(&deliveries, &self.deliveries)
    if let hasInput = exchanges?.hasInput { gate.inputWaits(hasInput) }
    if !out.isEmpty { queueForEndOfTick() }
  }

  /// The arrived part of a frame counts until its end arrives.
  private func noteUnfinishedFrame() {
    let position = position
    if position == .betweenFrames, unfinishedBytes == 0 { return }
    counted.unfinished = position == .betweenFrames ? 0 : exchanges?.bufferedBytes ?? decoder.bufferedBytes
    chargeProcess()
  }

  private func fallBehind() {
    guard !isBehind else { return }
    isBehind = true
    flushQueue.fallBehind(self)
  }

  /// Counts this connection's waiting bytes, and pauses its input while its process has too many.
  private func chargeProcess() {
    let change = conversation.waitingBytes + unfinishedBytes - counted.waiting
    if change != 0 {
      counted.waiting += change
      account.change(by: change)
    }
    guard account.isOver, !gate.isPaused(.process), !account.letsFinish(self) else { return }
    gate.pause(.process)
    account.addPaused(self)
  }

  func resumeForProcess() {
    gate.resume(.process)
    queueForEndOfTick()
  }

  @inline(__always)
  private func nextEvent() -> FrameDecoder.Event? {
    if exchanges != nil { return nextHTTPEvent() }
    let event = decoder.next()
    guard conversation.framing == nil, let framing = decoder.framing else { return event }
    conversation.framing = framing
    guard case .http = framing else { return event }
    beginHTTP(decoder.takeInput())
    return nextHTTPEvent()
  }

  @inline(__always)
  private func deliver(_ deliveries: inout [Conversation.Delivery]) {
    if deliveries.count > 1 {
      deliveries.reverse()
      deliverWhileThereIsRoom(&deliveries)
    } else if let delivery = deliveries.popLast() {
      deliver(delivery)
    }
  }

  /// Delivers messages, the last one first. Each request waits until earlier answers have been sent, the receiver is
  /// not overloaded, and others have had their turn; so the rest begins with a request.
  private func deliverWhileThereIsRoom(_ deliveries: inout [Conversation.Delivery]) {
    while let delivery = deliveries.popLast() {
      if case .request(let call, _) = delivery {
        if isOpen, flushQueue.isOld() {
          fallBehind()
          return deliveries.append(delivery)
        }
        switch isOpen && gate.isPaused(.receiver) ? .later : admit(call) {
        case .granted: break
        case .refused: continue
        case .later: return deliveries.append(delivery)
        }
      }
      deliver(delivery)
    }
  }

  private func deliverRest() {
    guard !deliveries.isEmpty, !isBehind else { return }
    var rest: [Conversation.Delivery] = []
    swap(&rest, &deliveries)
    deliverWhileThereIsRoom(&rest)
    swap(&rest, &deliveries)
    pauseInputIfOutputIsFull()
    if exchanges != nil { endExchangeIfAnswered() }
  }

  /// Whether a request that was read may begin. If it never may, it is answered here.
  private func admit(_ call: Conversation.Call) -> Connection.Admission {
    guard isOpen else { return .granted }
    if let error = conversation.refusal(of: call) {
      respond(to: call, with: .error(error))
      return .refused
    }
    return hasRoomToBegin ? .granted : .later
  }

  /// The same for a request that the delegate has kept waiting. If it must wait longer, the delegate is told when to
  /// ask again.
  func admitWaiting(_ call: Conversation.Call) -> Connection.Admission {
    let admission = admit(call)
    if case .later = admission {
      awaitsRoom = true
      queueForEndOfTick()
    }
    return admission
  }

  private var hasRoomToBegin: Bool {
    // Taken requests cannot be handed over: a draining connection executes them even if the peer does not read.
    if gate.isDraining { return conversation.expectedBytes <= settings.limits.replyBytesPause }
    return output.hasRoomToBegin(collected: out.count, expected: conversation.expectedBytes, inChannel: bytesInChannel)
  }

  private func deliver(_ delivery: Conversation.Delivery) {
    guard isOpen, let connection else { return }
    if case .closeAfterOutput(let refusal) = delivery {
      if let refusal { delegate?.refused(refusal, by: connection) }
      beginClosing(.protocolFault, afterOutput: true)
    } else if let page = exchanges?.page, case .request(let call, _) = delivery {
      delegate?.requested(page.path, call, from: connection)
    } else {
      delegate?.received(delivery, from: connection)
    }
  }

  /// Detaches the delegate: it is not called again.
  func giveUpDelegate() {
    delegate = nil
    connection = nil
  }

  /// Ends the conversation's input after all input was delivered.
  private func deliverEndOfInput(_ deliveries: inout [Conversation.Delivery]) {
    guard gate.deliversEnd() else { return }
    if let event = decoder.finish() { conversation.receive(event, into: &out, &deliveries) }
    deliver(&deliveries)
    let abandoned = conversation.inputEnded()
    if !abandoned.isEmpty, let connection { delegate?.callsAbandoned(abandoned, by: connection) }
  }

  /// Limits how long a frame may stay incomplete, and how long a skipped line may last. The timer exists only while one
  /// is and input is read.
  private func watchFrame(_ context: ChannelHandlerContext) {
    guard isOpen, wantsInput, position != .betweenFrames else { return stopFrameTimer() }
    guard timers.frame == nil else { return }
    let limit = TimeAmount.milliseconds(Int64(settings.limits.partialFrameMilliseconds))
    // No timer outlives the channel. A weak reference would make each later retain of the handler slower.
    timers.frame = context.eventLoop.assumeIsolated().scheduleTask(in: limit) { self.frameIsOverdue() }
  }

  private func stopFrameTimer() {
    timers.frame?.cancel()
    timers.frame = nil
  }

  private func frameIsOverdue() {
    timers.frame = nil
    guard isOpen else { return }
    let limit = settings.limits.partialFrameMilliseconds
    let hint =
      position == .finishingLine
      ? "End the line after a syntax error, so that reading can resume; the connection is closed."
      : "Send each frame without long interruptions; the connection is closed."
    let error = ErrorObject.limitExceeded("partialFrameMilliseconds", max: limit, value: limit + 1, hint: hint)
    if let exchanges {
      out += HTTPExchanges.refusal("408 Request Timeout", error, hasBody: exchanges.page?.isHead != true).utf8
    } else {
      // The delivery would only request the close that follows here with another reason.
      _ = conversation.receive(.refused(error), into: &out)
    }
    beginClosing(.partialFrame, afterOutput: true)
  }

  // MARK: End of the tick

  func queueForEndOfTick() {
    guard !isQueued, context != nil else { return }
    isQueued = true
    flushQueue.add(self)
  }

  /// Resumes paused input if there is room, then writes collected output.
  func endTick() {
    isQueued = false
    guard let context, !closing.isClosed else { return }
    chargeProcess()
    if isOpen, gate.hasWork || !deliveries.isEmpty {
      deliverRest()
      resumeHeldBackCalls()
      pull()
      requestInput()
      watchFrame(context)
    }
    writeOutput(context)
    countReplies()
    if page != nil || gate.isDraining { updatePage() }
    if isOpen, output.hasRefusedOffer, output.tellsOfRoom(inChannel: bytesInChannel), let connection {
      delegate?.hasRoomForOffers(connection)
    }
    if isOpen, gate.endIsDelivered, conversation.isDrained { beginClosing(.peerClosed, afterOutput: true) }
    perform(closing.advance(), context)
    // Last: the resulting answers are written at the end of the next tick, before the connection can close.
    goOnIfThereIsRoom()
  }

  /// Lets requests that wait for earlier answers try again if these have been sent.
  private func goOnIfThereIsRoom() {
    guard isOpen, awaitsRoom || !deliveries.isEmpty, hasRoomToBegin else { return }
    if !deliveries.isEmpty, !gate.isPaused(.receiver), !isBehind { queueForEndOfTick() }
    guard awaitsRoom, let connection else { return }
    awaitsRoom = false
    delegate?.hasRoomForReplies(connection)
  }

  private func countReplies() {
    guard counted.replies > 0 || output.mayBeFull(collected: out.count) else { return }
    let replies = replyBytes
    flushQueue.count(replies - counted.replies)
    counted.replies = replies
  }

  private func resumeHeldBackCalls() {
    while isOpen, deliveries.isEmpty, gate.resumesCalls(inFlight: conversation.inFlight) {
      deliveries = conversation.resume(into: &out)
      if deliveries.count > 1 { deliveries.reverse() }
      deliverRest()
      gate.holdBack(bytes: conversation.heldBackBytes)
      pauseInputIfOutputIsFull()
    }
  }

  // MARK: Closing

  func beginClosing(_ reason: CloseReason, afterOutput: Bool) {
    if closing.begin(reason, afterOutput: afterOutput) { queueForEndOfTick() }
  }

  private func perform(_ step: Closing.Step?, _ context: ChannelHandlerContext) {
    switch step {
    case nil: break
    case .close: closeForPeer(context)
    case .awaitOutput:
      // An empty write completes after all writes before it.
      let promise = context.eventLoop.makePromise(of: Void.self)
      promise.futureResult.assumeIsolated().whenSuccess { [self] in
        guard let context = self.context else { return }
        perform(closing.outputIsTaken(inputHasEnded: gate.isEnded), context)
      }
      context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: promise)
    case .linger:
      context.close(mode: .output, promise: nil)
      // With our output shut down, the peer's end of input closes the channel.
      guard closing.isLingering else { return }
      let time = TimeAmount.seconds(Int64(settings.limits.lingerSeconds))
      timers.linger = context.eventLoop.assumeIsolated().scheduleTask(in: time) {
        if let context = self.context { self.closeForPeer(context) }
      }
      requestInput()
    }
  }
}
