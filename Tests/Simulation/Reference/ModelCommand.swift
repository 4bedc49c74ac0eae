// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser

/// Plays histories in the reference model and in the service, and says how often each branch of the model was taken.
struct ModelCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "model",
    abstract: "Play histories in the reference model and in the service side by side."
  )

  /// What is wrong with further histories is counted only.
  private static let shownMax = 5

  @OptionGroup var seeds: Seeds

  func run() throws {
    var counts: [String: Int] = [:]
    var wrong: Set<UInt64> = []
    for seed in seeds.all {
      func show(_ text: String) {
        wrong.insert(seed)
        if wrong.count <= Self.shownMax { print("history \(seed): \(text)") }
      }
      do throws(ReferenceHistory.Difference) {
        counts.merge(try ReferenceHistory.random(seed: seed, record: show).model.counts) { $0 + $1 }
      } catch {
        let isShrunk = seeds.shrinking && wrong.count < Self.shownMax
        show("\(isShrunk ? ReferenceHistory.shrink(error) : error)")
      }
    }
    for (branch, count) in counts.sorted(by: { $0.key < $1.key }) { print("\(count) \(branch)") }
    guard wrong.isEmpty else {
      print("\(wrong.count) of \(seeds.all.count) histories are wrong")
      throw ExitCode.failure
    }
  }
}
