// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient

extension BrokerConnection {
  /// Yields an element if something has changed since the last one was taken.
  func changes(of application: String) async throws -> AsyncThrowingStream<Void, any Error> {
    let events = try await subscribe(application: application)
    let (changes, continuation) = AsyncThrowingStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    Task {
      do {
        for try await _ in events { continuation.yield() }
        continuation.finish()
      } catch {
        continuation.finish(throwing: error)
      }
    }
    return changes
  }
}
