// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Makes calls wait, without a thread, until it is opened. Each call is a job of this executor, which runs jobs only
/// when open. A continuation would resume them on a thread of the runtime.
package final class Latch: SerialExecutor {
  private struct Waiters {
    var jobs: [UnownedJob] = []
    var isOpen = false
    var error: ArchiveError?
  }

  private let state = Mutex(Waiters())

  package init() {}

  private actor Waiting {
    private let latch: Latch

    init(at latch: Latch) { self.latch = latch }

    nonisolated var unownedExecutor: UnownedSerialExecutor { latch.asUnownedSerialExecutor() }

    var error: ArchiveError? { latch.state.withLock { $0.error } }
  }

  /// Returns the error of `open`.
  nonisolated(nonsending) package func wait() async -> ArchiveError? { await Waiting(at: self).error }

  /// Only the first call counts.
  package func open(_ error: ArchiveError? = nil) {
    let jobs = state.withLock { state in
      guard !state.isOpen else { return [UnownedJob]() }
      (state.isOpen, state.error) = (true, error)
      defer { state.jobs = [] }
      return state.jobs
    }
    for job in jobs { job.runSynchronously(on: asUnownedSerialExecutor()) }
  }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let isOpen = state.withLock { state in
      if !state.isOpen { state.jobs.append(job) }
      return state.isOpen
    }
    if isOpen { job.runSynchronously(on: asUnownedSerialExecutor()) }
  }
}
