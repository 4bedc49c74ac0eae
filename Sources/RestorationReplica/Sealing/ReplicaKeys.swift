// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Synchronization

/// The user's keys: the sealing key and former ones.
package final class ReplicaKeys: Sendable {
  /// Returns at least one key, the sealing key first. It may block.
  package typealias Source = @Sendable () throws(ReplicaKeyError) -> [ReplicaKey]

  private let source: Source
  private let keys: Mutex<[ReplicaKey]>

  /// Blocks until the source has answered.
  package init(from source: @escaping Source) throws(ReplicaKeyError) {
    self.source = source
    keys = Mutex(try source())
  }

  /// The sealing key.
  package var current: ReplicaKey { keys.withLock { $0[0] } }

  package subscript(id: ReplicaKeyID) -> ReplicaKey? { keys.withLock { $0.first { $0.id == id } } }

  /// Asks the source again, on another thread. If that fails, the keys stay as they are.
  package func reread() async throws(ReplicaKeyError) {
    let source = source
    let answer = await withCheckedContinuation { continuation in
      DispatchQueue.global().async { continuation.resume(returning: Result(catching: source)) }
    }
    let new = try answer.get()
    keys.withLock { $0 = new }
  }
}
