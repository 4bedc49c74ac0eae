// SPDX-License-Identifier: Apache-2.0

// Swift itself cannot start a thread.
internal import Glibc
internal import Synchronization

/// The one thread on which a store does all its reading, writing and syncing, so that a slow disk blocks nobody else.
///
/// While there is nothing to do, the thread is blocked and makes no system call.
final class ArchiveWriter: SerialExecutor {
  private let queue: JobQueue

  init() throws(ArchiveError) {
    queue = JobQueue()
    try queue.start(as: asUnownedSerialExecutor())
  }

  deinit { queue.stop() }

  var progress: UInt64 { queue.done.load(ordering: .relaxed) }

  func enqueue(_ job: consuming ExecutorJob) { queue.append(UnownedJob(job)) }
}

/// Jobs in order of arrival, and the thread that runs them; outlives its executor by the job that released it.
private final class JobQueue: Sendable {
  private struct State {
    var jobs: [UnownedJob] = []
    var isIdle = false
    var isStopped = false
    /// The executor for which the jobs run.
    var executor: UnownedSerialExecutor?
  }

  let done = Atomic<UInt64>(0)
  private let state = Mutex(State())
  // A semaphore is made to be used by several threads, but pointers are never Sendable.
  private nonisolated(unsafe) let wakeup: UnsafeMutablePointer<sem_t>

  init() {
    wakeup = .allocate(capacity: 1)
    sem_init(wakeup, 0, 0)
  }

  deinit {
    sem_destroy(wakeup)
    wakeup.deallocate()
  }

  func start(as executor: UnownedSerialExecutor) throws(ArchiveError) {
    state.withLock { $0.executor = executor }
    // Signals are for the threads that wait for them; the new thread inherits this mask.
    var all = sigset_t()
    var former = sigset_t()
    sigfillset(&all)
    pthread_sigmask(SIG_SETMASK, &all, &former)
    defer { pthread_sigmask(SIG_SETMASK, &former, nil) }
    var thread = pthread_t()
    let retained = Unmanaged.passRetained(self)
    let code = pthread_create(
      &thread,
      nil,
      { argument in
        if let argument { Unmanaged<JobQueue>.fromOpaque(argument).takeRetainedValue().run() }
        return nil
      },
      retained.toOpaque()
    )
    guard code == 0 else {
      retained.release()
      throw ArchiveError(.definite, "cannot start a thread: \(String(cString: strerror(code)))")
    }
    pthread_detach(thread)
  }

  func append(_ job: UnownedJob) { wake { $0.jobs.append(job) } }

  func stop() { wake { $0.isStopped = true } }

  /// Changes what the thread looks at, and wakes it if it sleeps.
  private func wake(_ change: @Sendable (inout State) -> Void) {
    let wasIdle = state.withLock { state in
      change(&state)
      defer { state.isIdle = false }
      return state.isIdle
    }
    if wasIdle { sem_post(wakeup) }
  }

  private func run() {
    nameThread()
    var jobs: [UnownedJob] = []
    while true {
      let (executor, isStopped) = state.withLock { state in
        swap(&jobs, &state.jobs)
        state.isIdle = jobs.isEmpty && !state.isStopped
        return (state.executor, state.isStopped)
      }
      guard let executor, !(isStopped && jobs.isEmpty) else { return }
      // An interrupted wait only looks again.
      if jobs.isEmpty { sem_wait(wakeup) }
      for job in jobs {
        job.runSynchronously(on: executor)
        done.wrappingAdd(1, ordering: .relaxed)
      }
      jobs.removeAll(keepingCapacity: true)
    }
  }

  /// So that `ps -L` and debuggers tell it apart.
  private func nameThread() {
    let descriptor = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    let name: StaticString = "archive-writer"
    _ = write(descriptor, name.utf8Start, name.utf8CodeUnitCount)
  }
}
