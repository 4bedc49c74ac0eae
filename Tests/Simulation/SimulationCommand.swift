// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import Histories

@main
struct SimulationCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulation",
    abstract: "Play random histories of a broker in memory, and check what its clients saw.",
    subcommands: [PlayCommand.self, HostsCommand.self, ModelCommand.self],
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

  @OptionGroup var playing: Playing<History>

  func run() throws { try playing.run(Self.self) }
}

/// Plays histories of several hosts on which a user works in turn.
struct HostsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hosts",
    abstract: "Play histories of hosts that share a replica, and of a user who goes from one to another."
  )

  @OptionGroup var playing: Playing<HostsHistory>

  func run() throws { try playing.run(Self.self) }
}

/// What can be played, and played again without some of its steps.
protocol RandomHistory {
  associatedtype Step: Sendable
  associatedtype Run: SimulatedRun where Run.Story == Self

  var steps: [Step] { get set }

  init(seed: UInt64, count: Int)
}

/// A history on its way through simulated machines.
protocol SimulatedRun {
  associatedtype Story

  var trace: Trace { get }
  var acknowledged: Int { get }
  var reads: Int { get }

  init(_ history: Story, keeping: Trace.Keeping)
  func run()
}

extension RandomHistory {
  /// Returns what has become of it.
  func play(keeping: Trace.Keeping = .nothing) -> Run {
    let run = Run(self, keeping: keeping)
    run.run()
    return run
  }
}

extension Simulation: SimulatedRun {}

extension History: RandomHistory { typealias Run = Simulation }

extension HostsSimulation: SimulatedRun {}

extension HostsHistory { typealias Run = HostsSimulation }

struct Playing<Story: RandomHistory>: ParsableArguments {
  @OptionGroup var seeds: Seeds

  @Option(help: "Steps of a history.")
  var steps = 40

  @Flag(help: "Print what happened in the first history.")
  var trace = false

  @Flag(help: "Print a digest of what happened in all histories.")
  var digest = false

  func run(_ command: any ParsableCommand.Type) throws {
    var (reads, acknowledged, sum) = (0, 0, UInt64(0))
    for seed in seeds.all {
      let keeping: Trace.Keeping = trace ? .lines : digest ? .digest : .nothing
      let played = Story(seed: seed, count: steps).play(keeping: keeping)
      reads += played.reads
      acknowledged += played.acknowledged
      sum = sum &* 31 &+ played.trace.digest
      if trace { for line in played.trace.lines { print(line) } }
      guard played.trace.faults.isEmpty else {
        report(seed, played.trace.faults, command.configuration.commandName ?? "")
        throw ExitCode.failure
      }
    }
    let digest = self.digest ? ", digest \(sum)" : ""
    print("\(seeds.all.count) histories, \(acknowledged) acknowledged states, \(reads) reads\(digest)")
  }

  private func report(_ seed: UInt64, _ faults: [String], _ command: String) {
    print("seed \(seed): \(faults[0])")
    guard seeds.shrinking else { return }
    let shortest = Shrinking.shrink(Story(seed: seed, count: steps))
    print("the shortest history that fails:")
    for step in shortest.history.steps { print("  \(step)") }
    print("fails with: \(shortest.fault)")
    let options = "--from \(seed) --to \(seed) --steps \(steps) --trace"
    print("replay: SWIFT_DETERMINISTIC_HASHING=1 simulation \(command) \(options)")
  }
}

/// Leaves steps out of a history for as long as it still fails.
enum Shrinking {
  static func shrink<Story: RandomHistory>(_ history: Story) -> (history: Story, fault: String) {
    var shortest = history
    var fault = Self.fault(of: history) ?? "nothing: the run is not the same again"
    var size = max(1, history.steps.count / 2)
    while true {
      var start = 0
      var hasShrunk = false
      while start < shortest.steps.count {
        var shorter = shortest
        shorter.steps.removeSubrange(start..<min(start + size, shorter.steps.count))
        if let found = Self.fault(of: shorter) {
          (shortest, fault, hasShrunk) = (shorter, found, true)
        } else {
          start += size
        }
      }
      if size == 1 && !hasShrunk { return (shortest, fault) }
      size = max(1, size / 2)
    }
  }

  private static func fault(of history: some RandomHistory) -> String? {
    history.play().trace.faults.first
  }
}
