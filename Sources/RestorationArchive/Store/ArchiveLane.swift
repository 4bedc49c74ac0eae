// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Runs jobs in their order, on any free thread.
///
/// Invariant: while jobs wait (`isScheduled`), the lane is either ready once or taken by one thread. So its jobs never
/// overlap, and each sees the effects of the former ones.
///
/// A lane with an urgent job (of more than medium priority) goes before others.
package final class ArchiveLane: SerialExecutor, TaskExecutor {
  private struct State {
    var jobs: [UnownedJob] = []
    var isScheduled = false
    var isUrgent = false
  }

  private let state = Mutex(State())
  private let threads: ArchiveThreads

  init(of threads: ArchiveThreads) { self.threads = threads }

  package func enqueue(_ job: consuming ExecutorJob) {
    let isUrgent = job.priority.rawValue > TaskPriority.medium.rawValue
    let job = UnownedJob(job)
    let wasScheduled = state.withLock { state in
      state.jobs.append(job)
      if isUrgent { state.isUrgent = true }
      defer { state.isScheduled = true }
      return state.isScheduled
    }
    if !wasScheduled {
      threads.schedule(self)
    } else if isUrgent {
      threads.hurry(self)
    }
  }

  var isUrgent: Bool { state.withLock { $0.isUrgent } }

  /// Runs the waiting jobs; returns whether more have come: then the lane is still scheduled.
  ///
  /// - Parameters:
  ///   - jobs: an empty buffer, before and afterwards.
  ///   - noteStep: called after each job.
  func run(_ jobs: inout [UnownedJob], noting noteStep: () -> Void) -> Bool {
    state.withLock { state in
      swap(&jobs, &state.jobs)
      state.isUrgent = false
    }
    for job in jobs {
      job.runSynchronously(on: asUnownedSerialExecutor())
      noteStep()
    }
    jobs.removeAll(keepingCapacity: true)
    return state.withLock { state in
      state.isScheduled = !state.jobs.isEmpty
      return state.isScheduled
    }
  }
}
