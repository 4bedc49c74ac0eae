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
  private let flushQueue: FlushQueue
  private var isQueued = false
  private var delegate: (any ConnectionDelegate)?
  /// Set before the channel is active; `nil` after it has closed, because the connection holds this handler.
  var connection: Connection?
  private(set) var context: ChannelHandlerContext?
  /// `nil` after the channel has closed.
  var socket: Int32?

  @exclusivity(unchecked) var closing: Closing
  @exclusivity(unchecked) var gate: InputGate
  @exclusivity(unchecked) var decoder: FrameDecoder
  /// Used instead of the decoder if the peer speaks HTTP.
  @exclusivity(unchecked) var exchanges: HTTPExchanges?
  @exclusivity(unchecked) var conversation: Conversation
  /// Always empty here; kept for its capacity.
  private var deliveries: [Conversation.Delivery] = []
  private var frameTimer: Scheduled<Void>?
  private var lingerTimer: Scheduled<Void>?
  /// Frames to be written at the end of the tick.
  var out: [UInt8] = []
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
    delegate: (any ConnectionDelegate)?,
    adopting snapshot: ConnectionSnapshot? = nil
  ) {
    let limits = settings.limits
    (self.settings, self.flushQueue, self.delegate) = (settings, flushQueue, delegate)
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

  /// Requests that are not delivered yet are dropped: their answers could not be sent.
  func channelInactive(context: ChannelHandlerContext) {
    let reason = closing.end()
    stopFrameTimer()
    lingerTimer?.cancel()
    lingerTimer = nil
    out = []
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

  /// Delivers the available frames until input pauses.
  private func pull() {
    // Accessing a property that a call may change costs more than accessing a local variable.
    var deliveries: [Conversation.Delivery] = []
    swap(&deliveries, &self.deliveries)
    while pullsInput {
      guard let event = nextEvent() else {
        gate.inputWaits(false)
        deliverEndOfInput()
        break
      }
      stopFrameTimer()
      let before = out.count
      conversation.receive(event, into: &out, &deliveries)
      if exchanges != nil, out.count > before { exchanges?.wroteResponse() }
      gate.holdBack(bytes: conversation.heldBackBytes)
      deliver(&deliveries)
      pauseInputIfOutputIsFull()
      if exchanges != nil { endExchangeIfAnswered() }
    }
    swap(&deliveries, &self.deliveries)
    if let hasInput = exchanges?.hasInput { gate.inputWaits(hasInput) }
    if !out.isEmpty { queueForEndOfTick() }
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
    if deliveries.count > 1 { deliveries.reverse() }
    while let delivery = deliveries.popLast() { deliver(delivery) }
  }

  private func deliver(_ delivery: Conversation.Delivery) {
    guard isOpen, let connection else { return }
    if case .closeAfterOutput = delivery {
      beginClosing(.protocolFault, afterOutput: true)
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
  private func deliverEndOfInput() {
    guard gate.deliversEnd() else { return }
    var deliveries = decoder.finish().map { conversation.receive($0, into: &out) } ?? []
    deliver(&deliveries)
    let abandoned = conversation.inputEnded()
    if !abandoned.isEmpty, let connection { delegate?.callsAbandoned(abandoned, by: connection) }
  }

  /// Limits how long a frame may stay incomplete. The timer exists only while a frame is incomplete and input is read.
  private func watchFrame(_ context: ChannelHandlerContext) {
    guard isOpen, wantsInput, position.isInsideFrame else { return stopFrameTimer() }
    guard frameTimer == nil else { return }
    let limit = TimeAmount.milliseconds(Int64(settings.limits.partialFrameMilliseconds))
    frameTimer = context.eventLoop.assumeIsolated().scheduleTask(in: limit) { [weak self] in
      self?.frameIsOverdue()
    }
  }

  private func stopFrameTimer() {
    guard let timer = frameTimer else { return }
    frameTimer = nil
    timer.cancel()
  }

  private func frameIsOverdue() {
    frameTimer = nil
    guard isOpen else { return }
    let limit = settings.limits.partialFrameMilliseconds
    let hint = "Send each frame without long interruptions; the connection is closed."
    let error = ErrorObject.limitExceeded("partialFrameMilliseconds", max: limit, value: limit + 1, hint: hint)
    if exchanges != nil {
      out += HTTPExchanges.refusal("408 Request Timeout", error).utf8
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
    if isOpen, gate.hasWork {
      resumeHeldBackCalls()
      pull()
      requestInput()
      watchFrame(context)
    }
    writeOutput(context)
    if page != nil || gate.isDraining { updatePage() }
    if isOpen, output.hasRefusedOffer, output.tellsOfRoom(inChannel: bytesInChannel), let connection {
      delegate?.hasRoomForOffers(connection)
    }
    if isOpen, gate.endIsDelivered, conversation.isDrained { beginClosing(.peerClosed, afterOutput: true) }
    perform(closing.advance(), context)
  }

  private func resumeHeldBackCalls() {
    while isOpen, gate.resumesCalls(inFlight: conversation.inFlight) {
      var deliveries = conversation.resume(into: &out)
      deliver(&deliveries)
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
      lingerTimer = context.eventLoop.assumeIsolated().scheduleTask(in: time) { [weak self] in
        guard let self, let context = self.context else { return }
        closeForPeer(context)
      }
      requestInput()
    }
  }
}
