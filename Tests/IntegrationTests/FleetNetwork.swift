// SPDX-License-Identifier: Apache-2.0

internal import TestSupport

/// What lies between a host and the servers of the database.
protocol FleetNetwork: AnyObject {
  /// The servers, for libpq.
  var hosts: String { get }
  /// Begins the commands that reach them.
  var prefix: [String] { get }

  func change(_ body: (inout FaultyRoute.Weather) -> Void) throws
  /// This server is the primary.
  func lead(to server: PostgresCluster)
  func stop()
}

/// A way between sockets, which always leads to the primary.
final class RouteNetwork: FleetNetwork {
  private static let socket = ".s.PGSQL.5432"
  private let route: FaultyRoute
  let hosts: String
  let prefix: [String] = []

  init(in directory: ScratchDirectory, to server: PostgresCluster) throws {
    hosts = try directory.makeDirectory("db")
    route = try FaultyRoute(from: "\(hosts)/\(Self.socket)", to: "\(server.directory)/\(Self.socket)")
  }

  func change(_ body: (inout FaultyRoute.Weather) -> Void) { route.change(body) }
  func lead(to server: PostgresCluster) { route.lead(to: "\(server.directory)/\(Self.socket)") }
  func stop() { route.stop() }
}

/// A cable to all servers; the gateway finds out which one is the primary.
final class CableNetwork: FleetNetwork {
  private let cable: NetworkCable
  private var weather = FaultyRoute.Weather()
  let hosts: String

  init(_ number: Int, to servers: NetworkNamespace, _ addresses: [String]) throws {
    cable = try NetworkCable(number, to: servers)
    hosts = addresses.joined(separator: ",")
  }

  var prefix: [String] { cable.host.prefix }

  func change(_ body: (inout FaultyRoute.Weather) -> Void) throws {
    body(&weather)
    guard weather.delayMilliseconds == 0, weather.bytesPerSecond == nil else {
      throw TestFailure("a cable is not slow; take a route")
    }
    try cable.block(weather.isCut ? [.there, .back] : weather.blocked)
  }

  func lead(to server: PostgresCluster) {}
  func stop() {}
}
