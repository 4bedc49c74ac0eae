// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import Histories

@main
struct SimulationCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulation",
    abstract: "Play random histories of a broker in memory, and check what its clients saw.",
    subcommands: [PlayCommand.self, ModelCommand.self],
    defaultSubcommand: PlayCommand.self
  )
}

/// Which histories are played. The same seed gives the same run in every process that runs with
/// `SWIFT_DETERMINISTIC_HASHING=1`.
struct Seeds: ParsableArguments {
  @Option(help: "The first seed.")
  var from: UInt64 = 1

  @Option(help: "The last seed.")
  var to: UInt64 = 100

  @Flag(inversion: .prefixedNo, help: "Look for the shortest history that fails.")
  var shrinking = true

  var all: ClosedRange<UInt64> { from...max(from, to) }

  func validate() throws {
    guard getenv("SWIFT_DETERMINISTIC_HASHING") != nil else {
      throw ValidationError("set SWIFT_DETERMINISTIC_HASHING=1, or seeds give other runs in each process")
    }
  }
}

/// Plays histories of a broker on simulated hardware and checks what clients saw.
struct PlayCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "play",
    abstract: "Play histories of a broker on simulated hardware."
  )

  @OptionGroup var seeds: Seeds

  @Option(help: "Steps of a history.")
  var steps = 40

  @Flag(help: "Print what happened in the first history.")
  var trace = false

  @Flag(help: "Print a digest of what happened in all histories.")
  var digest = false

  func run() throws {
    var (reads, acknowledged, sum) = (0, 0, UInt64(0))
    for seed in seeds.all {
      let keeping: Trace.Keeping = trace ? .lines : digest ? .digest : .nothing
      let simulation = Simulation(History(seed: seed, count: steps), keeping: keeping)
      let faults = simulation.run()
      reads += simulation.reads
      acknowledged += simulation.acknowledged
      sum = sum &* 31 &+ simulation.trace.digest
      if trace { for line in simulation.trace.lines { print(line) } }
      guard faults.isEmpty else {
        report(seed, faults)
        throw ExitCode.failure
      }
    }
    let digest = self.digest ? ", digest \(sum)" : ""
    print("\(seeds.all.count) histories, \(acknowledged) acknowledged states, \(reads) reads\(digest)")
  }

  private func report(_ seed: UInt64, _ faults: [String]) {
    print("seed \(seed): \(faults[0])")
    guard seeds.shrinking else { return }
    let shortest = Shrinking.shrink(History(seed: seed, count: steps))
    print("the shortest history that fails:")
    for step in shortest.history.steps { print("  \(step)") }
    print("fails with: \(shortest.fault)")
    print("replay: SWIFT_DETERMINISTIC_HASHING=1 simulation --from \(seed) --to \(seed) --steps \(steps) --trace")
  }
}

/// Leaves steps out of a history for as long as it still fails.
enum Shrinking {
  static func shrink(_ history: History) -> (history: History, fault: String) {
    var shortest = history
    var fault = Simulation(history).run().first ?? "nothing: the run is not the same again"
    var size = max(1, history.steps.count / 2)
    while true {
      var start = 0
      var hasShrunk = false
      while start < shortest.steps.count {
        var shorter = shortest
        shorter.steps.removeSubrange(start..<min(start + size, shorter.steps.count))
        if let found = Simulation(shorter).run().first {
          (shortest, fault, hasShrunk) = (shorter, found, true)
        } else {
          start += size
        }
      }
      if size == 1 && !hasShrunk { return (shortest, fault) }
      size = max(1, size / 2)
    }
  }
}
