// SPDX-License-Identifier: Apache-2.0

package import NIOCore
internal import NIOPosix
package import RestorationTransport

/// Makes connections to a broker, and runs them on its event loop, whose time the library uses.
package protocol BrokerRoute: Sendable {
  var eventLoop: any EventLoop { get }
  /// The name of the route for people.
  var path: String { get }

  /// The delegate is called on the event loop.
  nonisolated(nonsending) func connect(
    _ settings: ConnectionSettings,
    delegate: any ConnectionDelegate
  ) async throws(TransportError)
}

struct SocketRoute: BrokerRoute {
  /// One thread for all connections of the process.
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
