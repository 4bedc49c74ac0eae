// SPDX-License-Identifier: Apache-2.0

internal import Dispatch

/// Runs a test when there is a place for it, in a thread of its own, which it may block.
package func passingTurnstile<Result: Sendable>(
  alone: Bool = false,
  _ body: @Sendable () async throws -> Result
) async throws -> Result {
  precondition(!Turnstile.hasPlace, "tests that hold a place and wait for a second one could wait for each other")
  let held = await Turnstile.shared.enter(alone: alone)
  let result: Swift.Result<Result, any Error>
  do {
    result = .success(
      try await Turnstile.$hasPlace.withValue(true) {
        try await withTaskExecutorPreference(BlockingExecutor()) { try await body() }
      }
    )
  } catch {
    result = .failure(error)
  }
  await Turnstile.shared.leave(held)
  return try result.get()
}

/// Lets a few tests run at a time, and measuring tests alone, however many the test runner starts at once. They are more
/// than there are processors: most tests wait for processes and clocks more than they compute.
private actor Turnstile {
  static let shared = Turnstile(places: 6)
  /// Whether the task has a place.
  @TaskLocal static var hasPlace = false

  private let places: Int
  private var free: Int
  private var waiting: [(places: Int, continuation: CheckedContinuation<Void, Never>)] = []

  init(places: Int) {
    self.places = places
    free = places
  }

  func enter(alone: Bool) async -> Int {
    let wanted = alone ? places : 1
    if waiting.isEmpty && free >= wanted {
      free -= wanted
    } else {
      await withCheckedContinuation { waiting.append((wanted, $0)) }
    }
    return wanted
  }

  func leave(_ held: Int) {
    free += held
    // Tests that run alone follow one another: if others went before, the next one would wait again until all have ended.
    if held == places, let next = waiting.firstIndex(where: { $0.places == places }) {
      free = 0
      return waiting.remove(at: next).continuation.resume()
    }
    while let next = waiting.first, free >= next.places {
      free -= next.places
      waiting.removeFirst()
      next.continuation.resume()
    }
  }
}

/// Runs a test in its own thread: it may block without taking a thread from other tests, and does not wait for theirs.
package final class BlockingExecutor: TaskExecutor {
  private let queue = DispatchQueue(label: "test")

  package init() {}

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
