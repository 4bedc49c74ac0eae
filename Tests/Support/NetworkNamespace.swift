// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A network without a connection to any other, for programs of a test; it ends with this object.
package final class NetworkNamespace {
  /// Whether this process may make some, and cables between them.
  package static let isUsable: Bool = {
    guard geteuid() == 0, let servers = try? NetworkNamespace() else { return false }
    return (try? NetworkCable(1, to: servers)) != nil
  }()

  /// Lives in it, and so keeps it.
  private let keeper: ChildProcess

  package init() throws {
    keeper = try ChildProcess(["unshare", "--net", "sh", "-c", "echo; exec cat"])
    guard try keeper.output?.next() != nil else { throw TestFailure("there is no network namespace: unshare") }
  }

  /// What a command begins with that is to run in it.
  package var prefix: [String] { ["nsenter", "--net=/proc/\(keeper.pid)/ns/net"] }

  /// Carries out lines of `ip`.
  package func configure(_ lines: [String]) throws {
    let result = try ChildProcess.run(prefix + ["ip", "-batch", "-"], input: lines.map { $0 + "\n" }.joined())
    guard result.end == .exit(0) else { throw TestFailure("ip: \(lines): \(result.errors)") }
  }

  /// Joins two by a cable, and calls its ends so.
  package func connect(to other: NetworkNamespace, _ name: String) throws {
    let ends = ["netns", "\(keeper.pid)", "type", "veth", "peer", "name", name, "netns", "\(other.keeper.pid)"]
    let result = try ChildProcess.run(["ip", "link", "add", name] + ends)
    guard result.end == .exit(0) else { throw TestFailure("ip link add: \(result.errors)") }
  }
}

/// The cable between a host and the servers of a database, which loses what passes in a direction that is blocked:
/// nobody is told.
package final class NetworkCable {
  /// Servers have the addresses 10.9.0.1 and so on.
  package static func address(ofServer number: Int) -> String { "10.9.0.\(number)" }

  package let host: NetworkNamespace
  private let servers: NetworkNamespace
  private let name: String
  private let number: Int
  private var blocked: Set<FaultyRoute.Direction> = []

  /// - Parameter number: Of the host, from 1 to 250.
  package init(_ number: Int, to servers: NetworkNamespace) throws {
    (host, self.servers, self.number, name) = (try NetworkNamespace(), servers, number, "host\(number)")
    try host.connect(to: servers, name)
    let up = "link set \(name) up"
    try host.configure(["addr add \(ends.host)/30 dev \(name)", up, "route add 10.9.0.0/24 via \(ends.servers)"])
    try servers.configure(["addr add \(ends.servers)/30 dev \(name)", up])
  }

  private var ends: (host: String, servers: String) { ("10.9.\(number).2", "10.9.\(number).1") }

  /// Blocks these directions, and no others.
  package func block(_ directions: Set<FaultyRoute.Direction>) throws {
    for direction in directions.symmetricDifference(blocked) {
      let (from, to) = direction == .there ? (host, ends.servers) : (servers, ends.host)
      // To a neighbour who does not exist.
      let wrong = "neigh replace \(to) lladdr 02:00:00:00:00:01 dev \(name) nud permanent"
      try from.configure([directions.contains(direction) ? wrong : "neigh del \(to) dev \(name)"])
    }
    blocked = directions
  }
}
