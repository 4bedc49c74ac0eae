// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// A host that cannot reach the database: for a moment, or with `RESTORATIOND_LONG=1` for ten minutes.
@Suite(.scratch, .enabled(if: PostgresCluster.isUsable, "needs PostgreSQL")) struct FleetOutageTests {
  private static func session(on host: FleetHost) throws -> WireClient {
    let client = try host.broker.session("org.example.Draw", ["serves": ["archiveLost"]])
    try client.register("editor")
    return client
  }

  private static func withHosts(
    _ members: JSONObject,
    _ body: (_ fleet: Fleet, _ a: FleetHost, _ b: FleetHost) throws -> Void
  ) throws {
    let fleet = try Fleet(in: directory)
    do {
      try body(fleet, fleet.host("A", members), fleet.host("B", members))
    } catch {
      throw TestFailure("\(error)\n\(fleet.log)")
    }
    try fleet.finish()
  }

  @Test func whoeverWaitsForTheDiskAloneNoticesNothingAndTheDatabaseHasEverythingWithinAMinute() throws {
    try Self.withHosts([:]) { fleet, a, b in
      let client = try Self.session(on: a)
      let text = String(repeating: "x", count: 8_000)
      func write(_ number: Int64) throws -> Int64 {
        let state: JSONValue = ["n": .integer(number), "text": .string(text)]
        return try client.encode("editor", state: state)["sequence"]?.integer ?? 0
      }
      try fleet.waitUntil(hasChange: write(0))
      let memory = try a.broker.status.residentKiB
      try a.network.change { $0.blocked = [.there, .back] }
      let end = Deadline(Environment.isLong ? .seconds(600) : .seconds(3))
      var (count, last) = (Int64(0), Int64(0))
      while !end.isOver {
        count += 1
        last = try write(count)
        #expect(!client.hasInput(within: .milliseconds(15)), "the archive is not lost")
      }
      let grown = try a.broker.status.residentKiB - memory
      #expect(grown < 64 << 10, "what waits is bounded")
      try a.network.change { $0.blocked = [] }
      let begin = Deadline.now
      try fleet.waitUntil(hasChange: last, Deadline(.seconds(60)))
      print("\(count) states without the database; it had them after \(Deadline.now - begin) ms, memory +\(grown) KiB")
      #expect(try Self.session(on: b).decode("editor")["state"]?["n"]?.integer == count)
    }
  }

  @Test func whoeverWaitsForTheDatabaseIsRefusedWithinSecondsEachTime() throws {
    try Self.withHosts(["acknowledge": "replica"]) { _, a, _ in
      let client = try Self.session(on: a)
      try client.encode("editor", state: ["n": 0])
      try a.network.change { $0.blocked = [.there, .back] }
      let end = Deadline(Environment.isLong ? .seconds(600) : .seconds(3))
      var (count, unconfirmed, slowest) = (0, 0, Int64(0))
      while !end.isOver {
        let begin = Deadline.now
        let error = try client.failure("encodeRestorableState", ["object": .path("editor"), "state": ["n": 1]])
        slowest = max(slowest, Deadline.now - begin)
        count += 1
        if error.data["unconfirmed"] == true { unconfirmed += 1 }
        let isDefinite = error.data["indeterminate"] == false
        #expect(error.kind == "storeFailed" && (isDefinite || error.data["unconfirmed"] == true), "\(error)")
        #expect(!client.hasInput(within: .milliseconds(15)))
      }
      print("\(count) writes without the database, \(unconfirmed) of them unconfirmed, the slowest took \(slowest) ms")
      #expect(slowest < 5_000, "2 s, and what the machine needs")
      #expect((1..<20).contains(unconfirmed), "the first one, and what comes while the archive is opened again")
    }
  }
}
