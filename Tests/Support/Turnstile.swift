// SPDX-License-Identifier: Apache-2.0

internal import Dispatch

/// Lets a few broker tests run at a time, and those that measure alone, however many the test runner starts at once.
actor Turnstile {
  static let shared = Turnstile(places: 3)

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
    while let next = waiting.first, free >= next.places {
      free -= next.places
      waiting.removeFirst()
      next.continuation.resume()
    }
  }
}

/// Runs a test in a thread of its own: it may block without taking a thread from the other tests, and does not wait for
/// one that they have.
package final class BlockingExecutor: TaskExecutor {
  private let queue = DispatchQueue(label: "test")

  package init() {}

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
