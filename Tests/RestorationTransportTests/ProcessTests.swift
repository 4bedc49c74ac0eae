// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import NIOCore
internal import NIOPosix
internal import RestorationTransport
internal import Synchronization
internal import TestSupport
internal import Testing

@Suite struct ProcessHandleTests {
  @Test func ourOwnProcessIsAliveAndFoundByItsIdentity() throws {
    let identity = try #require(ProcessIdentity.current(of: getpid()))
    #expect(identity.pid == getpid() && identity.startTicks > 0 && !identity.bootID.isEmpty)
    let handle = try #require(ProcessHandle.open(identity))
    #expect(!handle.hasExited)
    #expect(handle.identity == identity)
  }

  @Test func anotherStartTimeOrBootIsAnotherProcess() throws {
    let identity = try #require(ProcessIdentity.current(of: getpid()))
    let (pid, ticks, boot) = (identity.pid, identity.startTicks, identity.bootID)
    #expect(ProcessHandle.open(ProcessIdentity(pid: pid, startTicks: ticks + 1, bootID: boot)) == nil)
    #expect(ProcessHandle.open(ProcessIdentity(pid: pid, startTicks: ticks, bootID: "another")) == nil)
    #expect(ProcessHandle.open(ProcessIdentity(pid: 1, startTicks: ticks, bootID: boot)) == nil)
  }

  @Test(arguments: [0, -1, Int32.max])
  func aNumberThatIsNobodysGivesNothing(_ pid: Int32) {
    #expect(ProcessHandle.open(pid: pid) == nil)
    #expect(ProcessIdentity.current(of: pid) == nil)
  }

  @Test func aProcessThatHasEndedIsKnownToHaveEnded() throws {
    let child = try ChildProcess(["cat"])
    let handle = try #require(ProcessHandle.open(pid: child.pid))
    let identity = try #require(handle.identity)
    #expect(!handle.hasExited)
    try child.kill()
    #expect(handle.hasExited)
    #expect(handle.identity == nil)
    #expect(ProcessHandle.open(identity) == nil)
  }

  @Test func howAProcessEndedIsKnownBeforeAndAfterItWasWaitedFor() throws {
    let child = try ChildProcess(["cat"])
    let handle = try #require(ProcessHandle.open(pid: child.pid))
    #expect(handle.ending == nil)
    child.send(signal: SIGKILL)
    // It is a zombie as soon as the pidfd can be read.
    while !handle.hasExited { sched_yield() }
    #expect(handle.ending == .signalled(signal: SIGKILL))
    try child.waitForEnd()
    #expect(handle.ending == .signalled(signal: SIGKILL))
  }

  @Test func theCodeOfAProcessThatExitsIsKnown() throws {
    let child = try ChildProcess(["sh", "-c", "read x; exit 7"])
    let handle = try #require(ProcessHandle.open(pid: child.pid))
    child.closeInput()
    while !handle.hasExited { sched_yield() }
    #expect(handle.ending == .exited(code: 7))
    try child.waitForEnd()
    #expect(handle.ending == .exited(code: 7))
  }

  @Test(
    arguments: [
      ("1 (cat) Z" + String(repeating: " 0", count: 48) + " 256\n", 256),
      ("1 (a) Z (b) S" + String(repeating: " 0", count: 48) + " 256\n", nil),
      ("1 (cat) Z" + String(repeating: " 0", count: 47), nil), ("", nil),
    ] as [(String, Int32?)]
  )
  func theStatusIsReadOfAProcessThatHasEnded(_ text: String, _ status: Int32?) {
    #expect(ProcessIdentity.exitStatus(inStatus: Array(text.utf8)) == status)
  }

  @Test(
    arguments: [
      ("1 (cat) S" + String(repeating: " 0", count: 18) + " 77 1 2", 77),
      ("1 (a) b (c) 9) S" + String(repeating: " 0", count: 18) + " 78 1 2", 78),
      ("1 (cat) S 0 0", nil),
      ("1 (cat) S" + String(repeating: " 0", count: 18) + " x 1", nil),
      ("", nil),
    ] as [(String, UInt64?)]
  )
  func theStartTimeIsReadAfterTheProgramsName(_ text: String, _ ticks: UInt64?) {
    #expect(ProcessIdentity.startTicks(inStatus: Array(text.utf8)) == ticks)
  }
}

@Suite struct ProcessWatcherTests {
  /// Counts callbacks and hands them on.
  private final class Callbacks: Sendable {
    private let count = Mutex(0)
    private let sink: AsyncStream<Void>.Continuation
    private let stream: AsyncStream<Void>

    init() { (stream, sink) = AsyncStream.makeStream() }

    var total: Int { count.withLock { $0 } }

    func call() {
      count.withLock { $0 += 1 }
      sink.yield()
    }

    func next() async { for await _ in stream { return } }
  }

  private func run(_ body: (ProcessWatcher, any EventLoop) async throws -> Void) async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let watcher = try ProcessWatcher()
    do {
      try await body(watcher, group.any())
    } catch {
      Issue.record(error)
    }
    watcher.stop()
    try await group.shutdownGracefully()
  }

  @Test func theEndOfAProcessIsReportedExactlyOnceOnTheLoop() async throws {
    try await run { watcher, loop in
      let child = try ChildProcess(["cat"])
      let handle = try #require(ProcessHandle.open(pid: child.pid))
      let callbacks = Callbacks()
      _ = try watcher.watch(handle, on: loop) {
        loop.preconditionInEventLoop()
        callbacks.call()
      }
      #expect(watcher.count == 1)
      child.send(signal: SIGKILL)
      await callbacks.next()
      try child.waitForEnd()
      // Another process's end passes through the same thread and loop.
      let other = try ChildProcess(["cat"])
      let done = Callbacks()
      _ = try watcher.watch(#require(ProcessHandle.open(pid: other.pid)), on: loop) { done.call() }
      other.send(signal: SIGKILL)
      await done.next()
      #expect(callbacks.total == 1)
      #expect(watcher.count == 0)
    }
  }

  @Test func aProcessThatHasEndedAlreadyIsReported() async throws {
    try await run { watcher, loop in
      let child = try ChildProcess(["cat"])
      let handle = try #require(ProcessHandle.open(pid: child.pid))
      try child.kill()
      for _ in 1...2 {
        let callbacks = Callbacks()
        _ = try watcher.watch(handle, on: loop) { callbacks.call() }
        await callbacks.next()
      }
    }
  }

  @Test func aCancelledWatchIsSilentAndItsSiblingIsNot() async throws {
    try await run { watcher, loop in
      let child = try ChildProcess(["cat"])
      let handle = try #require(ProcessHandle.open(pid: child.pid))
      let (cancelled, kept) = (Callbacks(), Callbacks())
      let token = try watcher.watch(handle, on: loop) { cancelled.call() }
      _ = try watcher.watch(handle, on: loop) { kept.call() }
      token.cancel()
      token.cancel()
      child.send(signal: SIGKILL)
      await kept.next()
      try await loop.submit {}.get()
      #expect(cancelled.total == 0 && kept.total == 1)
    }
  }

  @Test func cancellingOnTheLoopWorksUpToTheLastMoment() async throws {
    try await run { watcher, loop in
      let callbacks = Callbacks()
      try await loop.submit {
        let child = try ChildProcess(["cat"])
        let handle = try #require(ProcessHandle.open(pid: child.pid))
        let token = try watcher.watch(handle, on: loop) { callbacks.call() }
        try child.kill()
        // The watching thread may have queued the callback behind us by now.
        token.cancel()
      }.get()
      try await loop.submit {}.get()
      #expect(callbacks.total == 0)
    }
  }

  @Test func manyEndsAreAllReported() async throws {
    try await run { watcher, loop in
      let children = try (0..<100).map { _ in try ChildProcess(["cat"]) }
      let callbacks = Callbacks()
      for child in children {
        _ = try watcher.watch(#require(ProcessHandle.open(pid: child.pid)), on: loop) { callbacks.call() }
      }
      for child in children { child.send(signal: SIGKILL) }
      for _ in children { await callbacks.next() }
      #expect(callbacks.total == 100 && watcher.count == 0)
    }
  }

  @Test func stoppingForgetsWhatIsWatched() async throws {
    try await run { watcher, loop in
      let child = try ChildProcess(["cat"])
      let callbacks = Callbacks()
      let token = try watcher.watch(#require(ProcessHandle.open(pid: child.pid)), on: loop) { callbacks.call() }
      watcher.stop()
      watcher.stop()
      #expect(watcher.count == 0)
      try child.kill()
      token.cancel()
      try await loop.submit {}.get()
      #expect(callbacks.total == 0)
    }
  }
}
