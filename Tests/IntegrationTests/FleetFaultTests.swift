// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// Random histories of two hosts with real brokers, gateways and PostgreSQL servers, and a fault in each. One of each
/// kind; `RESTORATIOND_LONG=1` plays 20, `RESTORATIOND_FLEET_SEEDS=17-20` those.
@Suite(.scratch, .enabled(if: PostgresCluster.isUsable, "needs PostgreSQL")) struct FleetFaultTests {
  private static let seeds: ClosedRange<UInt64> = {
    let bounds = (Environment.variable("RESTORATIOND_FLEET_SEEDS") ?? "").split(separator: "-").compactMap {
      UInt64($0)
    }
    return bounds.count == 2 ? bounds[0]...max(bounds[0], bounds[1]) : 1...(Environment.isLong ? 20 : 1)
  }()

  /// Two hosts of a fleet. Those of even seeds wait for the replica.
  private static func withHosts(
    _ fleet: Fleet,
    _ members: JSONObject = ["leaseSeconds": 3],
    _ body: (_ hosts: [FleetHost], _ waitsForReplica: Bool) throws -> Void
  ) throws {
    for promise in ["disk", "replica"] {
      var members = members
      members["acknowledge"] = .string(promise)
      let hosts = try ["A", "B"].map { try fleet.host("\($0)-\(promise)", members, isEncrypted: true) }
      try body(hosts, promise == "replica")
    }
  }

  private static func play(_ faults: [FleetHistory.Fault], on fleet: Fleet) throws {
    try withHosts(fleet) { hosts, waitsForReplica in
      for (index, fault) in faults.enumerated() {
        let own = seeds.filter { ($0 + UInt64(index)).isMultiple(of: 2) == waitsForReplica }
        guard !own.isEmpty else { continue }
        let begin = Deadline.now
        var writes = 0
        for seed in own {
          let history = FleetHistory(seed, fault, on: fleet, hosts, waitsForReplica: waitsForReplica)
          do {
            let wrong = try history.play()
            writes += history.writes
            #expect(wrong.isEmpty, "\(fault) \(seed): \(wrong)\n\(history.trail)\n\(fleet.log.suffix(8_000))")
          } catch { throw TestFailure("\(fault) \(seed): \(error)\n\(history.trail)\n\(fleet.log.suffix(8_000))") }
        }
        let promise = waitsForReplica ? "replica" : "disk"
        let network = fleet.hasCables ? "cables" : "sockets"
        let figures = "\(own.count) runs, \(writes) acknowledged states, \(Deadline.now - begin) ms"
        print("\(fault), \(promise), \(network): \(figures)")
      }
    }
    try fleet.finish()
  }

  /// Whether hosts have cables: where they can have none, they have ways between sockets.
  private static let networks = Environment.isLong ? [true, false] : [true]

  @Test(arguments: networks) func whateverHappensToTheServersNothingAcknowledgedIsLostUntold(hasCables: Bool) throws {
    try Self.play(FleetHistory.Fault.ofServers, on: Fleet(in: directory, standbys: 2, hasCables: hasCables))
  }

  @Test(arguments: networks) func whateverTheNetworkLosesNothingAcknowledgedIsLostUntold(hasCables: Bool) throws {
    try Self.play(FleetHistory.Fault.ofCables, on: Fleet(in: directory, hasCables: hasCables))
  }

  @Test(arguments: [FleetHistory.Fault.ofHosts, FleetHistory.Fault.ofPrograms])
  func whateverHappensToAHostNothingAcknowledgedIsLostUntold(faults: [FleetHistory.Fault]) throws {
    try Self.play(faults, on: Fleet(in: directory))
  }

  /// What a gateway does wrong.
  enum Planted: String, CaseIterable, Sendable {
    /// What is stored under a former lease counts.
    case noFence
    /// Others may take an archive before its holder stops.
    case shortTerm

    var text: (right: String, wrong: String) {
      switch self {
      case .noFence: ("AND lease = _lease AND removed IS NULL FOR ", "AND removed IS NULL FOR ")
      case .shortTerm: ("VALUES (_holder, _owner, _host, _term)", "VALUES (_holder, _owner, _host, 1000)")
      }
    }

    var faults: [FleetHistory.Fault] {
      switch self {
      case .noFence: [.frozenGateway, .partition]
      case .shortTerm: [.partition, .deafHost]
      }
    }
  }

  @Test(.enabled(if: Environment.isLong, "takes minutes; run Tests/run.sh --long"), arguments: Planted.allCases)
  func aPlantedFaultIsFound(planted: Planted) throws {
    let fleet = try Fleet(in: directory) { schema in
      guard schema.contains(planted.text.right) else { throw TestFailure("the schema lacks \(planted.text.right)") }
      return schema.split(separator: planted.text.right, omittingEmptySubsequences: false).joined(
        separator: planted.text.wrong
      )
    }
    let term: JSONValue = planted == .shortTerm ? 30 : 3
    var found: String?
    try Self.withHosts(fleet, ["leaseSeconds": term]) { hosts, waitsForReplica in
      for seed in 1...40 as ClosedRange<UInt64> where found == nil && waitsForReplica != (planted != .noFence) {
        for fault in planted.faults where found == nil {
          let history = FleetHistory(seed, fault, on: fleet, hosts, waitsForReplica: waitsForReplica)
          do { try history.play() } catch {
            // Only what the checker reports counts. The next history has hosts that work again.
            print("\(planted), \(fault) \(seed): \(error)")
            for host in hosts {
              try host.send(signal: SIGCONT)
              try host.network.change { $0 = FaultyRoute.Weather() }
            }
          }
          found = history.faults.first.map { "\(fault) \(seed): \($0)" }
        }
      }
    }
    print("\(planted): \(found ?? "not found")")
    #expect(found != nil)
  }
}
