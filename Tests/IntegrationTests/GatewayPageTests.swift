// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// `Protocol/gateway.md` is followed word by word: its commands and files, on two hosts with a user and a server.
@Suite(
  .scratch,
  .enabled(if: UserManager.isUsable, Comment(rawValue: UserManager.requirement)),
  .enabled(if: PostgresCluster.isUsable, "needs PostgreSQL"),
  .timeLimit(.minutes(5))
)
struct GatewayPageTests {
  private static let application = "org.example.Notes"
  private static let password = "correct-horse"

  @Test func afterItsStepsAnArchiveFollowsItsUserToTheNextHost() throws {
    let server = try PageServer()
    let hosts = [try PageHost("desk", server), try PageHost("laptop", server)]
    do {
      try follow(server, hosts)
    } catch { throw TestFailure("\(error)\n\(hosts.map(\.log).joined())") }
    for host in hosts { try host.finish() }
  }

  private func follow(_ server: PageServer, _ hosts: [PageHost]) throws {
    let (desk, laptop) = (hosts[0], hosts[1])
    let writer = try desk.manager.client(.python)
    try writer.initialize(Self.application)
    try writer.encode("Main", state: ["cursor": 17])

    let steps = try TutorialPage("Protocol/gateway.md").section("## Setting it up").steps
    try #require(steps.count == 7)
    try server.run(steps[0].block("sh"))
    for host in hosts {
      let admission = try steps[1].block("sh").replacing("HOST", with: host.name)
        .replacing("USER", with: host.manager.output("id", "-un").filter { $0 != "\n" })
      try server.run(admission, input: "\(Self.password)\n\(Self.password)\n")

      let file = try steps[2].words(/make `([^`]+)`, mode (\d+), group `([^`]+)`/)
      let settings = try steps[2].block("json").replacing("HOST", with: host.name).replacing("…", with: Self.password)
      try host.write(settings, to: String(file.1))
      try host.run("chmod \(file.2) \(file.1) && chgrp \(file.3) \(file.1)")
      #expect(try host.run(steps[3].block("sh")).contains("stores what it is given"))
      try host.enable(steps[4].block("sh"))
    }

    try desk.runAsUser(steps[5].block("sh"))
    let keys = try "\(laptop.manager.home)/\(steps[5].words(/copy `~\/([^`]+)` to the other hosts/).1)"
    try laptop.runAsUser("mkdir -p $(dirname \(keys))")
    try PageHost.run(["cp", "-a", desk.manager.outside(keys), laptop.manager.outside(keys)])
    for host in hosts {
      let (_, member, file) = try steps[6].words(/put `([^`]+)` into `~\/([^`]+)`/)
      try host.manager.write("{\(member)}", to: "\(host.manager.home)/\(file)")
      #expect(try host.runAsUser(steps[6].block("sh")).contains("sealed with the key "))
    }
    try expectState(at: laptop)
  }

  /// What the first host has written, before anything was set up.
  private func expectState(at host: PageHost) throws {
    let reader = try host.manager.client(.python)
    try Wait.until("\(host.name) has the archive") {
      do {
        try reader.initialize(Self.application)
        return true
      } catch let error as CallError where ["ownedElsewhere", "storeFailed"].contains(error.kind) { return false }
    }
    #expect(try reader.decode("Main")["state"] == ["cursor": 17])
  }
}

/// A server as its administrator has made it: with TLS, passwords, and a role that may make databases and roles.
private final class PageServer {
  let network: NetworkNamespace
  /// Of the server, which is its own authority.
  let certificate: String
  private let cluster: PostgresCluster

  init() throws {
    network = try NetworkNamespace()
    let address = NetworkCable.address(ofServer: 1)
    try network.configure(["link set lo up", "addr add \(address)/32 dev lo"])
    cluster = try PostgresCluster("CREATE ROLE host LOGIN", at: PostgresCluster.Place(address, in: network))
    let make = """
      openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=db1 \
        -addext subjectAltName=DNS:db1 -keyout server.key -out server.crt
      sed -i '1i hostssl restoration all \(address)/32 scram-sha-256' pg_hba.conf
      chown --reference=PG_VERSION server.key server.crt pg_hba.conf
      """
    try PageHost.run(["env", "-C", cluster.directory, "sh", "-ec", make])
    certificate = try Files.text("\(cluster.directory)/server.crt")
    try cluster.query("CREATE ROLE dba LOGIN CREATEROLE CREATEDB")
    try cluster.query("ALTER SYSTEM SET ssl = on; SELECT pg_reload_conf()")
    try Wait.until("the server has read its settings") { try cluster.query("SHOW ssl") == "on" }
  }

  /// Runs commands on the server.
  func run(_ commands: String, input: String = "") throws {
    // psql would ask a terminal for passwords. It continues after statements that fail.
    let shell = ["env", "PGHOST=\(cluster.directory)", "PGUSER=dba", "PATH=\(Products.searchPath)", "setsid", "--wait"]
    let result = try ChildProcess.run(shell + ["sh", "-ec", commands], input: input)
    guard result.end == .exit(0), !result.errors.contains("ERROR") else {
      throw TestFailure("\(commands): \(result.end)\n\(result.output)\(result.errors)")
    }
  }
}

/// A host with the packages installed and a user logged in.
private final class PageHost {
  let name: String
  let manager: UserManager
  private let network: NetworkNamespace
  private let programs = "/run/programs"
  private var variables = ["PATH=/run/programs:/usr/sbin:/usr/bin:/sbin:/bin"]
  private var gateway: ChildProcess?

  init(_ name: String, _ server: PageServer) throws {
    (self.name, network) = (name, server.network)
    manager = try UserManager(in: ScratchDirectory(at: directory.makeDirectory(name)))
    try manager.install()
    try manager.add(Products.gateway, as: "\(programs)/restoration-gateway")
    if !Products.isOptimised { variables.append("LD_LIBRARY_PATH=\(try manager.addSwift())") }
    let package = "\(Products.repository)/systemd/debian/restoration-gateway"
    try run(
      """
      cp -a /etc /run/etc
      mount --bind /run/etc /etc
      systemd-sysusers \(package).sysusers
      systemd-tmpfiles --create \(package).tmpfiles
      echo '\(NetworkCable.address(ofServer: 1)) db1' >>/etc/hosts
      """
    )
    try write(server.certificate, to: "/etc/restorationd/database-ca.crt")
    try run("chmod 644 /etc/restorationd/database-ca.crt")
    try manager.login()
  }

  var log: String { ((try? Files.text(manager.directory.file("gateway.log"))) ?? "") + manager.log }

  /// Writes a file of root.
  func write(_ text: String, to path: String) throws { try Files.write(Array(text.utf8), to: manager.outside(path)) }

  /// Runs commands as root.
  @discardableResult
  func run(_ commands: String) throws -> String { try Self.run(asRoot(commands)) }

  @discardableResult
  func runAsUser(_ commands: String) throws -> String {
    try Self.run(manager.command(["env"] + variables.dropFirst() + ["sh", "-ec", commands]))
  }

  private func asRoot(_ commands: String) -> [String] {
    network.prefix + manager.enteringAsRoot + ["env", "-i"] + variables + ["sh", "-ec", commands]
  }

  @discardableResult
  static func run(_ command: [String]) throws -> String {
    let result = try ChildProcess.run(command)
    guard result.end == .exit(0) else {
      throw TestFailure("\(command.last ?? ""): \(result.end)\n\(result.output)\(result.errors)")
    }
    return result.output
  }

  // MARK: The system's manager, which is not in there

  /// Carries out the command that enables a socket: makes it, and starts its service with the first connection.
  func enable(_ command: String) throws {
    guard let unit = command.wholeMatch(of: /systemctl enable --now ([a-z-]+)\.socket\n/)?.1 else {
      throw TestFailure("nothing is known of \(command)")
    }
    let (socket, service) = (try Self.settings("\(unit).socket"), try Self.settings("\(unit).service"))
    guard let path = socket["ListenStream"], let mode = socket["SocketMode"], let name = socket["FileDescriptorName"],
      let user = service["User"], let folder = service["RuntimeDirectory"], let start = service["ExecStart"]
    else { throw TestFailure("the units of \(unit) lack a setting") }
    // Its home is that of `restoration-gateway.sysusers`.
    let process = """
      export RUNTIME_DIRECTORY=/run/\(folder) HOME=/ \(variables.joined(separator: " "))
      exec setpriv --reuid=\(user) --regid=\(user) --clear-groups \(start.replacing("/usr/bin/", with: "\(programs)/"))
      """
    let commands = """
      install -d -o \(user) /run/\(folder)
      exec systemd-socket-activate --listen=\(path) --fdname=\(name) sh -c '\(process)'
      """
    gateway = try ChildProcess(asRoot(commands), errors: manager.directory.file("gateway.log"))
    try Wait.until("the socket is there") { Files.exists(manager.outside(path)) }
    try run("chmod \(mode) \(path)")
  }

  private static func settings(_ unit: String) throws -> [String: String] {
    let lines = try Files.text("\(Products.repository)/systemd/system/\(unit)").split(separator: "\n")
    let settings = lines.compactMap { line in line.wholeMatch(of: /(\w+)=(.*)/).map { ("\($0.1)", "\($0.2)") } }
    return Dictionary(settings) { $1 }
  }

  func finish() throws {
    try gateway?.kill()
    try manager.finish()
  }
}
