// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport

/// Hosts that share a database, all on this machine; the user is whoever runs the tests.
final class Fleet {
  let cluster: PostgresCluster
  private let directory: ScratchDirectory
  private var hosts: [FleetHost] = []

  init(in directory: ScratchDirectory) throws {
    self.directory = directory
    cluster = try PostgresCluster(ChildProcess.run([Products.gateway, "schema"]).output)
  }

  /// A host with a gateway and a broker, both running.
  ///
  /// - Parameter replica: Members of the setting `replica`.
  func host(_ name: String, _ replica: JSONObject = [:]) throws -> FleetHost {
    let host = try FleetHost(name, replica, cluster, in: directory)
    hosts.append(host)
    return host
  }

  /// Returns when the database has a change of the only archive.
  func waitUntil(hasChange sequence: Int64) throws {
    let query = """
      SELECT greatest((SELECT max(upto) FROM restoration.batch), (SELECT max(base) FROM restoration.archive), 0)
      """
    try Wait.until("the database has change \(sequence)") {
      try Int64(cluster.query(query)).map { $0 >= sequence } ?? false
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
  let network: FaultyRoute
  private let directory: ScratchDirectory
  private let configuration: String
  private let socket: String
  private var gateway: ChildProcess?

  fileprivate init(_ name: String, _ replica: JSONObject, _ cluster: PostgresCluster, in parent: ScratchDirectory)
    throws
  {
    self.name = name
    directory = try ScratchDirectory(at: parent.makeDirectory(name))
    let socketName = ".s.PGSQL.5432"
    network = try FaultyRoute(
      from: "\(directory.makeDirectory("db"))/\(socketName)",
      to: "\(cluster.directory)/\(socketName)"
    )
    configuration = try directory.write(
      JSONValue.object([
        "conninfo": .string("host=\(directory.file("db")) user=restoration_gateway dbname=postgres"),
        "synchronous": false,
      ]).text,
      to: "gateway.json"
    )
    socket = directory.file("gateway.sock")
    var members: JSONObject = ["socket": .string(socket), "host": .string(name), "encryption": "none"]
    for (member, value) in replica.members { members[member] = value }
    broker = BrokerFixture(in: directory, settings: ["replica": .object(members)])
    try startGateway()
    try broker.start()
  }

  fileprivate var log: String { broker.log + ((try? Files.text(directory.file("gateway.log"))) ?? "") }

  func startGateway() throws {
    Files.removeTree(socket)
    gateway = try ChildProcess(
      [Products.gateway, "--config", configuration, "--socket", socket],
      errors: directory.file("gateway.log")
    )
    try Wait.until("the gateway serves") { Files.exists(socket) }
  }

  /// The power is cut.
  func kill() throws {
    try broker.kill()
    try gateway?.kill()
  }

  /// Stops the processes where they are, or lets them go on.
  func send(signal: Int32) throws {
    gateway?.send(signal: signal)
    guard Glibc.kill(try broker.pid, signal) == 0 else { throw TestFailure("kill: \(SystemError.current)") }
  }

  fileprivate func finish() throws {
    defer { network.stop() }
    try broker.finish()
    try gateway?.kill()
  }
}
