// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
package import RestorationArchive
package import RestorationReplica
internal import Synchronization

/// Time that a test owns, for hosts that share a replica.
extension TestEventLoop {
  private var nowMilliseconds: Int64 { Int64(now.uptimeNanoseconds / 1_000_000) }

  package var replicaClock: ReplicaClock {
    ReplicaClock(
      now: { self.nowMilliseconds },
      wake: { milliseconds, body in _ = self.scheduleTask(in: .milliseconds(milliseconds), body) }
    )
  }

  /// Does what is due, and what that brings, for so many milliseconds.
  package func pass(_ milliseconds: Int64 = 0, at replica: MemoryReplica) {
    run()
    let end = now + .milliseconds(milliseconds)
    while now < end {
      let next = max(now, min(nextDeadline ?? end, end))
      replica.advance(by: (next - now).nanoseconds / 1_000_000)
      advance(to: end)
    }
    run()
  }

  /// Begins a call on the loop.
  package func call<Value: Sendable>(
    _ body: @escaping @Sendable () async throws(ArchiveError) -> Value
  ) -> PendingCall<Value> {
    let call = PendingCall<Value>()
    let task = Task(executorPreference: self) {
      do throws(ArchiveError) {
        call.end(.success(try await body()))
      } catch {
        call.end(.failure(error))
      }
    }
    call.task.withLock { $0 = task }
    return call
  }
}

package final class PendingCall<Value: Sendable>: Sendable {
  private let outcome = Mutex<Result<Value, ArchiveError>?>(nil)
  fileprivate let task = Mutex<Task<Void, Never>?>(nil)

  /// `nil` as long as it waits.
  package var result: Result<Value, ArchiveError>? { outcome.withLock { $0 } }

  /// Why it has failed.
  package var failure: ArchiveError.Kind? { if case .failure(let error) = result { error.kind } else { nil } }

  package var value: Value? { if case .success(let value) = result { value } else { nil } }

  /// Its caller no longer waits.
  package func cancel() { task.withLock { $0 }?.cancel() }

  fileprivate func end(_ result: Result<Value, ArchiveError>) { outcome.withLock { $0 = result } }
}
