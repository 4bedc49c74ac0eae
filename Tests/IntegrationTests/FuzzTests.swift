// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// The targets of `Tests/fuzz.sh` with their seeds and some mutations, without a search and without a sanitizer.
@Suite(.scratch) struct FuzzTests {
  /// Mutations in the default form; a target that needs a broker or a socket for each input is slower.
  private static let targets = [
    ("frames", 3_000), ("http", 500), ("words", 3_000), ("texts", 2_000), ("ledger", 500), ("changes", 3_000),
    ("messages", 40), ("gateway", 100), ("answers", 20), ("archive", 20), ("client", 100),
  ]

  /// In the long form; what users' brokers may send to a service of the system is tried most.
  private static func factor(_ target: String) -> Int { target == "gateway" ? 1_000 : 100 }

  /// Each answer of a gateway is a story of a broker with its files: in the default form one in so many is played.
  private static func oneSeedIn(_ target: String) -> Int { target == "answers" && !Environment.isLong ? 40 : 1 }

  @Test(arguments: targets) func noInputMakesItTrapOrContradictItself(_ target: String, _ runs: Int) throws {
    let (last, count) = (directory.file("input"), runs * (Environment.isLong ? Self.factor(target) : 1))
    let options = ["--runs", "\(count)", "--one-seed-in", "\(Self.oneSeedIn(target))", "--last", last]
    let (end, output, errors) = try ChildProcess.run(
      [Products.fuzz, target] + options,
      environment: ["SWIFT_BACKTRACE": "enable=no", "SWIFT_DETERMINISTIC_HASHING": "1"],
      Deadline(.seconds(Environment.isLong ? 1_200 : 60))
    )
    let input = (try? Files.read(last)) ?? []
    #expect(end == .exit(0), "\(errors.suffix(2_000)) with \(String(decoding: input, as: UTF8.self).debugDescription)")
    print(output)
  }
}
