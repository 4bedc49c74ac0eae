// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import NIOCore

/// Settings shared by all connections of a listener or connector.
package struct ConnectionSettings: Sendable {
  package var limits: TransportLimits
  /// The keys of special objects in the payload.
  package var vocabulary: ScanVocabulary
  /// Paths that a peer that speaks HTTP may GET; the delegate has what is there.
  package var pages: Set<String>
  /// That of the event loop, if it has one. Without it, to share the loop's time is less exact.
  package var meter: LoopMeter?

  /// Most connections are idle, and keep the room of their last read; whoever sends more gets more.
  static let receiveAllocator = AdaptiveRecvByteBufferAllocator(minimum: 64, initial: 512, maximum: 65_536)

  package init(
    limits: TransportLimits = TransportLimits(),
    vocabulary: ScanVocabulary,
    pages: Set<String> = [],
    meter: LoopMeter? = nil
  ) {
    (self.limits, self.vocabulary, self.pages, self.meter) = (limits, vocabulary, pages, meter)
  }

  /// Makes a channel a connection whose peer is known, whatever it has for a transport. On the channel's event loop,
  /// before the channel is active.
  ///
  /// - Parameters:
  ///   - snapshot: of a former process, which has left the connection to this one.
  ///   - books: those of the connections beside it; by default it is alone.
  @discardableResult
  package func install(
    on channel: any Channel,
    peer: PeerCredentials,
    confinement: String? = nil,
    continuing snapshot: ConnectionSnapshot? = nil,
    books: ConnectionBooks? = nil,
    delegate: any ConnectionDelegate
  ) throws -> Connection {
    let books = books ?? ConnectionBooks(on: channel.eventLoop, limits: limits, isShared: false)
    return try install(
      on: channel,
      peer: peer,
      confinement: confinement,
      flushQueue: books.flushQueue,
      account: books.open(channel, of: peer, confinement: confinement),
      delegate: delegate,
      adopting: snapshot.map { (0, $0) }
    )
  }

  /// Makes a new channel a connection. Called on the channel's event loop, before the channel is active.
  ///
  /// - Parameters:
  ///   - account: of the peer's process.
  ///   - handoff: lets the connection outlive this process.
  ///   - stored: the former process's snapshot of the connection, and its key.
  func install(
    on channel: any Channel,
    peer: PeerCredentials,
    confinement: String? = nil,
    flushQueue: FlushQueue,
    account: ProcessAccount,
    delegate: (any ConnectionDelegate)?,
    handoff: ConnectionHandoff? = nil,
    adopting stored: (key: UInt64, record: ConnectionSnapshot)? = nil
  ) throws -> Connection {
    if let options = channel.syncOptions {
      try options.setOption(.autoRead, value: false)
      // What is read is taken in turns: more than one read would only wait here instead of in the socket's buffer.
      try options.setOption(.maxMessagesPerRead, value: 1)
      try options.setOption(.recvAllocator, value: Self.receiveAllocator)
      try options.setOption(.allowRemoteHalfClosure, value: true)
      try options.setOption(.writeBufferWaterMark, value: ConnectionHandler.waterMark(for: limits))
    }
    let handler = ConnectionHandler(
      settings: self,
      flushQueue: flushQueue,
      account: account,
      delegate: delegate,
      adopting: stored?.record
    )
    let eventLoop = channel.eventLoop
    let connection = Connection(peer: peer, confinement: confinement, eventLoop: eventLoop, handler: handler)
    handler.connection = connection
    handler.socket = try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
      $0
    }
    handler.handoff = handoff
    if let stored { try handoff?.adopted(handler, key: stored.key, on: channel) }
    try channel.pipeline.syncOperations.addHandler(handler)
    return connection
  }
}
