// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Does all that is hot, for callgrind to count: `benchmarks DIRECTORY [NAME...]`. Prints, in the order in which callgrind
/// writes its counts down, how many of each were counted (`InstructionTests`).
@main
struct BenchmarksCommand {
  static func main() throws {
    let arguments = CommandLine.arguments.dropFirst()
    guard let directory = arguments.first else {
      print("usage: benchmarks DIRECTORY [NAME...]")
      print("names: \(Benchmark.all.map(\.name).joined(separator: " "))")
      exit(64)
    }
    let names = Set(arguments.dropFirst())
    for benchmark in Benchmark.all where names.isEmpty || names.contains(benchmark.name) {
      print(benchmark.name, try benchmark.run(in: "\(directory)/\(benchmark.name)"))
    }
  }
}
