// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore

/// Decides about each connection a listener gets. Used on its event loop only.
final class Acceptor {
  private let settings: ConnectionSettings
  private let allowedUser: UInt32
  private let delegate: any ConnectionDelegate
  private let flushQueue: FlushQueue
  /// Refused connections whose peers have not read the refusal yet.
  private var lingering = 0
  /// Beyond this many, a refused connection is closed without a word.
  private static let lingeringMax = 64
  private(set) var statistics = AcceptStatistics()

  init(
    eventLoop: any EventLoop,
    settings: ConnectionSettings,
    allowedUser: UInt32,
    delegate: any ConnectionDelegate
  ) {
    self.settings = settings
    self.allowedUser = allowedUser
    self.delegate = delegate
    self.flushQueue = FlushQueue(eventLoop: eventLoop)
  }

  /// Sets up the listening channel: where accept fails (EMFILE and the like), it is tried again after a pause only,
  /// because the descriptor stays ready all the time.
  func prepare(_ channel: any Channel) throws {
    let pause = TimeAmount.milliseconds(Int64(settings.limits.acceptPauseMilliseconds))
    let backoff = AcceptBackoffHandler(shouldForwardIOErrorCaught: false) { [self] _ in
      statistics.pauses += 1
      return pause
    }
    try channel.pipeline.syncOperations.addHandler(backoff)
  }

  /// Sets up an accepted channel; one that throws is closed.
  func accept(_ channel: any Channel) throws {
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
    guard statistics.connections < settings.limits.connectionsMax else { return try refuse(channel) }
    _ = try settings.install(on: channel, peer: peer, flushQueue: flushQueue, delegate: delegate)
    statistics.connections += 1
    statistics.accepted += 1
    channel.closeFuture.assumeIsolated().whenComplete { [self] _ in statistics.connections -= 1 }
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
      "connections",
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

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    timer?.cancel()
    timer = nil
  }
}
