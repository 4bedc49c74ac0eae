// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

package struct ReplicaSettings: Sendable {
  /// This host's name for other hosts.
  package var host: String
  package var term: LeaseTerm
  /// When a transaction is acknowledged.
  package var promise: ReplicaPromise
  package var limits: ShippingQueue.Limits
  /// How many milliseconds a transaction waits for others to share its batch, if no writer waits for it.
  package var delay: Int64 = 50
  /// The longest such wait, reached if former batches used more memory than `pace` a second.
  package var delayMax: Int64 = 1_000
  package var pace = 4 << 20
  /// Transactions of this much memory are sent without waiting.
  package var eagerMemory = 3 << 20
  package var partBytes = 256 << 10
  /// The most that is loaded of one archive, snapshot and batches: more than a valid replica ever has.
  package var contentsBytesMax = 256 << 20
  /// The most that waits to be sent, of all archives together.
  package var backlogBytesMax = 16 << 20
  /// Receives the duration of each append in milliseconds.
  package var meter: (any ReplicaMeter)?
  /// `nil` if data is not sealed.
  package var keyring: ReplicaKeyring?
  /// How long closing waits for the replica.
  package var stopMilliseconds: Int64 = 5_000

  package init(
    host: String,
    term: LeaseTerm,
    promise: ReplicaPromise,
    limits: ShippingQueue.Limits = ShippingQueue.Limits()
  ) {
    (self.host, self.term, self.promise, self.limits) = (host, term, promise, limits)
  }
}

/// The sealing keys, as far as a store needs them.
package struct ReplicaKeyring: Sendable {
  package let currentID: @Sendable () -> String
  /// Reads the keys again; returns why that failed, `nil` on success.
  package let reread: @Sendable () async -> String?

  package init(currentID: @escaping @Sendable () -> String, reread: @escaping @Sendable () async -> String?) {
    (self.currentID, self.reread) = (currentID, reread)
  }
}

/// Milliseconds and alarms of a clock that counts sleep.
package struct ReplicaClock: Sendable {
  package let now: @Sendable () -> Int64
  /// Calls the body after this many milliseconds, on any thread.
  package let wake: @Sendable (_ milliseconds: Int64, _ body: @escaping @Sendable () -> Void) -> Void

  package init(
    now: @escaping @Sendable () -> Int64,
    wake: @escaping @Sendable (_ milliseconds: Int64, _ body: @escaping @Sendable () -> Void) -> Void
  ) {
    (self.now, self.wake) = (now, wake)
  }
}

/// Runs the work for replicas; suspended calls resume on it.
package typealias ReplicaExecutor = any SerialExecutor & TaskExecutor
