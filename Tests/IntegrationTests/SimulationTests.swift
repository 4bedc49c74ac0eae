// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// The service, its core and its store on a simulated machine (`Tests/Simulation`). `RESTORATIOND_LONG=1` plays a
/// million histories, and 100,000 of several hosts, `RESTORATIOND_SEEDS=17-20` those.
@Suite(.passesTurnstile) struct SimulationTests {
  private static func seeds(_ count: Int, inLongForm longCount: Int) -> ClosedRange<Int> {
    let bounds = (Environment.variable("RESTORATIOND_SEEDS") ?? "").split(separator: "-").compactMap { Int($0) }
    return bounds.count == 2 ? bounds[0]...max(bounds[0], bounds[1]) : 1...(Environment.isLong ? longCount : count)
  }

  /// Histories a process plays: what a killed broker still waited for is never released.
  private static let portion = 250

  /// - Returns: what the program said.
  static func play(_ seeds: ClosedRange<Int>, command: String = "play", _ flags: String...) throws -> String {
    let (end, output, errors) = try ChildProcess.run(
      [Products.simulation, command, "--from", "\(seeds.lowerBound)", "--to", "\(seeds.upperBound)"] + flags,
      environment: ["SWIFT_DETERMINISTIC_HASHING": "1"],
      Deadline(.seconds(600))
    )
    #expect(end == .exit(0), "\(command) \(seeds): \(output) \(errors)")
    return output
  }

  private static func play(_ command: String, _ seeds: ClosedRange<Int>, shard: Int = 0, of shards: Int = 1) throws {
    let starts = stride(from: seeds.lowerBound, through: seeds.upperBound, by: portion)
    for (index, start) in starts.enumerated() where index % shards == shard {
      print(try play(start...min(start + portion - 1, seeds.upperBound), command: command))
    }
  }

  @Test(arguments: 0..<2) func whateverFailsNothingAcknowledgedIsLost(shard: Int) throws {
    try Self.play("play", Self.seeds(1_500, inLongForm: 1_000_000), shard: shard, of: 2)
  }

  @Test func whereverTheUserGoesNothingAcknowledgedIsLostUntold() throws {
    try Self.play("hosts", Self.seeds(40, inLongForm: 100_000))
  }

  @Test(arguments: [("play", 20), ("hosts", 5)]) func twoRunsOfASeedAreTheSame(command: String, count: Int) throws {
    let first = try Self.play(1...count, command: command, "--digest")
    #expect(try Self.play(1...count, command: command, "--digest") == first && first.contains("digest"))
  }

  /// Those that the simulation has to find.
  @Test func everyPlantedFaultHasItsPlaceInTheSources() throws {
    let script = "\(Products.repository)/Tests/Simulation/planted.py"
    let (end, _, errors) = try ChildProcess.run(["python3", "-B", script, "--check"])
    #expect(end == .exit(0), "\(errors)")
  }
}
