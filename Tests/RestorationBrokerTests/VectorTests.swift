// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// The protocol's own test vectors, by the broker's service in memory; its connections take bytes as those of a socket.
@Suite struct VectorTests {
  @Test(arguments: GoldenVector.all)
  func everyVectorPasses(_ vector: GoldenVector) throws {
    let broker = MemoryBroker()
    try vector.play { broker.open() }
  }
}
