// SPDX-License-Identifier: Apache-2.0

/// The error that `body` throws; `nil` if none.
func thrownError(_ body: () async throws -> some Any) async -> (any Error)? {
  do {
    _ = try await body()
    return nil
  } catch {
    return error
  }
}
