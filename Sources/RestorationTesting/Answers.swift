// SPDX-License-Identifier: Apache-2.0

/// In which the broker must answer a call; what it allows a round or a restoration is much less.
private let answerMax = Duration.seconds(60)

/// What a call gives. If the broker does not answer in time, the call is given up, and a `TestingError` names it.
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
