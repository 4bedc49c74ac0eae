// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Runs jobs one after the other, in the order in which they came, on whichever of the threads is free.
///
/// Invariant: from the first job that waits until none does (`isScheduled`), the lane is either ready once or taken by
/// one thread; so no two of its jobs run at a time, and each sees what the former ones did.
///
/// A lane with an urgent job (of more than medium priority) goes before others.
final class ArchiveLane: SerialExecutor, TaskExecutor {
  private struct State {
    var jobs: [UnownedJob] = []
    var isScheduled = false
    var isUrgent = false
  }

  private let state = Mutex(State())
  private let threads: ArchiveThreads

  init(of threads: ArchiveThreads) { self.threads = threads }

  func enqueue(_ job: consuming ExecutorJob) {
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

  /// Whether it goes before other lanes.
  var isUrgent: Bool { state.withLock { $0.isUrgent } }

  /// Runs the jobs that wait; returns whether more have come meanwhile, and then the lane is still scheduled.
  ///
  /// - Parameters:
  ///   - jobs: empty, before and afterwards; its memory is used.
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
