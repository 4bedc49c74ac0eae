// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// Archives that follow their user: real brokers, gateways and PostgreSQL, on hosts whose network the test owns.
@Suite(.scratch, .enabled(if: PostgresCluster.isUsable, "needs PostgreSQL")) struct FleetTests {
  private static let application = "org.example.Draw"

  /// What a client of one host does with one object.
  private struct User {
    let client: WireClient
    let object: JSONValue

    /// Waits for the archive for as long as another host has it, or takes it over.
    init(on host: FleetHost, takeOver: Bool = false) throws {
      let client = try host.broker.connect()
      let parameters: JSONValue = [
        "application": .string(FleetTests.application), "takeOver": .bool(takeOver), "serves": ["archiveLost"],
      ]
      try Wait.until("\(host.name) has the archive") {
        do {
          _ = try client.call("initialize", parameters)
          return true
        } catch let error as CallError where error.kind == "ownedElsewhere" {
          return false
        }
      }
      self.client = client
      object =
        try client.call("registerObjectForStateRestoration", ["restorationIdentifier": "editor"])["object"] ?? .null
    }

    /// Returns the change that it was.
    @discardableResult
    func encode(_ number: Int64) throws -> Int64 {
      let answer = try client.call("encodeRestorableState", ["object": object, "state": ["n": .integer(number)]])
      return answer["sequence"]?.integer ?? 0
    }

    func failure(_ number: Int64) throws -> CallError {
      try client.failure("encodeRestorableState", ["object": object, "state": ["n": .integer(number)]])
    }

    func decode() throws -> Int64? {
      try client.call("decodeRestorableState", ["object": object])["state"]?["n"]?.integer
    }
  }

  /// Hosts by name; each gets these members of the setting `replica`.
  private static func withHosts(
    _ replica: JSONObject = [:],
    _ body: (_ fleet: Fleet, _ a: FleetHost, _ b: FleetHost) throws -> Void
  ) throws {
    let fleet = try Fleet(in: directory)
    do {
      try body(fleet, fleet.host("A", replica), fleet.host("B", replica))
    } catch {
      throw TestFailure("\(error)\n\(fleet.log)")
    }
    try fleet.finish()
  }

  @Test func whatWasSavedOnOneHostIsThereOnTheNext() throws {
    try Self.withHosts { _, a, b in
      let first = try User(on: a)
      try first.encode(1)
      let second = try User(on: b)
      #expect(try second.decode() == 1)
      let lost = try first.client.notification("archiveLost")
      #expect(lost["host"] == "B")
      #expect(try first.failure(2).kind == "fenced")
      try second.encode(3)
      // And back.
      #expect(try User(on: a).decode() == 3)
    }
  }

  @Test func whatWasAcknowledgedByTheReplicaOutlivesItsHost() throws {
    try Self.withHosts(["acknowledge": "replica"]) { _, a, b in
      let first = try User(on: a)
      for number in 1...20 { try first.encode(Int64(number)) }
      try a.kill()
      let refused = try b.broker.connect().failure("initialize", ["application": .string(Self.application)])
      #expect(refused.kind == "ownedElsewhere" && refused.data["host"] == "A")
      let taken = try Self.control(b, ["take-over", Self.application])
      #expect(taken == ["application": .string(Self.application), "host": "A"])
      #expect(try User(on: b).decode() == 20)
      #expect(try Self.control(b, ["take-over", Self.application])["host"] == .null)
      #expect(try Self.control(b, ["take-over", "org.example.Drow"], 4)["error"]?["kind"] == "unknownApplication")
    }
  }

  @Test func aHostWithoutTheDatabaseGoesOnAndCatchesUp() throws {
    try Self.withHosts { _, a, b in
      let first = try User(on: a)
      try a.network.change { $0.blocked = [.there, .back] }
      for number in 1...200 { try first.encode(Int64(number)) }
      try a.network.change { $0.blocked = [] }
      #expect(try User(on: b).decode() == 200)
    }
  }

  @Test func whoeverWaitsForTheReplicaIsToldWithinSecondsThatItDoesNotAnswer() throws {
    try Self.withHosts(["acknowledge": "replica"]) { _, a, _ in
      let first = try User(on: a)
      try first.encode(1)
      try a.network.change { $0.blocked = [.there, .back] }
      let begin = Deadline.now
      let unconfirmed = try first.failure(2)
      #expect(unconfirmed.kind == "storeFailed" && unconfirmed.data["unconfirmed"] == true)
      #expect(Deadline.now - begin < 10_000)
      try a.network.change { $0.blocked = [] }
      try Wait.until("the replica is used again") {
        do {
          try first.encode(4)
          return true
        } catch let error as CallError where error.kind == "storeFailed" {
          return false
        }
      }
      #expect(try first.decode() == 4)
    }
  }

  @Test func aFrozenHolderWritesNothingAfterItsLease() throws {
    try Self.withHosts(["leaseSeconds": 3]) { fleet, a, b in
      let first = try User(on: a)
      try fleet.waitUntil(hasChange: first.encode(1))
      try a.send(signal: SIGSTOP)
      let second = try User(on: b)
      #expect(try second.decode() == 1)
      try second.encode(2)
      try a.send(signal: SIGCONT)
      #expect(["fenced", "storeFailed"].contains(try first.failure(3).kind))
      #expect(try second.decode() == 2)
    }
  }

  @Test func thePersonAtAHostSeesAndAwaitsWhatIsSent() throws {
    try Self.withHosts { _, a, _ in
      func store(_ arguments: [String], _ status: Int32) throws -> JSONValue {
        try Self.control(a, ["store"] + arguments, status)
      }
      let user = try User(on: a)
      let place = try ChildProcess.run(["stat", "-f", "-c", "%T", a.broker.archives]).output
      #expect(a.broker.log.contains("archives in \(a.broker.archives) are in memory") == place.hasPrefix("tmpfs"))
      try user.encode(1)
      #expect(try store(["flush", Self.application], 0) == ["unsent": []])
      let status = try store(["status"], 0)["applications"]?.array?.first
      #expect(status?["lease"] == "held" && status?["host"] == "A" && status?["changes"] == 0)
      #expect(status?["sequence"] == status?["stored"])
      let shown = try ChildProcess.run([Products.control, "--socket", a.broker.socket, "store", "status"]).output
      #expect(shown.hasSuffix("\n\nHost A, acknowledged by disk, not sealed.\n"), "\(shown)")
      #expect(try store(["migrate", Self.application], 75)["error"]?["kind"] == "storeFailed")
      let metrics = try ChildProcess.run([Products.control, "--socket", a.broker.socket, "metrics"]).output
      let families = metrics.matches(of: /# TYPE (restorationd_replica_\w+) (\w+)/).map { family in
        family.2 == "counter" ? "\(family.1)_total" : String(family.1)
      }
      #expect(try Set(families) == Set(MetricFamily.promised().keys.filter { $0.contains("_replica_") }))
      try a.network.change { $0.blocked = [.there, .back] }
      try user.encode(2)
      let unsent = try store(["flush", "--timeout", "1"], 75)["unsent"]
      #expect(unsent?.array?.first?["application"] == .string(Self.application))
      let explaining = [Products.control, "--socket", a.broker.socket, "explain", Self.application, "editor"]
      let explained = try ChildProcess.run(explaining).output
      #expect(explained.contains("On other hosts:\n  the fleet's store lacks 1 change"), "\(explained)")
      try a.network.change { $0.blocked = [] }
      #expect(try store(["flush", "--timeout", "20"], 0) == ["unsent": []])
    }
  }

  @Test func aNewKeyIsTheUsersAloneAndCurrent() throws {
    let keys = directory.file("keys")
    let made = try (1...2).map { _ in
      let (end, output, errors) = try ChildProcess.run([Products.control, "store", "key", "new", "--keys", keys])
      #expect(end == .exit(0), "\(errors)")
      return output
    }
    #expect(made[0] != made[1])
    #expect(try Files.text("\(keys)/current") == made[1])
    #expect(Set(Files.list(keys)) == Set(made.map { String($0.dropLast()) } + ["current"]))
  }

  /// Both have what the other one has not: the copy is kept, and told.
  @Test func whatTwoHostsHaveWrittenIsNeverMixed() throws {
    try Self.withHosts { fleet, a, b in
      let first = try User(on: a)
      try fleet.waitUntil(hasChange: first.encode(1))
      try a.network.change { $0.isCut = true }
      try first.encode(2)
      let second = try User(on: b, takeOver: true)
      #expect(try second.decode() == 1)
      try second.encode(3)
      try a.network.change { $0.isCut = false }
      _ = try first.client.notification("archiveLost")
      let user = try User(on: a)
      #expect(try user.decode() == 3)
      _ = try user.client.call("goodbye", ["reason": "restart"])
      try Self.lookAfterCopy(on: a)
    }
  }

  /// The copy has 2, and what has replaced it 3.
  private static func lookAfterCopy(on host: FleetHost) throws {
    let copy = "\(application)+conflict-1"
    func conflicts(_ arguments: [String], _ status: Int32 = 0) throws -> JSONValue {
      try control(host, ["store", "conflicts"] + arguments, status)
    }
    func number(_ application: String) throws -> JSONValue { try control(host, ["get", application, "editor", "/n"]) }
    let listed = try conflicts([])["copies"]?.array
    #expect(listed?.count == 1 && listed?.first?["application"] == .string(copy) && listed?.first?["objects"] == 1)
    #expect(try number(copy) == 2)
    let misspelt = try conflicts(["restor"], 4)["error"]?["hint"]
    #expect(misspelt == "Did you mean restore? The commands are list, show, restore, remove.")
    let difference = try conflicts(["show", copy])
    #expect((difference["added"], difference["removed"]) == ([], []))
    #expect(difference["changed"]?.array?.map { $0["keys"] } == [["n"]])
    #expect(try control(host, ["put", copy, "editor", "/n", "4"], 1)["error"]?["kind"] == "forbidden")
    let former = try conflicts(["restore", copy])["generation"]?.integer ?? 0
    #expect(try number(application) == 2 && number(copy) == 2)
    #expect(try conflicts(["show", copy])["changed"] == [])
    _ = try control(host, ["rollback", application, "\(former)"])
    #expect(try number(application) == 3)
    _ = try conflicts(["remove", copy, "--yes"])
    #expect(try conflicts(["list"])["copies"] == [] && number(application) == 3)
    #expect(try conflicts(["show", copy], 4)["error"]?["kind"] == "unknownApplication")
    #expect(!Files.list(host.broker.archives).contains { $0.contains("+conflict-") })
  }

  /// What `restorationctl` prints as JSON.
  private static func control(_ host: FleetHost, _ arguments: [String], _ status: Int32 = 0) throws -> JSONValue {
    let command = [Products.control, "--socket", host.broker.socket, "-j"] + arguments
    let (end, output, errors) = try ChildProcess.run(command)
    #expect(end == .exit(status), "\(arguments): \(output)\(errors)")
    return try JSONCodec.parse(Array(output.utf8))
  }
}
