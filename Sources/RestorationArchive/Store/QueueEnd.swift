// SPDX-License-Identifier: Apache-2.0

/// Lets an actor's task wait until the jobs that were queued before are done. `Task.yield` would take it to a thread of
/// the global pool and back.
actor QueueEnd {
  /// Another name of the executor: a task that is on the executor already would not queue up for it.
  private final class Detour: SerialExecutor {
    private let executor: any SerialExecutor

    init(_ executor: any SerialExecutor) { self.executor = executor }

    func enqueue(_ job: consuming ExecutorJob) { executor.enqueue(job) }
  }

  private let detour: Detour
  /// A method that uses nothing of an actor would return at once.
  private var count: UInt64 = 0

  init(of executor: any SerialExecutor) { detour = Detour(executor) }

  nonisolated var unownedExecutor: UnownedSerialExecutor { detour.asUnownedSerialExecutor() }

  func reach() { count &+= 1 }
}
