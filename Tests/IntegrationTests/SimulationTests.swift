// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// The service, its core and its store on a simulated machine (`Tests/Simulation`). `RESTORATIOND_LONG=1` plays a
/// million histories, `RESTORATIOND_SEEDS=17-20` those.
@Suite(.passesTurnstile) struct SimulationTests {
  private static let seeds: ClosedRange<Int> = {
    let bounds = (Environment.variable("RESTORATIOND_SEEDS") ?? "").split(separator: "-").compactMap { Int($0) }
    return bounds.count == 2 ? bounds[0]...max(bounds[0], bounds[1]) : 1...(Environment.isLong ? 1_000_000 : 2_000)
  }()
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

  @Test(arguments: 0..<2) func whateverFailsNothingAcknowledgedIsLost(shard: Int) throws {
    let starts = stride(from: Self.seeds.lowerBound, through: Self.seeds.upperBound, by: Self.portion)
    for (index, start) in starts.enumerated() where index % 2 == shard {
      print(try Self.play(start...min(start + Self.portion - 1, Self.seeds.upperBound)))
    }
  }

  @Test func twoRunsOfASeedAreTheSame() throws {
    let first = try Self.play(1...20, "--digest")
    #expect(try Self.play(1...20, "--digest") == first && first.contains("digest"))
  }

  /// Those that the simulation has to find.
  @Test func everyPlantedFaultHasItsPlaceInTheSources() throws {
    let script = "\(Products.repository)/Tests/Simulation/planted.py"
    let (end, _, errors) = try ChildProcess.run(["python3", "-B", script, "--check"])
    #expect(end == .exit(0), "\(errors)")
  }
}
