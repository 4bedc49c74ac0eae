// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Foundation
internal import Logging
internal import Mutation
internal import SeededRandom

/// Feeds one target with inputs. Built by `Tests/fuzz.sh`, it searches for inputs that reach new code (`Search`).
@main
struct Fuzz: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fuzz",
    abstract: "Feed a part of the product with arbitrary bytes.",
    discussion: "Targets: \(FuzzTarget.all.map(\.name).joined(separator: ", "))."
  )

  @Argument(help: "What is fed.", transform: Self.target)
  var target: FuzzTarget

  @Argument(
    parsing: .allUnrecognized,
    help: "Files to feed it with. If there are none, its seeds and mutations of them are taken."
  )
  var files: [String] = []

  @Option(help: "Mutations to try.")
  var runs = 1_000

  @Option(help: "Of the seeds, one in so many is tried.")
  var oneSeedIn = 1

  @Option(help: "Decides the mutations.")
  var seed: UInt64 = 1

  @Option(help: "Write each input to this file before it is tried, so that a trap leaves it there.")
  var last: String?

  @Option(help: "Only write the seeds, as files of this directory.")
  var writeSeeds: String?

  private static func target(_ name: String) throws -> FuzzTarget {
    if let target = FuzzTarget.named(name) { return target }
    throw ValidationError("there is no target \(name); take one of \(FuzzTarget.all.map(\.name))")
  }

  func run() throws {
    LoggingSystem.bootstrap { _ in WrittenLog() }
    #if FUZZING
    if writeSeeds == nil { Search.run(target, files) }
    #endif
    if let writeSeeds {
      for (number, seed) in target.seeds().enumerated() {
        try Data(seed).write(to: URL(fileURLWithPath: "\(writeSeeds)/seed-\(number)"))
      }
      return
    }
    for file in files { target.run(Array(try Data(contentsOf: URL(fileURLWithPath: file)))) }
    if files.isEmpty { try mutate() }
  }

  private func mutate() throws {
    var random = SeededGenerator(seed: seed)
    let all = target.seeds()
    let seeds = stride(from: 0, to: all.count, by: max(1, oneSeedIn)).map { all[$0] }
    for number in 0..<seeds.count + runs {
      let input = number < seeds.count ? seeds[number] : random.mutation(of: all)
      if let last { try Data(input).write(to: URL(fileURLWithPath: last)) }
      target.run(input)
    }
    print("\(target.name): \(seeds.count) of \(all.count) seeds, \(runs) mutations")
  }
}
