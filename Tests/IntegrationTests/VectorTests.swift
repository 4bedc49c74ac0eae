// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// The protocol's own test vectors, by both of their runners.
@Suite struct VectorTests {
  @Test(arguments: GoldenVector.all)
  func everyVectorPasses(_ vector: GoldenVector) async throws {
    try await withBroker { try vector.play(socket: $0.socket) }
  }

  @Test func everyVectorPassesOneAfterTheOtherByTheRunnerForImplementers() async throws {
    try await withBroker { broker in
      let runner = "\(Products.repository)/Protocol/vectors/run.py"
      let result = try ChildProcess.run(["python3", runner, "--quiet", broker.socket], Deadline(.seconds(120)))
      #expect(result.end == .exit(0), "\(result.output)\(result.errors)")
    }
  }
}

/// What the pages of `Protocol/` show is what happens.
@Suite struct DocumentationTests {
  @Test(arguments: DocumentedExchange.all)
  func everyDocumentedExchangeIsTrue(_ exchange: DocumentedExchange) async throws {
    try await withBroker { try exchange.play(socket: $0.socket) }
  }
}
