// SPDX-License-Identifier: Apache-2.0

package import NIOCore
internal import NIOPosix

package enum UnixConnector {
  /// The wait between two tries while the broker's queue is full.
  private static let retryMilliseconds: Int64 = 10

  /// Connects to a socket; the delegate is called on one event loop of `group`.
  ///
  /// The connection's `peer` is the listening process. Throws `noSocket`, `refused`, `notPermitted`, `busy` (the queue
  /// was full for `connectSeconds`) or `systemCall`.
  package static func connect(
    to path: SocketPath,
    on group: any EventLoopGroup,
    settings: ConnectionSettings,
    delegate: any ConnectionDelegate
  ) async throws(TransportError) -> Connection {
    let eventLoop = group.any()
    let deadline = NIODeadline.now() + .seconds(Int64(settings.limits.connectSeconds))
    while true {
      do throws(TransportError) {
        let descriptor = try openConnection(to: path.path)
        return try await adopt(descriptor, on: eventLoop, settings: settings, delegate: delegate)
      } catch {
        guard error.code == .busy, NIODeadline.now() < deadline else { throw error }
      }
      // Fails only if the loop shuts down; the next try then fails as well.
      try? await eventLoop.scheduleTask(in: .milliseconds(retryMilliseconds)) {}.futureResult.get()
    }
  }

  /// Makes a connected socket a connection, which owns the descriptor from here on, even if this throws.
  private static func adopt(
    _ number: Int32,
    on eventLoop: any EventLoop,
    settings: ConnectionSettings,
    delegate: any ConnectionDelegate
  ) async throws(TransportError) -> Connection {
    let socket = Descriptor(number)
    let peer = try TransportError.reporting("cannot identify the peer") { () throws(SystemCallError) in
      try SystemCalls.setCloseOnExec(number)
      return try PeerCredentials.read(from: number)
    }
    let bootstrap = ClientBootstrap(group: eventLoop).channelInitializer { channel in
      channel.eventLoop.makeCompletedFuture {
        try settings.install(on: channel, peer: peer, delegate: delegate)
      }
    }
    let connection = bootstrap.withConnectedSocket(socket.release()).flatMapThrowing { channel in
      let handler = try channel.pipeline.syncOperations.handler(type: ConnectionHandler.self)
      guard let connection = handler.connection else { throw ChannelError.alreadyClosed }
      return connection
    }
    do {
      let connection = try await connection.get()
      SystemCalls.closeEventLoopOnExec(watching: number)
      return connection
    } catch {
      throw TransportError(.closed, "the connection was closed while it was set up: \(error)")
    }
  }

  private static func openConnection(to path: String) throws(TransportError) -> Int32 {
    let socket = try TransportError.reporting("cannot connect to \(path)", calling: try SystemCalls.unixSocket())
    do throws(SystemCallError) {
      try SystemCalls.connect(socket.number, to: path)
    } catch {
      throw connectError(error, path)
    }
    return socket.release()
  }

  /// No process listens there, or the path is no socket.
  private static func refusal(by path: String) -> TransportError {
    let advice = "not a socket; give the path of the broker's socket"
    return switch (try? SystemCalls.status(of: path))?.kind {
    case .directory: TransportError(.notASocket, "\(path) is a directory, \(advice)")
    case .regular: TransportError(.notASocket, "\(path) is a file, \(advice)")
    case .socket, .symbolicLink, .other, nil:
      TransportError(.refused, "no process listens on \(path): the broker has ended or is restarting; try again")
    }
  }

  private static func connectError(_ error: SystemCallError, _ path: String) -> TransportError {
    switch error.number {
    case SystemCallError.notFound:
      TransportError(
        .noSocket,
        "no broker has created \(path); start restorationd, or give --socket the path of its socket"
      )
    case SystemCallError.connectionRefused: refusal(by: path)
    case SystemCallError.accessDenied, SystemCallError.notPermitted:
      TransportError(.notPermitted, "this user may not connect to \(path); every user has their own broker")
    case SystemCallError.wouldBlock:
      TransportError(.busy, "too many connections wait for the broker on \(path); try again later")
    default:
      TransportError(error, doing: "cannot connect to \(path)")
    }
  }
}
