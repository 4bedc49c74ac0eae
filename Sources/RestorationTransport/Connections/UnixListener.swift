// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import NIOCore
internal import NIOPosix

/// Accepts connections on a Unix socket, all on one event loop.
package final class UnixListener: Sendable {
  package let eventLoop: any EventLoop
  private let name: SocketName?
  private let channel: any Channel
  private let acceptor: NIOLoopBound<Acceptor>

  private init(name: SocketName?, channel: any Channel, acceptor: NIOLoopBound<Acceptor>) {
    self.eventLoop = channel.eventLoop
    (self.name, self.channel, self.acceptor) = (name, channel, acceptor)
  }

  /// Starts to accept. Connections of other users are closed at once.
  ///
  /// - Parameters:
  ///   - store: holds connections beyond the end of this process. `nil` ends them with it.
  ///   - inherited: connections of the former process, which are adopted first.
  ///   - confine: returns the confinement of each new connection.
  ///   - whenAdopted: gets the outcome of the adoption before any other connection is accepted.
  ///   - whenLost: gets the reason if the listener closes without `stop`: no client can connect then.
  package static func start(
    _ socket: consuming ListeningSocket,
    on eventLoop: any EventLoop,
    settings: ConnectionSettings,
    users: AllowedUsers = .own,
    handingOverTo store: (any DescriptorStore)? = nil,
    adopting inherited: InheritedConnections = InheritedConnections(),
    confining confine: @escaping PeerConfining = { _ in .success(nil) },
    whenAdopted: @Sendable (AdoptedConnections) -> Void = { _ in },
    whenLost: @escaping @Sendable (String) -> Void = { _ in },
    delegate: any ConnectionDelegate
  ) async throws(TransportError) -> UnixListener {
    let name = socket.name
    let descriptor = socket.releaseDescriptor()
    @Sendable func makeAcceptor(_ handoff: ConnectionHandoff?) -> Acceptor {
      Acceptor(
        eventLoop: eventLoop,
        settings: settings,
        users: users,
        handoff: handoff,
        confining: confine,
        delegate: delegate
      )
    }
    do {
      let (acceptor, adopted) = try await eventLoop.submit {
        guard let store else {
          let none = eventLoop.makeSucceededFuture(AdoptedConnections())
          return (NIOLoopBound(makeAcceptor(nil), eventLoop: eventLoop), none)
        }
        let (acceptor, adopted) = try inherited.adopt(store, limits: settings.limits, on: eventLoop, makeAcceptor)
        return (NIOLoopBound(acceptor, eventLoop: eventLoop), adopted)
      }.get()
      whenAdopted(try await adopted.get())
      let backlog = settings.limits.backlogMax
      let listener = try await listen(on: descriptor, name, acceptor, backlog: backlog, whenLost: whenLost).get()
      SystemCalls.closeEventLoopOnExec(watching: descriptor)
      return listener
    } catch {
      throw TransportError(.closed, "cannot accept connections: \(error)")
    }
  }

  /// Listens on a further socket. Its connections count and are handed over with those of this listener; all are
  /// confined. On the event loop only.
  package func listen(
    on socket: consuming ListeningSocket,
    confinement: String,
    backlog: Int,
    whenLost: @escaping @Sendable (String) -> Void
  ) -> EventLoopFuture<UnixListener> {
    let name = socket.name
    let further = NIOLoopBound(Acceptor(besides: acceptor.value, confinement: confinement), eventLoop: eventLoop)
    return Self.listen(on: socket.releaseDescriptor(), name, further, backlog: backlog, whenLost: whenLost)
  }

  private static func listen(
    on descriptor: Int32,
    _ name: SocketName?,
    _ acceptor: NIOLoopBound<Acceptor>,
    backlog: Int,
    whenLost: @escaping @Sendable (String) -> Void
  ) -> EventLoopFuture<UnixListener> {
    accept(on: descriptor, acceptor).map { channel in
      // NIO has called `listen` with a backlog of its own.
      try? SystemCalls.listen(descriptor, backlog: Int32(clamping: backlog))
      channel.closeFuture.whenComplete { _ in
        guard !acceptor.value.isStopping else { return }
        whenLost(acceptor.value.lastError.map { "\($0)" } ?? "the system gave no reason")
      }
      return UnixListener(name: name, channel: channel, acceptor: acceptor)
    }
  }

  private static func accept(
    on descriptor: Int32,
    _ acceptor: NIOLoopBound<Acceptor>
  ) -> EventLoopFuture<any Channel> {
    ServerBootstrap(group: acceptor.eventLoop)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(acceptor.value) }
      }
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try acceptor.value.accept(channel) }
      }
      .withBoundSocket(descriptor)
  }

  /// Stops accepting and removes the socket's name. Connections stay open, and the lock is held while this object
  /// lives.
  ///
  /// - Parameter keepsName: whether another process continues to accept on the socket.
  package func stop(keepsName: Bool = false) async {
    if !keepsName { name?.unlink() }
    let (channel, acceptor) = (channel, acceptor)
    // Fails only if the channel is closed already.
    try? await eventLoop.flatSubmit {
      acceptor.value.isStopping = true
      return channel.close()
    }.get()
  }

  /// Stops accepting if there is no connection. On the event loop only, where nothing can be accepted in between.
  package func stopIfUnused() -> Bool {
    guard acceptor.value.statistics.connections == 0 else { return false }
    name?.unlink()
    acceptor.value.isStopping = true
    channel.close(promise: nil)
    return true
  }

  /// Stops reading what the next process can read as well. Returns when all received requests are answered, or the time
  /// is over. Does nothing without a store.
  package func drain(milliseconds: Int64) async {
    let acceptor = acceptor
    try? await eventLoop.flatSubmit {
      acceptor.value.handoff?.drain(milliseconds: milliseconds) ?? acceptor.eventLoop.makeSucceededVoidFuture()
    }.get()
  }

  /// Hands all connections over to the next process, after `stop` and `drain`. The delegate is not called again.
  ///
  /// - Returns: how many were handed over, and how many end because they owe an answer.
  package func handOver() async -> AdoptedConnections {
    let acceptor = acceptor
    return (try? await eventLoop.submit { acceptor.value.handoff?.handOver() }.get()) ?? AdoptedConnections()
  }

  /// Counts since the start; on the event loop only.
  package var statistics: AcceptStatistics { acceptor.value.statistics }

  /// Each account of shared resources with its count: empty when all connections have closed. On the event loop only.
  package var holdings: [String: Int] { acceptor.value.holdings }
}

/// Users whose processes may connect.
package enum AllowedUsers: Hashable, Sendable {
  /// The user of this process.
  case own
  case one(UInt32)
  case any

  func contains(_ user: UInt32) -> Bool {
    switch self {
    case .own: user == SystemCalls.userID
    case .one(let one): user == one
    case .any: true
    }
  }
}

/// The peer's confinement (`Connection.confinement`), or the error for the peer before its connection is closed. Called
/// on the event loop, before a byte of the peer is read.
package typealias PeerConfining = @Sendable (PeerCredentials) -> Result<String?, ErrorObject>

package struct AcceptStatistics: Hashable, Sendable {
  package var connections = 0
  package var accepted = 0
  /// Connections of other users, closed at once.
  package var refusedUsers = 0
  /// Connections above the limit, closed after an error.
  package var refusedOverLimit = 0
  /// Connections whose confinement is unknown, closed after an error.
  package var refusedUnconfined = 0
  /// How often accepting was paused, for lack of descriptors or memory.
  package var pauses = 0
}
