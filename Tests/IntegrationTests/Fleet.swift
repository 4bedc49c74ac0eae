// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport

/// Hosts that share a database, all on this machine; the user is whoever runs the tests.
final class Fleet {
  /// The server that is written to.
  private(set) var primary: PostgresCluster
  private(set) var standbys: [PostgresCluster] = []
  private let directory: ScratchDirectory
  /// Where the servers are, if hosts have cables to them.
  private let network: NetworkNamespace?
  private var hosts: [FleetHost] = []

  /// - Parameters:
  ///   - standbys: How many servers follow the first one. If there are any, commits wait for one of them.
  ///   - hasCables: Each host is in a network of its own, if this process may make one.
  ///   - schema: Makes another schema of the gateway's, for a fault of it.
  init(
    in directory: ScratchDirectory,
    standbys count: Int = 0,
    hasCables: Bool = false,
    schema: (String) throws -> String = { $0 }
  ) throws {
    self.directory = directory
    network = hasCables && NetworkNamespace.isUsable ? try NetworkNamespace() : nil
    let addresses = (1...Self.serversMax).map(NetworkCable.address)
    try network?.configure(["link set lo up"] + addresses.map { "addr add \($0)/32 dev lo" })
    primary = try PostgresCluster(
      schema(ChildProcess.run([Products.gateway, "schema"]).output),
      at: network.map { PostgresCluster.Place(addresses[0], in: $0) }
    )
    try primary.admit()
    try addStandbys(count)
  }

  /// Otherwise they have ways between sockets.
  var hasCables: Bool { network != nil }

  private static let serversMax = 3

  private func addStandbys(_ count: Int) throws {
    let free = (1...Self.serversMax).map(NetworkCable.address).filter { $0 != primary.place?.address }
    standbys = try free.prefix(count).map { address in
      try PostgresCluster(following: primary, at: network.map { PostgresCluster.Place(address, in: $0) })
    }
    if count > 0 { try primary.cover(by: standbys) }
  }

  /// The primary is lost, and the standbys besides this one; it takes over. Others are made in their place.
  ///
  /// - Parameter chosen: Of the standbys; `nil` for the one that has more, as a quorum would find it: it has all that
  ///   commits have waited for.
  func failOver(to chosen: PostgresCluster? = nil) throws {
    let count = standbys.count
    try primary.stop()
    for standby in standbys { try standby.waitUntil(isFollowing: false) }
    let furthest = try standbys.map { ($0, try $0.received) }.max { $0.1 < $1.1 }?.0
    guard let next = chosen ?? furthest else { throw TestFailure("there is no standby") }
    for standby in standbys where standby !== next { try standby.stop() }
    try next.promote()
    (primary, standbys) = (next, [])
    for host in hosts { host.network.lead(to: next) }
    try addStandbys(count)
  }

  /// The servers forget what has been done meanwhile, and begin no timeline.
  func putBack(after body: () throws -> Void) throws {
    let count = standbys.count
    try primary.save()
    try body()
    for standby in standbys { try standby.stop() }
    standbys = []
    try primary.putBack()
    try addStandbys(count)
  }

  /// A host with a gateway and a broker, both running.
  ///
  /// - Parameters:
  ///   - replica: Members of the setting `replica`.
  ///   - isEncrypted: The server has sealed bytes only; all hosts have the same key.
  func host(_ name: String, _ replica: JSONObject = [:], isEncrypted: Bool = false) throws -> FleetHost {
    var replica = replica
    replica[isEncrypted ? "keys" : "encryption"] = .string(isEncrypted ? try keys : "none")
    let own = try ScratchDirectory(at: directory.makeDirectory(name))
    let way: any FleetNetwork
    if let network {
      way = try CableNetwork(hosts.count + 1, to: network, (1...Self.serversMax).map(NetworkCable.address))
    } else {
      way = try RouteNetwork(in: own, to: primary)
    }
    let host = try FleetHost(name, replica, way, isCovered: !standbys.isEmpty, in: own)
    hosts.append(host)
    return host
  }

  private var keys: String {
    get throws {
      let keys = directory.file("keys")
      guard !Files.exists(keys) else { return keys }
      let made = try ChildProcess.run([Products.control, "store", "key", "new", "--keys", keys])
      guard made.end == .exit(0) else { throw TestFailure(made.errors) }
      return keys
    }
  }

  /// Returns when the database has a change of an archive.
  func waitUntil(
    hasChange sequence: Int64,
    of application: String = "org.example.Draw",
    _ deadline: Deadline = Deadline()
  ) throws {
    let query = """
      SELECT greatest(max(upto), max(base), 0) FROM restoration.archive LEFT JOIN restoration.batch USING (archive)
      WHERE application = '\(application)'
      """
    try Wait.until("the database has change \(sequence)", deadline) {
      try Int64(primary.query(query)).map { $0 >= sequence } ?? false
    }
  }

  /// The standard error of all that was started.
  var log: String { hosts.map { "--- \($0.name) ---\n\($0.log)" }.joined(separator: "\n") }

  /// Looks for the traces of a crash.
  func finish() throws { for host in hosts { try host.finish() } }
}

/// A gateway, a broker, and the network between them and the database.
final class FleetHost {
  let name: String
  let broker: BrokerFixture
  /// To the database.
  let network: any FleetNetwork
  private let directory: ScratchDirectory
  private let configuration: String
  private let socket: String
  private var gateway: ChildProcess?

  fileprivate init(
    _ name: String,
    _ replica: JSONObject,
    _ network: any FleetNetwork,
    isCovered: Bool,
    in directory: ScratchDirectory
  ) throws {
    (self.name, self.network, self.directory) = (name, network, directory)
    configuration = try directory.write(
      JSONValue.object([
        "conninfo": .string("host=\(network.hosts) user=host dbname=postgres"),
        "synchronous": .bool(isCovered), "userBytesMax": .integer(1 << 40),
      ]).text,
      to: "gateway.json"
    )
    socket = directory.file("gateway.sock")
    var members: JSONObject = ["socket": .string(socket), "host": .string(name)]
    for (member, value) in replica.members { members[member] = value }
    broker = BrokerFixture(in: directory, settings: ["replica": .object(members)])
    try startGateway()
    try broker.start()
  }

  /// Of both processes.
  var log: String { broker.log + ((try? Files.text(directory.file("gateway.log"))) ?? "") }

  func startGateway() throws {
    Files.removeTree(socket)
    gateway = try ChildProcess(
      network.prefix + [Products.gateway, "--config", configuration, "--socket", socket],
      errors: directory.file("gateway.log")
    )
    try Wait.until("the gateway serves") { Files.exists(socket) }
  }

  enum Part: CaseIterable { case broker, gateway, host }

  /// Ends processes at once; of the whole host, as if the power were cut.
  func kill(_ part: Part = .host) throws {
    if part != .gateway { try broker.kill() }
    if part != .broker { try gateway?.kill() }
  }

  /// Starts again what was killed.
  func restart(_ part: Part) throws {
    if part != .broker { try startGateway() }
    if part != .gateway { try broker.start() }
  }

  /// Stops processes where they are, or lets them go on.
  func send(signal: Int32, to part: Part = .host) throws {
    for pid in [part == .broker ? nil : gateway?.pid, part == .gateway ? nil : try broker.pid].compactMap(\.self) {
      guard Glibc.kill(pid, signal) == 0 else { throw TestFailure("kill: \(SystemError.current)") }
      // Until then they may still read what is sent to them.
      if signal == SIGSTOP { try Wait.until("process \(pid) is stopped") { ProcessStatus(pid).isStopped } }
    }
  }

  fileprivate func finish() throws {
    defer { network.stop() }
    try broker.finish()
    try gateway?.kill()
  }
}
