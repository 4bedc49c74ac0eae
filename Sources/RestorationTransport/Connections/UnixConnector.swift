// SPDX-License-Identifier: Apache-2.0

package import NIOCore
internal import NIOPosix

/// Connects to a broker, or one end to another.
package enum UnixConnector {
  /// Between two tries while the broker's queue of connections is full.
  private static let retryMilliseconds: Int64 = 10

  /// Connects to a socket; the delegate is called on one event loop of `group`.
  ///
  /// `peer` of the connection is the process that listens. Throws a `TransportError` with code `noSocket`, `refused`,
  /// `notPermitted`, `busy` (the queue stayed full for `connectSeconds`), or that of a failed system call.
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
      // Fails only when the loop shuts down, which the next try then reports.
      try? await eventLoop.scheduleTask(in: .milliseconds(retryMilliseconds)) {}.futureResult.get()
    }
  }

  /// Two ends connected to each other without a listener or a path: real sockets, for tests and for a broker and a
  /// client in one process.
  package static func pair(
    on eventLoop: any EventLoop,
    settings: ConnectionSettings,
    _ first: any ConnectionDelegate,
    _ second: any ConnectionDelegate
  ) async throws(TransportError) -> (Connection, Connection) {
    let purpose = "cannot make a pair of connections"
    let (one, other) = try TransportError.reporting(purpose, calling: try SystemCalls.unixSocketPair())
    let otherEnd = Descriptor(other)
    let first = try await adopt(one, on: eventLoop, settings: settings, delegate: first)
    let second = try await adopt(otherEnd.release(), on: eventLoop, settings: settings, delegate: second)
    return (first, second)
  }

  /// Makes a connected socket a connection; the descriptor is the connection's from here on, also on failure.
  package static func adopt(
    _ number: Int32,
    on eventLoop: any EventLoop,
    settings: ConnectionSettings,
    delegate: any ConnectionDelegate
  ) async throws(TransportError) -> Connection {
    let socket = Descriptor(number)
    let peer = try TransportError.reporting("cannot tell the peer") { () throws(SystemCallError) in
      try SystemCalls.setCloseOnExec(number)
      return try PeerCredentials.read(from: number)
    }
    let bootstrap = ClientBootstrap(group: eventLoop).channelInitializer { channel in
      channel.eventLoop.makeCompletedFuture {
        let flushQueue = FlushQueue(eventLoop: channel.eventLoop)
        _ = try settings.install(on: channel, peer: peer, flushQueue: flushQueue, delegate: delegate)
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

  private static func connectError(_ error: SystemCallError, _ path: String) -> TransportError {
    switch error.number {
    case SystemCallError.notFound:
      TransportError(.noSocket, "no broker has made \(path); start restorationd or give its --socket PATH")
    case SystemCallError.connectionRefused:
      TransportError(.refused, "nobody listens on \(path); the broker has ended or is restarting, so try again")
    case SystemCallError.accessDenied, SystemCallError.notPermitted:
      TransportError(.notPermitted, "this user may not connect to \(path); every user has a broker of their own")
    case SystemCallError.wouldBlock:
      TransportError(.busy, "the broker on \(path) has too many connections waiting; try again later")
    default:
      TransportError(error, doing: "cannot connect to \(path)")
    }
  }
}
