// SPDX-License-Identifier: Apache-2.0

internal import DequeModule
// Swift itself cannot start a thread.
internal import Glibc
internal import Synchronization

/// The threads on which a store reads, writes and syncs, so that a slow disk blocks no other thread. Each takes the
/// next ready *lane* (`ArchiveLane`).
///
/// The first thread starts with the store. Another starts when a lane has jobs and all threads are busy, up to
/// `countMax`. If the system refuses it, the lane waits. An idle thread is blocked and makes no system call.
package final class ArchiveThreads: Sendable {
  static let countMax = 8
  private let pool = Pool()

  package init() throws(ArchiveError) {
    let code = pool.start(pool.addWorker())
    guard code == 0 else {
      throw ArchiveError(.definite, "cannot start a thread: \(String(cString: strerror(code)))")
    }
  }

  deinit { pool.stop() }

  package func lane() -> ArchiveLane { ArchiveLane(of: self) }

  var progress: StoreProgress { pool.progress }

  /// Makes a lane run its jobs; wakes or starts at most one thread.
  func schedule(_ lane: ArchiveLane) {
    switch pool.add(lane) {
    case .nothing: break
    case .wake(let worker): sem_post(worker.wakeup)
    case .start(let worker): if pool.start(worker) != 0 { pool.remove(worker) }
    }
  }

  func hurry(_ lane: ArchiveLane) { pool.hurry(lane) }

  /// Notes a step of a long job on the calling thread, which may be any.
  static func noteStep() {
    guard let worker = pthread_getspecific(currentWorker) else { return }
    Unmanaged<Worker>.fromOpaque(worker).takeUnretainedValue().noteStep()
  }

  /// The key of each thread's `Worker`.
  fileprivate static let currentWorker: pthread_key_t = {
    var key = pthread_key_t()
    pthread_key_create(&key, nil)
    return key
  }()
}

private final class Worker: Sendable {
  private let steps = Atomic<UInt64>(0)
  // A semaphore is made to be used by several threads, but pointers are never Sendable.
  nonisolated(unsafe) let wakeup: UnsafeMutablePointer<sem_t>

  init() {
    wakeup = .allocate(capacity: 1)
    sem_init(wakeup, 0, 0)
  }

  deinit {
    sem_destroy(wakeup)
    wakeup.deallocate()
  }

  var stepCount: UInt64 { steps.load(ordering: .relaxed) }

  func noteStep() { steps.wrappingAdd(1, ordering: .relaxed) }
}

/// The shared state of the threads; outlives `ArchiveThreads` by the job that released it.
private final class Pool: Sendable {
  private struct State {
    /// Lanes with jobs that no thread has taken.
    var ready: Deque<ArchiveLane> = []
    var workers: [Worker] = []
    /// Sleeping workers; the last one is woken first.
    var idle: [Worker] = []
    var isStopped = false

    mutating func makeReady(_ lane: ArchiveLane) {
      if lane.isUrgent { ready.prepend(lane) } else { ready.append(lane) }
    }
  }

  enum Summons {
    case nothing
    case wake(Worker)
    case start(Worker)
  }

  private enum Next {
    case lane(ArchiveLane)
    case sleep
    case end
  }

  private let state = Mutex(State())

  func addWorker() -> Worker {
    let worker = Worker()
    state.withLock { $0.workers.append(worker) }
    return worker
  }

  func remove(_ worker: Worker) { state.withLock { $0.workers.removeAll { $0 === worker } } }

  /// Makes a lane ready; returns the action for it.
  func add(_ lane: ArchiveLane) -> Summons {
    state.withLock { state in
      state.makeReady(lane)
      if let worker = state.idle.popLast() { return .wake(worker) }
      guard state.workers.count < ArchiveThreads.countMax else { return .nothing }
      let worker = Worker()
      state.workers.append(worker)
      return .start(worker)
    }
  }

  /// Puts a waiting lane first; a taken one goes there afterwards.
  func hurry(_ lane: ArchiveLane) {
    state.withLock { state in
      guard let place = state.ready.firstIndex(where: { $0 === lane }) else { return }
      state.ready.prepend(state.ready.remove(at: place))
    }
  }

  /// All threads end once no lane is ready.
  func stop() {
    let idle = state.withLock { state in
      state.isStopped = true
      defer { state.idle = [] }
      return state.idle
    }
    for worker in idle { sem_post(worker.wakeup) }
  }

  var progress: StoreProgress {
    state.withLock { state in
      StoreProgress(
        threads: state.workers.map { worker in
          StoreProgress.Thread(steps: worker.stepCount, isAtWork: !state.idle.contains { $0 === worker })
        }
      )
    }
  }

  /// Returns an errno; 0 if the thread has started.
  func start(_ worker: Worker) -> Int32 {
    // Signals are for the threads that wait for them; the new thread inherits this mask.
    var all = sigset_t()
    var former = sigset_t()
    sigfillset(&all)
    pthread_sigmask(SIG_SETMASK, &all, &former)
    defer { pthread_sigmask(SIG_SETMASK, &former, nil) }
    var thread = pthread_t()
    let start = Unmanaged.passRetained(Start(pool: self, worker: worker))
    let code = pthread_create(
      &thread,
      nil,
      { argument in
        guard let argument else { return nil }
        let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
        pthread_setspecific(ArchiveThreads.currentWorker, Unmanaged.passUnretained(start.worker).toOpaque())
        start.pool.run(start.worker)
        return nil
      },
      start.toOpaque()
    )
    if code == 0 { pthread_detach(thread) } else { start.release() }
    return code
  }

  private final class Start {
    let pool: Pool
    let worker: Worker

    init(pool: Pool, worker: Worker) { (self.pool, self.worker) = (pool, worker) }
  }

  private func run(_ worker: Worker) {
    nameThread()
    var jobs: [UnownedJob] = []
    var unfinished: ArchiveLane?
    while true {
      switch next(for: worker, after: unfinished) {
      case .lane(let lane): unfinished = lane.run(&jobs, noting: worker.noteStep) ? lane : nil
      case .sleep: while sem_wait(worker.wakeup) != 0 {}
      case .end: return
      }
    }
  }

  /// - Parameter unfinished: a lane that got more jobs: other lanes go first, unless it is urgent.
  private func next(for worker: Worker, after unfinished: ArchiveLane?) -> Next {
    state.withLock { state in
      if let unfinished { state.makeReady(unfinished) }
      if let lane = state.ready.popFirst() { return .lane(lane) }
      if state.isStopped { return .end }
      // A thread without work did not hang.
      worker.noteStep()
      state.idle.append(worker)
      return .sleep
    }
  }

  /// Lets `ps -L` and debuggers tell the threads apart from others.
  private func nameThread() {
    let descriptor = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    let name: StaticString = "archive-writer"
    _ = write(descriptor, name.utf8Start, name.utf8CodeUnitCount)
  }
}
