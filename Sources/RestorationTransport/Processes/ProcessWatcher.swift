// SPDX-License-Identifier: Apache-2.0

package import NIOCore
internal import Synchronization

/// Reports the end of processes.
///
/// One thread waits on all pidfds without a time limit: it runs only when a process ends.
package final class ProcessWatcher: Sendable {
  private let waiting: WaitingProcesses
  private let thread: Mutex<SystemCalls.Thread?>

  /// Starts the thread. Throws if no descriptor or thread is left.
  package init() throws(TransportError) {
    do throws(SystemCallError) {
      let waiting = try WaitingProcesses(set: SystemCalls.epoll(), wakeUp: SystemCalls.eventCounter())
      self.waiting = waiting
      self.thread = Mutex(try SystemCalls.startThread { waiting.run() })
    } catch {
      throw TransportError(error, doing: "cannot watch processes")
    }
  }

  deinit {
    stop()
  }

  /// Drops all watches without calling back, and returns when the thread has ended.
  package func stop() {
    let thread = thread.withLock { thread in
      defer { thread = nil }
      return thread
    }
    guard let thread else { return }
    waiting.end()
    SystemCalls.join(thread)
  }

  /// The number of watches that have neither called back nor been cancelled.
  package var count: Int { waiting.count }

  /// Calls back once, on `eventLoop`, when the process has ended, even if it has ended before.
  ///
  /// The event loop must outlive the watch. Throws if the kernel has no room for another watch.
  package func watch(
    _ process: ProcessHandle,
    on eventLoop: any EventLoop,
    _ callback: @escaping @Sendable () -> Void
  ) throws(TransportError) -> Token {
    do throws(SystemCallError) {
      return Token(key: try waiting.add(process, eventLoop, callback), waiting: waiting)
    } catch {
      throw TransportError(error, doing: "cannot watch process \(process.pid)")
    }
  }

  /// Names one watch. Dropping it does not end the watch.
  package struct Token: Sendable {
    fileprivate let key: UInt64
    fileprivate let waiting: WaitingProcesses

    /// Ends the watch. If this is called on the watch's event loop, the callback does not run afterwards.
    package func cancel() { waiting.remove(key) }
  }
}

/// The watches, and the epoll set of their pidfds; shared by the watcher, its thread and the tokens.
///
/// Invariants: a pidfd is in the epoll set exactly while `keys` lists it. Every key listed there has a watch, which
/// holds the pidfd open. A watch is removed when it is cancelled, or just before it calls back.
private final class WaitingProcesses: Sendable {
  private struct Watch {
    let process: ProcessHandle
    let eventLoop: any EventLoop
    let callback: @Sendable () -> Void
  }

  private struct State {
    var watches: [UInt64: Watch] = [:]
    /// The watches of each pidfd that was not reported.
    var keys: [Int32: [UInt64]] = [:]
    var lastKey: UInt64 = 0
    var hasEnded = false
  }

  private let set: Descriptor
  private let wakeUp: Descriptor
  private let state = Mutex(State())

  init(set: consuming Descriptor, wakeUp: consuming Descriptor) throws(SystemCallError) {
    self.set = set
    self.wakeUp = wakeUp
    try SystemCalls.epollAdd(self.set.number, self.wakeUp.number)
  }

  var count: Int { state.withLock { $0.watches.count } }

  func add(
    _ process: ProcessHandle,
    _ eventLoop: any EventLoop,
    _ callback: @escaping @Sendable () -> Void
  ) throws(SystemCallError) -> UInt64 {
    try state.withLock { (state) throws(SystemCallError) in
      precondition(!state.hasEnded, "a process is watched after the watcher was stopped")
      if state.keys[process.number] == nil { try SystemCalls.epollAdd(set.number, process.number) }
      state.lastKey += 1
      state.keys[process.number, default: []].append(state.lastKey)
      state.watches[state.lastKey] = Watch(process: process, eventLoop: eventLoop, callback: callback)
      return state.lastKey
    }
  }

  func remove(_ key: UInt64) {
    // The watch is released outside the lock, because its callback may own anything.
    _ = state.withLock { state -> Watch? in
      guard let watch = state.watches.removeValue(forKey: key) else { return nil }
      let number = watch.process.number
      guard var keys = state.keys.removeValue(forKey: number) else { return watch }
      keys.removeAll { $0 == key }
      if keys.isEmpty {
        try? SystemCalls.epollRemove(set.number, number)
      } else {
        state.keys[number] = keys
      }
      return watch
    }
  }

  func end() {
    let forgotten = state.withLock { state in
      state.hasEnded = true
      state.keys.removeAll()
      defer { state.watches.removeAll() }
      return state.watches
    }
    withExtendedLifetime(forgotten) { SystemCalls.signal(wakeUp.number) }
  }

  func run() {
    while !state.withLock({ $0.hasEnded }) {
      // Fails only for a bad descriptor, and both stay open while this object lives.
      guard let ready = try? SystemCalls.epollWait(set.number) else { return }
      for number in ready { report(number) }
    }
  }

  private func report(_ number: Int32) {
    let ended = state.withLock { state -> [(UInt64, any EventLoop)] in
      // Since epoll_wait returned, the descriptor's number may have been reused: the process itself is checked.
      guard let keys = state.keys[number], let first = keys.first.flatMap({ state.watches[$0] }),
        first.process.hasExited
      else { return [] }
      state.keys[number] = nil
      try? SystemCalls.epollRemove(set.number, number)
      return keys.compactMap { key in state.watches[key].map { (key, $0.eventLoop) } }
    }
    for (key, eventLoop) in ended {
      eventLoop.execute {
        // Absent if it was cancelled meanwhile.
        let watch = self.state.withLock { $0.watches.removeValue(forKey: key) }
        watch?.callback()
      }
    }
  }
}
