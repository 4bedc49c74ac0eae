// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// What a connection has taken over from the process before, and what of it the one after would miss. Pure: no page
/// and no store is touched here.
///
/// Invariants:
/// 1. What the process before has left is taken over once.
/// 2. A snapshot's output is what the kernel has not taken, in the order in which it was written, and then what was
///    only collected. No byte that the kernel has taken is in it.
/// 3. A connection whose peer has sent notifications without durable effects is not settled.
package struct HandoffState {
  private var adopted: ConnectionSnapshot?
  /// What the delegate wants to know again of the connection, in another process.
  package private(set) var context: [UInt8]
  /// Notifications of the peer whose effects are not durable.
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

  /// This waits in the channel now.
  package mutating func wrote(_ bytes: ByteBuffer) { writes.append(bytes) }

  /// The kernel has all of the first write that waited.
  package mutating func firstIsTaken() { if !writes.isEmpty { writes.removeFirst() } }

  /// What is known here. The rest of the snapshot is the conversation's and the decoder's.
  ///
  /// - Parameter inChannel: how many bytes of the writes the kernel has not taken.
  package func snapshot(collected: [UInt8], inChannel: Int) -> ConnectionSnapshot {
    var snapshot = ConnectionSnapshot()
    snapshot.context = context
    snapshot.output = writes.flatMap { $0.readableBytesView }.suffix(inChannel) + collected
    return snapshot
  }
}
