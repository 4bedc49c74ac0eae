// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Limits of connections. A value equal to a limit passes, one more fails.
package struct TransportLimits: Sendable, Equatable {
  /// Open connections; one more gets an error and is closed.
  package var connectionsMax = 1_024
  /// Open connections of one process; one more gets an error and is closed.
  package var connectionsPerProcessMax = 128
  /// Memory of one process's requests without an answer and of its input that is held back. Beyond it nothing is read
  /// from the process.
  package var waitingBytesPerProcessMax = Int.max
  /// Connections that wait to be accepted; one more waits in `connect`.
  package var backlogMax = 1_024
  /// How long a frame may stay incomplete. A connection without an incomplete frame may stay idle for ever.
  package var partialFrameMilliseconds = 30_000
  /// Bytes of replies that the peer has not taken. Beyond it the peer's requests are not read until half of it is left.
  /// Replies are never dropped.
  package var replyBytesPause = 1 << 20
  /// Bytes of our notifications and calls that the peer has not taken; one more byte ends the connection.
  package var outQueueBytesMax = 8 << 20
  /// Bytes of offered notifications that the peer has not taken. Beyond it offers are refused until half of it is left.
  /// Offers count neither as replies nor against `outQueueBytesMax`.
  package var offeredBytesMax = 1 << 20
  /// Bytes of requests that were read while too many were in flight. Beyond it nothing is read.
  package var heldBackBytesPause = 256 << 10
  /// How long a closed connection is kept for the peer to read our last messages.
  package var lingerSeconds = 1
  /// How long accepting pauses after an error such as a lack of descriptors.
  package var acceptPauseMilliseconds = 100
  /// How long connecting waits for room in a broker's queue.
  package var connectSeconds = 5
  package var frame = FrameLimits()
  package var conversation = ConversationLimits()

  package init() {}
}
