// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore

/// The event-loop side of a `Connection`: bytes in, through decoder and conversation to the delegate; answers out.
///
/// Invariants:
/// 1. Input is asked for one read at a time and only while `wantsInput`: what a peer sends beyond our limits stays in
///    its own socket buffer. (At its end of input NIO delivers what is left there in one go; the kernel bounds that.)
/// 2. The decoder is not asked for frames while input is paused, so it holds at most one frame and one read.
/// 3. The delegate is called in the order of arrival, from channel events or `endTick` only, and never again after
///    `connectionClosed`.
/// 4. Everything a `Connection` method changes takes effect in `endTick`.
final class ConnectionHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundOut = ByteBuffer

  enum Phase: Equatable {
    /// Not active yet.
    case opening
    case open
    /// Nothing is delivered any more; closes when the peer has taken the output, if that is awaited.
    case closing(CloseReason, afterOutput: Bool)
    /// All output is with the kernel and shut down; input is discarded until the peer's end or the timer.
    case lingering(CloseReason)
    case closed
  }

  let settings: ConnectionSettings
  let flushQueue: FlushQueue
  var limits: TransportLimits { settings.limits }
  private(set) var delegate: (any ConnectionDelegate)?
  /// Set before the channel is active; given up when it closes, because the connection holds this handler.
  var connection: Connection?
  private(set) var context: ChannelHandlerContext?
  var phase = Phase.opening

  var decoder: FrameDecoder
  /// Takes the decoder's place where the peer speaks HTTP.
  var exchanges: HTTPExchanges?
  /// Whether the framing has been decided.
  private var framingIsKnown = false
  var knownFraming: Framing? { framingIsKnown ? conversation.framing : nil }
  var conversation: Conversation
  /// Empty but for its room, which is kept from one frame to the next.
  private var deliveries: [Conversation.Delivery] = []
  private var isReading = false
  /// The decoder may have more frames than were pulled.
  var hasInput = false
  /// The conversation holds requests back. Kept here because asking it costs more than a message may.
  private var holdsBack = false
  var inputIsPaused = false
  var inputHasEnded = false
  private var conversationInputHasEnded = false
  /// Whether the input so far ends inside a frame; known once there is no more input.
  private var isInsideFrame = false
  private var frameTimer: Scheduled<Void>?
  var lingerTimer: Scheduled<Void>?
  /// The end of all output is on its way to the kernel.
  var awaitsOutput = false

  /// Frames to be written at the end of the tick.
  var out: [UInt8] = []
  /// How many bytes of `out` nobody asked for: notifications and calls.
  var unsolicitedInTick = 0
  /// The same of what waits in the channel.
  var unsolicitedInChannel = 0
  /// The same of notifications that were offered, which are counted by themselves.
  var offeredInTick = 0
  var offeredInChannel = 0
  /// An offer was refused, and the delegate is to be told when there is room.
  var awaitsRoomForOffers = false
  /// Writes that the kernel did not take at once and that wait in the channel.
  var writesInChannel = 0
  var outputIsPaused = false
  /// The conversation may hold answers of incomplete batches.
  var gathersAnswers = false
  private var isQueued = false
  /// Over HTTP: the response of the request under way is in the output.
  var responseIsWritten = false
  /// Over HTTP: requests that are for the process after this one.
  var nextRequests: [UInt8] = []
  /// Over HTTP: what came last is the beginning of a request's head.
  var headIsPartial = false
  /// Over HTTP: parts of requests that the decoder has found, and whether the last one was not an end.
  var httpParts = 0
  var isInsideRequestBody = false

  /// The channel's socket, as long as it is open.
  var socket: Int32?

  /// Sees to it that the connection outlives this process, where that is possible.
  var handoff: ConnectionHandoff?
  /// What the process after this one is told, from the moment the connection is stored.
  var page: ConnectionPage?
  var recordContext: [UInt8] = []
  /// What the process before has left, until the channel is active.
  private var adopted: ConnectionSnapshot?
  /// Notifications of the peer whose effects are not durable.
  var unsettledNotifications = 0
  var isDraining = false
  /// The writes that wait in the channel, in order.
  var channelWrites: [ByteBuffer] = []

  /// - Parameter record: what is left of the connection by the process that had it before.
  init(
    settings: ConnectionSettings,
    flushQueue: FlushQueue,
    delegate: any ConnectionDelegate,
    adopting record: ConnectionSnapshot? = nil
  ) {
    self.settings = settings
    self.flushQueue = flushQueue
    self.delegate = delegate
    adopted = record
    decoder = FrameDecoder(limits: settings.limits.frame, vocabulary: settings.vocabulary, framing: record?.framing)
    conversation = Conversation(limits: settings.limits.conversation, after: record?.callsMade ?? CallsMade())
    if let framing = record?.framing {
      framingIsKnown = true
      conversation.framing = framing
    }
  }

  // MARK: Channel events

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    // Still set where the channel has failed before it became active.
    handoff?.closed(self)
    handoff = nil
    connection = nil
    delegate = nil
    phase = .closed
  }

  func channelActive(context: ChannelHandlerContext) {
    guard phase == .opening, let connection else { return }
    phase = .open
    if let adopted {
      self.adopted = nil
      goOn(with: adopted)
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
      receiveHTTP(data, context)
    } else {
      unwrapInboundIn(data).withUnsafeReadableBytes { decoder.append($0) }
    }
    hasInput = true
    pull()
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    isReading = false
    requestInput()
    watchFrame(context)
    if page != nil { queueForEndOfTick() }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard case .inputClosed? = event as? ChannelEvent else { return }
    inputHasEnded = true
    stopFrameTimer()
    if exchanges != nil { context.fireUserInboundEventTriggered(event) }
    pull()
    queueForEndOfTick()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { queueForEndOfTick() }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // A failed read or write: the peer is gone. NIO closes the channel by itself for most of them.
    closeForPeer(context)
  }

  /// Requests that input was paused for are dropped here: nobody would get their answers.
  func channelInactive(context: ChannelHandlerContext) {
    let reason: CloseReason =
      switch phase {
      case .closing(let reason, _), .lingering(let reason): reason
      case .opening, .open, .closed: .peerClosed
      }
    let wasOpened = phase != .opening && phase != .closed
    phase = .closed
    stopFrameTimer()
    lingerTimer?.cancel()
    lingerTimer = nil
    out = []
    socket = nil
    handoff?.closed(self)
    handoff = nil
    let (connection, delegate) = (connection, delegate)
    self.connection = nil
    self.delegate = nil
    if exchanges != nil { context.fireChannelInactive() }
    if wasOpened, let connection { delegate?.connectionClosed(connection, reason: reason) }
  }

  // MARK: Input

  /// Whether more bytes may be read from the socket now.
  var wantsInput: Bool {
    switch phase {
    case .open: !inputHasEnded && !hasInput && takesInput && (!isDraining || mustFinishInput)
    case .lingering: true
    case .opening, .closing, .closed: false
    }
  }

  /// Whether more frames may be delivered now. Over HTTP, the peer's end is noticed while it waits for a response.
  private var pullsInput: Bool {
    takesInput && (exchanges == nil ? !isDraining || mustFinishInput : !exchangeIsOpen)
  }

  private var takesInput: Bool {
    isOpen && !inputIsPaused && !outputIsPaused
      && (!holdsBack || conversation.heldBackBytes <= limits.heldBackBytesPause)
  }

  func requestInput() {
    guard !isReading, wantsInput, let context else { return }
    isReading = true
    context.read()
  }

  /// Delivers the frames that are there, until input has to pause.
  private func pull() {
    while pullsInput {
      guard let event = nextEvent() else {
        hasInput = false
        isInsideFrame = decoder.position.isInsideFrame
        endConversationInput()
        break
      }
      stopFrameTimer()
      let before = out.count
      conversation.receive(event, into: &out, &deliveries)
      if exchanges != nil, out.count > before { responseIsWritten = true }
      // A request that is delivered was not held back; anything else may come beside one that was.
      if deliveries.count == 1, case .request? = deliveries.first {
      } else {
        holdsBack = conversation.hasHeldBackCalls
      }
      if deliveries.count == 1, let delivery = deliveries.popLast() {
        deliver(delivery)
      } else {
        let several = deliveries
        deliveries = []
        deliver(several)
      }
      pauseInputIfOutputIsFull()
      if exchanges != nil { endExchangeIfAnswered() }
    }
    if let exchanges {
      hasInput = exchanges.hasInput
      isInsideFrame = isInsideRequest
    }
    if !out.isEmpty { queueForEndOfTick() }
  }

  private func nextEvent() -> FrameDecoder.Event? {
    if exchanges != nil { return nextHTTPEvent() }
    let event = decoder.next()
    guard !framingIsKnown, let framing = decoder.framing else { return event }
    framingIsKnown = true
    conversation.framing = framing
    guard case .http = framing else { return event }
    beginHTTP(decoder.takeInput())
    return nextHTTPEvent()
  }

  private func deliver(_ deliveries: [Conversation.Delivery]) {
    for delivery in deliveries { deliver(delivery) }
  }

  private func deliver(_ delivery: Conversation.Delivery) {
    guard isOpen, let connection else { return }
    if case .closeAfterOutput = delivery {
      beginClosing(.protocolFault, afterOutput: true)
    } else {
      delegate?.received(delivery, from: connection)
    }
  }

  /// Nobody is told of anything any more.
  func giveUpDelegate() {
    delegate = nil
    connection = nil
  }

  /// Tells the conversation, once, when all input was delivered and no more can come.
  private func endConversationInput() {
    guard inputHasEnded, !conversationInputHasEnded else { return }
    conversationInputHasEnded = true
    if let event = decoder.finish() { deliver(conversation.receive(event, into: &out)) }
    let abandoned = conversation.inputEnded()
    if !abandoned.isEmpty, let connection { delegate?.callsAbandoned(abandoned, by: connection) }
  }

  /// Limits the age of a frame that has begun; a timer exists only while there is one and we are reading.
  private func watchFrame(_ context: ChannelHandlerContext) {
    guard isOpen, wantsInput, isInsideFrame else { return stopFrameTimer() }
    guard frameTimer == nil else { return }
    let limit = TimeAmount.milliseconds(Int64(limits.partialFrameMilliseconds))
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
    guard phase == .open else { return }
    let error = ErrorObject.limitExceeded(
      "partialFrameMilliseconds",
      max: limits.partialFrameMilliseconds,
      value: limits.partialFrameMilliseconds + 1,
      hint: "Send each frame without long interruptions; the connection is closed."
    )
    if exchanges != nil {
      refuseHTTP(status: "408 Request Timeout", error)
    } else {
      // Its delivery is the order to close, which is given here with another reason.
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

  /// Goes on with paused input where there is room again, then writes what was collected.
  func endTick() {
    isQueued = false
    guard let context, phase != .closed else { return }
    if isOpen, hasInput || holdsBack || !isReading {
      resumeHeldBackCalls()
      pull()
      requestInput()
      watchFrame(context)
    }
    writeOutput(context)
    if page != nil || isDraining { updatePage() }
    if awaitsRoomForOffers { tellOfRoomForOffers(context) }
    if isOpen, conversationInputHasEnded, conversation.isDrained {
      beginClosing(.peerClosed, afterOutput: true)
    }
    advanceClosing(context)
  }

  private func resumeHeldBackCalls() {
    let inFlightMax = limits.conversation.inFlightMax
    while holdsBack, isOpen, !isDraining, !inputIsPaused, !outputIsPaused, conversation.inFlight < inFlightMax {
      deliver(conversation.resume(into: &out))
      holdsBack = conversation.hasHeldBackCalls
      pauseInputIfOutputIsFull()
    }
  }
}
