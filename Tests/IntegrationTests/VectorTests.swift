// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// The protocol's own test vectors, by both of their runners.
@Suite struct VectorTests {
  @Test(.broker, arguments: GoldenVector.all)
  func everyVectorPasses(_ vector: GoldenVector) throws { try vector.play(socket: broker.socket) }

  @Test(.broker, arguments: [[], ["--framing", "content-length"]], 0..<4)
  func everyVectorPassesOneAfterTheOtherByTheRunnerForImplementers(_ flags: [String], _ quarter: Int) throws {
    let folder = "\(Products.repository)/Protocol/vectors"
    let names = GoldenVector.all.enumerated().filter { $0.offset % 4 == quarter }.map(\.element.name)
    let runner = ["python3", "\(folder)/run.py", "--quiet"] + flags + [broker.socket]
    let result = try ChildProcess.run(runner + names.map { "\(folder)/\($0).json" }, Deadline(.seconds(120)))
    #expect(result.end == .exit(0), "\(result.output.suffix(4_000)) \(result.errors)")
  }
}

/// The transcripts in the other direction: the runner for implementers is the broker, the client a real one.
@Suite struct TranscriptTests {
  @Test(.passesTurnstile, arguments: ServingClient.Language.allCases)
  func everyTranscriptPassesWithAClientIn(_ language: ServingClient.Language) throws {
    let command = ServingClient.command(language, socket: "{}").joined(separator: " ")
    let runner = ["python3", "\(Products.repository)/Protocol/vectors/talk.py", "--timeout", "20", command]
    let result = try ChildProcess.run(runner, Deadline(.seconds(120)))
    #expect(result.end == .exit(0), "\(result.output)\(result.errors)")
    #expect(result.output.split(separator: "\n").count > 4, "\(result.output)")
  }

  /// A runner that passes everything would be none.
  @Test(.passesTurnstile) func aClientThatSaysNothingDoesNotPass() throws {
    let folder = "\(Products.repository)/Protocol/vectors"
    let runner = ["python3", "\(folder)/talk.py", "--timeout", "1", "cat {}", "\(folder)/talk-save.json"]
    let result = try ChildProcess.run(runner, Deadline(.seconds(120)))
    #expect(result.end == .exit(1), "\(result.output)")
  }
}

/// The exchanges on the pages of `Protocol/` match the broker's behaviour.
@Suite struct DocumentationTests {
  @Test(.broker, arguments: DocumentedExchange.all)
  func everyDocumentedExchangeIsTrue(_ exchange: DocumentedExchange) throws { try exchange.play(socket: broker.socket) }
}
