// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore

/// Accepts or refuses the connections of a listener, and pauses the listening channel after an error. It is that
/// channel's handler, used on its event loop only.
final class Acceptor: ChannelInboundHandler {
  typealias InboundIn = any Channel

  private let settings: ConnectionSettings
  private let users: AllowedUsers
  private let delegate: any ConnectionDelegate
  private let books: ConnectionBooks
  /// For a further socket, the acceptor of the listener's own socket, which counts all connections.
  private let main: Acceptor?
  private let confine: PeerConfining
  let handoff: ConnectionHandoff?
  /// Refused connections whose peers have not read the refusal yet.
  private var lingering = 0
  /// Beyond this many, a refused connection is closed without a message.
  private static let lingeringMax = 64
  private var counted = AcceptStatistics()
  /// Whether `UnixListener.stop` is closing the channel.
  var isStopping = false
  /// The last error since a connection was accepted.
  private(set) var lastError: (any Error)?
  private var timer: Scheduled<Void>?

  init(
    eventLoop: any EventLoop,
    settings: ConnectionSettings,
    users: AllowedUsers,
    handoff: ConnectionHandoff?,
    confining confine: @escaping PeerConfining,
    delegate: any ConnectionDelegate
  ) {
    (self.settings, self.users, self.handoff, self.delegate) = (settings, users, handoff, delegate)
    books = ConnectionBooks(on: eventLoop, limits: settings.limits, meter: settings.meter)
    (main, self.confine) = (nil, confine)
  }

  /// For a further socket of the same listener, which confines all its peers.
  init(besides main: Acceptor, confinement: String) {
    (settings, users, delegate) = (main.settings, main.users, main.delegate)
    (books, handoff) = (main.books, main.handoff)
    (self.main, confine) = (main, { _ in .success(confinement) })
  }

  var statistics: AcceptStatistics {
    var statistics = counted
    statistics.connections = books.connections
    return statistics
  }

  /// Each account with its count: empty when all connections have closed.
  var holdings: [String: Int] { books.holdings.merging(["refused connections": lingering], uniquingKeysWith: +) }

  /// Sets up an accepted channel. If this throws, the channel is closed.
  func accept(_ channel: any Channel) throws {
    try (main ?? self).accept(channel, confining: confine)
    lastError = nil
  }

  private func accept(_ channel: any Channel, confining confine: PeerConfining) throws {
    let peer = try peer(of: channel)
    if let error = books.refusal(to: peer) {
      counted.refusedOverLimit += 1
      return try refuse(channel, peer, error)
    }
    switch confine(peer) {
    case .success(let confinement):
      if let confinement, let error = books.refusal(toConfined: confinement) {
        counted.refusedOverLimit += 1
        return try refuse(channel, peer, error)
      }
      try install(on: channel, peer, confinement: confinement)
      counted.accepted += 1
    case .failure(let error):
      counted.refusedUnconfined += 1
      try refuse(channel, peer, error)
    }
  }

  /// Sets up the channel of a former process's connection, which counts but is never refused.
  func adopt(_ channel: any Channel, key: UInt64, _ record: ConnectionSnapshot) throws {
    let confinement = delegate.confinement(inContext: record.context)
    try install(on: channel, peer(of: channel), confinement: confinement, adopting: (key, record))
  }

  private func install(
    on channel: any Channel,
    _ peer: PeerCredentials,
    confinement: String? = nil,
    adopting stored: (key: UInt64, record: ConnectionSnapshot)? = nil
  ) throws {
    _ = try settings.install(
      on: channel,
      peer: peer,
      confinement: confinement,
      books: books,
      delegate: delegate,
      handoff: handoff,
      adopting: stored
    )
  }

  private func peer(of channel: any Channel) throws -> PeerCredentials {
    let peer = try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
      socket in
      // NIO does not set this flag. Nothing on this thread can start a program in between.
      try SystemCalls.setCloseOnExec(socket)
      return try PeerCredentials.read(from: socket)
    }
    guard let peer else { throw TransportError(.closed, "the channel has no socket") }
    guard users.contains(peer.uid) else {
      counted.refusedUsers += 1
      throw TransportError(.notPermitted, "a connection of user \(peer.uid) was refused")
    }
    return peer
  }

  /// Sends the peer an error and closes: a connection without a delegate, whose only output is the error.
  private func refuse(_ channel: any Channel, _ peer: PeerCredentials, _ error: ErrorObject) throws {
    guard lingering < Self.lingeringMax else {
      throw TransportError(.busy, "there are \(books.connections) connections already")
    }
    lingering += 1
    channel.closeFuture.assumeIsolated().whenComplete { [self] _ in lingering -= 1 }
    var refusal = ConnectionSnapshot()
    refusal.output = Conversation.text(of: error) + "\n".utf8
    refusal.isClosing = true
    _ = try settings.install(
      on: channel,
      peer: peer,
      books: books,
      account: ProcessAccount(limits: settings.limits),
      delegate: nil,
      adopting: (0, refusal)
    )
  }

  /// Pauses after an error such as EMFILE, because the socket stays ready.
  ///
  /// NIO's own handler delays only the next read, but a failed accept leaves the current read pending: the loop would
  /// spin.
  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard error is IOError else { return }
    lastError = error
    guard timer == nil, let options = context.channel.syncOptions else { return }
    counted.pauses += 1
    // Fails only if the channel is closed.
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
