// SPDX-License-Identifier: Apache-2.0

internal import NIOCore

/// Resumes suspended tasks on the event loop.
///
/// The global executor's thread pool wakes a timer every second as long as the process lives, but an idle broker must
/// make no system call.
final class EventLoopTaskExecutor: TaskExecutor {
  let eventLoop: any EventLoop

  init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    eventLoop.execute {
      job.runSynchronously(on: self.asUnownedTaskExecutor())
    }
  }

  /// Runs `body` to its end. Blocks its thread, which must not be the event loop's.
  func wait<Value: Sendable>(for body: @escaping @Sendable () async throws -> Value) throws -> Value {
    let promise = eventLoop.makePromise(of: Value.self)
    Task(executorPreference: self) {
      do {
        promise.succeed(try await body())
      } catch {
        promise.fail(error)
      }
    }
    return try promise.futureResult.wait()
  }
}
