// SPDX-License-Identifier: Apache-2.0

package struct ReplicaSettings: Sendable {
  /// Where the gateway is by default, at both of its ends.
  package static let gatewaySocket = "/run/restoration-gateway/gateway.sock"

  /// Where the keys are by default, in the user's configuration.
  package static func keys(in configuration: String) -> String { "\(configuration)/keys" }

  /// This host, as others name it.
  package var host: String
  /// Of this broker's leases.
  package var term: LeaseTerm
  /// When a transaction is acknowledged.
  package var promise: ShippingQueue.Promise
  package var limits: ShippingQueue.Limits
  /// How many milliseconds a transaction waits for others to share its batch, if no writer waits for it.
  package var delay: Int64 = 50
  /// The same if what was sent before had more memory than `pace` a second.
  package var delayMax: Int64 = 1_000
  package var pace = 4 << 20
  /// If transactions take so much memory, they wait for no others.
  package var eagerMemory = 3 << 20
  /// Of a snapshot, at a time.
  package var partBytes = 256 << 10
  /// Of what is loaded of one archive, its snapshot and what follows it: more than a sound replica ever has.
  package var contentsBytesMax = 256 << 20
  /// Of all archives together.
  package var backlogBytesMax = 16 << 20
  /// Is told how many milliseconds each append has taken.
  package var meter: (any ReplicaMeter)?
  /// `nil` if what goes to the replica is not sealed.
  package var keyring: ReplicaKeyring?
  /// How long closing waits for the replica.
  package var stopMilliseconds: Int64 = 5_000

  package init(
    host: String,
    term: LeaseTerm,
    promise: ShippingQueue.Promise,
    limits: ShippingQueue.Limits = ShippingQueue.Limits()
  ) {
    (self.host, self.term, self.promise, self.limits) = (host, term, promise, limits)
  }
}

package protocol ReplicaMeter: Sendable {
  func appended(in milliseconds: Int64)
}

/// Milliseconds of a clock that counts sleep as well, and its alarms.
package struct ReplicaClock: Sendable {
  package let now: @Sendable () -> Int64
  /// Calls the body after this many milliseconds, from anywhere.
  package let wake: @Sendable (_ milliseconds: Int64, _ body: @escaping @Sendable () -> Void) -> Void

  package init(
    now: @escaping @Sendable () -> Int64,
    wake: @escaping @Sendable (_ milliseconds: Int64, _ body: @escaping @Sendable () -> Void) -> Void
  ) {
    (self.now, self.wake) = (now, wake)
  }
}

/// Where the work for replicas is done; what waits there comes back there.
package typealias ReplicaExecutor = any SerialExecutor & TaskExecutor
