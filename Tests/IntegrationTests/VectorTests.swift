// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// The protocol's own test vectors, by their runner for implementers.
@Suite struct VectorRunnerTests {
  @Test(.broker, arguments: [[], ["--framing", "content-length"]], 0..<4)
  func everyVectorPasses(_ flags: [String], _ quarter: Int) throws {
    let folder = "\(Products.repository)/Protocol/vectors"
    let names = GoldenVector.all.enumerated().filter { $0.offset % 4 == quarter }.map(\.element.name)
    let runner = ["python3", "\(folder)/run.py", "--quiet"] + flags + [broker.socket]
    let result = try ChildProcess.run(runner + names.map { "\(folder)/\($0).json" }, Deadline(.seconds(120)))
    #expect(result.end == .exit(0), "\(result.output.suffix(4_000)) \(result.errors)")
  }
}

/// The exchanges on the pages of `Protocol/` match the broker's behaviour.
@Suite struct DocumentationTests {
  @Test(.broker, arguments: DocumentedExchange.all)
  func everyDocumentedExchangeIsTrue(_ exchange: DocumentedExchange) throws { try exchange.play(socket: broker.socket) }
}
