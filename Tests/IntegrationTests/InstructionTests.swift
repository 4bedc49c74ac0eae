// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// What is hot, in instructions, against the thresholds of `Tests/Benchmarks/instructions.json`. Time would depend on the
/// machine and what else it does. `RESTORATIOND_WRITE_INSTRUCTIONS=1` writes the thresholds instead.
@Suite(.scratch, .enabled(if: Callgrind.isUsable, "needs valgrind")) struct InstructionTests {
  typealias Cost = (name: String, instructions: Int)

  private static let page = "\(Products.repository)/Tests/Benchmarks/instructions.json"
  private static let areRelease = [Products.benchmarks, Products.broker].allSatisfy(Products.isOptimised)

  @Test(.enabled(if: areRelease || Environment.isCI, "needs RESTORATION_BENCHMARKS_BINARY, RESTORATIOND_BINARY"))
  func nothingHotTakesMoreInstructionsThanItsThreshold() throws {
    try #require(Self.areRelease, "give RESTORATION_BENCHMARKS_BINARY and RESTORATIOND_BINARY release builds")
    let thresholds = try #require(try JSONCodec.parse(try Files.read(Self.page)).object)
    let isWritten = Environment.variable("RESTORATIOND_WRITE_INSTRUCTIONS") == "1"
    let parts = try parts()
    var costs = try parts + [calls(ofRuns: 1)]
    if isWritten || !Self.complaints(of: costs, thresholds).isEmpty { costs = try parts + [calls(ofRuns: 2)] }
    for cost in costs { print("\(cost.instructions) instructions: \(cost.name)") }
    if isWritten { return try Self.write(costs) }
    for complaint in Self.complaints(of: costs, thresholds) { Issue.record("\(complaint)") }
  }

  @Test(arguments: [(103, nil), (104, "4.0 % more"), (90, nil), (89, "11.0 % less")] as [(Int, String?)])
  func whatCostsOtherThanItsThresholdIsReported(_ instructions: Int, _ complaint: String?) {
    let complaints = Self.complaints(of: [("scan", instructions)], ["scan": 100])
    #expect(complaints.count == (complaint == nil ? 0 : 1) && complaints.allSatisfy { $0.contains(complaint ?? "") })
  }

  @Test func everyCostHasAThresholdAndEveryThresholdACost() {
    #expect(Self.complaints(of: [("scan", 100)], ["digest": 100]).count == 2)
  }

  // MARK: Comparing

  /// In percent. A change elsewhere moves a figure by less than that. Whoever makes something cheaper lowers its
  /// threshold, so that it stays cheap.
  private static let near = 90...103

  private static func complaints(of costs: [Cost], _ thresholds: JSONObject) -> [String] {
    let renew = "RESTORATIOND_WRITE_INSTRUCTIONS=1 writes the thresholds anew (Tests/README.md)"
    let compared = costs.compactMap { cost -> String? in
      guard let threshold = thresholds[cost.name]?.integer else { return "\(cost.name) has no threshold: \(renew)" }
      let bounds = near.lowerBound * Int(threshold)...near.upperBound * Int(threshold)
      guard !bounds.contains(100 * cost.instructions) else { return nil }
      let tenths = 1_000 * abs(cost.instructions - Int(threshold)) / Int(threshold)
      let isMore = cost.instructions > threshold
      let difference = "\(tenths / 10).\(tenths % 10) % \(isMore ? "more" : "less")"
      let advice =
        isMore
        ? "find what has become slower, or if it is worth that, say so in the commit: \(renew)"
        : "keep what was won: \(renew)"
      return "\(cost.name) takes \(cost.instructions) instructions, \(difference) than its \(threshold); \(advice)"
    }
    let names = Set(costs.map(\.name))
    return compared
      + thresholds.members.map(\.name).filter { !names.contains($0) }.map { "there is no benchmark \($0): \(renew)" }
  }

  private static func write(_ costs: [Cost]) throws {
    let lines = costs.map { "  \"\($0.name)\": \($0.instructions)" }
    try Files.write(Array("{\n\(lines.joined(separator: ",\n"))\n}\n".utf8), to: page)
  }

  // MARK: Counting

  /// What one of each is in `Tests/Benchmarks`.
  private func parts() throws -> [Cost] {
    let program = try Callgrind.copy(of: Products.benchmarks, in: directory)
    let file = directory.file("parts")
    let options = ["--toggle-collect=*countedRounds*", "--dump-after=*recordedRounds*"]
    let (end, output, errors) = try ChildProcess.run(
      Callgrind.command([program, directory.path], into: file, options: options),
      environment: Callgrind.environment,
      Deadline(.seconds(120))
    )
    guard end == .exit(0) else { throw TestFailure("benchmarks: \(end) \(errors)") }
    let (lines, counts) = (output.split(separator: "\n"), try Callgrind.counts(in: file))
    // The last dump is of what follows the last benchmark.
    try #require(counts.count == lines.count + 1, "callgrind has not found the functions that it counts")
    return try zip(lines, counts).map { line, count in
      let words = line.split(separator: " ")
      return (String(words[0]), count / (try #require(words.last.flatMap { Int($0) }, "no count: \(line)")))
    }
  }

  /// What an encode and a decode are to the program as it is installed. Both in turns: while nothing is written, an idle
  /// archive is tidied up. On a busy machine that may happen all the same, and hardly in each of several runs.
  private func calls(ofRuns count: Int) throws -> Cost {
    let program = try Callgrind.copy(of: Products.broker, in: directory)
    func least(_ calls: Int64) throws -> Int {
      try (1...count).reduce(.max) { least, _ in try min(least, broker(program, calls: calls)) }
    }
    let (few, many) = (try least(100), try least(700))
    return ("encode-and-decode-over-a-socket", (many - few) / 600)
  }

  /// A broker's instructions from start to end, with a client that makes one call after the other.
  private func broker(_ program: String, calls: Int64) throws -> Int {
    let scratch = try ScratchDirectory()
    defer { scratch.remove() }
    let (socket, file) = (scratch.file("socket"), scratch.file("counts"))
    let configuration = try scratch.write("{}", to: "config.json")
    let arguments = ["--socket", socket, "--archives", scratch.file("archives"), "--config", configuration]
    let process = try ChildProcess(
      Callgrind.command([program] + arguments, into: file),
      environment: Callgrind.environment,
      errors: scratch.file("log")
    )
    try Wait.until("the broker accepts", Deadline(.seconds(60))) {
      guard process.isRunning else { throw TestFailure("it has ended: \(try Files.text(scratch.file("log")))") }
      return (try? WireClient(socket)) != nil
    }
    let client = try WireClient(socket)
    let pad = JSONValue.string(String(repeating: "x", count: 1_000))
    for number in 0..<calls {
      let object: JSONValue = .path("Window-\(number % 10)")
      let state: JSONValue = ["n": .integer(number), "pad": pad]
      try client.call("encodeRestorableState", ["application": "a", "object": object, "state": state])
      try client.call("decodeRestorableState", ["application": "a", "object": object])
    }
    process.send(signal: SIGTERM)
    let end = try process.waitForEnd(Deadline(.seconds(60)))
    guard end == .exit(0), let count = try Callgrind.counts(in: file).first else {
      throw TestFailure("the broker under callgrind: \(end) \(try Files.text(scratch.file("log")))")
    }
    return count
  }
}
