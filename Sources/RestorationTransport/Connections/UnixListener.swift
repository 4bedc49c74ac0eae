// SPDX-License-Identifier: Apache-2.0

package import NIOCore
internal import NIOPosix

/// Accepts connections of one user on a Unix socket; all of them live on one event loop.
package final class UnixListener: Sendable {
  package let eventLoop: any EventLoop
  private let name: SocketName?
  private let channel: any Channel
  private let acceptor: NIOLoopBound<Acceptor>

  private init(name: SocketName?, channel: any Channel, acceptor: NIOLoopBound<Acceptor>) {
    self.eventLoop = channel.eventLoop
    (self.name, self.channel, self.acceptor) = (name, channel, acceptor)
  }

  /// Starts to accept. Connections of another user than `allowedUser` (by default our own) are closed at once.
  ///
  /// - Parameters:
  ///   - store: keeps the connections when this process ends; those that it has kept before are gone on with first.
  ///   - whenAdopted: told what has become of those, before any other connection is accepted.
  ///   - whenLost: told why, should the listener close otherwise than by `stop`: nobody can connect any more.
  package static func start(
    _ socket: consuming ListeningSocket,
    on eventLoop: any EventLoop,
    settings: ConnectionSettings,
    allowedUser: UInt32? = nil,
    handingOverTo store: (any DescriptorStore)? = nil,
    adopting inherited: InheritedConnections = InheritedConnections(),
    whenAdopted: @Sendable (AdoptedConnections) -> Void = { _ in },
    whenLost: @escaping @Sendable (String) -> Void = { _ in },
    delegate: any ConnectionDelegate
  ) async throws(TransportError) -> UnixListener {
    let name = socket.name
    let descriptor = socket.releaseDescriptor()
    let user = allowedUser ?? SystemCalls.userID
    @Sendable func makeAcceptor(_ handoff: ConnectionHandoff?) -> Acceptor {
      Acceptor(eventLoop: eventLoop, settings: settings, allowedUser: user, handoff: handoff, delegate: delegate)
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
      let channel = try await accept(on: descriptor, acceptor)
      // NIO listens again with a backlog of its own.
      try? SystemCalls.listen(descriptor, backlog: Int32(clamping: settings.limits.backlogMax))
      SystemCalls.closeEventLoopOnExec(watching: descriptor)
      channel.closeFuture.whenComplete { _ in
        guard !acceptor.value.isStopping else { return }
        whenLost(acceptor.value.lastError.map { "\($0)" } ?? "the system gave no reason")
      }
      return UnixListener(name: name, channel: channel, acceptor: acceptor)
    } catch {
      throw TransportError(.closed, "the event loop does not take the listening socket: \(error)")
    }
  }

  private static func accept(on descriptor: Int32, _ acceptor: NIOLoopBound<Acceptor>) async throws -> any Channel {
    try await ServerBootstrap(group: acceptor.eventLoop)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(acceptor.value) }
      }
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try acceptor.value.accept(channel) }
      }
      .withBoundSocket(descriptor)
      .get()
  }

  /// Stops accepting and removes the socket's name; connections stay. The lock stays until this object goes.
  package func stop() async {
    name?.unlink()
    let (channel, acceptor) = (channel, acceptor)
    // Fails only when it is closed already.
    try? await eventLoop.flatSubmit {
      acceptor.value.isStopping = true
      return channel.close()
    }.get()
  }

  /// Stops accepting if there is no connection; on the event loop only, where nothing can be accepted meanwhile.
  package func stopIfUnused() -> Bool {
    guard acceptor.value.statistics.connections == 0 else { return false }
    name?.unlink()
    acceptor.value.isStopping = true
    channel.close(promise: nil)
    return true
  }

  /// Stops reading what could be read by the process after this one as well, and returns when all that was taken in is
  /// answered, or when that time is over. Does nothing without a store that keeps connections.
  package func drain(milliseconds: Int64) async {
    let acceptor = acceptor
    try? await eventLoop.flatSubmit {
      acceptor.value.handoff?.drain(milliseconds: milliseconds) ?? acceptor.eventLoop.makeSucceededVoidFuture()
    }.get()
  }

  /// Leaves all connections to the process after this one; `stop` and `drain` come first. Their delegate hears
  /// nothing any more.
  ///
  /// - Returns: how many go on, and how many end because they owe an answer.
  package func handOver() async -> AdoptedConnections {
    let acceptor = acceptor
    return (try? await eventLoop.submit { acceptor.value.handoff?.handOver() }.get()) ?? AdoptedConnections()
  }

  /// Counts since the start; on the event loop only.
  package var statistics: AcceptStatistics { acceptor.value.statistics }
}

/// What a listener has accepted and refused.
package struct AcceptStatistics: Hashable, Sendable {
  /// Connections at this moment.
  package var connections = 0
  /// Connections ever accepted.
  package var accepted = 0
  /// Connections of other users, closed at once.
  package var refusedUsers = 0
  /// Connections above the limit, told so and closed.
  package var refusedOverLimit = 0
  /// Times accepting paused, for lack of descriptors or memory.
  package var pauses = 0
}
