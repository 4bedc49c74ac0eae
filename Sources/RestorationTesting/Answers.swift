// SPDX-License-Identifier: Apache-2.0

/// The timeout for an answer, well above the broker's own for a round or a restoration.
private let answerMax = Duration.seconds(60)

/// The result of a call. After the timeout, cancels the call and throws a `TestingError` that names it.
func answer<Answer: Sendable>(
  of method: String,
  _ call: @escaping @Sendable () async throws -> Answer
) async throws -> Answer {
  try await withThrowingTaskGroup(of: Answer.self) { group in
    defer { group.cancelAll() }
    group.addTask(operation: call)
    group.addTask {
      try await Task.sleep(for: answerMax)
      throw TestingError("the broker has not answered \(method) within \(answerMax); see its log, or thaw() it")
    }
    guard let first = try await group.next() else { throw CancellationError() }
    return first
  }
}
