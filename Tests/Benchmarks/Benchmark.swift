// SPDX-License-Identifier: Apache-2.0

/// Something hot, which is done again and again in the same way.
struct Benchmark: Sendable {
  let name: String
  /// How many of it one round does: a figure is the cost of one.
  var perRound = 1
  let rounds: Int
  /// Makes what it takes, in a directory that it has for itself, and returns a round. A round returns something that it
  /// has found out, so that no compiler leaves it out.
  let prepare: @Sendable (_ directory: String) throws -> () -> Int

  static let all = messages + archives + services

  /// - Returns: how many of it were counted.
  func run(in directory: String) throws -> Int {
    let round = try prepare(directory)
    // Caches are filled and tables have grown.
    for _ in 0..<rounds { _ = round() }
    recordedRounds(rounds, round)
    return rounds * perRound
  }
}

/// Callgrind writes down what it has counted when this returns. A function of this name has to be in the program, once.
@inline(never) @_optimize(none)
private func recordedRounds(_ count: Int, _ round: () -> Int) { countedRounds(count, round) }

/// Callgrind counts what is done in here; of two options for one function it would heed only the first.
@inline(never) @_optimize(none)
private func countedRounds(_ count: Int, _ round: () -> Int) {
  // A `for` loop would cost more than what it repeats, because nothing in here is optimised.
  var rest = count
  while rest > 0 {
    _ = round()
    rest -= 1
  }
}
