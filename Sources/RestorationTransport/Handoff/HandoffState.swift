// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// The state adopted from the former process, and the state that the next process would lack. Pure: it uses neither
/// pages nor the store.
///
/// Invariants:
/// 1. A snapshot is adopted once.
/// 2. A snapshot's output is first the output that the kernel has not taken, in the order of writing, then collected
///    output.
/// 3. A connection is not settled while effects of its peer's notifications are not durable.
package struct HandoffState {
  private var adopted: ConnectionSnapshot?
  /// From the connection's delegate, for another process.
  package private(set) var context: [UInt8]
  /// Notifications of the peer whose effects are not durable yet.
  private var unsettledNotifications = 0
  /// The writes that wait in the channel, in order.
  private var writes: [ByteBuffer] = []

  package init(adopting snapshot: ConnectionSnapshot? = nil) {
    adopted = snapshot
    context = snapshot?.context ?? []
  }

  package var isSettled: Bool { unsettledNotifications == 0 }

  package mutating func takeAdopted() -> ConnectionSnapshot? {
    defer { adopted = nil }
    return adopted
  }

  package mutating func setContext(_ context: [UInt8]) { self.context = context }

  package mutating func countUnsettled(_ change: Int) { unsettledNotifications += change }

  package mutating func wrote(_ bytes: ByteBuffer) { writes.append(bytes) }

  /// The kernel has taken the first write that waited.
  package mutating func firstIsTaken() { if !writes.isEmpty { writes.removeFirst() } }

  /// This part of the snapshot; the conversation and the decoder add theirs.
  ///
  /// - Parameter inChannel: bytes of the writes that the kernel has not taken.
  package func snapshot(collected: [UInt8], inChannel: Int) -> ConnectionSnapshot {
    var snapshot = ConnectionSnapshot()
    snapshot.context = context
    snapshot.output = writes.flatMap { $0.readableBytesView }.suffix(inChannel) + collected
    return snapshot
  }
}
