// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore

/// Decides about each connection a listener gets. Used on its event loop only.
final class Acceptor {
  private let settings: ConnectionSettings
  private let allowedUser: UInt32
  private let delegate: any ConnectionDelegate
  private let flushQueue: FlushQueue
  let handoff: ConnectionHandoff?
  /// Refused connections whose peers have not read the refusal yet.
  private var lingering = 0
  /// Beyond this many, a refused connection is closed without a word.
  private static let lingeringMax = 64
  private(set) var statistics = AcceptStatistics()
  /// The listener closes on purpose.
  var isStopping = false
  /// Why accepting failed since the last connection that was accepted.
  private(set) var lastError: (any Error)?

  init(
    eventLoop: any EventLoop,
    settings: ConnectionSettings,
    allowedUser: UInt32,
    handoff: ConnectionHandoff?,
    delegate: any ConnectionDelegate
  ) {
    self.settings = settings
    self.allowedUser = allowedUser
    self.handoff = handoff
    self.delegate = delegate
    self.flushQueue = FlushQueue(eventLoop: eventLoop)
  }

  /// Sets up the listening channel.
  func prepare(_ channel: any Channel) throws {
    let pause = AcceptPause(milliseconds: settings.limits.acceptPauseMilliseconds) { [self] error in
      lastError = error
    } whenPaused: { [self] in
      statistics.pauses += 1
    }
    try channel.pipeline.syncOperations.addHandler(pause)
  }

  /// Sets up an accepted channel; one that throws is closed.
  func accept(_ channel: any Channel) throws {
    let peer = try peer(of: channel)
    guard statistics.connections < settings.limits.connectionsMax else { return try refuse(channel) }
    _ = try settings.install(on: channel, peer: peer, flushQueue: flushQueue, delegate: delegate, handoff: handoff)
    lastError = nil
    statistics.accepted += 1
    count(channel)
  }

  /// The same for a channel of a connection that the process before had.
  func adopt(_ channel: any Channel, key: UInt64, _ record: ConnectionSnapshot) throws {
    let peer = try peer(of: channel)
    _ = try settings.install(
      on: channel,
      peer: peer,
      flushQueue: flushQueue,
      delegate: delegate,
      handoff: handoff,
      adopting: (key, record)
    )
    count(channel)
  }

  private func count(_ channel: any Channel) {
    statistics.connections += 1
    channel.closeFuture.assumeIsolated().whenComplete { [self] _ in statistics.connections -= 1 }
  }

  private func peer(of channel: any Channel) throws -> PeerCredentials {
    let peer = try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
      socket in
      // NIO accepts without it; nothing that might start a program runs in between on this thread.
      try SystemCalls.setCloseOnExec(socket)
      return try PeerCredentials.read(from: socket)
    }
    guard let peer else { throw TransportError(.closed, "the channel has no socket") }
    guard peer.uid == allowedUser else {
      statistics.refusedUsers += 1
      throw TransportError(.notPermitted, "a connection of user \(peer.uid) was refused")
    }
    return peer
  }

  private func refuse(_ channel: any Channel) throws {
    statistics.refusedOverLimit += 1
    let limit = settings.limits.connectionsMax
    guard lingering < Self.lingeringMax else {
      throw TransportError(.busy, "there are \(limit) connections already")
    }
    lingering += 1
    channel.closeFuture.assumeIsolated().whenComplete { [self] _ in lingering -= 1 }
    try channel.syncOptions?.setOption(.allowRemoteHalfClosure, value: true)
    let error = ErrorObject.limitExceeded(
      "connectionsMax",
      max: limit,
      value: limit + 1,
      hint: "Close a connection that is no longer needed, or try again later."
    )
    var line: [UInt8] = []
    var conversation = Conversation(limits: settings.limits.conversation)
    _ = conversation.receive(.refused(error), into: &line)
    let refusal = RefusalHandler(line: line, lingerSeconds: settings.limits.lingerSeconds)
    try channel.pipeline.syncOperations.addHandler(refusal)
  }
}

/// Stops accepting for a while after an error such as EMFILE, because the socket stays ready all that time.
///
/// NIO's own handler for this delays the next read only, and a failed accept leaves the current one pending: the loop
/// would go round at full speed.
private final class AcceptPause: ChannelInboundHandler {
  typealias InboundIn = any Channel

  private let pause: TimeAmount
  private let whenFailed: (any Error) -> Void
  private let whenPaused: () -> Void
  private var timer: Scheduled<Void>?

  init(milliseconds: Int, whenFailed: @escaping (any Error) -> Void, whenPaused: @escaping () -> Void) {
    self.pause = .milliseconds(Int64(milliseconds))
    self.whenFailed = whenFailed
    self.whenPaused = whenPaused
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard error is IOError else { return }
    whenFailed(error)
    guard timer == nil, let options = context.channel.syncOptions else { return }
    whenPaused()
    // Fails only for a closed channel, which does not accept anyway.
    try? options.setOption(.autoRead, value: false)
    timer = context.eventLoop.assumeIsolated().scheduleTask(in: pause) { [self] in
      timer = nil
      try? options.setOption(.autoRead, value: true)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    timer?.cancel()
    timer = nil
    context.fireChannelInactive()
  }
}

/// Tells a peer why it is not served, then discards what it sends until it leaves or has had its time.
private final class RefusalHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let line: [UInt8]
  private let lingerSeconds: Int
  private var timer: Scheduled<Void>?

  init(line: [UInt8], lingerSeconds: Int) {
    self.line = line
    self.lingerSeconds = lingerSeconds
  }

  func channelActive(context: ChannelHandlerContext) {
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: line)), promise: nil)
    context.close(mode: .output, promise: nil)
    timer = context.eventLoop.assumeIsolated().scheduleTask(in: .seconds(Int64(lingerSeconds))) {
      context.close(promise: nil)
    }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  func channelInactive(context: ChannelHandlerContext) {
    timer?.cancel()
    timer = nil
  }
}
