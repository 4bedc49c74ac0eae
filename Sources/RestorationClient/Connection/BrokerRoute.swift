// SPDX-License-Identifier: Apache-2.0

package import NIOCore
internal import NIOPosix
package import RestorationTransport

/// The way to a broker: how connections are made, and the event loop on which they and all that follows them run. The
/// loop's time is the library's.
package protocol BrokerRoute: Sendable {
  var eventLoop: any EventLoop { get }
  /// What people know the way by.
  var path: String { get }

  /// Makes a connection. The delegate is called on the event loop.
  nonisolated(nonsending) func connect(
    _ settings: ConnectionSettings,
    delegate: any ConnectionDelegate
  ) async throws(TransportError)
}

/// The way over the broker's socket.
struct SocketRoute: BrokerRoute {
  /// One thread for all connections of the process; it sleeps while nothing comes.
  private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

  let eventLoop: any EventLoop = SocketRoute.group.next()
  let socket: SocketPath

  var path: String { socket.path }

  nonisolated(nonsending) func connect(
    _ settings: ConnectionSettings,
    delegate: any ConnectionDelegate
  ) async throws(TransportError) {
    _ = try await UnixConnector.connect(to: socket, on: eventLoop, settings: settings, delegate: delegate)
  }
}
