// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore

/// Decides about each connection a listener gets, and pauses the listening channel, whose handler it is, when it gets
/// none for an error. Used on its event loop only.
final class Acceptor: ChannelInboundHandler {
  typealias InboundIn = any Channel

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
  /// Of the pause of accepting.
  private var timer: Scheduled<Void>?

  init(
    eventLoop: any EventLoop,
    settings: ConnectionSettings,
    allowedUser: UInt32,
    handoff: ConnectionHandoff?,
    delegate: any ConnectionDelegate
  ) {
    (self.settings, self.allowedUser, self.handoff, self.delegate) = (settings, allowedUser, handoff, delegate)
    self.flushQueue = FlushQueue(eventLoop: eventLoop)
  }

  /// Sets up an accepted channel; one that throws is closed.
  func accept(_ channel: any Channel) throws {
    let peer = try peer(of: channel)
    guard statistics.connections < settings.limits.connectionsMax else { return try refuse(channel, peer) }
    try install(on: channel, peer)
    lastError = nil
    statistics.accepted += 1
  }

  /// The same for a channel of a connection that the process before had.
  func adopt(_ channel: any Channel, key: UInt64, _ record: ConnectionSnapshot) throws {
    try install(on: channel, peer(of: channel), adopting: (key, record))
  }

  private func install(
    on channel: any Channel,
    _ peer: PeerCredentials,
    adopting stored: (key: UInt64, record: ConnectionSnapshot)? = nil
  ) throws {
    _ = try settings.install(
      on: channel,
      peer: peer,
      flushQueue: flushQueue,
      delegate: delegate,
      handoff: handoff,
      adopting: stored
    )
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

  /// Tells a peer why it is not served: all that is to be done for its connection is to send that.
  private func refuse(_ channel: any Channel, _ peer: PeerCredentials) throws {
    statistics.refusedOverLimit += 1
    let limit = settings.limits.connectionsMax
    guard lingering < Self.lingeringMax else {
      throw TransportError(.busy, "there are \(limit) connections already")
    }
    lingering += 1
    channel.closeFuture.assumeIsolated().whenComplete { [self] _ in lingering -= 1 }
    let hint = "Close a connection that is no longer needed, or try again later."
    let error = ErrorObject.limitExceeded("connectionsMax", max: limit, value: limit + 1, hint: hint)
    var refusal = ConnectionSnapshot()
    refusal.output = Conversation.text(of: error) + "\n".utf8
    refusal.isClosing = true
    _ = try settings.install(on: channel, peer: peer, flushQueue: flushQueue, delegate: nil, adopting: (0, refusal))
  }

  /// Stops accepting for a while after an error such as EMFILE, because the socket stays ready all that time.
  ///
  /// NIO's own handler for this delays the next read only, and a failed accept leaves the current one pending: the loop
  /// would go round at full speed.
  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard error is IOError else { return }
    lastError = error
    guard timer == nil, let options = context.channel.syncOptions else { return }
    statistics.pauses += 1
    // Fails only for a closed channel, which does not accept anyway.
    try? options.setOption(.autoRead, value: false)
    let pause = TimeAmount.milliseconds(Int64(settings.limits.acceptPauseMilliseconds))
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
