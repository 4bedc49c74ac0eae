// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// What connections may take up. Each limit passes at its value and fails at one more.
package struct TransportLimits: Sendable, Equatable {
  /// Connections at one time; one more is told so and closed.
  package var connectionsMax = 1_024

  /// Connections that wait to be accepted; one more waits in `connect`.
  package var backlogMax = 1_024

  /// How long a frame may stay incomplete. A connection without a begun frame has no limit.
  package var partialFrameMilliseconds = 30_000

  /// Replies in bytes that the peer has not taken yet, beyond which its requests are not read; reading goes on at
  /// half of it. Replies are never dropped.
  package var replyBytesPause = 1 << 20

  /// Notifications and calls of ours in bytes that the peer has not taken yet; one more byte cuts the connection.
  package var outQueueBytesMax = 8 << 20

  /// Offered notifications in bytes that the peer has not taken yet; further ones are refused until half of them are
  /// taken. They count neither as replies nor against `outQueueBytesMax`.
  package var offeredBytesMax = 1 << 20

  /// Requests in bytes that were read while too many were under way, beyond which nothing more is read.
  package var heldBackBytesPause = 256 << 10

  /// How long a connection we close is kept for the peer to read our last words, in seconds.
  package var lingerSeconds = 1

  /// How long accepting stops after an error such as a lack of descriptors, in milliseconds.
  package var acceptPauseMilliseconds = 100

  /// How long connecting waits for room in a broker's queue, in seconds.
  package var connectSeconds = 5

  /// Of one frame.
  package var frame = FrameLimits()

  /// Of the requests of one connection.
  package var conversation = ConversationLimits()

  package init() {}
}
