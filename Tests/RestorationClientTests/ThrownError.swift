// SPDX-License-Identifier: Apache-2.0

/// What `body` throws; nil where it does not.
func thrownError(_ body: () async throws -> some Any) async -> (any Error)? {
  do {
    _ = try await body()
    return nil
  } catch {
    return error
  }
}
