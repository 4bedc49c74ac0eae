// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import NIOCore

/// Settings shared by all connections of a listener or connector.
package struct ConnectionSettings: Sendable {
  package var limits: TransportLimits
  /// The keys of special objects in the payload.
  package var vocabulary: ScanVocabulary
  /// Paths that an HTTP peer may GET; the delegate supplies their pages.
  package var pages: Set<String>
  /// The event loop's meter, if it has one. Without it the loop's time is shared less exactly.
  package var meter: LoopMeter?

  /// Most connections are idle and keep the buffer of their last read. Busier ones get larger buffers.
  static let receiveAllocator = AdaptiveRecvByteBufferAllocator(minimum: 64, initial: 512, maximum: 65_536)

  package init(
    limits: TransportLimits = TransportLimits(),
    vocabulary: ScanVocabulary,
    pages: Set<String> = [],
    meter: LoopMeter? = nil
  ) {
    (self.limits, self.vocabulary, self.pages, self.meter) = (limits, vocabulary, pages, meter)
  }

  /// Turns a channel with any transport into a connection, if its peer is known. Call it on the channel's event loop,
  /// before the channel is active.
  ///
  /// - Parameters:
  ///   - snapshot: of the former process's connection, which this one continues.
  ///   - books: shared with the connections beside it; by default it is alone.
  @discardableResult
  package func install(
    on channel: any Channel,
    peer: PeerCredentials,
    confinement: String? = nil,
    continuing snapshot: ConnectionSnapshot? = nil,
    books: ConnectionBooks? = nil,
    delegate: any ConnectionDelegate
  ) throws -> Connection {
    try install(
      on: channel,
      peer: peer,
      confinement: confinement,
      books: books ?? ConnectionBooks(on: channel.eventLoop, limits: limits, isShared: false),
      delegate: delegate,
      adopting: snapshot.map { (0, $0) }
    )
  }

  /// Turns a new channel into a connection. Call it on the channel's event loop, before the channel is active.
  ///
  /// - Parameters:
  ///   - account: `nil` counts the connection for the peer's process.
  ///   - handoff: lets the connection outlive this process.
  ///   - stored: the former process's snapshot of the connection, and its key.
  func install(
    on channel: any Channel,
    peer: PeerCredentials,
    confinement: String? = nil,
    books: ConnectionBooks,
    account: ProcessAccount? = nil,
    delegate: (any ConnectionDelegate)?,
    handoff: ConnectionHandoff? = nil,
    adopting stored: (key: UInt64, record: ConnectionSnapshot)? = nil
  ) throws -> Connection {
    if let options = channel.syncOptions {
      try options.setOption(.autoRead, value: false)
      // Input is processed in turns: further reads would only wait here instead of in the socket's buffer.
      try options.setOption(.maxMessagesPerRead, value: 1)
      try options.setOption(.recvAllocator, value: Self.receiveAllocator)
      try options.setOption(.allowRemoteHalfClosure, value: true)
      try options.setOption(.writeBufferWaterMark, value: ConnectionHandler.waterMark(for: limits))
    }
    let handler = ConnectionHandler(
      settings: self,
      flushQueue: books.flushQueue,
      account: account ?? books.open(channel, of: peer, confinement: confinement),
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
